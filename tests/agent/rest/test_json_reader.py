"""The token reader against Python's own JSON reader."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyconnect_agent.rest.binding import bind_config, bind_create_request, bind_task_configs
from pyconnect_agent.rest.json_reader import BodyError, JsonReader, Token

SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
VALUES = st.recursive(
    SCALARS | TEXTS, lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner), max_leaves=20
)


def read(document: bytes) -> Any:
    """Build the value from tokens, and make sure that nothing follows."""
    reader = JsonReader(document)
    value = build(reader, reader.next())
    assert reader.next() is Token.END_OF_INPUT
    return value


def build(reader: JsonReader, token: Token) -> Any:
    match token:
        case Token.START_OBJECT:
            members = {}
            while reader.next() is Token.FIELD_NAME:
                name = reader.text
                members[name] = build(reader, reader.next())
            return members
        case Token.START_ARRAY:
            items = []
            while (token := reader.next()) is not Token.END_ARRAY:
                items.append(build(reader, token))
            return items
        case Token.STRING:
            return reader.text
        case _:
            return json.loads(reader.text)


@given(value=VALUES, ascii_only=st.booleans(), indent=st.sampled_from([None, 1]))
def test_any_document_is_read_as_it_was_written(
    value: Any, ascii_only: bool, indent: int | None
) -> None:
    """Escapes, white space and nesting change nothing."""
    document = json.dumps(value, ensure_ascii=ascii_only, indent=indent).encode()
    assert read(document) == value


@given(text=st.text('{}[],:"\\ \n0123456789.eE+-truefalsn/ué', max_size=30))
def test_what_python_refuses_is_refused(text: str) -> None:
    """Malformed text is a BodyError, and well-formed text is not."""
    document = text.encode()
    try:
        expected = json.loads(document, parse_constant=_refuse)
    except ValueError:
        reader = JsonReader(document)
        try:
            build(reader, token := reader.next())
        except (BodyError, ValueError):
            return
        assert token is Token.END_OF_INPUT or _has_more(reader)
    else:
        assert read(document) == expected


def _refuse(name: str) -> None:
    raise ValueError(name)


def _has_more(reader: JsonReader) -> bool:
    try:
        return reader.next() is not Token.END_OF_INPUT
    except BodyError:
        return True


@given(config=st.dictionaries(TEXTS, st.none() | TEXTS))
def test_a_flat_map_is_bound_as_it_is(config: dict[str, str | None]) -> None:
    """Texts and nulls of a config arrive unchanged, in any of the three bodies."""
    assert bind_config(json.dumps(config).encode()) == config
    assert bind_task_configs(json.dumps([config]).encode()) == (config,)
    request = bind_create_request(json.dumps({"config": config}).encode())
    assert request is not None
    assert request.config == config


@pytest.mark.parametrize(
    ("body", "place"),
    [
        ('{"name":"x",\n  "config":{"a":"b","c":[]}}', "line: 2, column: 25"),
        ('{"config":{"a":"b",\n"c":nope}}', "line: 2, column: 5"),
    ],
)
def test_errors_tell_line_and_column(body: str, place: str) -> None:
    """A person finds the mistake in a long document."""
    with pytest.raises(BodyError, match=place):
        bind_create_request(body.encode())


def test_errors_tell_the_path_of_the_value() -> None:
    """The chain goes from the document to the value."""
    with pytest.raises(BodyError) as refused:
        bind_create_request(b'{"config":{"a":{}}}')
    chain = str(refused.value).partition(" (through reference chain: ")[2]
    assert chain == (
        'org.apache.kafka.connect.runtime.rest.entities.CreateConnectorRequest["config"]'
        '->java.util.LinkedHashMap["a"])'
    )


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-be", "utf-32"])
def test_the_encoding_is_found_out(encoding: str) -> None:
    """JSON may come in any Unicode encoding."""
    assert bind_config('{"é":"ü"}'.encode(encoding)) == {"é": "ü"}


def test_deep_nesting_is_no_way_to_kill_the_worker() -> None:
    """A body of nothing but brackets is refused like any other wrong body."""
    with pytest.raises(BodyError, match="Cannot deserialize"):
        bind_config(b"[" * 1_000_000)
    with pytest.raises(BodyError, match="Unexpected end-of-input"):
        bind_create_request(b'{"unknown":' + b"[" * 200_000)
