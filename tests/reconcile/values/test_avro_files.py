"""One schema for Avro files of several."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import fastavro
import pytest

from pyconnect_reconcile.errors import ReconcileError
from pyconnect_reconcile.values.schemas import UNIT, reader_schema

CLOCK = {"type": "int", "logicalType": "time-millis"}
PRICE = {"type": "bytes", "logicalType": "decimal", "precision": 64, "scale": 2}


def schema(*fields: tuple[str, Any], name: str = "Row") -> dict[str, Any]:
    members = [{"name": field, "type": kind, "doc": field} for field, kind in fields]
    return {"type": "record", "name": name, "connect.version": len(fields), "fields": members}


def written(directory: Path, *schemas: Any) -> list[str]:
    """Return files without records, whose headers have the schemas."""
    for number, each in enumerate(schemas):
        stream = io.BytesIO()
        fastavro.writer(stream, each, [])
        (directory / f"{number}.avro").write_bytes(stream.getvalue())
    return [str(directory)]


def test_a_field_that_some_files_lack_may_be_null(tmp_path: Path) -> None:
    """Types are kept with what decides how values are read."""
    first = schema(("id", "long"), ("at", ["null", CLOCK]), ("price", PRICE))
    paths = written(tmp_path, first, schema(("note", "string"), ("id", "long")), first)
    found = json.loads(reader_schema(paths, None))["fields"]
    assert found == [
        {"name": "id", "type": "long"},
        {"name": "at", "type": ["null", {"type": "int", UNIT: "ms"}], "default": None},
        {"name": "price", "type": ["null", {**PRICE, "precision": 38}], "default": None},
        {"name": "note", "type": ["null", "string"], "default": None},
    ]


@pytest.mark.parametrize(
    ("schemas", "reason"),
    [
        ([schema(("id", "long")), schema(("id", "string"))], "1.avro: the field id has another"),
        ([schema(("id", {"type": "array", "items": CLOCK}))], "field id has times of day within"),
        (["string"], "0.avro: its values are not records"),
    ],
)
def test_files_that_are_not_rows_of_one_kind_are_refused(
    tmp_path: Path, schemas: list[Any], reason: str
) -> None:
    """The file and the field are named."""
    with pytest.raises(ReconcileError, match=reason):
        reader_schema(written(tmp_path, *schemas), None)


def test_files_whose_schemas_are_out_of_reach_are_refused(tmp_path: Path) -> None:
    """Spark would take the schema of one of them. A schema that is given is used."""
    with pytest.raises(ReconcileError, match="hdfs://a/b: the schemas"):
        reader_schema(["hdfs://a/b"], None)
    given = schema(("id", "long"))
    assert json.loads(reader_schema(["hdfs://a/b"], json.dumps(given)))["fields"] == [
        {"name": "id", "type": "long"}
    ]
    (tmp_path / "a.avro").write_text("no")
    with pytest.raises(ReconcileError, match=r"a\.avro is not an Avro file"):
        reader_schema([str(tmp_path)], None)
