"""Configurations that are promoted to another cluster."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyconnect_cli.connectors.plan import Config, ConnectorFile
from pyconnect_cli.connectors.promote import Remapping, promoted, remapping
from pyconnect_cli.errors import UsageError
from pyconnect_cli.rest.masking import MASK, mask_value
from tests.support.cases import cases


def there(
    config: Config, existing: Config | None = None, rules: Remapping | None = None
) -> Mapping[str, str | None]:
    """Return the configuration of `orders` as it would be on the other cluster."""
    file = ConnectorFile(name="orders", config=config, initial_state=None, place="orders of dev")
    configs = {} if existing is None else {"orders": existing}
    (result,) = promoted([file], configs, rules or Remapping(), context="prod")
    return result.config


def test_references_go_as_they_are_or_remapped() -> None:
    """A reference is remapped if whole parts of its path match; all others stay as they are."""
    rules = remapping(["file:/run/dev=file:/run/prod", "vault:dev=vault:prod"], {})
    config = {
        "db.password": "${file:/run/dev/db.properties:password}",
        "api.key": "${vault:dev:token}",
        "url": "jdbc:x://h/${file:/run/development:name}",
        "topic": "file:/run/dev",
    }
    assert there(config, rules=rules) == {
        "db.password": "${file:/run/prod/db.properties:password}",
        "api.key": "${vault:prod:token}",
        "url": "jdbc:x://h/${file:/run/development:name}",
        "topic": "file:/run/dev",
    }


@cases(
    "config",
    {"db.password": "hunter2"},
    {"db.password": MASK},
    {"url": "jdbc:x://u:hunter2@h/db"},
    {"db.password": "hunter2-${file:a:b}"},
)
def test_a_secret_in_plain_text_and_a_mask_are_refused(config: Config) -> None:
    """A secret in plain text or a mask is refused; the error names the key, not the value."""
    with pytest.raises(UsageError) as refused:
        there(config)
    error = refused.value
    assert "hunter2" not in f"{error.message} {error.hint}"
    assert f"orders: {next(iter(config))}" in error.message
    assert "--set" in str(error.hint)


def test_the_other_cluster_keeps_its_secrets_and_references() -> None:
    """The other cluster's own secret stays, unless it is a mask or a reference is promoted."""
    expected = {"db.password": "prod", "a": "1"}
    assert there({"db.password": "dev", "a": "1"}, {"db.password": "prod"}) == expected
    with pytest.raises(UsageError):
        there({"db.password": "dev"}, {"db.password": MASK})
    expected = {"db.password": "${file:a:b}"}
    assert there({"db.password": "${file:a:b}"}, {"db.password": "prod"}) == expected


def test_keys_are_set_and_left_out_there() -> None:
    """Rules set and remove keys, but a rule that sets a secret in plain text is refused."""
    rules = remapping([], {"db.password": "${file:a:b}", "tasks.max": "8", "team": None})
    config = {"name": "orders", "db.password": "dev", "tasks.max": "1", "team": "a"}
    assert there(config, rules=rules) == {"db.password": "${file:a:b}", "tasks.max": "8"}
    with pytest.raises(UsageError, match="plain text"):
        remapping([], {"db.password": "hunter2"})


@cases("pair", "a", "=b", "a=", "${a}=b")
def test_a_pair_is_two_beginnings_of_references(pair: str) -> None:
    """A pair that does not map one beginning of a reference to another one is refused."""
    with pytest.raises(UsageError, match="does not map"):
        remapping([pair], {})


@given(
    st.dictionaries(
        st.sampled_from(["db.password", "token", "url", "topic", "sasl.jaas.config"]),
        st.sampled_from(["x", "p=1", "http://u:pw@h", "${a:b}", "password=s3", "", MASK]),
    ),
    st.dictionaries(st.sampled_from(["db.password", "url"]), st.sampled_from(["kept", "${c:d}"])),
)
def test_nothing_secret_of_one_cluster_reaches_the_other(
    config: dict[str, str | None], existing: dict[str, str | None]
) -> None:
    """A secret in a promoted configuration is always the other cluster's own."""
    try:
        result = there(config, existing)
    except UsageError:
        return
    for key, value in result.items():
        assert mask_value(key, value) == value or value == existing.get(key)
