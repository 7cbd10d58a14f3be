"""Storages of each kind are made from the settings, and their errors show no secret."""

import json
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from pyconnect_api import ConfigException
from pyconnect_connectors.lake.settings import SinkSettings
from pyconnect_connectors.lake.storage import Storage, reason
from tests.support.cases import cases


def opened(settings: dict[str, str]) -> str:
    location = SinkSettings.parse({"name": "s", **settings}).location
    return repr(Storage.open(location, writes=True)._store)


@pytest.fixture(scope="module")
def service_account(tmp_path_factory: pytest.TempPathFactory) -> Path:
    key = rsa.generate_private_key(65537, 2048).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    account = {
        "type": "service_account",
        "private_key": key.decode(),
        "private_key_id": "id",
        "client_email": "lake@example.com",
        "client_id": "1",
        "token_uri": "http://127.0.0.1/token",
    }
    path = tmp_path_factory.mktemp("gcs") / "account.json"
    path.write_text(json.dumps(account))
    return path


@cases(
    "settings, text",
    ({"lake.url": "s3://b/p", "s3.region": "eu-west-1"}, 'S3Store(bucket="b", prefix="p")'),
    ({"lake.url": "s3a://b/p", "store.url": "http://h"}, 'S3Store(bucket="b", prefix="p")'),
    ({"lake.url": "gs://b/p"}, 'GCSStore(bucket="b", prefix="p")'),
    ({"lake.url": "gs://b/p", "store.url": "http://h"}, 'GCSStore(bucket="b", prefix="p")'),
    (
        {"lake.url": "az://c/p", "azblob.account.name": "a", "azblob.account.key": "a2V5"},
        'AzureStore(container_name="c", account_name="a", prefix="p")',
    ),
    (
        {"lake.url": "abfss://c@a.dfs.core.windows.net/p", "azblob.account.key": "a2V5"},
        'AzureStore(container_name="c", account_name="a", prefix="p")',
    ),
)
def test_each_scheme_has_a_storage(
    service_account: Path, settings: dict[str, str], text: str
) -> None:
    """Each scheme of a URL has a storage with the settings that belong to it."""
    if settings["lake.url"].startswith("gs:"):
        settings = {**settings, "gcs.credentials.path": str(service_account)}
    assert opened(settings) == text


def test_a_key_that_is_not_valid_is_not_shown() -> None:
    """The error for a key that is not valid does not show even the wrong character."""
    settings = {"azblob.account.name": "a", "azblob.account.key": "secret!!"}
    with pytest.raises(ConfigException, match="Invalid Access Key") as caught:
        opened({"lake.url": "az://c/p", **settings})
    assert str(caught.value).endswith("Invalid Access Key")


def test_signatures_of_addresses_are_not_shown() -> None:
    """Errors leave out the query of an address, which may hold a SAS token."""
    error = OSError("GET https://a.blob/c/p?sv=1&sig=secret in 2 ms\nDebug source: secret")
    assert reason(error) == "GET https://a.blob/c/p in 2 ms"
