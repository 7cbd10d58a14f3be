"""Request bodies as typed values, bound as Jackson binds them (spec rest-api.md §1.3).

Layer: rest, pure. Corresponds to ``CreateConnectorRequest`` and the ``Map<String, String>`` bodies.
Every failure is a `BodyError` (status 500) with Jackson's text; scalars become their JSON text.
An empty body and JSON `null` bind to None.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from pyconnect_agent.core.ids import TargetState
from pyconnect_agent.rest.json_reader import BodyError, JsonReader, Token

ConfigBody = dict[str, str | None]
Bound = TypeVar("Bound")

_CREATE = "org.apache.kafka.connect.runtime.rest.entities.CreateConnectorRequest"
_STATE = f"{_CREATE}$InitialState"
_MAP = "java.util.LinkedHashMap<java.lang.String,java.lang.String>"
_MAP_CLASS = "java.util.LinkedHashMap"
_LIST = "java.util.ArrayList<java.util.Map<java.lang.String,java.lang.String>>"
_LIST_CLASS = "java.util.ArrayList"
_STRING = "java.lang.String"
_CREATE_MEMBERS = '"config", "name", "initial_state"'

_INITIAL_STATES = {
    "RUNNING": TargetState.STARTED,
    "PAUSED": TargetState.PAUSED,
    "STOPPED": TargetState.STOPPED,
}
_KINDS = {
    Token.START_OBJECT: "Object value",
    Token.START_ARRAY: "Array value",
    Token.STRING: "String value",
    Token.INTEGER: "Integer value",
    Token.FLOAT: "Floating-point value",
    Token.TRUE: "Boolean value",
    Token.FALSE: "Boolean value",
}
_SCALARS = frozenset({Token.STRING, Token.INTEGER, Token.FLOAT, Token.TRUE, Token.FALSE})


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateConnectorRequest:
    """The body of `POST /connectors` (KIP-980), untrimmed; None for what is absent or null."""

    name: str | None = None
    config: ConfigBody | None = None
    initial_state: TargetState | None = None


def bind_config(body: bytes) -> ConfigBody | None:
    """Bind a flat map of texts."""
    return _bind_document(body, _config, bound_as="java.util.Map")


def bind_create_request(body: bytes) -> CreateConnectorRequest | None:
    """Bind the body of `POST /connectors`."""
    return _bind_document(body, _create_request, bound_as=_CREATE)


def bind_task_configs(body: bytes) -> tuple[ConfigBody | None, ...] | None:
    """Bind the body of `POST /connectors/{c}/tasks`; unlike elsewhere it must not be empty.

    What follows the array is ignored, as Apache's worker does.
    """
    reader = JsonReader(body)
    token = reader.next()
    if token is Token.END_OF_INPUT:
        raise reader.error("No content to map due to end-of-input")
    if token is Token.NULL:
        return None
    if token is not Token.START_ARRAY:
        raise _cannot_deserialize(reader, token, _LIST)
    configs: list[ConfigBody | None] = []
    while (token := reader.next()) is not Token.END_ARRAY:
        with _Reference(f"{_LIST_CLASS}[{len(configs)}]"):
            configs.append(None if token is Token.NULL else _config(reader, token))
    return tuple(configs)


def _bind_document(
    body: bytes, bind: Callable[[JsonReader, Token], Bound], *, bound_as: str
) -> Bound | None:
    reader = JsonReader(body)
    token = reader.next()
    if token is Token.END_OF_INPUT:
        return None
    bound = None if token is Token.NULL else bind(reader, token)
    following = reader.next()
    if following is not Token.END_OF_INPUT:
        raise reader.error(
            f"Trailing token (of type {following.value}) found after value (bound as "
            f"`{bound_as}`): not allowed as per `DeserializationFeature.FAIL_ON_TRAILING_TOKENS`"
        )
    return bound


def _config(reader: JsonReader, token: Token) -> ConfigBody:
    if token is Token.STRING:
        raise _no_string_constructor(reader, _MAP_CLASS, f"element of `{_MAP_CLASS}`")
    if token is not Token.START_OBJECT:
        raise _cannot_deserialize(reader, token, _MAP)
    config: ConfigBody = {}
    while reader.next() is not Token.END_OBJECT:
        key = reader.text
        with _Reference(f'{_MAP_CLASS}["{key}"]'):
            config[key] = _text(reader, reader.next())
    return config


def _text(reader: JsonReader, token: Token) -> str | None:
    if token is Token.NULL:
        return None
    if token not in _SCALARS:
        raise _cannot_deserialize(reader, token, _STRING)
    return reader.text


def _create_request(reader: JsonReader, token: Token) -> CreateConnectorRequest:
    if token is not Token.START_OBJECT:
        raise _not_a_create_request(reader, token)
    name: str | None = None
    config: ConfigBody | None = None
    initial_state: TargetState | None = None
    while reader.next() is not Token.END_OBJECT:
        member = reader.text
        with _Reference(f'{_CREATE}["{member}"]'):
            token = reader.next()
            match member:
                case "name":
                    name = _text(reader, token)
                case "config":
                    config = None if token is Token.NULL else _config(reader, token)
                case "initial_state":
                    initial_state = _initial_state(reader, token)
                case _:
                    raise _unknown_member(reader, token, member)
    return CreateConnectorRequest(name=name, config=config, initial_state=initial_state)


def _not_a_create_request(reader: JsonReader, token: Token) -> BodyError:
    match token:
        case Token.STRING:
            return _no_string_constructor(reader, _CREATE, f"`{_CREATE}` value")
        case Token.TRUE | Token.FALSE:
            return _no_constructor(reader, "boolean/Boolean", f"boolean value ({reader.text})")
        case Token.INTEGER:
            return _no_constructor(reader, "int/Int", f"Number value ({reader.text})")
        case Token.FLOAT:
            return _no_constructor(reader, "double/Double", f"Number value ({reader.text})")
        case _:
            return _cannot_deserialize(reader, token, _CREATE)


def _initial_state(reader: JsonReader, token: Token) -> TargetState | None:
    if token is Token.NULL:
        return None
    if token is Token.START_ARRAY:
        raise reader.error(
            f"Input mismatch reading Enum `{_STATE}`: properties-based `@JsonCreator` ([method "
            f"{_STATE}#forValue(java.lang.String)]) expects String Value, got Array value "
            "(`JsonToken.START_ARRAY`)"
        )
    if token not in _SCALARS:
        raise _cannot_deserialize(reader, token, _STATE)
    state = _INITIAL_STATES.get(reader.text.upper())
    if state is None:
        raise reader.error(
            f"Cannot construct instance of `{_STATE}`, problem: No enum constant "
            f"{_STATE.replace('$', '.')}.{reader.text.upper()}"
        )
    return state


def _unknown_member(reader: JsonReader, token: Token, member: str) -> BodyError:
    # Malformed text inside the unknown value is reported first.
    if token in (Token.START_OBJECT, Token.START_ARRAY):
        reader.skip_children()
    return reader.error(
        f'Unrecognized field "{member}" (class {_CREATE}), not marked as ignorable '
        f"(3 known properties: {_CREATE_MEMBERS})"
    )


def _cannot_deserialize(reader: JsonReader, token: Token, java_type: str) -> BodyError:
    return reader.error(
        f"Cannot deserialize value of type `{java_type}` from {_KINDS[token]} "
        f"(token `JsonToken.{token.value}`)"
    )


def _no_string_constructor(reader: JsonReader, java_class: str, coerced_to: str) -> BodyError:
    if not reader.text.strip():
        return reader.error(
            f'Cannot coerce empty String ("") to {coerced_to} (but could if coercion was enabled '
            "using `CoercionConfig`)"
        )
    return reader.error(
        f"Cannot construct instance of `{java_class}` (although at least one Creator exists): no "
        "String-argument constructor/factory method to deserialize from String value "
        f"('{reader.text}')"
    )


def _no_constructor(reader: JsonReader, argument: str, value: str) -> BodyError:
    return reader.error(
        f"Cannot construct instance of `{_CREATE}` (although at least one Creator exists): no "
        f"{argument}-argument constructor/factory method to deserialize from {value}"
    )


class _Reference:
    """Adds where in the document a value stands to the errors raised while it is bound."""

    _PREFIX = " (through reference chain: "

    def __init__(self, name: str) -> None:
        self._name = name

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if not isinstance(error, BodyError):
            return
        message, found, chain = str(error).rpartition(self._PREFIX)
        if found:
            text = f"{message}{found}{self._name}->{chain}"
        else:
            text = f"{error}{self._PREFIX}{self._name})"
        raise BodyError(text) from error
