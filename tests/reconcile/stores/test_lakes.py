"""Files of S3 and Iceberg tables: discovery and copies."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog.rest import RestCatalog

from pyconnect_reconcile.data_sides import IcebergCatalog, Store
from pyconnect_reconcile.errors import ReconcileError
from pyconnect_reconcile.stores.lakes import downloaded, metadata_in_service
from tests.support.servers.iceberg_rest import TOKEN, running_rest_catalog
from tests.support.servers.s3 import ACCESS_KEY, SECRET_KEY, S3Server, running_s3


@pytest.fixture(scope="session")
def s3() -> Iterator[S3Server]:
    """An S3 server of this test process."""
    with running_s3() as server:
        yield server


pytestmark = pytest.mark.wire


def token_access(directory: Path, token: str) -> str:
    file = directory / "access.properties"
    file.write_text(f"token={token}\n")
    return str(file)


def test_a_rest_catalog_names_the_metadata_of_a_table(tmp_path: Path) -> None:
    """A catalog returns the current metadata; a missing table is None, a wrong token an error."""
    with running_rest_catalog(tmp_path) as url:
        client = RestCatalog("rest", uri=url, token=TOKEN)
        client.create_namespace("shop")
        with client.create_table_transaction("shop.orders", pa.schema([("id", pa.int64())])):
            """Committed at once."""
        table = client.load_table("shop.orders")
        catalog, known = IcebergCatalog(kind="rest", url=url), token_access(tmp_path, TOKEN)
        assert metadata_in_service("shop.orders", catalog, known) == table.metadata_location
        assert metadata_in_service("shop.none", catalog, known) is None
        with pytest.raises(ReconcileError, match="401"):
            metadata_in_service("shop.orders", catalog, token_access(tmp_path, "other"))


@pytest.fixture
def bucket(s3: S3Server) -> str:
    name = s3.new_bucket()
    for file in ("base/t/d=1/a.csv", "base/t/b.csv", "base/t/_log/c.csv", "base/tt/d.csv"):
        path = s3.files / name / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(file)
    return name


def access(directory: Path, secret: str = SECRET_KEY, key: str = ACCESS_KEY) -> str:
    file = directory / "access.properties"
    file.write_text(f"access_key={key}\nsecret_key={secret}\n")
    return str(file)


def test_files_below_a_url_are_copied(s3: S3Server, bucket: str, tmp_path: Path) -> None:
    """Hidden directories, and those whose names only begin like the URL's, are not copied."""
    store = Store(endpoint=s3.url, region="us-east-1")
    url = f"s3://{bucket}/base/t"
    found = downloaded(url, store, access(tmp_path), None, tmp_path / "copies")
    assert [Path(name).read_text() for name in found.listed] == ["base/t/b.csv", "base/t/d=1/a.csv"]
    read = [f"{url}/b.csv"]
    found = downloaded(url, store, access(tmp_path), read, tmp_path / "more")
    assert [Path(name).name for name in found.listed] == ["b.csv"]
    assert [Path(name).name for name in found.beyond] == ["a.csv"]


def test_a_store_that_refuses_is_named(s3: S3Server, bucket: str, tmp_path: Path) -> None:
    """The error of a store that refuses names the URL without the secrets."""
    store, url = Store(endpoint=s3.url, region="us-east-1"), f"s3://{bucket}/base/t"
    with pytest.raises(ReconcileError, match="cannot be read") as caught:
        downloaded(url, store, access(tmp_path, secret="hidden", key="other"), None, tmp_path)
    assert "hidden" not in str(caught.value)
    with pytest.raises(ReconcileError, match="no files yet"):
        downloaded(f"{url}/none", store, access(tmp_path), None, tmp_path)


def test_a_secret_of_an_unknown_provider_is_asked_for(s3: S3Server, tmp_path: Path) -> None:
    """A reference to an unknown config provider is an error instead of the text of the secret."""
    with pytest.raises(ReconcileError, match="secret_key of the lake is a reference"):
        downloaded("s3://b", Store(), access(tmp_path, secret="${vault:a:b}"), None, tmp_path)
