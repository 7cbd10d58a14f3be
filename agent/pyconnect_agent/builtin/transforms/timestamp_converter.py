"""`org.apache.kafka.connect.transforms.TimestampConverter`: between texts, numbers and temporals.

Layer: builtin. All forms meet in milliseconds since the epoch, so digits below are lost: cut
towards zero. The schema of a value gives its form; without a schema its class does. Times are UTC.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pyconnect_agent.builtin.options import Options
from pyconnect_agent.builtin.transforms.base import OneSideTransformation, both_sides
from pyconnect_agent.builtin.transforms.definitions import (
    REPLACE_NULL_WITH_DEFAULT,
    with_null_key,
)
from pyconnect_agent.builtin.transforms.java_date_format import JavaDateFormat
from pyconnect_agent.builtin.transforms.schemas import (
    SchemaCache,
    StructCopy,
    require_map,
    require_struct,
    struct_like,
)
from pyconnect_agent.builtin.transforms.timestamp_forms import (
    FORMS,
    PRECISIONS,
    STRING,
    TimestampForms,
)
from pyconnect_api import (
    ConfigException,
    ConnectException,
    ConnectRecord,
    Field,
    Schema,
    Struct,
    ValidString,
    validate_value,
)
from pyconnect_api.schema import renamed_schema

FIELD = "field"
TARGET_TYPE = "target.type"
FORMAT = "format"
UNIX_PRECISION = "unix.precision"
_PURPOSE = "converting timestamp formats"

_Conversion = Callable[[object], object]


@dataclass(frozen=True, slots=True)
class _StructConversion:
    """The conversion of structs of one schema; `field` None if they lack the field.

    `refusal` says why the field cannot be converted, which matters once there is a struct.
    """

    copy: StructCopy
    field: Field | None
    convert: _Conversion
    refusal: str | None

    def applied(self, struct: Struct) -> Struct:
        if self.refusal is not None:
            raise ConnectException(self.refusal)
        values = self.copy.values(struct)
        if self.field is not None:
            index = self.field.index
            converted = None if values[index] is None else self.convert(values[index])
            values[index] = validate_value(self.field.schema, converted, self.field.name)
        return Struct.of_checked(self.copy.target, values)


_TABLE = """
field  STRING  HIGH  ""
    The field to convert; empty if the whole value is a timestamp.
target.type  STRING  HIGH  !
    What timestamps become: string, unix, Date, Time or Timestamp.
format  STRING  MEDIUM  ""
    Pattern of java.text.SimpleDateFormat for timestamps that are strings, before or after the
    conversion.
unix.precision  STRING  LOW  milliseconds
    Unit of timestamps that are numbers: seconds, milliseconds, microseconds or nanoseconds. What is
    finer than a millisecond is lost.
"""


class TimestampConverter(OneSideTransformation):
    """Converts one field, or with an empty `field` the whole value; None stays None."""

    CONFIG_DEF = with_null_key(
        _TABLE,
        {
            TARGET_TYPE: ValidString.one_of(*FORMS),
            UNIX_PRECISION: ValidString.one_of(*PRECISIONS),
        },
    )

    _field: str
    _forms: TimestampForms
    _with_default: bool
    _structs: SchemaCache[_StructConversion]
    _wholes: SchemaCache[tuple[Schema, _Conversion]]

    def _configured(self, options: Options) -> None:
        self._field = options.text(FIELD)
        self._with_default = options.flag(REPLACE_NULL_WITH_DEFAULT)
        target, pattern = options.text(TARGET_TYPE), options.text(FORMAT)
        if target == STRING and not pattern:
            raise ConfigException(
                "TimestampConverter requires format option to be specified when using string "
                "timestamps"
            )
        self._forms = TimestampForms(
            target=target,
            date_format=_date_format(pattern) if pattern else None,
            precision=options.text(UNIX_PRECISION),
        )
        self._structs = SchemaCache(self._struct_conversion)
        self._wholes = SchemaCache(self._whole_conversion)

    def schemaless(self, record: ConnectRecord, value: object) -> object:
        if value is None:
            return None
        convert = self._forms.convert_schemaless
        if not self._field:
            return convert(value)
        updated = dict(require_map(value, _PURPOSE))
        found = updated.get(self._field)
        updated[self._field] = None if found is None else convert(found)
        return updated

    def with_schema(
        self, record: ConnectRecord, schema: Schema, value: object
    ) -> tuple[Schema, object]:
        if not self._field:
            target, convert = self._wholes.of(schema)
            return target, None if value is None else convert(value)
        struct = None if value is None else require_struct(value, _PURPOSE)
        conversion = self._structs.of(schema if struct is None else struct.schema)
        return conversion.copy.target, None if struct is None else conversion.applied(struct)

    def _whole_conversion(self, schema: Schema) -> tuple[Schema, _Conversion]:
        return (
            self._forms.target_schema(optional=schema.optional),
            self._forms.conversion(schema),
        )

    def _struct_conversion(self, schema: Schema) -> _StructConversion:
        source = schema.field(self._field)
        fields = [(field.name, field.schema) for field in schema.fields]
        if source is not None:
            converted = self._forms.target_schema(optional=source.schema.optional)
            fields[source.index] = (source.name, converted)
        plain = struct_like(schema, fields).build()
        copy = StructCopy(
            plain,
            schema.fields,
            replace_null_with_default=self._with_default,
            changed={self._field},
        )
        convert: _Conversion = _unneeded
        refusal = None
        try:
            if source is not None:
                convert = self._forms.conversion(source.schema)
        except ConnectException as error:
            refusal = str(error)
        conversion = _StructConversion(copy, plain.field(self._field), convert, refusal)
        default = schema.default
        if isinstance(default, Struct):
            default = conversion.applied(default)
        copy.target = renamed_schema(
            plain, name=plain.name, version=plain.version, optional=schema.optional, default=default
        )
        return conversion


def _unneeded(value: object) -> object:
    return value


def _date_format(pattern: str) -> JavaDateFormat:
    try:
        return JavaDateFormat(pattern)
    except ValueError as error:
        raise ConfigException(
            "TimestampConverter requires a SimpleDateFormat-compatible pattern for string "
            f"timestamps: {pattern}"
        ) from error


TimestampConverterKey, TimestampConverterValue = both_sides(TimestampConverter)
