"""Extractions, as they are checked before Spark starts."""

import pytest

from pyconnect_reconcile.document import check_extraction
from pyconnect_reconcile.errors import ReconcileError
from pyconnect_reconcile.spec import read_spec

CLUSTERS = {"main": {"bootstrap": "b:9092"}}
SCAN = {"clusters": CLUSTERS, "topics": ["t"]}
FILES = {"kind": "files", "paths": ["a"], "format": "text"}


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("n=(", "unterminated"),
        (r"n=\d+", "it has no group"),
        ("n=(?:1)", "it has no group"),
        ("*(1)", "nothing to repeat"),
        ("(?P<n>1)", "Java does not support"),
        ("([0-9)", "unterminated character set"),
    ],
)
def test_a_pattern_that_finds_no_value_is_refused(pattern: str, why: str) -> None:
    """The error of an invalid pattern has the pattern and the reason, and no text of Spark."""
    with pytest.raises(ReconcileError) as caught:
        check_extraction(f"regex:{pattern}")
    assert f"regex:{pattern} " in caught.value.message
    assert why in caught.value.message


@pytest.mark.parametrize(
    "pattern",
    [
        r"n=(\d+)", r"\p{L}+=(\p{Digit}+)", "(?<number>[0-9]++)", r"\Q(a\E(\d)", r"([a-z&&[^x]])",
        r"\x{1F600}(\d)", r"\h*(\d+)\R", r"(?i)ID:(\d+)\z", r"(?<a>x)\k<a>",
    ],
)  # fmt: skip
def test_patterns_of_java_are_taken(pattern: str) -> None:
    """Notations that only Java knows are accepted."""
    check_extraction(f"regex:{pattern}")


@pytest.mark.parametrize(
    "document",
    [
        {**SCAN, "job": "sequence", "sequence": "regex:("},
        {**SCAN, "job": "sequence", "sequence": "nowhere"},
        {**SCAN, "job": "sequence", "sequence": "key", "group": "regex:x"},
        {**SCAN, "job": "duplicates", "identity": "regex:x"},
        {"job": "topic-sink", "left": FILES, "right": FILES, "key": "regex:("},
        {
            "job": "completeness",
            "tiers": [{"name": n, "side": FILES, "event_time": "regex:("} for n in "ab"],
        },
    ],
)
def test_a_spec_is_refused_for_each_of_them(document: dict[str, object]) -> None:
    """Reading a spec refuses an invalid extraction in each of its members, before Spark starts."""
    with pytest.raises(ReconcileError, match=r"is not a valid pattern|is not the place"):
        read_spec(document)
