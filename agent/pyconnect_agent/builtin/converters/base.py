"""The base of the shipped converters: both kinds of converter in one class.

Layer: builtin. Corresponds to `ConverterConfig` and to the way Apache's converters implement both
`Converter` and `HeaderConverter`.
"""

from collections.abc import Mapping

from pyconnect_api import (
    CONVERTER_TYPE_CONFIG,
    ConfigDef,
    Converter,
    HeaderConverter,
    Schema,
    SchemaAndValue,
    ValidString,
)
from pyconnect_api.key_table import define_table


def converter_config_def() -> ConfigDef:
    """Return a new definition that holds what every converter has."""
    return define_table(
        ConfigDef(),
        f"{CONVERTER_TYPE_CONFIG}  STRING  LOW  !\n    How this converter will be used.",
        {CONVERTER_TYPE_CONFIG: ValidString.one_of("key", "value", "header")},
    )


class DataConverter(Converter, HeaderConverter):
    """Converter of keys, values and headers, which treats all three alike."""

    def configure(self, configs: Mapping[str, object], is_key: bool | None = None) -> None:
        """Take the options; without `is_key` they must hold `converter.type`.

        Raises ConfigException for options that `config()` refuses.
        """
        options = dict(configs)
        if is_key is not None:
            options[CONVERTER_TYPE_CONFIG] = "key" if is_key else "value"
        self._configured(self.config().parse(options))

    def _configured(self, options: Mapping[str, object]) -> None:
        """Take the parsed options."""

    def from_connect_header(
        self, topic: str, header_key: str, schema: Schema | None, value: object
    ) -> bytes | None:
        return self.from_connect_data(topic, [], schema, value)

    def to_connect_header(self, topic: str, header_key: str, data: bytes | None) -> SchemaAndValue:
        return self.to_connect_data(topic, [], data)

    def config(self) -> ConfigDef:
        return converter_config_def()

    def close(self) -> None:
        """Release no resource."""
