"""The place of an Iceberg table's metadata in a REST catalog."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog.rest import RestCatalog

from pyconnect_reconcile.data_sides import IcebergCatalog
from pyconnect_reconcile.errors import ReconcileError
from pyconnect_reconcile.stores.lakes import metadata_in_service
from tests.support.servers.iceberg_rest import TOKEN, running_rest_catalog

pytestmark = pytest.mark.wire


def access(directory: Path, token: str) -> str:
    file = directory / "access.properties"
    file.write_text(f"token={token}\n")
    return str(file)


def test_a_rest_catalog_names_the_metadata_of_a_table(tmp_path: Path) -> None:
    """Of the moment; a table that is missing and a wrong token are told apart."""
    with running_rest_catalog(tmp_path) as url:
        client = RestCatalog("rest", uri=url, token=TOKEN)
        client.create_namespace("shop")
        with client.create_table_transaction("shop.orders", pa.schema([("id", pa.int64())])):
            """Committed at once."""
        table = client.load_table("shop.orders")
        catalog, known = IcebergCatalog(kind="rest", url=url), access(tmp_path, TOKEN)
        assert metadata_in_service("shop.orders", catalog, known) == table.metadata_location
        assert metadata_in_service("shop.none", catalog, known) is None
        with pytest.raises(ReconcileError, match="401"):
            metadata_in_service("shop.orders", catalog, access(tmp_path, "other"))
