"""`org.apache.kafka.connect.transforms.ExtractField`: one field instead of the whole key or value.

Layer: builtin. Unknown fields: DataException with a schema (Kafka: IllegalArgumentException), None
without.
"""

from __future__ import annotations

from pyconnect_agent.builtin.options import Options
from pyconnect_agent.builtin.transforms.base import OneSideTransformation, both_sides
from pyconnect_agent.builtin.transforms.definitions import (
    FIELD_SYNTAX_VERSION,
    REPLACE_NULL_WITH_DEFAULT,
    define_field_syntax_version,
    define_replace_null_with_default,
)
from pyconnect_agent.builtin.transforms.field_path import FieldPath
from pyconnect_agent.builtin.transforms.requirements import require_map, require_struct
from pyconnect_api import (
    ConfigDef,
    ConfigType,
    ConnectRecord,
    DataException,
    Importance,
    Schema,
)

FIELD = "field"
_PURPOSE = "field extraction"


class ExtractField(OneSideTransformation):
    """Replaces schema and value by those of the field; None stays None."""

    CONFIG_DEF = define_field_syntax_version(
        define_replace_null_with_default(
            ConfigDef().define(
                FIELD,
                ConfigType.STRING,
                importance=Importance.MEDIUM,
                documentation="The field to extract.",
            )
        )
    )

    _field: str
    _path: FieldPath
    _with_default: bool

    def _configured(self, options: Options) -> None:
        self._field = options.text(FIELD)
        self._path = FieldPath(self._field, options.text(FIELD_SYNTAX_VERSION).upper())
        self._with_default = options.flag(REPLACE_NULL_WITH_DEFAULT)

    def schemaless(self, record: ConnectRecord, value: object) -> object:
        return None if value is None else self._path.value_of_map(require_map(value, _PURPOSE))

    def with_schema(
        self, record: ConnectRecord, schema: Schema, value: object
    ) -> tuple[Schema, object]:
        struct = None if value is None else require_struct(value, _PURPOSE)
        field = self._path.field_of(schema)
        if field is None:
            raise DataException(f"Unknown field: {self._field}")
        if struct is None:
            return field.schema, None
        return field.schema, self._path.value_of_struct(struct, with_default=self._with_default)


ExtractFieldKey, ExtractFieldValue = both_sides(ExtractField)
