"""Secrets are masked by key, references stay, passwords in addresses never show."""

from __future__ import annotations

import pytest

from pyconnect_cli.masking import MASK, is_secret_key, mask_document, mask_text, mask_value


@pytest.mark.parametrize(
    "key",
    [
        "password",
        "connection.password",
        "ssl.key.password",
        "ssl.keystore.key",
        "sasl.jaas.config",
        "producer.override.sasl.jaas.config",
        "aws.secret.access.key",
        "aws.access.key.id",
        "confluent.license.key",
        "azure.account.key",
        "api-key",
        "auth.token",
        "database.passwd",
        "basic.auth.credentials",
    ],
)
def test_keys_of_secrets(key: str) -> None:
    """What connectors call passwords, tokens and keys."""
    assert is_secret_key(key)


@pytest.mark.parametrize(
    "key",
    [
        "key.converter",
        "key.converter.schemas.enable",
        "message.key.columns",
        "transforms.key.type",
        "ssl.keystore.location",
        "topics",
        "primary.key.fields",
        "gcs.credentials.path",
        "sasl.oauthbearer.token.endpoint.url",
    ],
)
def test_keys_that_only_sound_like_secrets(key: str) -> None:
    """A mask over these would hide what an operator looks for."""
    assert not is_secret_key(key)


@pytest.mark.parametrize(
    ("key", "value", "shown"),
    [
        ("db.password", "x", MASK),
        ("db.password", "${file:/run/s:db}", "${file:/run/s:db}"),
        ("db.password", "${env:A}${env:B}", "${env:A}${env:B}"),
        ("db.password", "x${env:A}", MASK),
        ("db.password", "", ""),
        ("db.password", None, None),
        (
            "url",
            "jdbc:x://u:pw@h/db?password=pw&a=b",
            f"jdbc:x://u:{MASK}@h/db?password={MASK}&a=b",
        ),
        ("url", "jdbc:x://h/db?password=${env:P}", "jdbc:x://h/db?password=${env:P}"),
        ("url", "http://host:8083/a@b", "http://host:8083/a@b"),
    ],
)
def test_values(key: str, value: str | None, shown: str | None) -> None:
    """A secret key hides all but references; other values hide the passwords inside."""
    assert mask_value(key, value) == shown


def test_a_printed_map_keeps_its_shape() -> None:
    """Workers print whole configurations into error messages."""
    text = mask_text("config {db.password=s3cret, tasks.max=1} contains no connector type")
    assert text == f"config {{db.password={MASK}, tasks.max=1}} contains no connector type"


def test_a_validation_result_is_masked_by_the_name_it_carries() -> None:
    """`name` is a member beside `value` there."""
    masked = mask_document({"configs": [{"value": {"name": "db.password", "value": "s3cret"}}]})
    assert masked == {"configs": [{"value": {"name": "db.password", "value": MASK}}]}
