"""Files of S3 as a run reads them: copied once, those that a source has read told apart."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyconnect_reconcile.data_sides import Store
from pyconnect_reconcile.errors import ReconcileError
from pyconnect_reconcile.stores.lakes import downloaded
from tests.support.servers.s3 import ACCESS_KEY, SECRET_KEY, S3Server

pytestmark = pytest.mark.wire


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
    """Directories that readers leave out are not copied, nor those that begin alike."""
    store = Store(endpoint=s3.url, region="us-east-1")
    url = f"s3://{bucket}/base/t"
    found = downloaded(url, store, access(tmp_path), None, tmp_path / "copies")
    assert [Path(name).read_text() for name in found.listed] == ["base/t/b.csv", "base/t/d=1/a.csv"]
    read = [f"{url}/b.csv"]
    found = downloaded(url, store, access(tmp_path), read, tmp_path / "more")
    assert [Path(name).name for name in found.listed] == ["b.csv"]
    assert [Path(name).name for name in found.beyond] == ["a.csv"]


def test_a_store_that_refuses_is_named(s3: S3Server, bucket: str, tmp_path: Path) -> None:
    """Without its secrets."""
    store, url = Store(endpoint=s3.url, region="us-east-1"), f"s3://{bucket}/base/t"
    with pytest.raises(ReconcileError, match="cannot be read") as caught:
        downloaded(url, store, access(tmp_path, secret="hidden", key="other"), None, tmp_path)
    assert "hidden" not in str(caught.value)
    with pytest.raises(ReconcileError, match="no files yet"):
        downloaded(f"{url}/none", store, access(tmp_path), None, tmp_path)


def test_a_secret_of_an_unknown_provider_is_asked_for(s3: S3Server, tmp_path: Path) -> None:
    """It must not reach the store as it is written."""
    with pytest.raises(ReconcileError, match="secret_key of the lake is a reference"):
        downloaded("s3://b", Store(), access(tmp_path, secret="${vault:a:b}"), None, tmp_path)
