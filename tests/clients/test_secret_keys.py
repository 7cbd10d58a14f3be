"""Keys of secrets are known by their names, for the worker and the command line alike."""

from pyconnect_clients.config_values import is_secret_key
from tests.support.cases import cases


@cases(
    "key",
    "password", "connection.password", "ssl.key.password", "ssl.keystore.key", "sasl.jaas.config",
    "producer.override.sasl.jaas.config", "aws.secret.access.key", "aws.access.key.id",
    "confluent.license.key", "azure.account.key", "api-key", "auth.token", "database.passwd",
    "basic.auth.credentials", "value.converter.basic.auth.user.info",
    "azure.storage.connection.string",
)  # fmt: skip
def test_keys_of_secrets(key: str) -> None:
    """Names that connectors give to passwords, tokens and keys."""
    assert is_secret_key(key)


@cases(
    "key",
    "key.converter", "key.converter.schemas.enable", "message.key.columns", "transforms.key.type",
    "ssl.keystore.location", "topics", "primary.key.fields", "gcs.credentials.path",
    "sasl.oauthbearer.token.endpoint.url", "db.password.file", "password.encoder.class",
    "token.refresh.ms",
)  # fmt: skip
def test_keys_that_only_sound_like_secrets(key: str) -> None:
    """A mask over these would hide what an operator looks for."""
    assert not is_secret_key(key)
