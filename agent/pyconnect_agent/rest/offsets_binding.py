"""The body of `PATCH /connectors/{c}/offsets`, bound as Jackson binds it (KIP-875).

Layer: rest, pure. Corresponds to ``ConnectorOffsets`` and ``ConnectorOffset``. Bodies may be large:
a good one is read by Python's own parser, entry by entry. One that this parser or the shapes refuse
is read once more, token by token, for what Jackson says or makes of it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NoReturn

from pyconnect_agent.core.errors import BadRequestError
from pyconnect_agent.core.offset_changes import NOTHING_TO_ALTER
from pyconnect_agent.core.offset_documents import OffsetPair, each_entry
from pyconnect_agent.rest.errors import NullBodyError
from pyconnect_agent.rest.jackson import (
    Reference,
    bind_document,
    cannot_deserialize,
    no_string_constructor,
    not_an_object,
    unknown_member,
)
from pyconnect_agent.rest.json_reader import BodyError, JsonReader, Token

Offsets = tuple[OffsetPair | None, ...]

_ENTITIES = "org.apache.kafka.connect.runtime.rest.entities"
OFFSETS_CLASS = f"{_ENTITIES}.ConnectorOffsets"
OFFSET_CLASS = f"{_ENTITIES}.ConnectorOffset"
_LIST_CLASS = "java.util.ArrayList"
_MAP_CLASS = "java.util.LinkedHashMap"
_MAP = f"{_MAP_CLASS}<java.lang.String,java.lang.Object>"


class _UnusualError(ValueError):
    """Nothing for the quick way."""


def check_offsets(body: bytes) -> None:
    """Raise what Apache's worker answers to a body that it cannot use; of others nothing is kept.

    Raises BodyError, NullBodyError and BadRequestError.
    """
    try:
        is_empty = not sum(1 for _ in each_offset(body))
    except (ValueError, RecursionError):
        offsets = bind_offsets(body)
        if offsets is None:
            raise NullBodyError(f"{OFFSETS_CLASS}.offsets()", "offsets") from None
        if None in offsets:
            raise NullBodyError(f"{OFFSET_CLASS}.partition()", "offset") from None
        is_empty = not offsets
    if is_empty:
        raise BadRequestError(NOTHING_TO_ALTER)


def bind_offsets(body: bytes) -> Offsets | None:
    """Return the list of a body, empty without one; None for no body at all. Raises BodyError.

    A null in the list is None: what becomes of it is not decided here.
    """
    bound = bind_document(body, _offsets, bound_as=OFFSETS_CLASS)
    return None if bound is None else tuple(bound)


def each_offset(body: bytes) -> Iterator[OffsetPair]:
    """Yield the pairs of a good body, the quick way.

    Raises ValueError or RecursionError for one that only `bind_offsets` can tell of.
    """
    text = body.decode()
    members = 0
    for entry in each_entry(text, _DECODER):
        yield _pair(entry)
        members += len(entry)
    # Python keeps the last of members of one name. That none was lost their number tells, unless
    # maps hold such names too, or names are escaped: then every object is looked at.
    named = body.count(b'"partition"') + body.count(b'"offset"')
    if named != members or b"\\u" in body:
        for _ in each_entry(text, _STRICT_DECODER):
            pass


def _pair(entry: Any) -> OffsetPair:
    if not isinstance(entry, dict) or not entry.keys() <= {"partition", "offset"}:
        raise _UnusualError
    partition, offset = entry.get("partition"), entry.get("offset")
    if not isinstance(partition, dict | None) or not isinstance(offset, dict | None):
        raise _UnusualError
    return partition, offset


def _refuse_repetition(members: list[tuple[str, Any]]) -> None:
    if len({name for name, _ in members}) != len(members):
        raise _UnusualError


def _refuse_constant(_: str) -> NoReturn:
    raise _UnusualError


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)
_STRICT_DECODER = json.JSONDecoder(object_pairs_hook=_refuse_repetition)


def _offsets(reader: JsonReader, token: Token) -> list[OffsetPair | None]:
    if token is not Token.START_OBJECT:
        raise not_an_object(reader, token, OFFSETS_CLASS)
    return _members(reader, OFFSETS_CLASS, {"offsets": _list}).get("offsets") or []


def _list(reader: JsonReader, token: Token) -> list[OffsetPair | None]:
    if token is not Token.START_ARRAY:
        raise cannot_deserialize(reader, token, f"{_LIST_CLASS}<{OFFSET_CLASS}>")
    pairs: list[OffsetPair | None] = []
    while (token := reader.next()) is not Token.END_ARRAY:
        with Reference(f"{_LIST_CLASS}[{len(pairs)}]"):
            pairs.append(None if token is Token.NULL else _offset(reader, token))
    return pairs


def _offset(reader: JsonReader, token: Token) -> OffsetPair:
    if token is not Token.START_OBJECT:
        raise not_an_object(reader, token, OFFSET_CLASS)
    found = _members(reader, OFFSET_CLASS, {"partition": _map, "offset": _map})
    return found.get("partition"), found.get("offset")


def _members(
    reader: JsonReader, java_class: str, binds: Mapping[str, Callable[[JsonReader, Token], Any]]
) -> dict[str, Any]:
    """Bind members by name; Jackson makes the object once it has all of them.

    Until then what it does not know waits, and afterwards no member may be repeated.
    """
    found: dict[str, Any] = {}
    unknown: str | None = None
    while (token := reader.next()) is not Token.END_OBJECT:
        member = reader.text
        complete = found.keys() == binds.keys()
        if complete and unknown is not None:
            break
        with Reference(f'{java_class}["{member}"]'):
            token = reader.next()
            if member in binds:
                value = None if token is Token.NULL else binds[member](reader, token)
                if complete:
                    raise BodyError(
                        f"Should never call `set()` on setterless property ('{member}')"
                    )
                found[member] = value
                continue
            if complete:
                after = reader.token_start + _length_seen(reader, token)
                raise unknown_member(reader, member, java_class, tuple(binds), after)
            if token in (Token.START_OBJECT, Token.START_ARRAY):
                reader.skip_children()
            unknown = unknown or member
    if unknown is not None:
        with Reference(f'{java_class}["{unknown}"]'):
            after = reader.token_start + 1
            raise unknown_member(reader, unknown, java_class, tuple(binds), after)
    return found


def _length_seen(reader: JsonReader, token: Token) -> int:
    """How much of a value Jackson has read when it looks at it: of a string only the quote."""
    opened = token in (Token.START_OBJECT, Token.START_ARRAY, Token.STRING)
    return 1 if opened else len(reader.text)


def _map(reader: JsonReader, token: Token) -> dict[str, Any]:
    if token is Token.STRING:
        raise no_string_constructor(reader, _MAP_CLASS, f"element of `{_MAP_CLASS}`")
    if token is not Token.START_OBJECT:
        raise cannot_deserialize(reader, token, _MAP)
    value: dict[str, Any] = _value(reader, token)
    return value


def _value(reader: JsonReader, token: Token) -> Any:
    match token:
        case Token.START_OBJECT:
            members: dict[str, Any] = {}
            while reader.next() is not Token.END_OBJECT:
                name = reader.text
                members[name] = _value(reader, reader.next())
            return members
        case Token.START_ARRAY:
            elements = []
            while (token := reader.next()) is not Token.END_ARRAY:
                elements.append(_value(reader, token))
            return elements
        case Token.STRING:
            return reader.text
        case Token.INTEGER:
            return json.loads(reader.text)
        case Token.FLOAT:
            return float(reader.text)
        case _:
            return {"true": True, "false": False}.get(reader.text)
