"""Bodies of new offsets, read the quick way and Jackson's: both make the same of them."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyconnect_agent.rest.json_reader import BodyError
from pyconnect_agent.rest.offsets_binding import bind_offsets, each_offset

NAMES = st.sampled_from(["partition", "offset", "offsets", "a", 'x"offset"', "ö"])
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5)
    | NAMES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=6,
)
MAPS = st.none() | st.dictionaries(NAMES, VALUES, max_size=3)
ENTRIES = st.fixed_dictionaries({}, optional={"partition": MAPS, "offset": MAPS})


@given(st.lists(ENTRIES, max_size=4))
def test_a_good_body_is_read_the_same_in_both_ways(entries: list[dict[str, object]]) -> None:
    """Blanks between its tokens are nothing."""
    expected = tuple((entry.get("partition"), entry.get("offset")) for entry in entries)
    for indent in (None, 1):
        body = json.dumps({"offsets": entries}, ensure_ascii=False, indent=indent).encode()
        assert tuple(each_offset(body)) == expected
        assert bind_offsets(body) == expected


@pytest.mark.parametrize(
    "body",
    [
        b"{}",
        b'{"offsets":null}',
        b'{"offsets":[null]}',
        b'{"offsets":[{"partition":{}},]}',
        b'{"offsets":[{"partition":{}}',
        b'{"offsets":[{"partition":{}}]',
        b'{"offsets":[{}],"more":1}',
        b'{"offsets":[{"partition":{"a":NaN}}]}',
        b'{"offsets":[]} []',
        b"[]",
        b"\xff",
    ],
)
def test_what_is_no_plain_list_is_not_for_the_quick_way(body: bytes) -> None:
    """Whatever it has read by then."""
    with pytest.raises(ValueError):
        tuple(each_offset(body))


@pytest.mark.parametrize(
    "body",
    [
        b'{"offsets":[{"partition":{},"offset":{},"partition":{}}]}',
        b'{"offsets":[{"partition":{},"offset":{},"partit\\u0069on":{}},{}]}',
        b'{"offsets":[{}],"offsets":[]}',
    ],
)
def test_a_member_that_is_repeated_too_late_is_refused(body: bytes) -> None:
    """Jackson has made its object by then; number and spelling of the others do not hide it."""
    with pytest.raises(ValueError):
        tuple(each_offset(body))
    with pytest.raises(BodyError, match="Should never call `set"):
        bind_offsets(body)


@pytest.mark.parametrize(
    ("body", "bound"),
    [
        (b'{"offsets":[{"partition":{"a":1},"partition":{"a":2}}]}', (({"a": 2}, None),)),
        (b'{"offsets":[{"partition":{"a":1,"a":2}}]}', (({"a": 2}, None),)),
        (
            b'{"offsets":[{"partition":{"partition":1,"offset":2}}]}',
            (({"partition": 1, "offset": 2}, None),),
        ),
    ],
)
def test_a_member_may_be_repeated_before_all_are_there(body: bytes, bound: object) -> None:
    """The last one counts, and within the connector's own maps always."""
    assert bind_offsets(body) == bound


@pytest.mark.parametrize("body", [b"", b" ", b"null"])
def test_no_body_is_nothing(body: bytes) -> None:
    """Unlike one without offsets."""
    assert bind_offsets(body) is None
    assert bind_offsets(b"{}") == ()
