"""Request bodies as typed values, bound as Jackson binds them (spec rest-api.md §1.3).

Layer: rest, pure. Corresponds to ``CreateConnectorRequest`` and the ``Map<String, String>`` bodies.
Every failure is a `BodyError` (status 500) with Jackson's text; scalars become their JSON text.
An empty body and JSON `null` bind to None.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyconnect_agent.core.ids import TargetState
from pyconnect_agent.rest.jackson import (
    SCALARS,
    Reference,
    bind_document,
    cannot_deserialize,
    no_string_constructor,
    not_an_object,
    unknown_member,
)
from pyconnect_agent.rest.json_reader import JsonReader, Token

ConfigBody = dict[str, str | None]

_CREATE = "org.apache.kafka.connect.runtime.rest.entities.CreateConnectorRequest"
_STATE = f"{_CREATE}$InitialState"
_MAP = "java.util.LinkedHashMap<java.lang.String,java.lang.String>"
_MAP_CLASS = "java.util.LinkedHashMap"
_LIST = "java.util.ArrayList<java.util.Map<java.lang.String,java.lang.String>>"
_LIST_CLASS = "java.util.ArrayList"
_STRING = "java.lang.String"
_CREATE_MEMBERS = ("config", "name", "initial_state")

_INITIAL_STATES = {
    "RUNNING": TargetState.STARTED,
    "PAUSED": TargetState.PAUSED,
    "STOPPED": TargetState.STOPPED,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateConnectorRequest:
    """The body of `POST /connectors` (KIP-980), untrimmed; None for what is absent or null."""

    name: str | None = None
    config: ConfigBody | None = None
    initial_state: TargetState | None = None


def bind_config(body: bytes) -> ConfigBody | None:
    """Bind a flat map of texts."""
    return bind_document(body, _config, bound_as="java.util.Map")


def bind_create_request(body: bytes) -> CreateConnectorRequest | None:
    """Bind the body of `POST /connectors`."""
    return bind_document(body, _create_request, bound_as=_CREATE)


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
        raise cannot_deserialize(reader, token, _LIST)
    configs: list[ConfigBody | None] = []
    while (token := reader.next()) is not Token.END_ARRAY:
        with Reference(f"{_LIST_CLASS}[{len(configs)}]"):
            configs.append(None if token is Token.NULL else _config(reader, token))
    return tuple(configs)


def _config(reader: JsonReader, token: Token) -> ConfigBody:
    if token is Token.STRING:
        raise no_string_constructor(reader, _MAP_CLASS, f"element of `{_MAP_CLASS}`")
    if token is not Token.START_OBJECT:
        raise cannot_deserialize(reader, token, _MAP)
    config: ConfigBody = {}
    while reader.next() is not Token.END_OBJECT:
        key = reader.text
        with Reference(f'{_MAP_CLASS}["{key}"]'):
            config[key] = _text(reader, reader.next())
    return config


def _text(reader: JsonReader, token: Token) -> str | None:
    if token is Token.NULL:
        return None
    if token not in SCALARS:
        raise cannot_deserialize(reader, token, _STRING)
    return reader.text


def _create_request(reader: JsonReader, token: Token) -> CreateConnectorRequest:
    if token is not Token.START_OBJECT:
        raise not_an_object(reader, token, _CREATE)
    name: str | None = None
    config: ConfigBody | None = None
    initial_state: TargetState | None = None
    while reader.next() is not Token.END_OBJECT:
        member = reader.text
        with Reference(f'{_CREATE}["{member}"]'):
            token = reader.next()
            match member:
                case "name":
                    name = _text(reader, token)
                case "config":
                    config = None if token is Token.NULL else _config(reader, token)
                case "initial_state":
                    initial_state = _initial_state(reader, token)
                case _:
                    # Malformed text inside the unknown value is reported first.
                    if token in (Token.START_OBJECT, Token.START_ARRAY):
                        reader.skip_children()
                    raise unknown_member(
                        reader, member, _CREATE, _CREATE_MEMBERS, reader.token_start
                    )
    return CreateConnectorRequest(name=name, config=config, initial_state=initial_state)


def _initial_state(reader: JsonReader, token: Token) -> TargetState | None:
    if token is Token.NULL:
        return None
    if token is Token.START_ARRAY:
        raise reader.error(
            f"Input mismatch reading Enum `{_STATE}`: properties-based `@JsonCreator` ([method "
            f"{_STATE}#forValue(java.lang.String)]) expects String Value, got Array value "
            "(`JsonToken.START_ARRAY`)"
        )
    if token not in SCALARS:
        raise cannot_deserialize(reader, token, _STATE)
    state = _INITIAL_STATES.get(reader.text.upper())
    if state is None:
        raise reader.error(
            f"Cannot construct instance of `{_STATE}`, problem: No enum constant "
            f"{_STATE.replace('$', '.')}.{reader.text.upper()}"
        )
    return state
