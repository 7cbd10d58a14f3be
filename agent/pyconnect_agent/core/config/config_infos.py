"""The result of validating a connector configuration, as the REST API shows it.

Corresponds to Kafka Connect's ``ConfigInfos``, ``ConfigInfo``, ``ConfigKeyInfo`` and
``ConfigValueInfo``. Values are texts here: secrets of PASSWORD keys are already hidden.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pyconnect_api.configdef import ConfigKey, ConfigType, ConfigValue, KeyInfo, convert_to_string


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigValueInfo:
    """The result of validating one key; ``value`` None when unset or not parsable."""

    name: str
    value: str | None
    recommended_values: tuple[str | None, ...] = ()
    errors: tuple[str, ...] = ()
    visible: bool = True

    @classmethod
    def of(cls, value: ConfigValue, config_type: ConfigType | None) -> ConfigValueInfo:
        """Take a snapshot of ``value``; ``config_type`` None when no definition knows the key."""
        item_type = ConfigType.STRING if config_type is ConfigType.LIST else config_type
        return cls(
            name=value.name,
            value=convert_to_string(value.value, config_type),
            recommended_values=tuple(
                convert_to_string(item, item_type) for item in value.recommended_values
            ),
            errors=tuple(value.error_messages),
            visible=value.visible,
        )

    def to_json(self) -> dict[str, object]:
        """Return the REST form."""
        return {
            "name": self.name,
            "value": self.value,
            "recommended_values": list(self.recommended_values),
            "errors": list(self.errors),
            "visible": self.visible,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigInfo:
    """One key: ``definition`` in its REST form, None when no definition knows the key."""

    definition: KeyInfo | None
    value: ConfigValueInfo | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigInfos:
    """The complete result of a validation; ``name`` is the connector class as submitted.

    ``error_count`` counts every message for connector keys. For client overrides and converter
    settings it counts the keys with errors, as Kafka Connect does.
    """

    name: str
    error_count: int
    groups: tuple[str, ...]
    configs: tuple[ConfigInfo, ...]

    def to_json(self) -> dict[str, object]:
        """Return the body of the validate endpoint."""
        return {
            "name": self.name,
            "error_count": self.error_count,
            "groups": list(self.groups),
            "configs": [
                {
                    "definition": None if info.definition is None else dict(info.definition),
                    "value": None if info.value is None else info.value.to_json(),
                }
                for info in self.configs
            ],
        }

    def error_text(self) -> str | None:
        """Return the text of the 400 response to a config with errors, None without errors."""
        if not self.error_count:
            return None
        errors = [error for info in self.configs if info.value for error in info.value.errors]
        heading = (
            "Connector configuration is invalid and contains the following "
            f"{self.error_count} error(s):"
        )
        hint = (
            "You can also find the above list of errors at the endpoint "
            "`/connector-plugins/{connectorType}/config/validate`"
        )
        return "\n".join([heading, *errors, hint])


def connector_infos(
    name: str, keys: Mapping[str, ConfigKey], values: Iterable[ConfigValue], groups: Iterable[str]
) -> ConfigInfos:
    """Pair values with definitions: first the values without a definition, then every key in order.

    When a key has several values, the last one is shown. Every error message counts.
    """
    by_name: dict[str, ConfigValue] = {}
    infos: list[ConfigInfo] = []
    error_count = 0
    for value in values:
        by_name[value.name] = value
        if value.name not in keys:
            infos.append(ConfigInfo(definition=None, value=ConfigValueInfo.of(value, None)))
            error_count += len(value.error_messages)
    for key_name, key in keys.items():
        known = by_name.get(key_name)
        error_count += len(known.error_messages) if known else 0
        infos.append(
            ConfigInfo(
                definition=key.to_json(),
                value=None if known is None else ConfigValueInfo.of(known, key.type),
            )
        )
    return ConfigInfos(
        name=name, error_count=error_count, groups=tuple(groups), configs=tuple(infos)
    )


def prefixed_infos(
    keys: Mapping[str, ConfigKey], values: Iterable[ConfigValue], prefix: str
) -> ConfigInfos:
    """Show the values of a part of the configuration under their full names.

    A key with several errors counts once.
    """
    infos: list[ConfigInfo] = []
    groups: dict[str, None] = {}
    error_count = 0
    for value in values:
        key = keys.get(value.name)
        if key is not None and key.group is not None:
            groups[key.group] = None
        error_count += bool(value.error_messages)
        named = ConfigValue(
            prefix + value.name, value.value, value.recommended_values, value.error_messages
        )
        infos.append(
            ConfigInfo(
                definition=None if key is None else key.to_json(prefix),
                value=ConfigValueInfo.of(named, None if key is None else key.type),
            )
        )
    return ConfigInfos(name="", error_count=error_count, groups=tuple(groups), configs=tuple(infos))


def merge_infos(name: str, parts: Iterable[ConfigInfos]) -> ConfigInfos:
    """Append the parts; error counts are added, groups keep the order of first use."""
    all_parts = list(parts)
    return ConfigInfos(
        name=name,
        error_count=sum(part.error_count for part in all_parts),
        groups=tuple(dict.fromkeys(group for part in all_parts for group in part.groups)),
        configs=tuple(info for part in all_parts for info in part.configs),
    )
