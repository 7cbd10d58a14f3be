"""Kafka's RegexRouter, TimestampRouter and Filter: records renamed to another topic, or dropped.

As in Kafka the expression of RegexRouter must match the whole topic, but what is replaced is the
first match of a search, which can be shorter: `a|ab` with `x` makes `xb` of `ab`. Unlike in Kafka,
`configure` refuses a replacement with a missing group and a wrong pattern of a time. Filter drops
every record and makes sense with a predicate only.
"""

from __future__ import annotations

import re

from pyconnect_agent.builtin.converters.base import RecentlyUsed
from pyconnect_agent.builtin.transforms.base import (
    VALID_DATE_PATTERN,
    Options,
    ShippedTransformation,
    rerouted,
)
from pyconnect_agent.builtin.transforms.java_date_format import JavaDateFormat
from pyconnect_agent.core.java_text.regex import VALID_REGEX, compile_java_regex
from pyconnect_api import ConfigDef, ConnectRecord, DataException, SinkRecord
from pyconnect_api.configdef import define_table, invalid_value

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
    """Gives records another topic if the expression matches the topic."""

    CONFIG_DEF = define_table(ConfigDef(), _TABLE, {REGEX: VALID_REGEX})

    _regex: re.Pattern[str]
    _replacement: JavaReplacement
    _new_topics: RecentlyUsed[str, str]

    def configured(self, options: Options) -> None:
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
            new_topic = topic
            if self._regex.fullmatch(topic) is not None:
                found = self._regex.search(topic)
                assert found is not None
                new_topic = self._replacement.replace_first(found)
            self._new_topics.put(topic, new_topic)
        return record if new_topic == topic else rerouted(record, new_topic)


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
        """Compile the replacement; ValueError, with Java's text, if a group does not exist."""
        self._parts: list[str | int] = []
        for token in _TOKEN.finditer(replacement):
            name, digits = token["name"], token["digits"]
            if name is not None:
                if name not in regex.groupindex:
                    raise ValueError(f"No group with name {{{name}}}")
                self._parts.append(regex.groupindex[name])
            elif digits is not None:
                length = len(digits)
                while length > 1 and int(digits[:length]) > regex.groups:
                    length -= 1
                if int(digits[:length]) > regex.groups:
                    raise ValueError(f"No group {digits[:length]}")
                self._parts += [int(digits[:length]), digits[length:]]
            elif token["wrong"] == "\\":
                raise ValueError("character to be escaped is missing")
            elif token["wrong"] == "$":
                missing = ": group index is missing" if token.end() == len(token.string) else ""
                raise ValueError(f"Illegal group reference{missing}")
            else:
                self._parts.append(token["escaped"] or token["plain"])

    def replace_first(self, match: re.Match[str]) -> str:
        """Return the searched text with the match replaced; groups without a match are empty."""
        text = "".join(
            part if isinstance(part, str) else match.group(part) or "" for part in self._parts
        )
        return f"{match.string[: match.start()]}{text}{match.string[match.end() :]}"


class Filter(ShippedTransformation):
    """Drops every record; it has no options."""

    CONFIG_DEF = ConfigDef()

    def apply(self, record: ConnectRecord) -> ConnectRecord | None:
        return None


TOPIC_FORMAT = "topic.format"
TIMESTAMP_FORMAT = "timestamp.format"

_ROUTER_TABLE = """
topic.format  STRING  HIGH  ${topic}-${timestamp}
    The new topic; ${topic} stands for the record's topic, ${timestamp} for its timestamp.
timestamp.format  STRING  HIGH  yyyyMMdd
    Pattern of java.text.SimpleDateFormat for the timestamp.
"""


class TimestampRouter(ShippedTransformation):
    """Formats the new topic from the old topic and the timestamp, in UTC."""

    CONFIG_DEF = define_table(ConfigDef(), _ROUTER_TABLE, {TIMESTAMP_FORMAT: VALID_DATE_PATTERN})

    _topic_format: str
    _date_format: JavaDateFormat

    def configured(self, options: Options) -> None:
        self._topic_format = options.text(TOPIC_FORMAT)
        self._date_format = JavaDateFormat(options.text(TIMESTAMP_FORMAT))

    def apply(self, record: ConnectRecord) -> ConnectRecord | None:
        if record.timestamp is None:
            # The text has the record's place, without its data.
            place = f"topic='{record.topic}', kafkaPartition={record.kafka_partition}"
            if isinstance(record, SinkRecord):
                place += f", kafkaOffset={record.kafka_offset}"
            raise DataException(
                f"Timestamp missing on record: {type(record).__qualname__}{{{place}}}"
            )
        timestamp = self._date_format.text(record.timestamp)
        topic = self._topic_format.replace("${topic}", record.topic or "")
        return rerouted(record, topic.replace("${timestamp}", timestamp))
