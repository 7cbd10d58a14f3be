"""Settings as a dataclass: its annotations make the ConfigDef, its instances hold the values.

Kafka has no counterpart; the result is an ordinary `ConfigDef` for validation and the REST API.

    @dataclass(frozen=True, kw_only=True)
    class SinkConfig:
        url: str = setting("Address to post to.", importance=Importance.HIGH)
        rows_per_file: int = setting("Rows of a file.", default=1000, at_least=1)
        token: Password | None = setting("Token of the API.", default=None)
"""

import dataclasses
import types
from collections.abc import Mapping
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from pyconnect_api.configdef import (
    NO_DEFAULT,
    ConfigDef,
    ConfigType,
    Importance,
    Password,
    Range,
    Validator,
    ValidString,
)

_SETTING = "pyconnect_setting"
_TYPES: Mapping[object, ConfigType] = {
    bool: ConfigType.BOOLEAN,
    int: ConfigType.LONG,
    float: ConfigType.DOUBLE,
    str: ConfigType.STRING,
    Password: ConfigType.PASSWORD,
    list[str]: ConfigType.LIST,
}

Typed = TypeVar("Typed")


def setting(
    documentation: str,
    *,
    default: object = NO_DEFAULT,
    key: str | None = None,
    at_least: float | None = None,
    at_most: float | None = None,
    validator: Validator | None = None,
    importance: Importance = Importance.MEDIUM,
    group: str | None = None,
) -> Any:  # Any, so that it fits each annotation, as `dataclasses.field` does
    """Return the field of a dataclass for one setting; without `default` it is required.

    ``key`` is the name in configs, by default the field's name with dots for underscores. The type
    is the annotation: ``bool``, ``int`` (64 bits), ``float``, ``str``, `Password`, ``list[str]`` or
    a ``Literal`` of texts; ``| None`` where the default is None. ``at_least`` and ``at_most`` are
    the bounds of a number; ``validator`` is for other rules.
    """
    described = {
        "default": default,
        "key": key,
        "bounds": None if at_least is None and at_most is None else Range(at_least, at_most),
        "validator": validator,
        "importance": importance,
        "documentation": documentation,
        "group": group,
    }
    # Each instance gets a copy, so that a task's change does not reach another instance.
    factory: Any = dataclasses.MISSING
    if isinstance(default, list):
        factory, default = lambda: list(described["default"]), NO_DEFAULT  # type: ignore[call-overload]  # a list
    return dataclasses.field(
        default=dataclasses.MISSING if default is NO_DEFAULT else default,
        default_factory=factory,
        metadata={_SETTING: described},
        kw_only=True,
    )


def config_def(config_class: type) -> ConfigDef:
    """Return the definition of a dataclass's settings, in the order of its fields.

    Raises TypeError for a class that is not a dataclass, and for a field without `setting`, with an
    annotation that is not the type of a setting, or with bounds of a type other than a number.
    """
    if not dataclasses.is_dataclass(config_class):
        raise TypeError(f"{config_class.__qualname__} is no dataclass: write @dataclass before it")
    definition = ConfigDef()
    hints = get_type_hints(config_class)
    for each in dataclasses.fields(config_class):
        if (described := each.metadata.get(_SETTING)) is None:
            raise TypeError(f"{config_class.__qualname__}.{each.name} has no setting(...)")
        kind, choices = _type_of(config_class, each.name, hints[each.name])
        if described["bounds"] and kind not in {ConfigType.LONG, ConfigType.DOUBLE}:
            raise TypeError(
                f"{config_class.__qualname__}.{each.name}: at_least and at_most are for numbers"
            )
        rules = (described["validator"], described["bounds"], choices)
        given = [rule for rule in rules if rule is not None]
        definition.define(
            _key(each),
            kind,
            default=described["default"],
            validator=_Rules(tuple(given), optional=described["default"] is None)
            if given
            else None,
            importance=described["importance"],
            documentation=described["documentation"],
            group=described["group"],
        )
    return definition


def parse_config(config_class: type[Typed], props: Mapping[str, object]) -> Typed:
    """Return the typed values of a config; entries without a field are ignored.

    Raises ConfigException as `ConfigDef.parse` does.
    """
    values = config_def(config_class).parse(props)
    fields = dataclasses.fields(config_class)  # type: ignore[arg-type]  # a dataclass
    return config_class(**{each.name: values[_key(each)] for each in fields})


@dataclasses.dataclass(frozen=True, slots=True)
class _Rules:
    """Validators in order; ``optional``: None is valid without asking them."""

    rules: tuple[Validator, ...]
    optional: bool

    def ensure_valid(self, name: str, value: object) -> None:
        if value is None and self.optional:
            return
        for rule in self.rules:
            rule.ensure_valid(name, value)

    def __str__(self) -> str:
        return " ".join(map(str, self.rules))


def _key(field: dataclasses.Field[Any]) -> str:
    return field.metadata[_SETTING]["key"] or field.name.replace("_", ".")


def _type_of(config_class: type, name: str, hint: object) -> tuple[ConfigType, Validator | None]:
    if get_origin(hint) in (Union, types.UnionType):
        others = [each for each in get_args(hint) if each is not types.NoneType]
        hint = others[0] if len(others) == 1 else hint
    if get_origin(hint) is Literal and all(isinstance(each, str) for each in get_args(hint)):
        return ConfigType.STRING, ValidString.one_of(*get_args(hint))
    kind = _TYPES.get(hint)
    if kind is None:
        raise TypeError(
            f"{config_class.__qualname__}.{name} is a {hint}; a setting is a bool, int, float, "
            "str, Password, list[str] or a Literal of texts"
        )
    return kind, None
