"""The order of Java's HashMap; the expected ones are those of Java 21."""

from pyconnect_agent.core.offsets.changes import in_hash_order
from tests.support.cases import cases


@cases(
    "names, expected",
    (["place", "zone"], ["zone", "place"]),
    (["database", "server"], ["server", "database"]),
    (["b", "a"], ["a", "b"]),
    (["BB", "C", "Aa"], ["BB", "Aa", "C"]),
    (["é", "日本", "\N{GRINNING FACE}", "x"], ["\N{GRINNING FACE}", "x", "é", "日本"]),
    (
        [f"n{number}" for number in range(13)],
        [*(f"n{number}" for number in range(11)), "n12", "n11"],
    ),
    ([], []),
)
def test_entries_are_in_the_order_of_a_hash_map(names: list[str], expected: list[str]) -> None:
    """By hash and size of the table; entries of one bucket as they were put."""
    assert list(in_hash_order(dict.fromkeys(names))) == expected
