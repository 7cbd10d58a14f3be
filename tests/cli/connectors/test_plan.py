"""Plans of `apply` change the keys that differ and no other."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyconnect_cli.connectors.plan import Change, ConnectorFile, differences, plan_apply
from pyconnect_cli.errors import UsageError

CONFIGS = st.dictionaries(st.sampled_from("abcde"), st.none() | st.text(max_size=3))


def file(name: str, **config: str | None) -> ConnectorFile:
    return ConnectorFile(name=name, config=config, initial_state=None, place=f"{name}.json")


def test_each_connector_is_created_updated_deleted_or_left_alone() -> None:
    """The plan has one entry for each file and each pruned name."""
    plan = plan_apply(
        [file("new", a="1"), file("same", a="1"), file("other", a="1")],
        {"same": {"name": "same", "a": "1"}, "other": {"name": "other", "a": "2"}, "x": {}},
        prune=["other", "x"],
    )
    assert [(planned.name, planned.change) for planned in plan] == [
        ("new", Change.CREATE),
        ("same", Change.UNCHANGED),
        ("other", Change.UPDATE),
        ("x", Change.DELETE),
    ]


@given(CONFIGS, CONFIGS)
def test_differences_lead_from_one_configuration_to_the_other(
    before: dict[str, str | None], after: dict[str, str | None]
) -> None:
    """The differences turn the old configuration into the new one; null and absent are the same."""
    result = dict(before)
    for difference in differences(before, after):
        result[difference.key] = difference.after
    expected = {k: v for k, v in after.items() if v is not None}
    assert {k: v for k, v in result.items() if v is not None} == expected


@given(CONFIGS)
def test_a_second_run_has_nothing_to_do(config: dict[str, str | None]) -> None:
    """A plan changes nothing when the stored configurations equal the files."""
    (planned,) = plan_apply([file("c", **config)], {"c": {**config, "name": "c"}})
    assert planned.change is Change.UNCHANGED


def test_names_and_secrets_of_documents_are_compared() -> None:
    """Two documents with one name are both named, and a changed secret is shown masked."""
    with pytest.raises(UsageError, match=r"c\.json and in c\.json"):
        plan_apply([file("c"), file("c")], {})
    (difference,) = differences({"db.password": "old"}, {"db.password": "new"})
    expected = ["  - db.password=********", "  + db.password=******** (changed)"]
    assert difference.lines(show_secrets=False) == expected
    assert difference.lines(show_secrets=True) == ["  - db.password=old", "  + db.password=new"]
