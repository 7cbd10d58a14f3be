"""Golden bytes and round trips of the group protocol."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyconnect_agent.core.group_protocol import (
    Assignment,
    AssignmentError,
    ProtocolDecodeError,
    ProtocolVersion,
    Subscription,
    Work,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from pyconnect_agent.core.ids import ConnectorTaskId
from tests.support.cases import cases

LEADER = "connect-w1-1"
LEADER_URL = "http://w1:8083/"


def work(*items: str) -> Work:
    """Return work by names: `src` is a connector instance, `src-1` its task 1."""
    connectors = [item for item in items if "-" not in item]
    tasks = [ConnectorTaskId.parse(item) for item in items if "-" in item]
    return Work.of(connectors, tasks)


def assignment(version: int, **fields: object) -> Assignment:
    values = {"leader": LEADER, "leader_url": LEADER_URL, "config_offset": 7, **fields}
    return Assignment(version=version, **values)  # type: ignore[arg-type]


_HEAD = "000c636f6e6e6563742d77312d31000f687474703a2f2f77313a383038332f"
ASSIGNMENTS = {
    "A0": (
        assignment(0, assigned=work("src", "src-0", "src-1", "snk-2")),
        # Java's order is that of its map; ours is sorted, so `snk` comes before `src`.
        "00000000" + _HEAD + "0000000000000007"
        "000000020003736e6b000000010000000200037372630000"
        "0003ffffffff0000000000000001",
    ),
    "A0E": (
        assignment(0, error=AssignmentError.CONFIG_MISMATCH, config_offset=9),
        "00000001" + _HEAD + "000000000000000900000000",
    ),
    "A1": (
        assignment(1, assigned=work("snk", "snk-0"), revoked=work("src-1")),
        "00010000" + _HEAD + "0000000000000007"
        "000000010003736e6b00000002ffffffff00000000000000010003737263000000010000000100000000",
    ),
    "A2": (
        assignment(2, delay_ms=300_000),
        "00020000" + _HEAD + "00000000000000070000000000000000000493e0",
    ),
    "A2E": (
        assignment(2, error=AssignmentError.CONFIG_MISMATCH, config_offset=9),
        "00020001" + _HEAD + "0000000000000009000000000000000000000000",
    ),
}

_URL1 = "000f687474703a2f2f77313a383038332f"
_URL2 = "000f687474703a2f2f77323a383038332f"
_ALLOCATION = "000000010003737263" + "00000002ffffffff00000000" + "0000000000000000"


def _allocated(version: int) -> Subscription:
    return Subscription(
        version=version,
        url="http://w2:8083/",
        config_offset=7,
        allocation=assignment(version, assigned=work("src", "src-0")),
    )


SUBSCRIPTIONS = {
    "M0": (
        Subscription(version=0, url=LEADER_URL, config_offset=7),
        "0000" + _URL1 + "0000000000000007",
    ),
    "M1": (
        Subscription(version=1, url="http://w2:8083/", config_offset=7),
        "0001" + _URL2 + "0000000000000007ffffffff",
    ),
    "M2": (
        Subscription(version=2, url="http://w2:8083/", config_offset=7),
        "0002" + _URL2 + "0000000000000007ffffffff",
    ),
    "M1b": (
        _allocated(1),
        "0001" + _URL2 + "000000000000000700000048"
        "00010000" + _HEAD + "0000000000000007" + _ALLOCATION,
    ),
    "M2b": (
        _allocated(2),
        "0002" + _URL2 + "000000000000000700000048"
        "00020000" + _HEAD + "0000000000000007" + _ALLOCATION,
    ),
}


@pytest.mark.parametrize("name", [*ASSIGNMENTS, *SUBSCRIPTIONS])
def test_bytes_are_those_of_java(name: str) -> None:
    """Encoding gives the golden bytes, and decoding them gives the value."""
    if name in ASSIGNMENTS:
        value, golden = ASSIGNMENTS[name]
        assert encode_assignment(value).hex() == golden
        assert decode_assignment(bytes.fromhex(golden)) == value
    else:
        subscription, golden = SUBSCRIPTIONS[name]
        assert encode_subscription(subscription).hex() == golden
        assert decode_subscription(bytes.fromhex(golden)) == subscription


@pytest.mark.parametrize("name", SUBSCRIPTIONS)
@cases(
    "told, suffix",
    ({"leader_transactional_id": "own"}, "0001000000036f776e"),
    ({"agent": True}, "000200000000"),
    ({"leader_transactional_id": "own", "agent": True}, "0001000000036f776e000200000000"),
)
def test_an_agents_fields_follow_those_that_java_reads(
    name: str, told: dict[str, Any], suffix: str
) -> None:
    """The fields come after the allocation, which is null in version 0, in the order of tags.

    Java reads all versions with the same fields and ignores the rest of the bytes.
    """
    value, golden = SUBSCRIPTIONS[name]
    marked = replace(value, **told)
    null = "ffffffff" if value.version == 0 else ""
    assert encode_subscription(marked).hex() == golden + null + b"pycn".hex() + suffix
    assert decode_subscription(encode_subscription(marked)) == marked


@cases(
    "extra, expected",
    (b"", None),
    (b"somebody else's", None),
    (b"pycn", None),
    (b"pycn\x00\x07\x00\x00\x00\x01x", None),
    (b"pycn\x00\x07\x00\x00\x00\x01x\x00\x01\x00\x00\x00\x02id", "id"),
)
def test_bytes_that_are_not_a_leader_id_are_ignored(extra: bytes, expected: str | None) -> None:
    """Extra bytes of other writers and unknown tags are ignored."""
    data = encode_subscription(SUBSCRIPTIONS["M2b"][0]) + extra
    assert decode_subscription(data).leader_transactional_id == expected


@cases("rest", b"\x00", b"\x00\x01\x00\x00", b"\x00\x01\x00\x00\x00\x05id")
def test_a_cut_suffix_is_refused(rest: bytes) -> None:
    """A suffix that ends within a field is an error."""
    with pytest.raises(ProtocolDecodeError):
        decode_subscription(encode_subscription(SUBSCRIPTIONS["M2"][0]) + b"pycn" + rest)


def test_messages_of_java_and_of_older_versions_are_read() -> None:
    """Connectors may be in any order, and version 0 has no allocation."""
    java = (
        "00000000" + _HEAD + "0000000000000007"
        "00000002000373726300000003ffffffff00000000000000010003736e6b0000000100000002"
    )
    assert decode_assignment(bytes.fromhex(java)) == ASSIGNMENTS["A0"][0]
    decoded = decode_subscription(encode_subscription(SUBSCRIPTIONS["M0"][0]))
    assert decoded.allocation is None


names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
tasks = st.builds(ConnectorTaskId, names, st.integers(0, 2**31 - 1))
works = st.builds(Work.of, st.lists(names), st.lists(tasks))
assignments = st.builds(
    Assignment,
    version=st.sampled_from([1, 2]),
    error=st.sampled_from(list(AssignmentError)),
    leader=names,
    leader_url=names,
    config_offset=st.integers(-1, 2**63 - 1),
    assigned=works,
    revoked=works,
    delay_ms=st.integers(0, 2**31 - 1),
)


@given(assignments)
def test_every_assignment_survives_a_round_trip(value: Assignment) -> None:
    """Decoding an encoded assignment returns an equal one."""
    assert decode_assignment(encode_assignment(value)) == value


@given(assignments, st.integers(0, 200))
def test_truncated_bytes_never_decode_to_garbage(value: Assignment, cut: int) -> None:
    """A message with a cut end is an error, or only lacks its last fields."""
    data = encode_assignment(value)[: -cut or None]
    try:
        decoded = decode_assignment(data)
    except ProtocolDecodeError:
        return
    assert decoded.leader == value.leader
    assert decoded.config_offset == value.config_offset


@cases("data", b"", b"\x00", b"\xff\xff\x00\x00", b"\x00\x01\x00\x00\x00\x05ab")
def test_undecodable_bytes_are_refused(data: bytes) -> None:
    """Empty, short and negative-version messages raise ProtocolDecodeError."""
    with pytest.raises(ProtocolDecodeError):
        decode_assignment(data)


def test_a_worker_offers_its_protocol_first_then_older_ones() -> None:
    """`sessioned` offers three protocols, `eager` one."""
    expected = ["sessioned", "compatible", "default"]
    assert [p.group_name for p in ProtocolVersion.SESSIONED.offered()] == expected
    assert [p.group_name for p in ProtocolVersion.EAGER.offered()] == ["default"]


@cases("name", "A1", "A2")
def test_a_leader_says_that_all_are_agents(name: str) -> None:
    """The mark follows the fields that Java and older agents read."""
    value, golden = ASSIGNMENTS[name]
    told = replace(value, agents_only=True)
    assert encode_assignment(told).hex() == golden + b"pycn".hex() + "000200000000"
    assert decode_assignment(encode_assignment(told)) == told
