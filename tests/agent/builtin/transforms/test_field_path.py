"""Paths of fields in the syntax of KIP-821."""

import pytest

from pyconnect_agent.builtin.transforms.fields import FieldPath
from pyconnect_api import (
    OPTIONAL_STRING_SCHEMA,
    STRING_SCHEMA,
    ConfigException,
    DataException,
    SchemaBuilder,
    Struct,
)
from tests.support.cases import cases

INNER = SchemaBuilder.struct().field("x.y", OPTIONAL_STRING_SCHEMA).build()
OUTER = SchemaBuilder.struct().field("a", INNER).field("s", STRING_SCHEMA).build()


@cases(
    "text, steps",
    ("a", ("a",)), ("a.b.c", ("a", "b", "c")), ("`a.b`.c", ("a.b", "c")), ("a.`b.c`", ("a", "b.c")),
    ("a`b.c", ("a`b", "c")), ("`a`b`.c", ("a`b", "c")), (r"`a\`.b`.c", ("a`.b", "c")),
    ("a.", ("a", "")), (".a", ("", "a")), ("`a`", ("a",)),
)  # fmt: skip
def test_dots_separate_steps_unless_in_backticks(text: str, steps: tuple[str, ...]) -> None:
    """A backtick ends a step only before a dot or the end, and only without a backslash."""
    assert FieldPath(text, "V2").steps == steps
    assert FieldPath(text, "V1").steps == (text,)


@cases("text, position", ("`a", 0), ("a.`b", 2), (r"`a\`", 0), ("`a`.`b", 4))
def test_a_lone_backtick_is_refused(text: str, position: int) -> None:
    """The message names the path and the place of the backtick."""
    with pytest.raises(ConfigException) as caught:
        FieldPath(text, "V2")
    assert str(caught.value) == (
        f"Incomplete backtick pair in path: [{text}], consider adding a backslash before backtick "
        f"at position {position} to escape it"
    )


def test_a_missing_step_yields_none() -> None:
    """A missing step gives None in maps and structs, at each place of the path."""
    path = FieldPath("a.`x.y`", "V2")
    assert path.value_of_map({}) is None
    assert path.value_of_map({"a": None}) is None
    assert path.value_of_map({"a": {}}) is None
    assert path.value_of_map({"a": {"x.y": 1}}) == 1
    assert path.value_of_struct(Struct(OUTER), with_default=True) is None
    struct = Struct(OUTER).put("a", Struct(INNER).put("x.y", "v"))
    assert path.value_of_struct(struct, with_default=True) == "v"
    assert path.field_of(OUTER) == INNER.field("x.y")
    assert FieldPath("b.c", "V2").field_of(OUTER) is None
    assert FieldPath("b.c", "V2").value_of_struct(struct, with_default=True) is None


def test_a_step_into_something_else_is_an_error() -> None:
    """The error for a step into another type has the purpose in Kafka's words."""
    path = FieldPath("s.t", "V2")
    with pytest.raises(DataException, match=r"for \[nested field access\], found: str"):
        path.value_of_map({"s": "text"})
    with pytest.raises(DataException, match=r"for \[nested field access\], found: str"):
        path.value_of_struct(Struct(OUTER).put("s", "text"), with_default=True)
    with pytest.raises(DataException, match="Cannot look up fields on non-struct type"):
        path.field_of(OUTER)
