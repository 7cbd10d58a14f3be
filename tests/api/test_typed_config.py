"""Settings as a dataclass."""

from dataclasses import dataclass
from typing import Literal

import pytest

from pyconnect_api import (
    ConfigException,
    ConfigType,
    Importance,
    NonEmptyString,
    Password,
    SinkConnector,
    SinkRecord,
    SinkTask,
    config_def,
    parse_config,
    setting,
)
from pyconnect_api.testing import ConnectorHarness
from tests.support.cases import cases


@dataclass(frozen=True)
class Settings:
    url: str = setting("Address.", validator=NonEmptyString(), importance=Importance.HIGH)
    rows_per_file: int = setting("Rows of a file.", default=10, at_least=1, at_most=100)
    ratio: float = setting("Share.", default=0.5)
    strict: bool = setting("Whether.", default=False)
    fields: list[str] = setting("Names.", default=["a"])
    mode: Literal["append", "replace"] = setting("Mode.", default="append")
    token: Password | None = setting("Secret.", default=None)
    region: Literal["eu", "us"] | None = setting("Region.", default=None)
    limit: int | None = setting("Most rows.", default=None, at_least=1, key="row.limit")


def test_annotations_make_the_definition() -> None:
    """Names, types, defaults, documentation and importance come from the fields of the class."""
    keys = config_def(Settings).keys
    assert {name: key.type for name, key in keys.items()} == {
        "url": ConfigType.STRING,
        "rows.per.file": ConfigType.LONG,
        "ratio": ConfigType.DOUBLE,
        "strict": ConfigType.BOOLEAN,
        "fields": ConfigType.LIST,
        "mode": ConfigType.STRING,
        "token": ConfigType.PASSWORD,
        "region": ConfigType.STRING,
        "row.limit": ConfigType.LONG,
    }
    assert not keys["url"].has_default
    assert keys["url"].importance is Importance.HIGH
    assert keys["rows.per.file"].default == 10
    assert keys["rows.per.file"].documentation == "Rows of a file."
    assert str(keys["rows.per.file"].validator) == "[1,...,100]"


def test_values_have_the_types_of_the_fields() -> None:
    """Texts become numbers, lists and secrets; a field of type dict is refused."""
    parsed = parse_config(Settings, {"url": "u", "rows.per.file": "7", "token": "s", "more": "x"})
    assert parsed == Settings(url="u", rows_per_file=7, token=Password("s"))
    assert parsed.fields is not parse_config(Settings, {"url": "u"}).fields
    assert "s" not in repr(parsed.token)

    @dataclass
    class Wrong:
        pairs: dict[str, str] = setting("Pairs.")

    with pytest.raises(TypeError, match="pairs"):
        config_def(Wrong)


@cases(
    "key, value",
    ("url", ""), ("rows.per.file", "0"), ("rows.per.file", "101"), ("rows.per.file", "1.5"),
    ("mode", "merge"), ("region", "mars"), ("row.limit", "0"),
)  # fmt: skip
def test_a_wrong_value_is_refused(key: str, value: str) -> None:
    """The error names the key."""
    with pytest.raises(ConfigException, match=key):
        parse_config(Settings, {"url": "u", key: value})


def test_other_mistakes_of_authors_are_named() -> None:
    """A missing @dataclass and a lower bound for a text are refused when the definition is made."""

    class Plain:
        rows: int = setting("Rows.")

    @dataclass
    class Bounded:
        name: str = setting("Name.", default="a", at_least=1)

    for wrong, said in (
        (Plain, "write @dataclass"),
        (Bounded, r"name: at_least .* are for numbers"),
    ):
        with pytest.raises(TypeError, match=said):
            config_def(wrong)


class ShortTask(SinkTask):
    config_class = Settings
    config: Settings

    def put(self, records: list[SinkRecord]) -> None:  # type: ignore[override]  # a short one
        self.rows = self.config.rows_per_file


class ShortConnector(SinkConnector):
    task_type = ShortTask
    config_class = Settings


def test_two_attributes_make_a_connector() -> None:
    """A connector of two attributes has a definition, task configs and a version."""
    harness = ConnectorHarness(ShortConnector, {"url": "u", "rows.per.file": "7"})
    harness.start()
    assert len(harness.task_configs(3)) == 3
    expected = {"url", "rows.per.file"}
    assert ConnectorHarness(ShortConnector, {"rows.per.file": "0"}).errors().keys() == expected
    sink = harness.sink()
    sink.start()
    sink.send("a")
    sink.deliver()
    assert isinstance(sink.task, ShortTask)
    assert sink.task.rows == 7
    assert sink.task.version()
    sink.stop()


def test_the_version_is_that_of_the_distribution() -> None:
    """A class of an installed distribution needs no version of its own."""

    class Versioned(ShortConnector):
        __module__ = "pytest"

    assert Versioned().version() == pytest.__version__
    Versioned.__module__ = "hypothesis.strategies"
    assert Versioned().version()[0].isdigit()
    Versioned.__module__ = "no_such_package"
    assert Versioned().version() == "undefined"
