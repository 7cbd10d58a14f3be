"""Schemas of a registry, asked by id, and Avro schemas with which Spark reads topics and files.

A properties file has the credentials, in the names of Confluent's converters, without prefix:
`basic.auth.user.info`, `bearer.auth.token`, `schema.registry.ssl.truststore.location` (PEM),
`schema.registry.ssl.keystore.location` (PEM with certificate and key) and
`schema.registry.ssl.key.password`. They reach no executor and no report.

A value of a topic is read as a record of two fields (`framed_schema`): the value, and a mark that
the reader has put behind it. Avro writes the fields of a record one after the other and nothing
else, so the bytes are the value's own. If the mark does not come out unchanged, the bytes were not
a value of that schema: too long, too short, or something else. `from_avro` alone does not report
bytes that follow a value.

Files are read with one schema of all of them (`reader_schema`). Otherwise Spark takes the schema of
one file, and leaves out the fields that only others have.
"""

import json
import re
import ssl
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from pyconnect_clients.installation import install_command
from pyconnect_reconcile.errors import ReconcileError
from pyconnect_reconcile.files import is_local, local_files
from pyconnect_reconcile.properties import read_properties
from pyconnect_reconcile.spec import Registry

TIMEOUT_S = 15.0
NOT_FOUND = 404
SSL = "schema.registry.ssl."
_USER = re.compile(r"//[^/@]*@")


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisteredSchema:
    """A schema: `kind` is AVRO, JSON or PROTOBUF; `references` are texts of schemas it uses."""

    kind: str
    text: str
    references: tuple[str, ...] = ()


class SchemaRegistry:
    """The client of one registry; `open_registry` opens it for a block."""

    def __init__(self, client: object, urls: tuple[str, ...]) -> None:
        self._client = client
        self._urls = urls

    def schema(self, schema_id: int) -> RegisteredSchema | None:
        """Return a schema with all schemas that it uses, None when the registry does not have it.

        Raises ReconcileError when the registry does not answer, or refuses.
        """
        document = self._get(f"/schemas/ids/{schema_id}")
        if document is None:
            return None
        return RegisteredSchema(
            kind=str(document.get("schemaType") or "AVRO"),
            text=str(document.get("schema", "")),
            references=tuple(dict.fromkeys(self._referred(document))),
        )

    def _referred(self, document: Mapping[str, object]) -> Iterator[str]:
        """Yield the schemas that a schema refers to, each after its own references."""
        references = document.get("references") or []
        assert isinstance(references, list)
        for reference in references:
            subject = quote(str(reference["subject"]), safe="")
            path = f"/subjects/{subject}/versions/{reference['version']}"
            found = self._get(path)
            if found is None:
                raise ReconcileError(f"the schema registry has no {path}, which a schema refers to")
            yield from self._referred(found)
            yield str(found.get("schema", ""))

    def _get(self, path: str) -> Mapping[str, object] | None:
        import httpx

        assert isinstance(self._client, httpx.Client)
        problem = ""
        for url in self._urls:
            try:
                answer = self._client.get(f"{url}{path}")
            except httpx.HTTPError as exc:
                problem = f"{_shown(url)} cannot be reached: {exc}"
                continue
            if answer.status_code == NOT_FOUND:
                return None
            try:
                document = answer.raise_for_status().json()
            except (httpx.HTTPStatusError, ValueError):
                problem = f"{_shown(url)} answers {answer.status_code} to {path}"
                continue
            if isinstance(document, Mapping):
                return document
            problem = f"{_shown(url)} is not a schema registry"
        raise ReconcileError(
            f"the schema registry: {problem}", hint="check --registry and --registry-properties"
        )


@contextmanager
def open_registry(settings: Registry) -> Iterator[SchemaRegistry]:
    """Yield a client of a registry; it is closed when the block ends."""
    import httpx

    properties = read_properties(settings.properties)
    urls = tuple(url.strip().rstrip("/") for url in settings.url.split(",") if url.strip())
    user, _, password = properties.get("basic.auth.user.info", "").partition(":")
    token = properties.get("bearer.auth.token")
    try:
        tls = ssl.create_default_context(cafile=properties.get(f"{SSL}truststore.location") or None)
        if store := properties.get(f"{SSL}keystore.location"):
            tls.load_cert_chain(store, password=properties.get(f"{SSL}key.password"))
    except (OSError, ssl.SSLError) as exc:
        raise ReconcileError(
            f"the stores for the schema registry cannot be read as PEM: {exc}"
        ) from exc
    with httpx.Client(
        timeout=TIMEOUT_S,
        verify=tls,
        auth=(user, password) if user else None,
        headers={"Authorization": f"Bearer {token}"} if token else None,
    ) as client:
        yield SchemaRegistry(client, urls)


def _shown(url: str) -> str:
    """Return an address without user and password."""
    return _USER.sub("//", url)


MARK = bytes.fromhex("1d5e0ff1c3b7a942")
# Connect's decimals declare 64 digits if unknown; the bytes do not depend on the number.
MOST_DIGITS = 38
VALUE, END = "value", "end"
MICROS = "time-micros"
_NAMED = ("record", "enum", "fixed", "error")
Json = object
READER_SCHEMA = "avroSchema"
"""Spark's option with the schema as JSON."""
UNIT = "pyconnect.unit"
"""The member of a type with the unit of its times of day: `ms` or `us`."""
_UNITS = {"time-millis": "ms", "time-micros": "us"}
# Other members, such as documentation and defaults, do not change how a value is read.
_READ = frozenset(
    {"type", "name", "namespace", "fields", "items", "values", "symbols", "size", "logicalType"}
    | {"precision", "scale"}
)


def framed_schema(text: str, references: Sequence[str] = ()) -> str:
    """Return the schema of value and mark, with its references inlined.

    Raises ValueError when a text is not JSON.
    """
    known: dict[str, Json] = {}
    for reference in references:
        _collect(json.loads(reference), "", known)
    value = _inlined(json.loads(text), "", known, set())
    mark = {"type": "fixed", "name": "pyconnect_mark", "size": len(MARK)}
    fields = [{"name": VALUE, "type": value}, {"name": END, "type": mark}]
    return json.dumps({"type": "record", "name": "pyconnect_framed", "fields": fields})


def micro_clocks(framed: str) -> list[str] | None:
    """Return the value's fields that are times of day in microseconds; `framed` as `framed_schema`.

    Spark reads them as plain numbers. None: the value has such times in other places.
    """
    value = json.loads(framed)["fields"][0]["type"]
    fields = value.get("fields", ()) if isinstance(value, dict) else ()
    found = []
    for field in fields:
        kinds = field["type"] if isinstance(field["type"], list) else [field["type"]]
        if any(isinstance(kind, dict) and kind.get("logicalType") == MICROS for kind in kinds):
            found.append(str(field["name"]))
    return found if framed.count(f'"{MICROS}"') == len(found) else None


def _full_name(schema: Mapping[str, Json], namespace: str) -> tuple[str, str]:
    name = str(schema.get("name", ""))
    if "." in name:
        return name, name.rpartition(".")[0]
    inside = str(schema.get("namespace", namespace))
    return (f"{inside}.{name}" if inside else name), inside


def _collect(schema: Json, namespace: str, known: dict[str, Json]) -> None:
    """Add every named type that a schema defines to `known`, with its full namespace."""
    if isinstance(schema, list):
        for branch in schema:
            _collect(branch, namespace, known)
    elif isinstance(schema, Mapping):
        inside = namespace
        if schema.get("type") in _NAMED:
            name, inside = _full_name(schema, namespace)
            known[name] = {**schema, "namespace": inside}
        parts = [schema[name] for name in ("items", "values") if name in schema]
        kind, fields = schema.get("type"), schema.get("fields")
        if isinstance(kind, Mapping | list):
            parts.append(kind)
        if isinstance(fields, list):
            parts += [field["type"] for field in fields]
        for part in parts:
            _collect(part, inside, known)


def _inlined(schema: Json, namespace: str, known: Mapping[str, Json], defined: set[str]) -> Json:
    """Return the schema with the first use of each type of `known` replaced by its definition."""
    if isinstance(schema, str):
        name = schema if "." in schema or not namespace else f"{namespace}.{schema}"
        if name not in known or name in defined:
            return schema
        return _inlined(known[name], "", known, defined)
    if isinstance(schema, list):
        return [_inlined(branch, namespace, known, defined) for branch in schema]
    assert isinstance(schema, Mapping)
    result: dict[str, Json] = dict(schema)
    inside = namespace
    if schema.get("type") in _NAMED:
        name, inside = _full_name(schema, namespace)
        defined.add(name)
    precision = schema.get("precision")
    if schema.get("logicalType") == "decimal" and isinstance(precision, int):
        result["precision"] = min(precision, MOST_DIGITS)
    for member in ("items", "values"):
        if member in schema:
            result[member] = _inlined(schema[member], inside, known, defined)
    kind = schema.get("type")
    if isinstance(kind, Mapping | list) or (isinstance(kind, str) and kind not in _NAMED):
        result["type"] = _inlined(kind, inside, known, defined)
    fields = schema.get("fields")
    if isinstance(fields, list):
        result["fields"] = [
            {**field, "type": _inlined(field["type"], inside, known, defined)} for field in fields
        ]
    return result


def reader_schema(paths: Sequence[str], given: str | None) -> str:
    """Return the schema of the records of all files as JSON; fields that some lack become nullable.

    `given` replaces the files' schemas. ReconcileError for files that are not local, that have no
    schema in common, or that have times of day within arrays, maps or records.
    """
    if given is not None:
        return json.dumps(merged({given: READER_SCHEMA}))
    if remote := [path for path in paths if not is_local(path)]:
        raise ReconcileError(
            f"{remote[0]}: the schemas of its Avro files cannot be read from here",
            hint=f'give the schema that has every field: options of the side, "{READER_SCHEMA}"',
        )
    try:
        import fastavro
    except ImportError as exc:
        raise ReconcileError(
            "the schemas of Avro files are read with fastavro, which is not installed",
            hint=f"install it: {install_command('avro')}",
        ) from exc
    found = {}
    for path in local_files(paths):
        with path.open("rb") as file:
            try:
                found[fastavro.reader(file).metadata["avro.schema"]] = str(path)
            except (ValueError, EOFError, KeyError) as exc:
                raise ReconcileError(f"{path} is not an Avro file: {exc}") from exc
    return json.dumps(merged(found))


def merged(schemas: dict[str, str]) -> dict[str, Any]:
    """Return the schema that reads records of every schema; `schemas` maps JSON to a file."""
    fields: dict[str, Any] = {}
    found: list[dict[str, Any]] = []
    for text, file in schemas.items():
        schema = _readable(json.loads(text))
        if not isinstance(schema, dict) or schema["type"] != "record":
            raise ReconcileError(f"{file}: its values are not records, so they are not rows")
        found.append(schema)
        for field in schema["fields"]:
            known = fields.setdefault(field["name"], field)
            if any(UNIT not in kind and UNIT in json.dumps(kind) for kind in _kinds(field)):
                raise ReconcileError(f"{file}: the field {field['name']} has times of day within")
            if known["type"] != field["type"]:
                raise ReconcileError(
                    f"{file}: the field {field['name']} has another type than in other files",
                    hint="audit the files of each schema by themselves: --files",
                )
    everywhere = set(fields).intersection(
        *({field["name"] for field in schema["fields"]} for schema in found)
    )
    for name in fields.keys() - everywhere:
        nullable = ["null", *(kind for kind in _kinds(fields[name]) if kind != "null")]
        fields[name] = {"name": name, "type": nullable, "default": None}
    return {**found[0], "fields": list(fields.values())}


def clock_units(schema: str) -> dict[str, str]:
    """Return the units of the fields that are times of day, which Spark reads as numbers."""
    fields = json.loads(schema)["fields"]
    return {field["name"]: kind[UNIT] for field in fields for kind in _kinds(field) if UNIT in kind}


def _kinds(field: dict[str, Any]) -> list[Any]:
    kinds = field["type"]
    return kinds if isinstance(kinds, list) else [kinds]


def _readable(schema: Any) -> Any:
    """Return the members that decide how values are read, with at most 38 digits for decimals.

    Connect's converter declares 64 digits for a decimal without a precision. Spark fails at a value
    that has more digits than it declares.
    """
    if isinstance(schema, list):
        return [_readable(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    found = {name: _readable(value) for name, value in schema.items() if name in _READ}
    kind = found.get("logicalType")
    if kind == "decimal":
        found["precision"] = min(found["precision"], MOST_DIGITS)
    return {"type": found["type"], UNIT: _UNITS[kind]} if kind in _UNITS else found
