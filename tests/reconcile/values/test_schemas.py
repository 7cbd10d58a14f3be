"""Schemas of a registry, of topics and of Avro files."""

import base64
import io
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import fastavro
import pytest

from pyconnect_reconcile.errors import ReconcileError
from pyconnect_reconcile.spec import Registry
from pyconnect_reconcile.values.schemas import (
    MARK,
    UNIT,
    framed_schema,
    open_registry,
    reader_schema,
)

pytestmark = pytest.mark.wire

BASIC = "Basic " + base64.b64encode(b"me:hunter2:x").decode()
REFERENCES = [{"name": "p", "subject": "a/b", "version": 3}]
ANSWERS = {
    "/schemas/ids/1": {"schema": '"string"'},
    "/schemas/ids/2": {"schema": "s", "schemaType": "PROTOBUF", "references": REFERENCES},
    "/subjects/a%2Fb/versions/3": {
        "schema": "q",
        "references": [{"name": "r", "subject": "c", "version": 1}],
    },
    "/subjects/c/versions/1": {"schema": "r"},
    "/schemas/ids/3": [],
}


class Handler(BaseHTTPRequestHandler):
    """A handler that answers requests with the password or the token."""

    def do_GET(self) -> None:
        known = self.headers.get("Authorization") in {BASIC, "Bearer token"}
        found = ANSWERS.get(self.path)
        self.send_response(401 if not known else 404 if found is None else 200)
        self.end_headers()
        self.wfile.write(json.dumps(found).encode())

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def url() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join(30)


@pytest.fixture
def access(tmp_path: Path) -> str:
    path = tmp_path / "registry.properties"
    path.write_text("basic.auth.user.info=me:hunter2:x\n")
    return str(path)


def test_a_schema_comes_with_all_that_it_refers_to(url: str, access: str) -> None:
    """A schema comes with its references in order of use, and is Avro without a type."""
    with open_registry(Registry(url=url, properties=access)) as registry:
        plain, used = registry.schema(1), registry.schema(2)
        assert registry.schema(9) is None
    assert plain is not None
    assert (plain.kind, plain.text, plain.references) == ("AVRO", '"string"', ())
    assert used is not None
    assert (used.kind, used.references) == ("PROTOBUF", ("r", "q"))


def test_the_address_may_hold_user_and_password(url: str) -> None:
    """An address may hold user and password, as in Confluent's converters."""
    with open_registry(Registry(url=url.replace("//", "//me:hunter2%3Ax@"))) as registry:
        assert registry.schema(1) is not None


def test_a_token_gives_access_too(url: str, tmp_path: Path) -> None:
    """`bearer.auth.token` gives access, as in Confluent's converters."""
    path = tmp_path / "token.properties"
    path.write_text("bearer.auth.token=token\n")
    with open_registry(Registry(url=f"{url}/", properties=str(path))) as registry:
        assert registry.schema(1) is not None


def test_refusals_of_a_registry_are_reported_without_secrets(url: str, access: str) -> None:
    """A refusal, an invalid answer and an unreachable server are errors, not missing schemas."""
    with (
        open_registry(Registry(url=url)) as registry,
        pytest.raises(ReconcileError, match="answers 401") as caught,
    ):
        registry.schema(1)
    assert "--registry-properties" in str(caught.value.hint)
    with (
        open_registry(Registry(url=url, properties=access)) as registry,
        pytest.raises(ReconcileError, match="is not a schema registry"),
    ):
        registry.schema(3)
    with (
        open_registry(Registry(url="http://me:hunter2@127.0.0.1:1")) as registry,
        pytest.raises(ReconcileError, match="cannot be reached") as caught,
    ):
        registry.schema(1)
    assert "hunter2" not in caught.value.message


def test_the_next_address_is_asked_where_one_does_not_answer(url: str, access: str) -> None:
    """If an address does not answer, the next one of the registry is asked."""
    urls = f"http://127.0.0.1:1, {url}"
    with open_registry(Registry(url=urls, properties=access)) as registry:
        assert registry.schema(1) is not None


def test_stores_that_are_not_pem_are_refused(tmp_path: Path) -> None:
    """Stores in Java's own formats are refused."""
    store, path = tmp_path / "trust.jks", tmp_path / "registry.properties"
    store.write_bytes(b"\xfe\xed\xfe\xed")
    path.write_text(f"schema.registry.ssl.truststore.location={store}\n")
    settings = Registry(url="https://127.0.0.1:1", properties=str(path))
    with pytest.raises(ReconcileError, match="cannot be read as PEM"), open_registry(settings):
        pass


ADDRESS = {
    "type": "record",
    "name": "Address",
    "namespace": "com.example",
    "fields": [{"name": "city", "type": "string"}, {"name": "kind", "type": "com.other.Kind"}],
}
KIND = {"type": "enum", "name": "com.other.Kind", "symbols": ["HOME", "WORK"]}
ORDER = {
    "type": "record",
    "name": "com.example.Order",
    "fields": [
        {"name": "to", "type": "Address"},
        {"name": "others", "type": {"type": "array", "items": ["null", "com.example.Address"]}},
        {"name": "kind", "type": "com.other.Kind"},
    ],
}


def read(schema: str, body: bytes) -> object:
    return fastavro.schemaless_reader(io.BytesIO(body), json.loads(schema), None)


def written(schema: object, value: object, *named: object) -> bytes:
    stream, known = io.BytesIO(), {}
    for each in named:
        fastavro.parse_schema(each, named_schemas=known)
    fastavro.schemaless_writer(stream, fastavro.parse_schema(schema, named_schemas=known), value)
    return stream.getvalue()


@pytest.mark.parametrize(
    ("schema", "value"),
    [("string", "text"), (["null", "long"], None), ({"type": "map", "values": "int"}, {"a": 1})],
)
def test_a_value_and_its_mark_are_read_as_a_record(schema: object, value: object) -> None:
    """A value of any type and its mark are read as a record, whose fields follow each other."""
    body = written(schema, value) + MARK
    assert read(framed_schema(json.dumps(schema)), body) == {"value": value, "end": MARK}


def test_schemas_that_are_referred_to_are_written_where_they_are_first_used() -> None:
    """A referenced type is defined at its first use, by its namespace, and only once."""
    address = {"city": "x", "kind": "WORK"}
    order = {"to": address, "others": [None, address], "kind": "HOME"}
    body = written(ORDER, order, KIND, ADDRESS) + MARK
    texts = [json.dumps(KIND), json.dumps(ADDRESS)]
    assert read(framed_schema(json.dumps(ORDER), texts), body) == {"value": order, "end": MARK}


def test_decimals_of_unknown_precision_get_the_greatest_one() -> None:
    """A decimal gets 38 digits, Spark's maximum, because Connect declares 64 by default."""
    kind = {"type": "bytes", "logicalType": "decimal", "precision": 64, "scale": 2}
    fields = [{"name": "price", "type": ["null", kind]}]
    schema = {"type": "record", "name": "R", "fields": fields}
    framed = json.loads(framed_schema(json.dumps(schema)))
    [price] = framed["fields"][0]["type"]["fields"]
    assert price["type"] == ["null", {**kind, "precision": 38}]


def test_a_text_that_is_not_json_is_refused() -> None:
    """A schema text that is not JSON, as those of other formats, raises ValueError."""
    with pytest.raises(ValueError, match="Expecting value"):
        framed_schema('syntax = "proto3";')


CLOCK = {"type": "int", "logicalType": "time-millis"}
PRICE = {"type": "bytes", "logicalType": "decimal", "precision": 64, "scale": 2}


def schema(*fields: tuple[str, Any], name: str = "Row") -> dict[str, Any]:
    members = [{"name": field, "type": kind, "doc": field} for field, kind in fields]
    return {"type": "record", "name": name, "connect.version": len(fields), "fields": members}


def written_files(directory: Path, *schemas: Any) -> list[str]:
    """Return files without records whose headers have the schemas."""
    for number, each in enumerate(schemas):
        stream = io.BytesIO()
        fastavro.writer(stream, each, [])
        (directory / f"{number}.avro").write_bytes(stream.getvalue())
    return [str(directory)]


def test_a_field_that_some_files_lack_may_be_null(tmp_path: Path) -> None:
    """A field that some files lack becomes nullable, and types keep what decides their reading."""
    first = schema(("id", "long"), ("at", ["null", CLOCK]), ("price", PRICE))
    paths = written_files(tmp_path, first, schema(("note", "string"), ("id", "long")), first)
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
    """Files without a common schema are an error that names file and field."""
    with pytest.raises(ReconcileError, match=reason):
        reader_schema(written_files(tmp_path, *schemas), None)


def test_files_whose_schemas_are_out_of_reach_are_refused(tmp_path: Path) -> None:
    """Remote files need a given schema, because Spark would use the schema of one file."""
    with pytest.raises(ReconcileError, match="hdfs://a/b: the schemas"):
        reader_schema(["hdfs://a/b"], None)
    given = schema(("id", "long"))
    assert json.loads(reader_schema(["hdfs://a/b"], json.dumps(given)))["fields"] == [
        {"name": "id", "type": "long"}
    ]
    (tmp_path / "a.avro").write_text("no")
    with pytest.raises(ReconcileError, match=r"a\.avro is not an Avro file"):
        reader_schema([str(tmp_path)], None)
