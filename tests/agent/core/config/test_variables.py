"""References to config providers."""

import json
from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from pyconnect_agent.core.config.variables import mask, resolve, restore_references
from pyconnect_api import ConfigData
from tests.support.cases import cases

VALUES: Mapping[tuple[str, str], Mapping[str, str]] = {
    ("file", "/secrets"): {"user": "alice", "a:b": "colon", "nested": "${file:/secrets:user}"},
    ("env", ""): {"HOME": "/home/alice", "EMPTY": ""},
}


def lookup(provider: str, path: str, keys: frozenset[str]) -> ConfigData | None:
    """Answer from `VALUES`; values from files have a TTL of a minute."""
    if provider not in {known for known, _ in VALUES}:
        return None
    found = VALUES.get((provider, path), {})
    return ConfigData(
        data={key: found[key] for key in keys if key in found},
        ttl_ms=60_000 if provider == "file" else None,
    )


@cases(
    "text, value",
    ("${file:/secrets:user}@${env:HOME}", "alice@/home/alice"),
    ("${file:/secrets:a:b}", "colon"),
    ("${env:EMPTY}", ""),
    ("${file:/secrets:nested}", "${file:/secrets:user}"),
    ("${file:/secrets:missing}", "${file:/secrets:missing}"),
    ("${vault:/secrets:user}", "${vault:/secrets:user}"),
)
def test_references_are_replaced_once_or_left(text: str, value: str) -> None:
    """Unknown references stay as text, and replaced values are not resolved again."""
    assert resolve({"k": text}, lookup).values["k"] == value


def test_resolution_asks_once_and_reports_keys_and_ttls() -> None:
    """All keys of a path are asked for in one request, and only changed values are secret."""
    resolved = resolve(
        {"a": "${file:/secrets:user}", "b": "plain", "c": None, "d": "${env:HOME}"}, lookup
    )
    assert resolved.secret_keys == {"a", "d"}
    assert resolved.ttls_ms == {"/secrets": 60_000}
    assert resolved.values["c"] is None
    assert "alice" not in repr(resolved)
    asked: list[tuple[str, str, frozenset[str]]] = []

    def counting(provider: str, path: str, keys: frozenset[str]) -> ConfigData | None:
        asked.append((provider, path, keys))
        return lookup(provider, path, keys)

    resolve({"a": "${file:/secrets:user}", "b": "${file:/secrets:a:b}"}, counting)
    assert asked == [("file", "/secrets", frozenset({"user", "a:b"}))]


def test_task_configurations_are_stored_with_references() -> None:
    """A key with a reference in the connector's config keeps it, so that no secret is stored."""
    raw = {"password": "${file:/secrets:user}", "file": "/tmp/f", "other": "${env:HOME}"}
    task = {"password": "alice", "file": "/tmp/f-0", "task": "0"}
    expected = {"password": "${file:/secrets:user}", "file": "/tmp/f-0", "task": "0"}
    assert restore_references(raw, task) == expected


@given(st.dictionaries(st.sampled_from("abc"), st.text("ab${}:/", max_size=20)))
def test_text_without_known_references_is_never_changed(config: dict[str, str]) -> None:
    """Text that looks like a reference to an unknown provider stays."""
    resolved = resolve(config, lambda provider, path, keys: None)
    assert resolved.values == config
    assert not resolved.secret_keys


def secrets_of(config: Mapping[str, str], supplied: Mapping[str, str]) -> Mapping[str, str]:
    """Return the secrets of configs resolved with a provider `f` with `supplied` at any path."""
    return resolve(config, lambda *_: ConfigData(data=dict(supplied))).secrets


def test_masking_puts_references_back() -> None:
    """Longer secrets are masked first, also as escaped in JSON; very short ones are not masked."""
    secrets = secrets_of(
        {"a": "${f:p:a}", "b": "${f:p:b}", "c": "plain"}, {"a": "secret", "b": "secret-2"}
    )
    masked = mask("failed with secret-2 and secret, plain", secrets)
    assert masked == "failed with ${f:p:b} and ${f:p:a}, plain"
    expected = "a ${file:p:b}"
    assert mask("a long-secret", {"long-secret": "${file:p:b}", "file": "${f:p:a}"}) == expected
    key = 'begin "key"\nend'
    masked = mask(f"no key: {json.dumps(key)}", secrets_of({"k": "${f:p:k}"}, {"k": key}))
    assert masked == 'no key: "${f:p:k}"'
    assert mask("line 1 of 10", secrets_of({"k": "${f:p:k}"}, {"k": "1"})) == "line 1 of 10"


@cases(
    "quoted",
    "cannot log in with 'user=alice;password=open-sesame'",
    "cannot log in with 'open-sesame'",
    "cannot log in with open-sesame\n",
)
def test_secrets_that_are_a_part_of_a_value_are_masked_too(quoted: str) -> None:
    """Parts of a resolved value and trimmed values are masked, as plugins split and trim them."""
    config = {"login": "user=${f:p:user};password=${f:p:password}"}
    secrets = secrets_of(config, {"user": "alice", "password": "open-sesame\n"})
    assert "open-sesame" not in mask(quoted, secrets)
    assert "${f:p:password}" in mask(quoted, secrets)
