"""Kafka's DropHeaders, InsertHeader and HeaderFrom: headers removed, added, and made of fields.

InsertHeader guesses schema and value from the text, as `value_parser` of the API does. For
HeaderFrom every field of a struct must exist (DataException; Kafka: NullPointerException); a field
that a map lacks becomes a header of None.
"""

from pyconnect_agent.builtin.transforms.base import (
    NON_EMPTY_LIST,
    NON_EMPTY_UNIQUE_LIST,
    OneSideTransformation,
    Options,
    ShippedTransformation,
    both_sides,
    rerouted,
    with_null_key,
)
from pyconnect_agent.builtin.transforms.schemas import (
    SchemaCache,
    StructCopy,
    require_map,
    require_struct,
    struct_like,
)
from pyconnect_api import (
    ConfigDef,
    ConfigException,
    ConnectRecord,
    DataException,
    Header,
    NonNullValidator,
    Schema,
    ValidString,
)
from pyconnect_api.configdef import define_table
from pyconnect_api.values import parse_string

HEADERS = "headers"


class DropHeaders(ShippedTransformation):
    """Removes all headers that have one of the configured keys."""

    CONFIG_DEF = define_table(
        ConfigDef(),
        f"{HEADERS}  LIST  HIGH  !\n    Keys of the headers to remove.",
        {HEADERS: NON_EMPTY_UNIQUE_LIST},
    )

    _keys: frozenset[str]

    def configured(self, options: Options) -> None:
        self._keys = frozenset(options.texts(HEADERS))

    def apply(self, record: ConnectRecord) -> ConnectRecord | None:
        if not record.has_headers:
            return record
        keys = self._keys
        return rerouted(
            record, record.topic, [item for item in record.headers if item.key not in keys]
        )


HEADER = "header"
VALUE_LITERAL = "value.literal"

_INSERTED = """
header  STRING  HIGH  !
    Key of the header.
value.literal  STRING  HIGH  !
    Text whose value every record's header gets: 42 is an INT8, [1,2] an array, and what looks like
    nothing else a STRING.
"""


class InsertHeader(ShippedTransformation):
    """Appends the header, also to others of the same key."""

    CONFIG_DEF = define_table(
        ConfigDef(), _INSERTED, {HEADER: NonNullValidator(), VALUE_LITERAL: NonNullValidator()}
    )

    _header: Header

    def configured(self, options: Options) -> None:
        self._header = Header(options.text(HEADER), *parse_string(options.text(VALUE_LITERAL)))

    def apply(self, record: ConnectRecord) -> ConnectRecord | None:
        return rerouted(record, record.topic, [*record.headers, self._header])


FIELDS = "fields"
OPERATION = "operation"
MOVE = "move"
COPY = "copy"

_TABLE = """
fields  LIST  HIGH  !
    Fields that become headers.
headers  LIST  HIGH  !
    Keys of the headers, one per field, in the order of the fields.
operation  STRING  HIGH  !
    move removes the fields from the key or value, copy leaves them there.
"""


class HeaderFrom(OneSideTransformation):
    """Appends a header per field; moving also removes the fields."""

    CONFIG_DEF = with_null_key(
        _TABLE,
        {
            FIELDS: NON_EMPTY_LIST,
            HEADERS: NON_EMPTY_LIST,
            OPERATION: ValidString.one_of(MOVE, COPY),
        },
    )

    _headers_by_field: tuple[tuple[str, str], ...]
    _fields: frozenset[str]
    _moves: bool
    _purpose: str
    _copies: SchemaCache[StructCopy]

    def configured(self, options: Options) -> None:
        fields, headers = options.texts(FIELDS), options.texts(HEADERS)
        if len(fields) != len(headers):
            raise ConfigException(
                f"'{FIELDS}' config must have the same number of elements as '{HEADERS}' config."
            )
        self._headers_by_field = tuple(zip(fields, headers, strict=True))
        self._fields = frozenset(fields)
        self._moves = options.text(OPERATION) == MOVE
        self._purpose = f"header {options.text(OPERATION)}"

        def copy(schema: Schema) -> StructCopy:
            kept = [field for field in schema.fields if field.name not in self._fields]
            target = struct_like(schema, [(field.name, field.schema) for field in kept]).build()
            return StructCopy(target, kept, replace_null_with_default=self.with_default)

        self._copies = SchemaCache(copy)

    def apply(self, record: ConnectRecord) -> ConnectRecord | None:
        schema, value = self.operated(record)
        headers = record.headers.duplicate()
        if schema is None:
            fields = require_map(value, self._purpose)
            for name, key in self._headers_by_field:
                headers.add_header(Header(key, None, fields.get(name)))
            if self._moves:
                fields = {name: kept for name, kept in fields.items() if name not in self._fields}
            return self.replaced(record, None, fields, headers)
        struct = require_struct(value, self._purpose)
        updated = self._copies.of(struct.schema).struct(struct) if self._moves else struct
        for name, key in self._headers_by_field:
            field = struct.schema.field(name)
            if field is None:
                raise DataException(f"Field does not exist: {name}")
            found = struct.get(field) if self.with_default else struct.get_without_default(field)
            headers.add(key, found, field.schema)
        return self.replaced(record, updated.schema, updated, headers)


HeaderFromKey, HeaderFromValue = both_sides(HeaderFrom)
