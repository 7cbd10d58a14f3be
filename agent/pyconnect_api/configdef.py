"""Definitions of configuration keys: parsing, validation, description.

Corresponds to Kafka's ``ConfigDef`` (4.3.1), ``ConfigKey``, ``ConfigValue`` and ``Config``: the
same keys in the same order with the same errors, because connector validation shows them through
the REST API. Nothing here imports classes by name, prints documentation or logs.

A connector's definition reads::

    ConfigDef().define(
        "topic",
        ConfigType.STRING,
        validator=NonEmptyString(),
        importance=Importance.HIGH,
        documentation="The topic to write to.",
    )

`define_table` takes keys as one text: a line for a key, then its documentation, indented. The
columns of a line are name, type, importance and default; the default goes to the end of the line.
Of defaults, ``!`` is none (the key must be set), ``~`` null and ``""`` empty. A line ``[group,
order in the group, width] display name`` may stand before the documentation.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Final, Protocol, TypeAlias

from pyconnect_api.config_types import (
    HIDDEN,
    CaseInsensitiveValidString,
    ClassResolver,
    CompositeValidator,
    ConfigType,
    LambdaValidator,
    ListSize,
    NonEmptyString,
    NonEmptyStringWithoutControlChars,
    NonNullValidator,
    Password,
    Range,
    Validator,
    ValidList,
    ValidString,
    convert_to_string,
    invalid_value,
    parse_type,
    to_text,
)
from pyconnect_api.errors import ConfigException


class _NoDefault(Enum):
    NO_DEFAULT = "no default"


NO_DEFAULT: Final = _NoDefault.NO_DEFAULT
"""The default of a key that must be set."""

KeyInfo: TypeAlias = dict[str, bool | int | str | list[str] | None]
"""A key definition of the REST API."""


class Importance(Enum):
    """The importance of a key for users."""

    HIGH = "HIGH"
    MEDIUM = "MEDIUM"
    LOW = "LOW"


class Width(Enum):
    """The width of a key's field in a user interface."""

    NONE = "NONE"
    SHORT = "SHORT"
    MEDIUM = "MEDIUM"
    LONG = "LONG"


class Recommender(Protocol):
    """Suggests values of a key, given the other parsed values."""

    def valid_values(self, name: str, parsed: Mapping[str, object]) -> Sequence[object]:
        """Return the values that make sense; may raise ConfigException."""
        ...

    def visible(self, name: str, parsed: Mapping[str, object]) -> bool:
        """Return whether the key matters at all with these values."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigKey:
    """One key. ``default`` is parsed; `NO_DEFAULT` makes the key required.

    ``order_in_group`` is -1 and ``group`` None for keys that belong to no group. The display name
    is the name unless another is given; keys of Java plugins may have no display name and no
    documentation. ``internal`` keys work but are left out of documentation.
    """

    name: str
    type: ConfigType
    default: object = NO_DEFAULT
    validator: Validator | None = None
    importance: Importance = Importance.MEDIUM
    documentation: str | None = ""
    group: str | None = None
    order_in_group: int = -1
    width: Width = Width.NONE
    display_name: str | None = ""
    dependents: tuple[str, ...] = ()
    recommender: Recommender | None = None
    internal: bool = False

    def __post_init__(self) -> None:
        """Parse and check the default; complete the display name."""
        if self.display_name == "":
            object.__setattr__(self, "display_name", self.name)
        if self.has_default:
            default = parse_type(self.name, self.default, self.type)
            object.__setattr__(self, "default", default)
            if self.validator is not None and self.type is not ConfigType.CLASS:
                self.validator.ensure_valid(self.name, default)

    @property
    def has_default(self) -> bool:
        """Whether the key may be left out."""
        return self.default is not NO_DEFAULT

    def to_json(self, prefix: str = "") -> KeyInfo:
        """Return the key definition of the REST API, with ``prefix`` before the name."""
        return {
            "name": prefix + self.name,
            "type": self.type.value,
            "required": not self.has_default,
            "default_value": (
                convert_to_string(self.default, self.type) if self.has_default else None
            ),
            "importance": self.importance.value,
            "documentation": self.documentation,
            "group": self.group,
            "order_in_group": self.order_in_group,
            "width": self.width.value,
            "display_name": self.display_name,
            "dependents": list(self.dependents),
        }


@dataclass(slots=True)
class ConfigValue:
    """The result of validation for one key.

    Mutable on purpose: a connector's ``validate`` adds its own messages to the values it got from
    `ConfigDef.validate`.
    """

    name: str
    value: object = None
    recommended_values: list[object] = field(default_factory=list)
    error_messages: list[str] = field(default_factory=list)
    visible: bool = True

    def add_error_message(self, message: str) -> None:
        """Add an error message."""
        self.error_messages.append(message)


@dataclass(frozen=True, slots=True)
class Config:
    """The result of a connector's ``validate``."""

    config_values: Sequence[ConfigValue]


__all__ = [
    "HIDDEN",
    "NO_DEFAULT",
    "CaseInsensitiveValidString",
    "ClassResolver",
    "CompositeValidator",
    "Config",
    "ConfigDef",
    "ConfigKey",
    "ConfigType",
    "ConfigValue",
    "Importance",
    "LambdaValidator",
    "ListSize",
    "NonEmptyString",
    "NonEmptyStringWithoutControlChars",
    "NonNullValidator",
    "Password",
    "Range",
    "Recommender",
    "ValidList",
    "ValidString",
    "Validator",
    "Width",
    "convert_to_string",
    "invalid_value",
    "parse_type",
    "to_text",
]


class ConfigDef:
    """An ordered set of keys. Build it with `define`, then only read it."""

    def __init__(self, base: ConfigDef | None = None) -> None:
        """Start empty, or with the keys and groups of ``base``."""
        self._keys: dict[str, ConfigKey] = dict(base.keys) if base else {}
        self._groups: list[str] = list(base.groups) if base else []

    def define(
        self,
        name: str,
        config_type: ConfigType,
        *,
        default: object = NO_DEFAULT,
        validator: Validator | None = None,
        importance: Importance = Importance.MEDIUM,
        documentation: str = "",
        group: str | None = None,
        order_in_group: int = -1,
        width: Width = Width.NONE,
        display_name: str = "",
        dependents: Sequence[str] = (),
        recommender: Recommender | None = None,
        internal: bool = False,
    ) -> ConfigDef:
        """Add a key and return this definition.

        Raises ConfigException when the key exists or its default is not valid.
        """
        return self.define_key(
            ConfigKey(
                name=name,
                type=config_type,
                default=default,
                validator=validator,
                importance=importance,
                documentation=documentation,
                group=group,
                order_in_group=order_in_group,
                width=width,
                display_name=display_name,
                dependents=tuple(dependents),
                recommender=recommender,
                internal=internal,
            )
        )

    def define_key(self, key: ConfigKey) -> ConfigDef:
        """Add a key and return this definition; errors as for `define`."""
        if key.name in self._keys:
            raise ConfigException(f"Configuration {key.name} is defined twice.")
        if key.group is not None and key.group not in self._groups:
            self._groups.append(key.group)
        self._keys[key.name] = key
        return self

    def embed(self, key_prefix: str, group: str, starting_order: int, child: ConfigDef) -> None:
        """Add the keys of ``child`` under a prefix and in a group of their own."""
        for order, key in enumerate(child.sorted_keys(), starting_order):
            self.define_key(
                replace(
                    key,
                    name=key_prefix + key.name,
                    validator=_without_prefix(key_prefix, key.validator),
                    group=group + ("" if key.group is None else f": {key.group}"),
                    order_in_group=order,
                    dependents=tuple(key_prefix + name for name in key.dependents),
                    recommender=key.recommender
                    and _EmbeddedRecommender(key_prefix, key.recommender),
                )
            )

    @property
    def keys(self) -> Mapping[str, ConfigKey]:
        """The keys by name, in order of definition; not to be modified."""
        return self._keys

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups in order of first use."""
        return tuple(self._groups)

    def sorted_keys(self) -> list[ConfigKey]:
        """Return the keys by group, order, required first, importance, name."""
        importances = list(Importance)
        return sorted(
            self._keys.values(),
            key=lambda key: (
                -1 if key.group is None else self._groups.index(key.group),
                key.order_in_group,
                key.has_default,
                importances.index(key.importance),
                key.name,
            ),
        )

    def to_key_info(self) -> list[KeyInfo]:
        """Return the key definitions of the REST API, in order of definition."""
        return [key.to_json() for key in self._keys.values()]

    def parse(
        self, props: Mapping[str, object], resolve_class: ClassResolver | None = None
    ) -> dict[str, object]:
        """Return a value for every key; unknown entries of ``props`` are ignored.

        Raises ConfigException for the first wrong, missing or invalid value. In a list without
        repetitions repeated entries are dropped; `validate` reports them (KIP-1161).
        """
        undefined = self._undefined_dependents()
        if undefined:
            raise ConfigException(
                "Some configurations in are referred in the dependents, but not defined: "
                + ",".join(undefined)
            )
        values: dict[str, object] = {}
        for name, key in self._keys.items():
            value = self._value(key, props, resolve_class)
            if isinstance(key.validator, ValidList) and isinstance(value, list):
                value = list(dict.fromkeys(value))
            if key.validator is not None:
                key.validator.ensure_valid(name, value)
            values[name] = value
        return values

    def validate(
        self, props: Mapping[str, object], resolve_class: ClassResolver | None = None
    ) -> list[ConfigValue]:
        """Return value, errors and recommendations of each key, and of undefined dependents.

        Errors of parsing and validation are messages of the values; nothing is raised for them.
        """
        return list(self.validate_all(props, resolve_class).values())

    def validate_all(
        self, props: Mapping[str, object], resolve_class: ClassResolver | None = None
    ) -> dict[str, ConfigValue]:
        """Return the result of `validate` by key."""
        results = {name: ConfigValue(name) for name in self._keys}
        for name in self._undefined_dependents():
            message = f"{name} is referred in the dependents, but not defined."
            results[name] = ConfigValue(name, error_messages=[message], visible=False)
        children = {name for key in self._keys.values() for name in key.dependents}
        roots = [name for name in self._keys if name not in children]
        parsed: dict[str, object] = {}
        for name in roots:
            self._parse_for_validate(name, props, parsed, results, resolve_class)
        for name in roots:
            self._recommend(name, parsed, results)
        return results

    def _value(
        self, key: ConfigKey, props: Mapping[str, object], resolve_class: ClassResolver | None
    ) -> object:
        if key.name in props:
            return parse_type(key.name, props[key.name], key.type, resolve_class)
        if not key.has_default:
            raise ConfigException(
                f'Missing required configuration "{key.name}" which has no default value.'
            )
        if key.type is ConfigType.CLASS:
            return parse_type(key.name, key.default, key.type, resolve_class)
        return list(key.default) if isinstance(key.default, list) else key.default

    def _parse_for_validate(
        self,
        name: str,
        props: Mapping[str, object],
        parsed: dict[str, object],
        results: Mapping[str, ConfigValue],
        resolve_class: ClassResolver | None,
    ) -> None:
        key = self._keys.get(name)
        if key is None:
            return
        result = results[name]
        value: object = None
        try:
            value = self._value(key, props, resolve_class)
        except ConfigException as error:
            result.add_error_message(str(error))
        if key.validator is not None:
            try:
                key.validator.ensure_valid(name, value)
            except ConfigException as error:
                result.add_error_message(str(error))
        result.value = value
        parsed[name] = value
        for dependent in key.dependents:
            self._parse_for_validate(dependent, props, parsed, results, resolve_class)

    def _recommend(
        self, name: str, parsed: Mapping[str, object], results: Mapping[str, ConfigValue]
    ) -> None:
        key = self._keys.get(name)
        if key is None:
            return
        result = results[name]
        if key.recommender is not None:
            try:
                values = list(key.recommender.valid_values(name, parsed))
                if result.recommended_values:
                    values = [value for value in values if value in result.recommended_values]
                result.recommended_values = values
                result.visible = key.recommender.visible(name, parsed)
            except ConfigException as error:
                result.add_error_message(str(error))
        for dependent in key.dependents:
            self._recommend(dependent, parsed, results)

    def _undefined_dependents(self) -> list[str]:
        named = (name for key in self._keys.values() for name in key.dependents)
        return list(dict.fromkeys(name for name in named if name not in self._keys))


def _without_prefix(prefix: str, base: Validator | None) -> Validator | None:
    """Return ``base`` for an embedded key: its messages name the key without the prefix."""
    if base is None:
        return None
    return LambdaValidator(
        lambda name, value: base.ensure_valid(name.removeprefix(prefix), value), str(base)
    )


@dataclass(frozen=True, slots=True)
class _EmbeddedRecommender:
    """Gives a recommender the values below its prefix, with names as if not embedded."""

    prefix: str
    base: Recommender

    def _unprefixed(self, parsed: Mapping[str, object]) -> dict[str, object]:
        return {
            name.removeprefix(self.prefix): value
            for name, value in parsed.items()
            if name.startswith(self.prefix)
        }

    def valid_values(self, name: str, parsed: Mapping[str, object]) -> Sequence[object]:
        return self.base.valid_values(name.removeprefix(self.prefix), self._unprefixed(parsed))

    def visible(self, name: str, parsed: Mapping[str, object]) -> bool:
        return self.base.visible(name.removeprefix(self.prefix), self._unprefixed(parsed))


_DEFAULTS = {"!": NO_DEFAULT, "~": None, '""': ""}
_DISPLAY = re.compile(r"\[(.+), (\d+), (\w+)\] (.+)")


def default_in_table(text: str) -> object:
    """Return the default of a key; a text other than the signs is parsed as the key's type."""
    return _DEFAULTS.get(text, text)


def define_table(
    definition: ConfigDef, table: str, validators: Mapping[str, Validator] | None = None
) -> ConfigDef:
    """Add the keys of a table, with validators by name, and return the definition."""
    unused = dict(validators or {})
    for entry in re.split(r"\n(?! )", table.strip()):
        head, *lines = map(str.strip, entry.splitlines())
        name, type_name, importance, default = head.split(maxsplit=3)
        display = _DISPLAY.fullmatch(lines[0]) if lines else None
        key = ConfigKey(
            name=name,
            type=ConfigType[type_name],
            importance=Importance[importance],
            default=default_in_table(default),
            validator=unused.pop(name, None),
            documentation=" ".join(lines[1:] if display else lines),
        )
        if display:
            group, order, width, title = display.groups()
            key = replace(
                key, group=group, order_in_group=int(order), width=Width[width], display_name=title
            )
        definition.define_key(key)
    if unused:
        raise ValueError(f"The table has no key {', '.join(unused)}")
    return definition
