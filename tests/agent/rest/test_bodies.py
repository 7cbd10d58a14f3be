"""Request bodies: the values that they bind to, and the faults that errors name."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyconnect_agent.core.errors import BadRequestError
from pyconnect_agent.core.offsets import connector_offsets
from pyconnect_agent.rest import bodies
from pyconnect_agent.rest.bodies import (
    BodyError,
    bind_config,
    bind_create_request,
    bind_task_configs,
    check_offsets,
)
from tests.support.cases import cases

TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
MAPS = st.none() | st.dictionaries(TEXTS, st.none() | st.integers() | TEXTS, max_size=3)
ENTRIES = st.fixed_dictionaries({}, optional={"partition": MAPS, "offset": MAPS})


@given(config=st.dictionaries(TEXTS, st.none() | TEXTS), indent=st.sampled_from([None, 1]))
def test_a_flat_map_is_bound_as_it_is(config: dict[str, str | None], indent: int | None) -> None:
    """Texts and nulls of a config arrive unchanged in all three bodies."""
    assert bind_config(json.dumps(config, indent=indent).encode()) == config
    assert bind_task_configs(json.dumps([config], indent=indent).encode()) == (config,)
    request = bind_create_request(json.dumps({"config": config}, indent=indent).encode())
    assert request is not None
    assert request.config == config


@cases(
    "value, text",
    ("1.50", "1.50"), ("-0", "-0"), ("1E400", "1E400"), ("9" * 5000, "9" * 5000), ("true", "true"),
    ("null", None), ('"x"', "x"),
)  # fmt: skip
def test_a_scalar_becomes_the_text_it_was_written_with(value: str, text: str | None) -> None:
    """A number in the place of a text keeps its spelling, as with Jackson."""
    config = bind_config(f'{{"a":{value}}}'.encode())
    assert config == {"a": text}
    assert type(config["a"]) is (type(None) if text is None else str)


@cases(
    "body, message",
    ('{"name":"x",\n  "config":{"a":"b","c":[]}}', '"c" of "config" must be a text, not a list'),
    ('{"config":{"a":"b",\n"c":nope}}', "not valid JSON: .* (line 2, column 5)"),
    ('{"config":{"a":NaN}}', "NaN is not a number of JSON"),
    ('{"foo":1}', 'Unknown member "foo" of the body; known are name, config, initial_state'),
    ('{"initial_state":"x"}', 'must be one of RUNNING, PAUSED, STOPPED, not "x"'),
    ("[]", "The body must be an object, not a list"),
    ('"x"', "The body must be an object, not a text"),
    ("1", "The body must be an object, not a number"),
    ("{} {}", "Extra data .line 1, column 4"),
)
def test_an_error_names_place_and_fault(body: str, message: str) -> None:
    """The error leads a user to the mistake in a long document."""
    with pytest.raises(BodyError, match=message.replace("(line 2, column 5)", r"\(line 2")):
        bind_create_request(body.encode())


@cases("encoding", "utf-8-sig", "utf-16", "utf-16-be", "utf-32")
def test_the_encoding_is_detected(encoding: str) -> None:
    """JSON in each Unicode encoding is read."""
    assert bind_config('{"é":"ü"}'.encode(encoding)) == {"é": "ü"}


def test_bodies_without_meaning_are_bad_requests() -> None:
    """Bodies of brackets alone, or with impossible numbers, are answered with 400."""
    for body in (b"[" * 1_000_000, b'{"unknown":' + b"[" * 200_000):
        with pytest.raises(BodyError):
            bind_config(body)
        with pytest.raises(BodyError):
            check_offsets(body)
    digits = b"1" * 1_000_000
    body = b'{"offsets":[{"partition":{"a":%s},"offset":null}]}' % digits
    with pytest.raises(BadRequestError, match="has 1000000 characters"):
        check_offsets(body)
    assert bind_config(b'{"a":%s}' % digits) == {"a": digits.decode()}


@given(st.lists(ENTRIES, min_size=1, max_size=4), st.sampled_from([None, 1]), st.booleans())
def test_good_offsets_pass(entries: list[object], indent: int | None, named: bool) -> None:
    """White space between tokens changes nothing; the usual form is only read more quickly."""
    body = json.dumps({"offsets": entries}, ensure_ascii=False, indent=indent)
    check_offsets((body if named else f" {body} ").encode("utf-8" if named else "utf-16"))


@cases("body", b"{}", b'{"offsets":null}', b'{"offsets":[]}')
def test_a_body_without_offsets_is_a_bad_request(body: bytes) -> None:
    """The answer is 400 with Apache's text."""
    with pytest.raises(BadRequestError, match="need to be provided"):
        check_offsets(body)


@cases(
    "body, message",
    (b"", "The body is empty"),
    (b"null", "The body is empty"),
    (b'{"offsets":[{"partition":{}},]}', "not valid JSON"),
    (b'{"offsets":[{}],"more":1}', 'Unknown member "more" of the body'),
    (b'{"offsets":[{"key":1}]}', 'Unknown member "key" of offset 0'),
    (b'{"offsets":[{},null]}', "Offset 1 must be an object, not null"),
    (b'{"offsets":[{"offset":[]}]}', '"offset" of offset 0 must be an object, not a list'),
    (b'{"offsets":[{"partition":{"a":NaN}}]}', "NaN"),
    (b"\xff", "not valid utf-8 at byte 0"),
    (b'{"offsets":[{"partition":{},"partition":{}}]}', 'member "partition" is repeated'),
    (b'{"offsets":[{}],"offsets":[]}', 'member "offsets" is repeated'),
)
def test_bad_offsets_are_refused(body: bytes, message: str) -> None:
    """Bad offsets are refused before anything is stopped or fenced, with the entry's name."""
    with pytest.raises(BodyError, match=message):
        check_offsets(body)


CONFIGS = st.none() | st.dictionaries(TEXTS, st.none() | TEXTS, max_size=3)


@given(st.lists(CONFIGS, max_size=9), st.sampled_from(["", " {}"]))
def test_large_bodies_are_read_singly(found: list[dict[str, str | None] | None], rest: str) -> None:
    """A large body has the result of a small one, and one item at a time is decoded."""
    body = json.dumps(found) + rest
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bodies, "ITEM_CHARACTERS", 1)
        longest = max((len(json.dumps(config)) for config in found), default=0)
        patch.setattr(connector_offsets, "ITEM_CHARACTERS", longest)
        assert bind_task_configs(body.encode()) == tuple(found)


@cases("body", b"{}  ", b"[{} ", b"[{},]", b"[{}{}]", b'[{"a": 1}]', b"\xff[]")
def test_large_bodies_of_another_form_fail(body: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """A body with a config that is larger than any record fails too."""
    monkeypatch.setattr(bodies, "ITEM_CHARACTERS", 1)
    monkeypatch.setattr(connector_offsets, "ITEM_CHARACTERS", 4)
    with pytest.raises(BodyError):
        bind_task_configs(body)
