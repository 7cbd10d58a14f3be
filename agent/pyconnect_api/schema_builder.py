"""Builds schemas step by step and refuses contradictions as they appear.

Corresponds to `org.apache.kafka.connect.data.SchemaBuilder`. A builder is not itself a schema:
`build()` makes one. A builder in the place of an inner schema is built automatically.
"""

from collections.abc import Mapping
from typing import Self

from pyconnect_api.errors import DataException, SchemaBuilderException
from pyconnect_api.schema import Field, Schema, Type
from pyconnect_api.validation import validate_value


class SchemaBuilder:
    """Mutable parts of one schema; every setter returns the builder.

    `int8` to `bytes` start a schema of that primitive type, `struct`, `array` and `map` one of
    those. Optionality, default, name, version and doc may be set once, or again to the same value.
    Every setter raises SchemaBuilderException for a contradiction.
    """

    def __init__(self, type: Type) -> None:
        self._type = type
        self._optional: bool | None = None
        self._default: object = None
        self._name: str | None = None
        self._version: int | None = None
        self._doc: str | None = None
        self._parameters: dict[str, str] = {}
        self._fields: dict[str, Field] = {}
        self._key_schema: Schema | None = None
        self._value_schema: Schema | None = None

    @classmethod
    def of_type(cls, type: Type) -> Self:
        return cls(type)

    @classmethod
    def int8(cls) -> Self:
        return cls(Type.INT8)

    @classmethod
    def int16(cls) -> Self:
        return cls(Type.INT16)

    @classmethod
    def int32(cls) -> Self:
        return cls(Type.INT32)

    @classmethod
    def int64(cls) -> Self:
        return cls(Type.INT64)

    @classmethod
    def float32(cls) -> Self:
        return cls(Type.FLOAT32)

    @classmethod
    def float64(cls) -> Self:
        return cls(Type.FLOAT64)

    @classmethod
    def boolean(cls) -> Self:
        return cls(Type.BOOLEAN)

    @classmethod
    def string(cls) -> Self:
        return cls(Type.STRING)

    @classmethod
    def bytes(cls) -> Self:
        return cls(Type.BYTES)

    @classmethod
    def struct(cls) -> Self:
        return cls(Type.STRUCT)

    @classmethod
    def array(cls, value_schema: "Schema | SchemaBuilder") -> Self:
        """Start an ARRAY schema with the schema of its elements."""
        builder = cls(Type.ARRAY)
        builder._value_schema = _built(value_schema, "valueSchema cannot be null.")
        return builder

    @classmethod
    def map(
        cls, key_schema: "Schema | SchemaBuilder", value_schema: "Schema | SchemaBuilder"
    ) -> Self:
        """Start a MAP schema with the schemas of its keys and values."""
        builder = cls(Type.MAP)
        builder._key_schema = _built(key_schema, "keySchema cannot be null.")
        builder._value_schema = _built(value_schema, "valueSchema cannot be null.")
        return builder

    def optional(self) -> Self:
        """Allow None."""
        _check_unset("optional", self._optional, True)
        self._optional = True
        return self

    def required(self) -> Self:
        """Refuse None, which is the default of a schema."""
        _check_unset("optional", self._optional, False)
        self._optional = False
        return self

    def default(self, value: object) -> Self:
        """Set the default; it must fit the type and optionality set before."""
        _check_unset("default", self._default, value)
        if self._type is Type.STRUCT and value is not None:
            # The struct's schema could not contain the default, so the two would never be equal.
            raise SchemaBuilderException("Invalid default value: a struct cannot be a default")
        try:
            self._default = validate_value(self.build(), value)
        except DataException as invalid:
            raise SchemaBuilderException(f"Invalid default value: {invalid}") from invalid
        return self

    def name(self, name: str) -> Self:
        _check_unset("name", self._name, name)
        self._name = name
        return self

    def version(self, version: int) -> Self:
        _check_unset("version", self._version, version)
        self._version = version
        return self

    def doc(self, doc: str) -> Self:
        _check_unset("doc", self._doc, doc)
        self._doc = doc
        return self

    def parameter(self, name: str, value: str) -> Self:
        """Set one parameter; it replaces an earlier one of that name."""
        self._parameters[name] = value
        return self

    def parameters(self, parameters: Mapping[str, str]) -> Self:
        """Set several parameters; an empty mapping leaves the schema without parameters."""
        self._parameters.update(parameters)
        return self

    def field(self, name: str, schema: "Schema | SchemaBuilder") -> Self:
        """Append a member to a STRUCT schema; its name must be new and not empty."""
        if self._type is not Type.STRUCT:
            raise SchemaBuilderException(f"Cannot create fields on type {self._type}")
        if not name:
            raise SchemaBuilderException("fieldName cannot be null.")
        member_schema = _built(schema, f"fieldSchema for field {name} cannot be null.")
        if name in self._fields:
            raise SchemaBuilderException(
                f"Cannot create field because of field name duplication {name}"
            )
        self._fields[name] = Field(name, len(self._fields), member_schema)
        return self

    def build(self) -> Schema:
        """Return the schema with the parts set so far."""
        return Schema(
            self._type,
            optional=bool(self._optional),
            default=self._default,
            name=self._name,
            version=self._version,
            doc=self._doc,
            parameters=self._parameters,
            fields=self._fields.values(),
            key_schema=self._key_schema,
            value_schema=self._value_schema,
        )


def _built(schema: Schema | SchemaBuilder | None, missing: str) -> Schema:
    if schema is None:
        raise SchemaBuilderException(missing)
    return schema.build() if isinstance(schema, SchemaBuilder) else schema


def _check_unset(attribute: str, current: object, value: object) -> None:
    if current is not None and current != value:
        raise SchemaBuilderException(
            f"Invalid SchemaBuilder call: {attribute} has already been set."
        )
