"""Request targets beyond those that are recorded of Apache's worker."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyconnect_agent.core.errors import BadRequestError
from pyconnect_agent.rest.routing import decode_segment, encode_segment, segments_of
from tests.support.cases import cases


@cases(
    "target, segments",
    ("/", ()), ("/;v=1", ()), ("/connectors", ("connectors",)), ("/connectors/", ("connectors",)),
    ("/connectors;v=1/a;b=c;d/config", ("connectors", "a", "config")),
    ("http://other:80/connectors", ("connectors",)), ("/a%20b/c+d", ("a%20b", "c+d")),
    ("/a#fragment", ("a",)), ("http://other:80", ()), ("/a/../b", ("a", "..", "b")),
)  # fmt: skip
def test_segments_stay_encoded_without_parameters(target: str, segments: tuple[str, ...]) -> None:
    """Routes get encoded segments, without path parameters and a last slash."""
    assert segments_of(target) == segments


@cases(
    "target, found",
    ("/a%2Fb", "%2F"), ("/a%25b", "%25"), ("/a%5cb", "%5c"), ("/a\\b", r"\\"), ("/a%1Fb", "%1F"),
    ("/a{b", "{"), ("/a//b", "//"), ("/a%2", "%"), ("/%2e%2E/a", "%2e%2E"), ("/a/.%2e", r"\.%2e"),
    ("/%2e;b/a", "%2e"), ("/..;/a", r"\.\.;"), ("/.;b=c", r"\.;"),
)  # fmt: skip
def test_a_path_that_could_be_read_as_another_is_refused(target: str, found: str) -> None:
    """The error names the part that the path must not contain."""
    with pytest.raises(BadRequestError, match=f"must not contain {found}$"):
        segments_of(target)


@cases("target", "/a.%2e", "/%2ea", "/...;a", "/a..;b")
def test_dots_within_a_name_are_taken(target: str) -> None:
    """Only a whole segment of dots can lead to another directory."""
    assert segments_of(target)


@cases(
    "target, reason",
    ("*", "begin with a slash"), ("connectors", "begin with a slash"), ("/%ff", "not UTF-8"),
)  # fmt: skip
def test_a_target_that_is_not_a_path_is_refused(target: str, reason: str) -> None:
    """Such a target does not name a resource."""
    with pytest.raises(BadRequestError, match=reason):
        segments_of(target)


@given(text=st.text(st.characters(exclude_categories=["Cs"])))
def test_encoding_a_segment_loses_nothing(text: str) -> None:
    """Each text can be encoded into a path and decoded again."""
    encoded = encode_segment(text)
    assert encoded.isascii()
    assert not set(encoded) & set("/;?#")
    assert decode_segment(encoded) == text


def test_half_a_surrogate_pair_becomes_a_question_mark() -> None:
    """Java encodes it as a question mark too, and a connector may have such a name."""
    assert encode_segment("a\ud800b") == "a%3Fb"


@given(path=st.text(min_size=1, max_size=30))
def test_any_path_is_read_or_refused(path: str) -> None:
    """A path is read or refused, and never fails otherwise."""
    try:
        segments = segments_of(f"/{path}")
    except BadRequestError:
        return
    for segment in segments:
        decode_segment(segment)
