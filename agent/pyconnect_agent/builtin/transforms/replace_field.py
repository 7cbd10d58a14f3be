"""`org.apache.kafka.connect.transforms.ReplaceField`: leaves out and renames fields.

Unlike in Kafka, a rename of a missing field does not change a field of the new name (Kafka fails to
find the old field).
"""

import logging
from collections.abc import Mapping

from pyconnect_agent.builtin.transforms.base import (
    UNIQUE_LIST,
    OneSideTransformation,
    Options,
    SchemaWithValue,
    both_sides,
    split_at_colons,
    with_null_key,
)
from pyconnect_agent.builtin.transforms.schemas import (
    SchemaCache,
    StructCopy,
    require_map,
    require_struct,
    struct_like,
)
from pyconnect_api import ConnectRecord, LambdaValidator, Schema
from pyconnect_api.configdef import invalid_value

EXCLUDE = "exclude"
INCLUDE = "include"
RENAMES = "renames"
_REMOVED_NAMES = {"blacklist": EXCLUDE, "whitelist": INCLUDE}
_PURPOSE = "field replacement"

LOG = logging.getLogger(__name__)


def _new_names(mappings: object) -> dict[str, str]:
    """Return new names by old ones; raise ConfigException unless the entries are `old:new`."""
    if not isinstance(mappings, list):
        raise invalid_value(RENAMES, None, "Value must be non-null")
    new_names = {}
    for mapping in mappings:
        parts = split_at_colons(mapping)
        if len(parts) != 2:
            raise invalid_value(RENAMES, mappings, f"Invalid rename mapping: {mapping}")
        new_names[parts[0]] = parts[1]
    return new_names


_TABLE = """
exclude  LIST  MEDIUM  ""
    Fields to leave out, even if they are included as well.
include  LIST  MEDIUM  ""
    Fields to keep; all when empty.
renames  LIST  MEDIUM  ""
    New names of fields, as old:new.
"""


class ReplaceField(OneSideTransformation):
    """Keeps fields that are not excluded, and only included ones if any is; then renames them."""

    KEEPS_NONE = True
    CONFIG_DEF = with_null_key(
        _TABLE,
        {
            EXCLUDE: UNIQUE_LIST,
            INCLUDE: UNIQUE_LIST,
            RENAMES: LambdaValidator(
                lambda _, value: _new_names(value), "list of pairs old:new, e.g. foo:bar,abc:xyz"
            ),
        },
    )

    _excluded: frozenset[str]
    _included: frozenset[str]
    _new_names: dict[str, str]
    _copies: SchemaCache[StructCopy]

    def configure(self, configs: Mapping[str, object]) -> None:
        super().configure(configs)
        for removed, name in _REMOVED_NAMES.items():
            if removed in configs:
                LOG.warning(
                    "The option %r of ReplaceField was removed in Kafka 4.0 and has no effect; "
                    "use %r",
                    removed,
                    name,
                )

    def configured(self, options: Options) -> None:
        self._excluded = frozenset(options.texts(EXCLUDE))
        self._included = frozenset(options.texts(INCLUDE))
        self._new_names = _new_names(list(options.texts(RENAMES)))

        def copy(schema: Schema) -> StructCopy:
            kept = [
                field
                for field in schema.fields
                if field.name not in self._excluded
                and (not self._included or field.name in self._included)
            ]
            fields = [(self._new_names.get(each.name, each.name), each.schema) for each in kept]
            target = struct_like(schema, fields).build()
            return StructCopy(target, kept, replace_null_with_default=self.with_default)

        self._copies = SchemaCache(copy)

    def schemaless(self, record: ConnectRecord, value: object) -> object:
        fields = require_map(value, _PURPOSE)
        excluded, included, new_names = self._excluded, self._included, self._new_names
        if included:
            fields = {name: item for name, item in fields.items() if name in included}
        if not new_names:
            updated = dict(fields)
            for name in excluded:
                updated.pop(name, None)
            return updated
        return {
            new_names.get(name, name): item for name, item in fields.items() if name not in excluded
        }

    def with_schema(self, record: ConnectRecord, schema: Schema, value: object) -> SchemaWithValue:
        struct = require_struct(value, _PURPOSE)
        copy = self._copies.of(struct.schema)
        return copy.target, copy.struct(struct)


ReplaceFieldKey, ReplaceFieldValue = both_sides(ReplaceField)
