"""Rules of ReplaceField; its results are compared with Apache\'s elsewhere."""

import logging

import pytest

from pyconnect_api import ConfigException
from tests.agent.builtin.transforms.transformations import (
    PAIR,
    applied,
    pair,
    source_record,
    transformation,
)
from tests.support.cases import cases


def test_replace_field_excludes_before_it_includes_and_renames() -> None:
    """The order of the fields stays."""
    options = {"include": "a,b,d", "exclude": "b", "renames": "a:x,d:y"}
    made = transformation("ReplaceField$Value", **options)
    assert applied(made, source_record({"d": 1, "c": 2, "b": 3, "a": 4})).value == {"y": 1, "x": 4}
    renamed = applied(
        transformation("ReplaceField$Value", renames="b:x"), source_record(pair("v", 1), PAIR)
    )
    assert renamed.value_schema is not None
    assert [field.name for field in renamed.value_schema.fields] == ["a", "x"]


def test_replace_field_knows_kafkas_names_only(caplog: pytest.LogCaptureFixture) -> None:
    """A rename of a missing field leaves its namesake; removed options are reported."""
    made = transformation("ReplaceField$Value", renames="z:a")
    assert applied(made, source_record(pair("v", 1), PAIR)).value == pair("v", 1)
    with caplog.at_level(logging.WARNING):
        made = transformation("ReplaceField$Value", blacklist="a")
    assert applied(made, source_record({"a": 1})).value == {"a": 1}
    assert "'blacklist'" in caplog.text
    assert "'exclude'" in caplog.text


@cases("mapping", "a", "a:b:c", "a:", "")
def test_a_rename_has_two_names(mapping: str) -> None:
    """In Kafka's words."""
    with pytest.raises(ConfigException, match=f"Invalid rename mapping: {mapping}$"):
        transformation("ReplaceField$Value", renames=f"x:y,{mapping}")
