"""A jq program that mends the values of dead letters: JSON, texts, and those of a schema registry.

    00 | schema id, 4 bytes big-endian | JSON, or Avro

A mended value keeps its schema. The program gets Avro in Avro's own JSON: a member of a union is
`{"string": "x"}`, bytes are characters up to U+00FF, a logical type is its number or bytes.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from pyconnect_cli.errors import PreconditionFailed, UsageError
from pyconnect_cli.kafka.model import TopicRecord
from pyconnect_cli.parsing.values import parse_json
from pyconnect_cli.render.output import jq_program
from pyconnect_cli.render.styles import json_text
from pyconnect_clients.installation import install_command
from pyconnect_reconcile.errors import ReconcileError
from pyconnect_reconcile.spec import Registry
from pyconnect_reconcile.values.schemas import RegisteredSchema, open_registry

Mend = Callable[[TopicRecord], bytes | None]

HEAD_BYTES = 5
_UNFIT = (ArithmeticError, AttributeError, EOFError, LookupError, TypeError, ValueError)
"""What fastavro raises for bytes and values that are not of a schema."""


def mender(expression: str | None, *, text: bool = False, registry: Registry | None = None) -> Mend:
    """Return a function from a letter to its value, mended by a jq program if there is one.

    `text`: the program gets each value as a string. The bytes stay as they are if the program
    changes nothing; a null stays a null. UsageError names the letter whose value cannot be read,
    has numbers that jq would round, does not have one result, or one that its schema does not hold.
    """
    if expression is None:
        return lambda letter: letter.value
    program, same = jq_program(expression, "--mend"), jq_program(".", "--mend")
    forms = _Forms(registry)

    def mended(value: bytes) -> bytes:
        form = _TEXT if text else forms.of(value)
        document = form.read(value)
        json_text(parse_json(document, "the value", exact=True)).encode()
        results = [json_text(result) for result in program(document)]
        if len(results) != 1:
            raise UsageError(
                f"the program has {len(results)} results, not one",
                hint="use `if … then … else . end` to keep other values as they are",
            )
        if results == [json_text(result) for result in same(document)]:
            return value
        return form.write(results[0])

    def mended_letter(letter: TopicRecord) -> bytes | None:
        try:
            return None if letter.value is None else mended(letter.value)
        except (UsageError, UnicodeError) as exc:
            place = f"--mend: {letter.topic}-{letter.partition}@{letter.offset}"
            if isinstance(exc, UnicodeError):
                raise UsageError(f"{place}: the value is not UTF-8") from exc
            message = exc.message.removeprefix("--mend: ")
            raise UsageError(f"{place}: {message}", hint=exc.hint) from exc

    return mended_letter


@dataclass(frozen=True, slots=True)
class _Form:
    """A form of values: both functions have JSON on their other side."""

    read: Callable[[bytes], str]
    write: Callable[[str], bytes]


def _text_of(document: str) -> bytes:
    value = json.loads(document)
    if not isinstance(value, str):
        raise UsageError("the result is not a string", hint="use `tostring` or `tojson`")
    return value.encode()


_JSON = _Form(bytes.decode, str.encode)
_TEXT = _Form(lambda value: json.dumps(value.decode()), _text_of)


@dataclass(frozen=True, slots=True)
class _Forms:
    """The forms of values, with those of the schemas that a registry was asked for."""

    registry: Registry | None
    framed: dict[bytes, _Form] = field(default_factory=dict)

    def of(self, value: bytes) -> _Form:
        """Return the form of a value. Raises UsageError and PreconditionFailed."""
        if not value.startswith(b"\0"):
            return _JSON
        head = value[:HEAD_BYTES]
        if head not in self.framed:
            if self.registry is None or len(head) < HEAD_BYTES:
                raise UsageError(
                    "the value is not JSON: it begins like those of a schema registry",
                    hint="give --registry URL; --mend-text takes the value as a text",
                )
            number = int.from_bytes(head[1:])
            try:
                with open_registry(self.registry) as registry:
                    schema = registry.schema(number)
            except ReconcileError as exc:
                raise PreconditionFailed(f"--mend: {exc.message}", hint=exc.hint) from exc
            match schema and schema.kind:
                case None:
                    raise UsageError(
                        f"its schema {number} is not in the registry", hint="check --registry"
                    )
                case "JSON":
                    self.framed[head] = _Form(
                        lambda value: value[HEAD_BYTES:].decode(), lambda text: head + text.encode()
                    )
                case "AVRO":
                    assert schema is not None
                    self.framed[head] = avro_form(head, schema)
                case kind:
                    raise UsageError(
                        f"its schema {number} is {kind}: --mend takes Avro and JSON",
                        hint="send the letters without --mend, and let a transformation of the"
                        " connector mend them",
                    )
        return self.framed[head]


def avro_form(head: bytes, registered: RegisteredSchema) -> _Form:
    """Return the form of values with a schema."""
    try:
        import fastavro
    except ImportError as missing:
        raise PreconditionFailed(
            "--mend needs fastavro for Avro, which is not installed",
            hint=f"install the extra [avro]: {install_command('avro')}",
        ) from missing
    known: dict[str, Any] = {}
    schema: Any = None
    for text in (*registered.references, registered.text):
        schema = fastavro.parse_schema(_without_logical(json.loads(text)), known)

    def read(value: bytes) -> str:
        body, document = io.BytesIO(value[HEAD_BYTES:]), io.StringIO()
        try:
            fastavro.json_writer(document, schema, [fastavro.schemaless_reader(body, schema, None)])
        except _UNFIT as exc:
            raise UsageError(f"the value is not of its schema: {exc}") from exc
        if body.read(1):
            raise UsageError("the value is not of its schema: bytes follow it")
        return document.getvalue()

    def write(document: str) -> bytes:
        body = io.BytesIO()
        body.write(head)
        try:
            (value,) = fastavro.json_reader(io.StringIO(document), schema)
            fastavro.schemaless_writer(body, schema, value)
            held = json.loads(read(body.getvalue())) == json.loads(document)
        except _UNFIT as exc:
            raise UsageError(f"the result is not of the value's schema: {exc}") from exc
        if not held:
            raise UsageError(
                "the value's schema does not hold the program's result as it is",
                hint="members and types must be those of the schema; members of unions are"
                ' {"string": "x"}',
            )
        return body.getvalue()

    return _Form(read, write)


def _without_logical(schema: Any) -> Any:
    """Return a schema whose values are read as they are written."""
    if isinstance(schema, list):
        return [_without_logical(each) for each in schema]
    if isinstance(schema, dict):
        return {
            name: _without_logical(each) for name, each in schema.items() if name != "logicalType"
        }
    return schema
