"""`org.apache.kafka.connect.transforms.predicates.TopicNameMatches`.

Layer: builtin.
"""

from __future__ import annotations

import re

from pyconnect_agent.builtin.options import Options
from pyconnect_agent.builtin.predicates.base import ShippedPredicate
from pyconnect_agent.core.java_text.regex import VALID_REGEX, compile_java_regex
from pyconnect_api import (
    CompositeValidator,
    ConfigDef,
    ConfigType,
    ConnectRecord,
    Importance,
    NonEmptyString,
)

PATTERN = "pattern"


class TopicNameMatches(ShippedPredicate):
    """True for records whose whole topic, at this place of the chain, the pattern matches."""

    CONFIG_DEF = ConfigDef().define(
        PATTERN,
        ConfigType.STRING,
        validator=CompositeValidator.of(NonEmptyString(), VALID_REGEX),
        importance=Importance.MEDIUM,
        documentation="Java regular expression for names of topics.",
    )

    _pattern: re.Pattern[str]

    def _configured(self, options: Options) -> None:
        self._pattern = compile_java_regex(options.text(PATTERN))

    def test(self, record: ConnectRecord) -> bool:
        return record.topic is not None and self._pattern.fullmatch(record.topic) is not None
