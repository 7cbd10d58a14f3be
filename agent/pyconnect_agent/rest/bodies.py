"""Request bodies as typed values, and answers that are written while they are sent.

Pure. Corresponds to ``CreateConnectorRequest``, ``ConnectorOffsets`` and the ``Map<String,
String>`` bodies, which Apache's worker binds with Jackson. Statuses are Apache's: a body that is
not JSON or has the wrong shape is a `BodyError`, answered with status 500. The texts are
pyconnect's. A scalar in place of a text becomes its JSON text, as with Jackson. An empty body and
JSON `null` bind to None.

An answer that is written while it is sent has an unknown length, so HTTP/1.1 sends it in chunks. An
error after the first part closes the connection, because the status was already sent.
"""

import asyncio
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NoReturn

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from pyconnect_agent.core.errors import BadRequestError
from pyconnect_agent.core.ids import INITIAL_STATES, TargetState
from pyconnect_agent.core.offsets.connector_offsets import (
    ITEM_CHARACTERS,
    NOTHING_TO_ALTER,
    each_entry,
    each_item,
)

ConfigBody = dict[str, str | None]

NUMBER_CHARACTERS = 1_000
"""Most characters of a number, as in Jackson."""
_LIST = re.compile(r"[ \t\n\r]*\[[ \t\n\r]*(?P<end>\])?")
_LIST_END = re.compile(r"[ \t\n\r]*\]")


class BodyError(Exception):
    """The error of a body that cannot be read or bound; the text names the place and the fault."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateConnectorRequest:
    """The body of `POST /connectors` (KIP-980), untrimmed; None: missing or null."""

    name: str | None = None
    config: ConfigBody | None = None
    initial_state: TargetState | None = None


class _Number(str):
    """A number with its spelling: in a config `1.50` is not `1.5`."""

    __slots__ = ()


def bind_config(body: bytes) -> ConfigBody | None:
    """Bind a flat map of texts. Raises BodyError."""
    document = _document(body)
    return None if document is None else _config(document, "the body")


def bind_create_request(body: bytes) -> CreateConnectorRequest | None:
    """Bind the body of `POST /connectors`. Raises BodyError."""
    document = _document(body)
    if document is None:
        return None
    members = _members(document, "the body", ("name", "config", "initial_state"))
    name, config = _text(members.get("name"), '"name"'), members.get("config")
    bound = None if config is None else _config(config, '"config"')
    text = _text(members.get("initial_state"), '"initial_state"')
    state = None if text is None else INITIAL_STATES.get(text.upper())
    if text is not None and state is None:
        known = ", ".join(INITIAL_STATES)
        raise BodyError(f'"initial_state" must be one of {known}, not "{text}"')
    return CreateConnectorRequest(name=name, config=bound, initial_state=state)


def bind_task_configs(body: bytes) -> tuple[ConfigBody | None, ...] | None:
    """Bind the body of `POST /connectors/{c}/tasks`, which must not be empty. Raises BodyError.

    Text after the list is ignored, as Apache's worker does. The configs of a large body are read
    one by one.
    """
    if not body.strip():
        raise BodyError("The body is empty; a list of task configs is needed")
    document: Iterable[Any]
    if len(body) > ITEM_CHARACTERS:
        document = _each_task_config(body)
    elif (found := _document(body, or_more=True)) is None:
        return None
    else:
        document = _list(found, "the body")
    return tuple(
        None if config is None else _config(config, f"task config {index}")
        for index, config in enumerate(document)
    )


def _each_task_config(body: bytes) -> Iterator[Any]:
    try:
        text = body.decode()
        begin = _LIST.match(text)
        if begin is None:
            raise BodyError("The body must be a list")
        if begin["end"] is None:
            position = yield from each_item(text, begin.end(), _DECODER)
            if not _LIST_END.match(text, position):
                raise BodyError(f"The body is not valid JSON: no end of the list at {position}")
    except (ValueError, RecursionError) as error:
        raise _large_body_error(error) from error


def _large_body_error(error: Exception) -> BodyError:
    reason = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
    return BodyError(
        f"The body is not a list of items of at most {ITEM_CHARACTERS} characters each: {reason}"
    )


def check_offsets(body: bytes) -> None:
    """Check the body of `PATCH /connectors/{c}/offsets` (KIP-875) without keeping it.

    The body may be large: entries are read one by one if it has the usual form. Raises BodyError,
    and BadRequestError for a body without offsets.
    """
    try:
        count = _count(each_entry(body.decode(), _OFFSETS_DECODER))
    except (ValueError, RecursionError) as error:
        if len(body) > ITEM_CHARACTERS:
            raise _large_body_error(error) from error
        document = _document(body, decoder=_OFFSETS_DECODER)
        if document is None:
            raise BodyError("The body is empty; a list of offsets is needed") from None
        offsets = _members(document, "the body", ("offsets",)).get("offsets")
        count = 0 if offsets is None else _count(_list(offsets, '"offsets"'))
    if not count:
        raise BadRequestError(NOTHING_TO_ALTER)


def _count(entries: Iterable[Any]) -> int:
    """Return the number of offsets; raise BodyError for a body of another shape."""
    count = 0
    for entry in entries:
        place = f"offset {count}"
        for name, value in _members(entry, place, ("partition", "offset")).items():
            if value is not None:
                _object(value, f'"{name}" of {place}')
        count += 1
    return count


def _offset_number(text: str) -> _Number:
    if len(text) > NUMBER_CHARACTERS:
        raise BadRequestError(
            f"A number of the offsets has {len(text)} characters; Kafka Connect reads at most"
            f" {NUMBER_CHARACTERS}"
        )
    return _Number(text)


def _refuse_constant(constant: str) -> NoReturn:
    raise BodyError(f"The body is not valid JSON: {constant} is not a number of JSON")


def _without_repetition(members: list[tuple[str, Any]]) -> dict[str, Any]:
    """Refuse two values with one name, of which one would be lost silently."""
    found = dict(members)
    if len(found) != len(members):
        names = [name for name, _ in members]
        repeated = next(name for name in found if names.count(name) > 1)
        raise BodyError(f'The member "{repeated}" is repeated')
    return found


_DECODER = json.JSONDecoder(parse_int=_Number, parse_float=_Number, parse_constant=_refuse_constant)
_OFFSETS_DECODER = json.JSONDecoder(
    parse_int=_offset_number,
    parse_float=_offset_number,
    parse_constant=_refuse_constant,
    object_pairs_hook=_without_repetition,
)


def _document(body: bytes, *, or_more: bool = False, decoder: json.JSONDecoder = _DECODER) -> Any:
    """Return the document, None for an empty text; `or_more`: other text may follow."""
    try:
        text = body.decode(json.detect_encoding(body)).strip(" \t\n\r")
        if not text:
            return None
        return decoder.raw_decode(text)[0] if or_more else decoder.decode(text)
    except UnicodeDecodeError as error:
        raise BodyError(f"The body is not valid {error.encoding} at byte {error.start}") from error
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise BodyError(f"The body is not valid JSON: {error.msg} ({place})") from error
    except RecursionError as error:
        raise BodyError("The body is nested too deeply") from error


def _config(value: object, place: str) -> ConfigBody:
    return {key: _text(text, f'"{key}" of {place}') for key, text in _object(value, place)}


def _text(value: object, place: str) -> str | None:
    match value:
        case None:
            return None
        case bool():
            return "true" if value else "false"
        case str():
            return str(value)
    raise _wrong_kind(value, place, "a text")


def _members(value: object, place: str, known: tuple[str, ...]) -> dict[str, Any]:
    members = dict(_object(value, place))
    for name in members:
        if name not in known:
            raise BodyError(f'Unknown member "{name}" of {place}; known are {", ".join(known)}')
    return members


def _object(value: object, place: str) -> Iterator[tuple[str, Any]]:
    if not isinstance(value, dict):
        raise _wrong_kind(value, place, "an object")
    return iter(value.items())


def _list(value: object, place: str) -> list[Any]:
    if not isinstance(value, list):
        raise _wrong_kind(value, place, "a list")
    return value


def _wrong_kind(value: object, place: str, wanted: str) -> BodyError:
    kinds = {dict: "an object", list: "a list", bool: "a boolean", _Number: "a number"}
    found = kinds.get(type(value), "null" if value is None else "a text")
    return BodyError(f"{place[:1].upper()}{place[1:]} must be {wanted}, not {found}")


class StreamedResponse(Response):
    """An answer whose `parts` threads read, one at a time, as fast as the client reads."""

    def __init__(self, parts: Iterator[bytes], *, media_type: str) -> None:
        super().__init__(media_type=media_type)
        del self.headers["content-length"]
        self._parts = parts
        self.sent_bytes = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002
        start = {"type": "http.response.start", "status": self.status_code}
        await send({**start, "headers": self.raw_headers})
        while part := await asyncio.to_thread(next, self._parts, b""):
            self.sent_bytes += len(part)
            await send({"type": "http.response.body", "body": part, "more_body": True})
        await send({"type": "http.response.body", "body": b""})
