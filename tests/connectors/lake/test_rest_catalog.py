"""LakeSink's Iceberg tables in a catalog that speaks REST."""

from pathlib import Path

import pytest
from pyiceberg.catalog import load_catalog

from pyconnect_api.testing import SinkHarness
from pyconnect_connectors.lake.sink import LakeSinkConnector, LakeSinkTask
from tests.connectors.lake.rows import send
from tests.support.servers.iceberg_rest import TOKEN, running_rest_catalog

# pyiceberg leaves its connections to the garbage collector.
pytestmark = [
    pytest.mark.wire,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]


def props(uri: str) -> dict[str, str]:
    return {
        "name": "to-lake",
        "format.class": "iceberg",
        "iceberg.catalog.type": "rest",
        "iceberg.catalog.uri": uri,
        "iceberg.catalog.token": TOKEN,
        "iceberg.tables": "lake.rows",
        "iceberg.tables.auto-create-enabled": "true",
        "iceberg.tables.evolve-schema-enabled": "true",
        "iceberg.tables.default-partition-by": "city",
        "retry.backoff.ms": "0",
    }


def test_rows_and_offsets_are_stored_together(tmp_path: Path) -> None:
    """A zombie and its successor write each row once in a REST catalog too."""
    with running_rest_catalog(tmp_path) as uri:
        zombie, successor = (SinkHarness(LakeSinkTask, props(uri)) for _ in range(2))
        for sink in (zombie, successor):
            sink.start()
            send(sink, range(6))
        zombie.deliver(3)
        successor.deliver()
        successor.stop()
        zombie.stop()
        catalog = load_catalog("look", type="rest", uri=uri, token=TOKEN)
        found = catalog.load_table("lake.rows")
        assert sorted(found.scan().to_arrow()["id"].to_pylist()) == list(range(6))
        snapshot = found.current_snapshot()
        assert snapshot is not None
        assert snapshot.summary is not None
        assert snapshot.summary["pyconnect.offsets.to-lake"] == '{"topic-0": 6}'


def test_a_wrong_token_is_found_by_validation(tmp_path: Path) -> None:
    """Validation reports a wrong token and shows neither the wrong nor the right one."""
    with running_rest_catalog(tmp_path) as uri:
        wrong = {**props(uri), "iceberg.catalog.token": "guess"}
        config = LakeSinkConnector().validate(wrong)
        texts = {v.name: v.error_messages for v in config.config_values if v.error_messages}
        ((name, (text,)),) = texts.items()
        assert name == "iceberg.catalog.uri"
        assert "NotAuthorizedException" in text
        assert TOKEN not in text
        assert "guess" not in text
