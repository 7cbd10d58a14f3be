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
from pyconnect_agent.core.java_text.regex import VALID_REGEX, compile_java_regex
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


_TOKEN = re.compile(
    r"\\(?P<escaped>.)|\$\{(?P<name>[a-zA-Z][a-zA-Z0-9]*)\}|\$(?P<digits>[0-9]+)"
    r"|(?P<wrong>[\\$])|(?P<plain>[^\\$]+)",
    re.DOTALL,
)


class JavaReplacement:
    r"""A replacement compiled for one expression, as for `Matcher.replaceFirst`.

    `$1` and `${name}` stand for groups; as many digits are read as there are groups for. `\` makes
    the next character stand for itself.
    """

    __slots__ = ("_parts",)

    def __init__(self, replacement: str, regex: re.Pattern[str]) -> None:
        """Compile it; ValueError, with Java's text, for a group that does not exist."""
        self._parts: list[str | int] = []
        for match in _TOKEN.finditer(replacement):
            self._parts += _part(match, regex)

    def replace_first(self, match: re.Match[str]) -> str:
        """Return the searched text with the match replaced; groups that took no part are empty."""
        text = "".join(
            part if isinstance(part, str) else match.group(part) or "" for part in self._parts
        )
        return f"{match.string[: match.start()]}{text}{match.string[match.end() :]}"


def _part(token: re.Match[str], regex: re.Pattern[str]) -> list[str | int]:
    name, digits = token["name"], token["digits"]
    if name is not None:
        if name not in regex.groupindex:
            raise ValueError(f"No group with name {{{name}}}")
        return [regex.groupindex[name]]
    if digits is not None:
        length = len(digits)
        while length > 1 and int(digits[:length]) > regex.groups:
            length -= 1
        if int(digits[:length]) > regex.groups:
            raise ValueError(f"No group {digits[:length]}")
        return [int(digits[:length]), digits[length:]]
    if token["wrong"] == "\\":
        raise ValueError("character to be escaped is missing")
    if token["wrong"] == "$":
        missing = ": group index is missing" if token.end() == len(token.string) else ""
        raise ValueError(f"Illegal group reference{missing}")
    return [token["escaped"] or token["plain"]]
