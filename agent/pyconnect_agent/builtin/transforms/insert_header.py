"""`org.apache.kafka.connect.transforms.InsertHeader`: adds a header of a fixed value.

Layer: builtin. Schema and value are guessed from the text, as `value_parser` of the API does.
"""

from __future__ import annotations

from pyconnect_agent.builtin.options import Options
from pyconnect_agent.builtin.transforms.base import ShippedTransformation, with_headers
from pyconnect_api import (
    ConfigDef,
    ConnectRecord,
    Header,
    NonNullValidator,
)
from pyconnect_api.key_table import define_table
from pyconnect_api.values import parse_string

HEADER = "header"
VALUE_LITERAL = "value.literal"


_TABLE = """
header  STRING  HIGH  !
    Key of the header.
value.literal  STRING  HIGH  !
    Text whose value every record's header gets: 42 is an INT8, [1,2] an array, and what looks like
    nothing else a STRING.
"""


class InsertHeader(ShippedTransformation):
    """Appends the header, beside others of its key."""

    CONFIG_DEF = define_table(
        ConfigDef(), _TABLE, {HEADER: NonNullValidator(), VALUE_LITERAL: NonNullValidator()}
    )

    _header: Header

    def _configured(self, options: Options) -> None:
        self._header = Header(options.text(HEADER), *parse_string(options.text(VALUE_LITERAL)))

    def apply(self, record: ConnectRecord) -> ConnectRecord | None:
        return with_headers(record, [*record.headers, self._header])
