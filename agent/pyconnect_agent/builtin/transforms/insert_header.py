"""`org.apache.kafka.connect.transforms.InsertHeader`: adds a header of a fixed value.

Layer: builtin. Schema and value are guessed from the text, as `value_parser` of the API does.
"""

from __future__ import annotations

from pyconnect_agent.builtin.options import Options
from pyconnect_agent.builtin.transforms.base import ShippedTransformation, with_headers
from pyconnect_api import (
    ConfigDef,
    ConfigType,
    ConnectRecord,
    Header,
    Importance,
    NonNullValidator,
)
from pyconnect_api.values import parse_string

HEADER = "header"
VALUE_LITERAL = "value.literal"


class InsertHeader(ShippedTransformation):
    """Appends the header, beside others of its key."""

    CONFIG_DEF = (
        ConfigDef()
        .define(
            HEADER,
            ConfigType.STRING,
            validator=NonNullValidator(),
            importance=Importance.HIGH,
            documentation="Key of the header.",
        )
        .define(
            VALUE_LITERAL,
            ConfigType.STRING,
            validator=NonNullValidator(),
            importance=Importance.HIGH,
            documentation="Text whose value every record's header gets: 42 is an INT8, "
            "[1,2] an array, and what looks like nothing else a STRING.",
        )
    )

    _header: Header

    def _configured(self, options: Options) -> None:
        self._header = Header(options.text(HEADER), *parse_string(options.text(VALUE_LITERAL)))

    def apply(self, record: ConnectRecord) -> ConnectRecord | None:
        return with_headers(record, [*record.headers, self._header])
