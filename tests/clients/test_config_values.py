"""References to config providers in values, and the keys of secrets."""

from pyconnect_clients.config_values import (
    Variable,
    find_references,
    find_variables,
    is_secret_key,
    replace_variables,
)
from tests.support.cases import cases


@cases(
    "text, variables",
    ("${file:/p:k}", [Variable("file", "/p", "k")]),
    ("${env:K}", [Variable("env", "", "K")]),
    ("${file:/p:k:with:colons}", [Variable("file", "/p", "k:with:colons")]),
    ("a${env:A}b${env:B}", [Variable("env", "", "A"), Variable("env", "", "B")]),
    ("${nothing}", []),
    ("$ {env:A}", []),
)
def test_references_are_split_at_the_first_two_colons(text: str, variables: list[Variable]) -> None:
    """A key may hold colons, and a path may not."""
    assert list(find_variables(text)) == variables


def test_unresolved_references_stay_unchanged() -> None:
    """A reference with an empty path stays unchanged too."""
    text = "<${file:/p:k}> ${env::K}"
    assert [written for written, _ in find_references(text)] == ["${file:/p:k}", "${env::K}"]
    found = {Variable("file", "/p", "k"): "${env:K}"}
    assert replace_variables(text, found) == "<${env:K}> ${env::K}"


@cases(
    "key",
    "password", "connection.password", "ssl.key.password", "ssl.keystore.key", "sasl.jaas.config",
    "producer.override.sasl.jaas.config", "aws.secret.access.key", "aws.access.key.id",
    "confluent.license.key", "azure.account.key", "api-key", "auth.token", "database.passwd",
    "basic.auth.credentials", "value.converter.basic.auth.user.info",
    "azure.storage.connection.string",
)  # fmt: skip
def test_keys_of_secrets(key: str) -> None:
    """The keys are names that connectors give to passwords, tokens and keys."""
    assert is_secret_key(key)


@cases(
    "key",
    "key.converter", "key.converter.schemas.enable", "message.key.columns", "transforms.key.type",
    "ssl.keystore.location", "topics", "primary.key.fields", "gcs.credentials.path",
    "sasl.oauthbearer.token.endpoint.url", "db.password.file", "password.encoder.class",
    "token.refresh.ms",
)  # fmt: skip
def test_keys_that_only_sound_like_secrets(key: str) -> None:
    """A mask over these values would hide facts that an operator needs."""
    assert not is_secret_key(key)
