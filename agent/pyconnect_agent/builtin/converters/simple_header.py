"""`org.apache.kafka.connect.storage.SimpleHeaderConverter`: headers as readable text.

Layer: builtin. The worker's default for headers. Writes the text form of `values`, reads by
guessing a schema from the text, so types do not survive: the string `"12"` comes back as the
INT8 12. Unlike Apache's, malformed UTF-8 is kept as BYTES instead of being damaged.
"""

import logging
from collections.abc import Mapping

from pyconnect_api import (
    BYTES_SCHEMA,
    NULL,
    ConfigDef,
    HeaderConverter,
    Schema,
    SchemaAndValue,
    values,
)

_logger = logging.getLogger(__name__)


class SimpleHeaderConverter(HeaderConverter):
    """Has no options."""

    def configure(self, configs: Mapping[str, object]) -> None:
        """Take no settings."""

    def config(self) -> ConfigDef:
        return ConfigDef()

    def from_connect_header(
        self, topic: str, header_key: str, schema: Schema | None, value: object
    ) -> bytes | None:
        text = values.convert_to_string(schema, value)
        # A lone surrogate becomes `?`, as in Java.
        return None if text is None else text.encode("utf-8", "replace")

    def to_connect_header(self, topic: str, header_key: str, data: bytes | None) -> SchemaAndValue:
        if data is None:
            return NULL
        try:
            text = data.decode()
        except UnicodeDecodeError:
            _logger.debug("header value is not UTF-8, kept as bytes")
            return SchemaAndValue(BYTES_SCHEMA, data)
        return values.parse_string(text)

    def close(self) -> None:
        """Release no resource."""
