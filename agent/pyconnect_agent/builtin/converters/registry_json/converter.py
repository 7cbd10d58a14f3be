"""`io.confluent.connect.json.JsonSchemaConverter`: JSON whose schemas a registry keeps.

Bodies are JSON documents with the value rules of JsonConverter, except that a map's entries without
text keys are objects of `key` and `value`. Needs the extra `json-schema`. Differences from
Confluent's: schemaless maps and lists are refused, so are schemas that contain themselves.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pyconnect_agent.builtin.converters.json_reader import reader_for
from pyconnect_agent.builtin.converters.json_writer import JsonOptions, writer_for
from pyconnect_agent.builtin.converters.registry.converter import (
    Decode,
    DerivedSchema,
    Encode,
    Frame,
    RegistryConverter,
)
from pyconnect_agent.builtin.converters.registry.options import (
    define_flags,
    registry_config_def,
    require_extra,
)
from pyconnect_agent.builtin.converters.registry_json import reading, writing
from pyconnect_agent.core.java_text import json_text
from pyconnect_agent.kafka.schema_registry import RegistrySchema
from pyconnect_api import (
    CaseInsensitiveValidString,
    ConfigDef,
    DataException,
    Schema,
    SchemaAndValue,
    Type,
)
from pyconnect_api.configdef import define_table

KIND = "JSON"
DECIMAL_FORMAT = "decimal.format"
_FLAGS = (
    ("json.fail.invalid.schema", False, "Messages are checked against their schema."),
    ("object.additional.properties", True, "Objects may have members their schema does not name."),
    ("use.optional.for.nonrequired", False, "Properties that are not required are optional."),
)


class JsonSchemaConverter(RegistryConverter):
    """Reads and writes JSON; configure it before use."""

    def __init__(self) -> None:
        super().__init__()
        self._json = JsonOptions(registry_forms=True)
        self._validate = self._use_required = False
        self._additional_properties = True

    def config(self) -> ConfigDef:
        require_extra("json-schema", type(self).__name__)
        definition = define_table(
            registry_config_def(),
            f"{DECIMAL_FORMAT}  STRING  LOW  BASE64\n    The form in which decimals are written.",
            {DECIMAL_FORMAT: CaseInsensitiveValidString.one_of("BASE64", "NUMERIC")},
        )
        return define_flags(definition, _FLAGS)

    def configured(self, config: Mapping[str, object]) -> None:
        self._json = JsonOptions(
            decimals_as_numbers=str(config[DECIMAL_FORMAT]).upper() == "NUMERIC",
            registry_forms=True,
        )
        self._validate = config["json.fail.invalid.schema"] is True
        self._additional_properties = config["object.additional.properties"] is True
        self._use_required = config["use.optional.for.nonrequired"] is True

    def derived(self, schema: Schema) -> DerivedSchema:
        document = writing.json_schema(
            schema,
            self._json,
            additional_properties=self._additional_properties,
            list_required=self._use_required,
        )
        text = json.dumps(document, separators=(",", ":"), ensure_ascii=False)
        name = schema.name if schema.type is Type.STRUCT else None
        return DerivedSchema(RegistrySchema(None, text, KIND), name)

    def encoder(self, schema: Schema, target: RegistrySchema) -> Encode:
        write = writer_for(schema, self._json)
        check = self._checker(target)

        def encode(value: object) -> bytes:
            text = write(value)
            if check is not None:
                check(text)
            return text.encode()

        return encode

    def decoder(self, source: RegistrySchema) -> Decode:
        if source.kind != KIND:
            raise DataException(f"The message's schema is not JSON Schema but {source.kind}")
        document, references = self._documents(source)
        schema = reading.connect_schema(
            document, references, self._json, optional_unless_required=self._use_required
        )
        read, check = reader_for(schema, self._json), self._checker(source)

        def decode(frame: Frame) -> SchemaAndValue:
            try:
                text = json_text.decode(frame.body)
                found = json_text.parse_text(text)
            except json_text.JsonTextError as error:
                raise DataException(
                    f"Failed to deserialize JSON with schema {frame.schema}: {error}"
                ) from error
            if check is not None:
                check(text)
            return SchemaAndValue(schema, read(found))

        return decode

    def _documents(self, source: RegistrySchema) -> tuple[Any, dict[str, Any]]:
        references: dict[str, Any] = {}
        for reference in source.references:
            imported = self.registry.by_version(reference.subject, reference.version)
            document, further = self._documents(imported)
            references |= {reference.name: document, **further}
        try:
            return json.loads(source.text), references
        except ValueError as error:
            raise DataException(f"The JSON Schema is not JSON: {error}") from error

    def _checker(self, source: RegistrySchema) -> Any:
        """Return a function that refuses texts which do not fit; None unless asked for."""
        if not self._validate:
            return None
        import jsonschema

        validator = jsonschema.Draft7Validator(json.loads(source.text))

        def check(text: str) -> None:
            problem = next(validator.iter_errors(json.loads(text)), None)
            if problem is not None:
                place = "/".join(map(str, problem.absolute_path)) or "the document"
                raise DataException(f"The JSON does not fit its schema at {place}")

        return check
