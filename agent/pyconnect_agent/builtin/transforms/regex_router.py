"""`org.apache.kafka.connect.transforms.RegexRouter`: topics renamed by a regular expression.

Layer: builtin. As in Kafka the expression must match the whole topic, but what is replaced is the
first match of a search, which can be shorter: `a|ab` with `x` makes `xb` of `ab`. Unlike there, a
replacement that names a missing group is refused as configuration.
"""

from __future__ import annotations

import re

from pyconnect_agent.builtin.converters.recent import RecentlyUsed
from pyconnect_agent.builtin.options import Options
from pyconnect_agent.builtin.transforms.base import ShippedTransformation, rerouted
from pyconnect_agent.builtin.transforms.java_replacement import JavaReplacement
from pyconnect_agent.core.java.regex import VALID_REGEX, compile_java_regex
from pyconnect_api import ConfigDef, ConnectRecord
from pyconnect_api.configdef import invalid_value
from pyconnect_api.key_table import define_table

REGEX = "regex"
REPLACEMENT = "replacement"
_REMEMBERED_TOPICS = 256


_TABLE = """
regex  STRING  HIGH  !
    Java regular expression that the topic must match.
replacement  STRING  HIGH  !
    Text put in place of the match; $1 stands for the first group.
"""


class RegexRouter(ShippedTransformation):
    """Leaves records alone whose topic the expression does not match."""

    CONFIG_DEF = define_table(ConfigDef(), _TABLE, {REGEX: VALID_REGEX})

    _regex: re.Pattern[str]
    _replacement: JavaReplacement
    _new_topics: RecentlyUsed[str, str]

    def _configured(self, options: Options) -> None:
        self._regex = compile_java_regex(options.text(REGEX))
        replacement = options.text(REPLACEMENT)
        try:
            self._replacement = JavaReplacement(replacement, self._regex)
        except ValueError as error:
            raise invalid_value(REPLACEMENT, replacement, str(error)) from error
        self._new_topics = RecentlyUsed(_REMEMBERED_TOPICS)

    def apply(self, record: ConnectRecord) -> ConnectRecord | None:
        topic = record.topic
        if topic is None:
            return record
        new_topic = self._new_topics.get(topic)
        if new_topic is None:
            new_topic = self._new_topic(topic)
            self._new_topics.put(topic, new_topic)
        return record if new_topic == topic else rerouted(record, new_topic)

    def _new_topic(self, topic: str) -> str:
        if self._regex.fullmatch(topic) is None:
            return topic
        found = self._regex.search(topic)
        assert found is not None
        return self._replacement.replace_first(found)
