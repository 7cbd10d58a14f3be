"""Canonical JSON in plain Python, for Spark 3.5, which has no type for JSON."""

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
    """Members are sorted as UTF-16, which puts emoji before ligatures; invalid JSON is None."""
    assert canonical(text) == expected


def test_a_member_of_the_first_element_is_found_or_absent() -> None:
    """A null member is the text `null`, and a missing member is None."""
    listed = '[{"payload":{"b":"2","a":"1"},"none":null},"end"]'
    assert canonical(listed, "payload") == '{"a":"1","b":"2"}'
    assert canonical(listed, "none") == "null"
    assert canonical(listed, "other") is None
    assert canonical('["x"]', "payload") is None
    assert canonical("[]", "payload") is None
