"""Canonical JSON in plain Python, which Spark 3.5 has in place of a type for JSON."""

from __future__ import annotations

import pytest

from pyconnect_reconcile.values.releases import canonical


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"b": "1", "a": [null, {"d": "", "c": "é"}]}', '{"a":[null,{"c":"é","d":""}],"b":"1"}'),
        ('["\\u0001x", "\\"\\\\"]', '["\\u0001x","\\"\\\\"]'),
        ('{"\U0001f600":"1","\ufb01":"2"}', '{"\U0001f600":"1","\ufb01":"2"}'),
        ("null", "null"),
        (None, None),
        ("{", None),
        ('{"a":"1"} x', None),
        ('{"a":"1","a":"1"}', None),
        ('["a\nb"]', None),
        ("[NaN]", None),
        ("[" * 100_000, None),
    ],
)
def test_members_are_sorted_and_all_else_is_kept(text: str | None, expected: str | None) -> None:
    """As UTF-16 sorts, which puts emoji before ligatures; what is not JSON is null."""
    assert canonical(text) == expected


def test_a_member_of_the_first_element_is_found_or_absent() -> None:
    """Null in JSON is a value; no such member is none."""
    listed = '[{"payload":{"b":"2","a":"1"},"none":null},"end"]'
    assert canonical(listed, "payload") == '{"a":"1","b":"2"}'
    assert canonical(listed, "none") == "null"
    assert canonical(listed, "other") is None
    assert canonical('["x"]', "payload") is None
    assert canonical("[]", "payload") is None
