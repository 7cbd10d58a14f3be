"""Struct: the value of a STRUCT schema, a fixed set of named members.

Corresponds to `org.apache.kafka.connect.data.Struct`. Mutable, so it belongs to one thread.
"""

from collections.abc import Iterable
from typing import Self, TypeVar

from pyconnect_api.errors import DataException
from pyconnect_api.java_text import base64_text, to_string
from pyconnect_api.schema import Field, Schema, StructValue, Type
from pyconnect_api.validation import validate_value

Value = TypeVar("Value")


class Struct(StructValue):
    """Values of a STRUCT schema's fields; a field without a value holds None.

    `get_int8` to `get_struct` return the stored value without the schema's default, or None. They
    and `put` raise DataException for a field that the schema does not have, and for a value or
    getter of another type.
    """

    __slots__ = ("_schema", "_values")

    def __init__(self, schema: Schema) -> None:
        if schema.type is not Type.STRUCT:
            raise DataException(f"Not a struct schema: {schema}")
        self._schema = schema
        self._values: list[object] = [None] * len(schema.fields)

    @classmethod
    def of_checked(cls, schema: Schema, values: list[object]) -> Self:
        """Make a struct of one value per field, in order, without checking any of them.

        For converters, which have just made the values according to the schema.
        """
        if schema.type is not Type.STRUCT:
            raise DataException(f"Not a struct schema: {schema}")
        # The constructor would make a list of its own for each record.
        struct = cls.__new__(cls)
        struct._schema = schema  # noqa: SLF001  of this very class
        struct._values = values  # noqa: SLF001  likewise
        return struct

    @classmethod
    def all_of_checked(cls, schema: Schema, rows: Iterable[list[object]]) -> "list[Struct]":
        """Make a struct of each row, as `of_checked` makes one."""
        if schema.type is not Type.STRUCT:
            raise DataException(f"Not a struct schema: {schema}")
        structs, new = [], cls.__new__
        for values in rows:
            struct = new(cls)
            struct._schema = schema  # noqa: SLF001  of this very class
            struct._values = values  # noqa: SLF001  likewise
            structs.append(struct)
        return structs

    @property
    def schema(self) -> Schema:
        return self._schema

    def put(self, field: str | Field, value: object) -> "Struct":
        """Set a field after checking the value; None needs an optional field."""
        found = self._found(field)
        self._values[found.index] = validate_value(found.schema, value, found.name)
        return self

    def get(self, field: str | Field) -> object:
        """Return the field's value, or its schema's default when the value is None."""
        found = self._found(field)
        value = self._values[found.index]
        return found.schema.default if value is None else value

    def get_without_default(self, field: str | Field) -> object:
        """Return the stored value, None if there is none."""
        return self._values[self._found(field).index]

    def stored_values(self) -> list[object]:
        """Return the fields' values in order, None where there is none; do not change them."""
        return self._values

    # The typed getters check the schema's type and leave defaults out, as Kafka's do.

    def get_int8(self, field_name: str) -> int | None:
        return self._typed(field_name, Type.INT8, int)

    def get_int16(self, field_name: str) -> int | None:
        return self._typed(field_name, Type.INT16, int)

    def get_int32(self, field_name: str) -> int | None:
        return self._typed(field_name, Type.INT32, int)

    def get_int64(self, field_name: str) -> int | None:
        return self._typed(field_name, Type.INT64, int)

    def get_float32(self, field_name: str) -> float | None:
        return self._typed(field_name, Type.FLOAT32, float)

    def get_float64(self, field_name: str) -> float | None:
        return self._typed(field_name, Type.FLOAT64, float)

    def get_boolean(self, field_name: str) -> bool | None:
        return self._typed(field_name, Type.BOOLEAN, bool)

    def get_string(self, field_name: str) -> str | None:
        return self._typed(field_name, Type.STRING, str)

    def get_bytes(self, field_name: str) -> bytes | None:
        return self._typed(field_name, Type.BYTES, bytes)

    def get_array(self, field_name: str) -> list[object] | None:
        return self._typed(field_name, Type.ARRAY, list)

    def get_map(self, field_name: str) -> dict[object, object] | None:
        return self._typed(field_name, Type.MAP, dict)

    def get_struct(self, field_name: str) -> "Struct | None":
        return self._typed(field_name, Type.STRUCT, Struct)

    def validate(self) -> None:
        """Raise DataException for the first field whose value its schema does not allow.

        A field without a value passes if it is optional or has a default.
        """
        for field, value in zip(self._schema.fields, self._values, strict=True):
            schema = field.schema
            if value is None and (schema.optional or schema.default is not None):
                continue
            validate_value(schema, value, field.name)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Struct):
            return NotImplemented
        return self._schema == other._schema and self._values == other._values

    # A struct can be a map's key, as in Kafka; after a change of the key its entry is lost. Lists
    # and maps have no hash, so they count for equality only.
    def __hash__(self) -> int:
        scalars = tuple(v for v in self._values if not isinstance(v, list | dict))
        return hash((self._schema, scalars))

    def __str__(self) -> str:
        """Return `Struct{a=1,b=x}` without the fields that hold None; bytes as base64."""
        return to_string(self._schema, self, base64_text)

    __repr__ = __str__

    def _found(self, field: str | Field) -> Field:
        if isinstance(field, Field):
            return field
        found = self._schema.field(field)
        if found is None:
            raise DataException(f"{field} is not a valid field name")
        return found

    def _typed(self, field_name: str, expected: Type, _: type[Value]) -> Value | None:
        field = self._found(field_name)
        if field.schema.type is not expected:
            raise DataException(f"Field '{field_name}' is not of type {expected}")
        return self._values[field.index]  # type: ignore[return-value]  # of the schema's type
