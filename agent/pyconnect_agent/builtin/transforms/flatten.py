"""`org.apache.kafka.connect.transforms.Flatten`: nested fields at the top, under joined names.

A field is optional if it or a struct around it is; arrays stay as they are. If joined names are
equal, the last field stays in a map, and a struct's schema is refused.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pyconnect_agent.builtin.transforms.base import (
    OneSideTransformation,
    Options,
    SchemaWithValue,
    both_sides,
)
from pyconnect_agent.builtin.transforms.schemas import (
    SchemaCache,
    copied_basics,
    require_map,
    require_struct,
    struct_like,
)
from pyconnect_api import (
    ConfigDef,
    ConnectRecord,
    DataException,
    Schema,
    SchemaBuilder,
    Struct,
    Type,
    validate_value,
)
from pyconnect_api.configdef import define_table

DELIMITER = "delimiter"
_PURPOSE = "flattening"
_LEAF_CLASSES = (str, int, float, bytes, list, tuple, bytearray, memoryview)


@dataclass(frozen=True, slots=True)
class _Leaf:
    """A field that is not a struct: its new name and schema, and how to reach it.

    `path` are the indexes of the structs around it, from the outermost; `index` is its own.
    """

    name: str
    schema: Schema
    path: tuple[int, ...]
    index: int
    default: object

    def value_of(self, struct: Struct) -> object:
        """Return the value in a struct, or its default; None if a struct around it is None."""
        for index in self.path:
            inner = struct.stored_values()[index]
            if inner is None:
                return None
            assert isinstance(inner, Struct)
            struct = inner
        value = struct.stored_values()[self.index]
        if value is None:
            value = self.default
            if value is None:
                validate_value(self.schema, None, self.name)
        return value


class Flatten(OneSideTransformation):
    """Flattens structs and schemaless maps."""

    KEEPS_NONE = True
    CONFIG_DEF = define_table(
        ConfigDef(), f"{DELIMITER}  STRING  MEDIUM  .\n    Text between the parts of a joined name."
    )

    _delimiter: str
    _flattenings: SchemaCache[tuple[Schema, tuple[_Leaf, ...]]]

    def configured(self, options: Options) -> None:
        self._delimiter = options.text(DELIMITER)

        def flattening(schema: Schema) -> tuple[Schema, tuple[_Leaf, ...]]:
            default = schema.default if isinstance(schema.default, Struct) else None
            leaves = tuple(self._leaves(schema, "", (), schema.optional, default))
            target = struct_like(schema, [(leaf.name, leaf.schema) for leaf in leaves])
            return target.build(), leaves

        self._flattenings = SchemaCache(flattening)

    def schemaless(self, record: ConnectRecord, value: object) -> object:
        flat: dict[str, object] = {}
        self._flatten_map(require_map(value, _PURPOSE), "", flat)
        return flat

    def with_schema(self, record: ConnectRecord, schema: Schema, value: object) -> SchemaWithValue:
        struct = require_struct(value, _PURPOSE)
        target, leaves = self._flattenings.of(struct.schema)
        return target, Struct.of_checked(target, [leaf.value_of(struct) for leaf in leaves])

    def _flatten_map(self, fields: dict[Any, Any], prefix: str, flat: dict[str, object]) -> None:
        for key, value in fields.items():
            if key.__class__ is not str:
                raise DataException(
                    f"Flatten transformation does not support keys of class "
                    f"{type(key).__qualname__} for record without schemas (in field {prefix!r})."
                )
            name = self._joined(prefix, key)
            if isinstance(value, dict):
                self._flatten_map(value, name, flat)
            elif value is None or isinstance(value, _LEAF_CLASSES):
                flat[name] = value
            elif isinstance(value, Struct):
                raise DataException(
                    "Flatten transformation does not support class Struct for record without "
                    f"schemas (for field {name})."
                )
            else:
                raise DataException(
                    "Flatten transformation was passed a value of type class "
                    f"{type(value).__qualname__} which is not supported by Connect's data API"
                )

    def _leaves(
        self,
        schema: Schema,
        prefix: str,
        path: tuple[int, ...],
        optional: bool,
        default_struct: Struct | None,
    ) -> Iterator[_Leaf]:
        """Yield the leaves below a struct schema.

        `optional`: whether a schema around it is optional; `default_struct`: the nearest default
        of such a schema.
        """
        for field in schema.fields:
            name = self._joined(prefix, field.name)
            is_optional = optional or field.schema.optional
            default = field.schema.default
            if default is None and default_struct is not None:
                default = default_struct.get(field.name)
            if field.schema.type is Type.MAP:
                raise DataException(
                    f"Flatten transformation does not support {field.schema.type} for record with "
                    f"schemas (for field {name})."
                )
            if field.schema.type is Type.STRUCT:
                inner = default if isinstance(default, Struct) else None
                inner_path = (*path, field.index)
                yield from self._leaves(field.schema, name, inner_path, is_optional, inner)
            else:
                if field.schema.type is Type.ARRAY:
                    assert field.schema.value_schema is not None
                    builder = SchemaBuilder.array(field.schema.value_schema)
                else:
                    builder = SchemaBuilder(field.schema.type)
                copied_basics(field.schema, builder)
                if is_optional:
                    builder.optional()
                if default is not None:
                    builder.default(default)
                yield _Leaf(name, builder.build(), path, field.index, field.schema.default)

    def _joined(self, prefix: str, name: str) -> str:
        return f"{prefix}{self._delimiter}{name}" if prefix else name


FlattenKey, FlattenValue = both_sides(Flatten)
