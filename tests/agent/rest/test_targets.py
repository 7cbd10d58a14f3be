"""Request targets beyond the list asked of Apache's worker."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyconnect_agent.rest.targets import (
    RefusedTarget,
    decode_segment,
    encode_segment,
    segments_of,
)


@pytest.mark.parametrize(
    ("target", "segments"),
    [
        ("/", ()),
        ("/;v=1", ()),
        ("/connectors", ("connectors",)),
        ("/connectors/", ("connectors",)),
        ("/connectors;v=1/a;b=c;d/config", ("connectors", "a", "config")),
        ("http://other:80/connectors", ("connectors",)),
        ("/a%20b/c+d", ("a%20b", "c+d")),
        ("/a#fragment", ("a",)),
        ("*", ()),
    ],
)
def test_segments_are_undecoded_and_without_parameters(
    target: str, segments: tuple[str, ...]
) -> None:
    """Routes see what was written, without path parameters and a last slash."""
    assert segments_of(target) == segments


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ("/a%2Fb", "Ambiguous URI path separator"),
        ("/a%25b", "Ambiguous URI path encoding"),
        ("/a%5cb", "Suspicious Path Character"),
        ("/a%1Fb", "Suspicious Path Character"),
        ("/a//b", "Ambiguous URI empty segment"),
        ("/a%2", "Bad Request"),
        ("/%2e%2E/a", "Ambiguous URI path segment"),
        ("/..;/a", "Ambiguous URI path parameter"),
        ("/%ff", "Bad UTF-8 encoding"),
    ],
)
def test_refused_targets_say_why(target: str, reason: str) -> None:
    """The reasons are those of the server that Apache's worker uses."""
    with pytest.raises(RefusedTarget, match=f"^{reason}$"):
        segments_of(target)


@given(text=st.text(st.characters(exclude_categories=["Cs"])))
def test_encoding_a_segment_loses_nothing(text: str) -> None:
    """Any text can be put into a path and taken out again."""
    encoded = encode_segment(text)
    assert encoded.isascii()
    assert not set(encoded) & set("/;?#")
    assert decode_segment(encoded) == text


def test_half_a_surrogate_pair_becomes_a_question_mark() -> None:
    """As Java encodes it; a connector may have such a name."""
    assert encode_segment("a\ud800b") == "a%3Fb"


@given(path=st.text(min_size=1, max_size=30))
def test_any_path_is_read_or_refused(path: str) -> None:
    """No path makes the reader fail otherwise."""
    try:
        segments = segments_of(f"/{path}")
    except RefusedTarget:
        return
    for segment in segments:
        decode_segment(segment)
