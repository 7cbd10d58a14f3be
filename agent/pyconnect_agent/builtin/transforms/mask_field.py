"""`org.apache.kafka.connect.transforms.MaskField`: hides the values of fields.

Without a replacement fields get the empty value of their type; a Decimal gets zero in its schema's
scale (Kafka: in scale 0, which fails later). Only numbers and strings can have a replacement. None
stays None.
"""

from collections.abc import Callable
from datetime import UTC, date, datetime, time
from decimal import Decimal

from pyconnect_agent.builtin.transforms.base import (
    NON_EMPTY_UNIQUE_LIST,
    OneSideTransformation,
    Options,
    SchemaWithValue,
    both_sides,
    with_null_key,
)
from pyconnect_agent.builtin.transforms.schemas import (
    SchemaCache,
    StructCopy,
    require_map,
    require_struct,
)
from pyconnect_api import (
    DECIMAL_NAME,
    ConnectRecord,
    DataException,
    Field,
    NonEmptyString,
    Schema,
    Struct,
    Type,
    validate_value,
    values,
)
from pyconnect_api.logical import decimal_of, decimal_scale, scale_of, unscaled_value

FIELDS = "fields"
REPLACEMENT = "replacement"
_PURPOSE = "mask fields"

_EMPTY: dict[type, object] = {
    bool: False,
    int: 0,
    float: 0.0,
    Decimal: Decimal(0),
    date: date(1970, 1, 1),
    time: time(0),
    datetime: datetime(1970, 1, 1, tzinfo=UTC),
    str: "",
}

_NUMBERS: dict[Type, Callable[[Schema | None, object], object]] = {
    Type.INT8: values.convert_to_byte,
    Type.INT16: values.convert_to_short,
    Type.INT32: values.convert_to_integer,
    Type.INT64: values.convert_to_long,
    Type.FLOAT32: values.convert_to_float,
    Type.FLOAT64: values.convert_to_double,
}
_TYPE_OF_CLASS = {int: Type.INT64, float: Type.FLOAT64}

_TABLE = """
fields  LIST  HIGH  !
    Fields to mask.
replacement  STRING  LOW  ~
    Value that all these fields get instead of an empty one, converted to the type of the field; for
    fields of numbers and strings only.
"""


class MaskField(OneSideTransformation):
    """Masks fields; the schema stays the same."""

    CONFIG_DEF = with_null_key(
        _TABLE, {FIELDS: NON_EMPTY_UNIQUE_LIST, REPLACEMENT: NonEmptyString()}
    )

    _fields: tuple[str, ...]
    _replacement: str | None
    _plain_masks: dict[type, object]
    _number_masks: dict[Type, object]
    _copies: SchemaCache[tuple[StructCopy, tuple[Field, ...]]]

    def configured(self, options: Options) -> None:
        self._fields = options.texts(FIELDS)
        self._replacement = options.optional_text(REPLACEMENT)
        self._plain_masks = dict(_EMPTY) if self._replacement is None else {}
        self._number_masks = {}

        def copy(schema: Schema) -> tuple[StructCopy, tuple[Field, ...]]:
            masked = (schema.field(name) for name in self._fields)
            return (
                StructCopy(schema, schema.fields, replace_null_with_default=self.with_default),
                tuple(field for field in masked if field is not None),
            )

        self._copies = SchemaCache(copy)

    def schemaless(self, record: ConnectRecord, value: object) -> object:
        updated = dict(require_map(value, _PURPOSE))
        for name in self._fields:
            found = updated.get(name)
            updated[name] = None if found is None else self._masked(found)
        return updated

    def with_schema(self, record: ConnectRecord, schema: Schema, value: object) -> SchemaWithValue:
        struct = require_struct(value, _PURPOSE)
        copy, fields = self._copies.of(struct.schema)
        updated = copy.values(struct)
        for field in fields:
            found = updated[field.index]
            if found is not None:
                masked = self._masked_by_schema(field.schema, found)
                updated[field.index] = validate_value(field.schema, masked, field.name)
        return struct.schema, Struct.of_checked(struct.schema, updated)

    def _masked(self, value: object) -> object:
        """Return the mask of a value that is not None, cached by class."""
        mask = self._plain_masks.get(value.__class__)
        if mask is not None:
            return mask
        if self._replacement is None:
            if isinstance(value, list | tuple):
                return []
            if isinstance(value, dict):
                return {}
            raise DataException(f"Cannot mask value of type: class {type(value).__qualname__}")
        mask = _replaced(value, self._replacement, _TYPE_OF_CLASS.get(value.__class__))
        self._plain_masks[value.__class__] = mask
        return mask

    def _masked_by_schema(self, schema: Schema, value: object) -> object:
        """Return the mask of a value that is not None."""
        if schema.name == DECIMAL_NAME and isinstance(value, Decimal):
            # The number is the same, with the schema's scale.
            mask = self._masked(value)
            assert isinstance(mask, Decimal)
            scale = scale_of(schema)
            unscaled, surplus = unscaled_value(mask), decimal_scale(mask) - scale
            if surplus > 0:
                unscaled, rest = divmod(unscaled, 10**surplus)
                if rest:
                    raise DataException(f"Unable to convert {mask} to a Decimal of scale {scale}")
            return decimal_of(unscaled * 10 ** max(0, -surplus), scale)
        if self._replacement is None or schema.type not in _NUMBERS:
            return self._masked(value)
        if value.__class__ not in _TYPE_OF_CLASS:
            return _replaced(value, self._replacement, None)
        mask = self._number_masks.get(schema.type)
        if mask is None:
            mask = self._number_masks[schema.type] = _NUMBERS[schema.type](None, self._replacement)
        return mask


def _replaced(value: object, replacement: str, number: Type | None) -> object:
    """Return the replacement in the value's type; `number` is the type of numbers."""
    match value:
        case str():
            return replacement
        case int() | float() if number is not None and not isinstance(value, bool):
            return _NUMBERS[number](None, replacement)
        case Decimal():
            try:
                return values.convert_to_decimal(None, replacement, 0)
            except DataException as error:
                raise DataException(
                    f"Unable to convert {replacement} (class str) to number"
                ) from error
    raise DataException(
        f"Cannot mask value of type class {type(value).__qualname__} with custom replacement."
    )


MaskFieldKey, MaskFieldValue = both_sides(MaskField)
