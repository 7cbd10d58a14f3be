"""The heads of class files."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyconnect_clients.plugin_jars.class_file import ClassHead, read_class_head
from tests.support.cases import cases
from tests.support.plugins.java_jars import ABSTRACT, INTERFACE, PUBLIC, class_file


def test_names_and_parents_are_read() -> None:
    """Names and parents are found after constants of each size."""
    content = class_file("a.Outer$In", "b.Base", ("c.One", "c.Two"))
    assert read_class_head(content) == ClassHead(
        name="a.Outer$In", super_name="b.Base", interfaces=("c.One", "c.Two"), access=PUBLIC
    )


@cases(
    "access, concrete",
    (PUBLIC, True), (0, False), (PUBLIC | ABSTRACT, False), (PUBLIC | INTERFACE, False),
)  # fmt: skip
def test_only_public_classes_that_can_be_made_are_concrete(access: int, concrete: bool) -> None:
    """Interfaces and abstract classes are not concrete."""
    assert read_class_head(class_file("a.B", access=access)).is_concrete is concrete


@given(st.binary(max_size=60), st.integers(0, 200))
def test_anything_else_is_refused_as_such(noise: bytes, kept: int) -> None:
    """Noise, and a class file that ends too early, are refused."""
    whole = class_file("a.B")
    # The last four bytes count fields and methods, which only `members` reads.
    for content in (noise, whole[: min(kept, len(whole) - 5)]):
        with pytest.raises(ValueError, match="not a class file"):
            read_class_head(content)
