"""Kafka's predicates: HasHeaderKey, RecordIsTombstone and TopicNameMatches."""

import re

from pyconnect_agent.builtin.transforms.base import Options, Shipped
from pyconnect_agent.core.java_text.regex import VALID_REGEX, compile_java_regex
from pyconnect_api import CompositeValidator, ConfigDef, ConnectRecord, NonEmptyString, Predicate
from pyconnect_api.configdef import define_table


class ShippedPredicate(Shipped, Predicate[ConnectRecord]):
    """A predicate with the options of its `CONFIG_DEF`."""


NAME = "name"


class HasHeaderKey(ShippedPredicate):
    """True for records with at least one header of the configured key."""

    CONFIG_DEF = define_table(
        ConfigDef(), f"{NAME}  STRING  MEDIUM  !\n    Key of the header.", {NAME: NonEmptyString()}
    )

    _name: str

    def configured(self, options: Options) -> None:
        self._name = options.text(NAME)

    def test(self, record: ConnectRecord) -> bool:
        return record.has_headers and record.headers.last_with_name(self._name) is not None


class RecordIsTombstone(ShippedPredicate):
    """True for records without a value, whatever their schema."""

    CONFIG_DEF = ConfigDef()

    def test(self, record: ConnectRecord) -> bool:
        return record.value is None


PATTERN = "pattern"


class TopicNameMatches(ShippedPredicate):
    """True for records whose topic, at this place of the chain, matches the pattern as a whole."""

    CONFIG_DEF = define_table(
        ConfigDef(),
        f"{PATTERN}  STRING  MEDIUM  !\n    Java regular expression for names of topics.",
        {PATTERN: CompositeValidator.of(NonEmptyString(), VALID_REGEX)},
    )

    _pattern: re.Pattern[str]

    def configured(self, options: Options) -> None:
        self._pattern = compile_java_regex(options.text(PATTERN))

    def test(self, record: ConnectRecord) -> bool:
        return record.topic is not None and self._pattern.fullmatch(record.topic) is not None
