"""Lines of a growing stream, with byte positions."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from pyconnect_agent.builtin.connectors.file_stream import LineSplitter

BYTES = st.lists(st.sampled_from([b"a", b"\n", b"\r", "ä".encode()])).map(b"".join)


def lines_and_positions(parts: list[bytes]) -> list[tuple[bytes, int]]:
    splitter, found = LineSplitter(), []
    for part in parts:
        position = splitter.position
        lines, positions = splitter.feed(part)
        for number, line in enumerate(lines):
            position = position + len(line) + 1 if positions is None else positions[number]
            found.append((line, position))
        assert splitter.position == position
    return found


@given(BYTES, st.lists(st.integers(0, 40)))
def test_lines_do_not_depend_on_how_the_bytes_arrive(text: bytes, cuts: list[int]) -> None:
    """Any split of the stream into reads gives the same lines and positions as one read."""
    bounds = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    parts = [text[start:end] for start, end in pairwise(bounds)]
    whole = lines_and_positions([text])
    # Only a trailing CR may be decided earlier or later: an LF could have followed.
    assert lines_and_positions([*parts, b"."]) == lines_and_positions([text, b"."])
    assert whole == lines_and_positions([text, b"."])[: len(whole)]


@given(BYTES)
def test_lines_and_terminators_are_the_stream(text: bytes) -> None:
    """Each position is the end of a line's terminator; what follows the last is no line."""
    start = 0
    for line, position in lines_and_positions([text]):
        assert text[start:position].rstrip(b"\r\n") == line
        assert text[start + len(line) : position] in (b"\n", b"\r", b"\r\n")
        start = position
    rest = text[start:]
    assert b"\n" not in rest
    assert rest.rstrip(b"\r").count(b"\r") == 0
    assert rest.count(b"\r") <= 1


def test_empty_lines_are_lines_and_a_trailing_return_is_held_back() -> None:
    """Also at the beginning; whether a line feed follows the return is not known yet."""
    splitter = LineSplitter()
    assert splitter.feed(b"one\r") == ([], [])
    assert splitter.feed(b"\ntwo\r") == ([b"one"], [5])
    assert splitter.feed(b"x\n") == ([b"two", b"x"], [9, 11])
    expected = [(b"", 1), (b"", 2), (b"", 4), (b"", 5), (b"", 7)]
    assert lines_and_positions([b"\n\n\r\n\r\r\n"]) == expected
