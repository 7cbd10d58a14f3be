"""Bodies of `PATCH /connectors/absent/offsets`, and what Apache makes of them (KIP-875)."""

from __future__ import annotations

from collections.abc import Iterable

from tests.support.rest_scenarios.scenario import (
    JSON,
    MAP,
    PLAIN,
    TOKENS,
    UNSUPPORTED,
    Scenario,
    error,
)

_TARGET = "/connectors/absent/offsets"
_ENTITIES = "org.apache.kafka.connect.runtime.rest.entities"
_ALL = f"{_ENTITIES}.ConnectorOffsets"
_ONE = f"{_ENTITIES}.ConnectorOffset"
_LIST = f"java.util.ArrayList<{_ONE}>"
_VALUES = f"{MAP}<java.lang.String,java.lang.Object>"
_SOURCE = "Source: REDACTED (`StreamReadFeature.INCLUDE_SOURCE_IN_LOCATION` disabled)"
_NONE = "Partitions / offsets need to be provided for an alter offsets request"
_IN_ALL = f'{_ALL}["offsets"]'
_IN_LIST = f"{_IN_ALL}->java.util.ArrayList[0]"
_NEITHER = "(although at least one Creator exists): no"
_COERCION = "(but could if coercion was enabled using `CoercionConfig`)"

_Case = tuple[str, str, int | None, str]
"""Body, text, column and reference chain; without a column there is no location."""


def _no_objects(java_class: str, before: str, after: str, chain: str) -> Iterable[_Case]:
    """Values that are no objects, where one for `java_class` belongs."""
    column = len(before) + 1
    for value, text in (
        ("[]", f"Cannot deserialize value of type `{java_class}` from Array value (token"),
        ('""', f'Cannot coerce empty String ("") to `{java_class}` value {_COERCION}'),
        (
            '"x"',
            (
                f"Cannot construct instance of `{java_class}` {_NEITHER} String-argument"
                " constructor/factory method to deserialize from String value ('x')"
            ),
        ),
        (
            "1",
            (
                f"Cannot construct instance of `{java_class}` {_NEITHER} int/Int-argument"
                " constructor/factory method to deserialize from Number value (1)"
            ),
        ),
        (
            "1.5",
            (
                f"Cannot construct instance of `{java_class}` {_NEITHER} double/Double-argument"
                " constructor/factory method to deserialize from Number value (1.5)"
            ),
        ),
        (
            "true",
            (
                f"Cannot construct instance of `{java_class}` {_NEITHER} boolean/Boolean-argument"
                " constructor/factory method to deserialize from boolean value (true)"
            ),
        ),
    ):
        whole = f"{text} `JsonToken.START_ARRAY`)" if text.endswith("(token") else text
        yield before + value + after, whole, column, chain


def _unfit(java_type: str, before: str, after: str, chain: str) -> Iterable[_Case]:
    """Values that do not become a list or map."""
    for value, kind, token in (
        ("1", "Integer value", "VALUE_NUMBER_INT"),
        ("1.5", "Floating-point value", "VALUE_NUMBER_FLOAT"),
        ("true", "Boolean value", "VALUE_TRUE"),
    ):
        text = f"Cannot deserialize value of type `{java_type}` from {kind}"
        yield before + value + after, f"{text} (token `JsonToken.{token}`)", len(before) + 1, chain


def _maps() -> Iterable[_Case]:
    for member in ("partition", "offset"):
        before, after = f'{{"offsets":[{{"{member}":', "}]}"
        chain, column = f'{_IN_LIST}->{_ONE}["{member}"]', len(before) + 1
        yield from _unfit(_VALUES, before, after, chain)
        for value, text in (
            (
                "[]",
                (
                    f"Cannot deserialize value of type `{_VALUES}` from Array value"
                    " (token `JsonToken.START_ARRAY`)"
                ),
            ),
            ('""', f'Cannot coerce empty String ("") to element of `{MAP}` {_COERCION}'),
            (
                '"x"',
                (
                    f"Cannot construct instance of `{MAP}` {_NEITHER} String-argument"
                    " constructor/factory method to deserialize from String value ('x')"
                ),
            ),
        ):
            yield before + value + after, text, column, chain
        yield (
            before + "{1:2}" + after,
            "Unexpected character ('1' (code 49)): was expecting double-quote to start field name",
            column + 1,
            chain,
        )
        yield (
            before + '{"a":{"b":nope}}' + after,
            f"Unrecognized token 'nope': was expecting {TOKENS}",
            column + 10,
            chain,
        )


def _unknown_members() -> Iterable[_Case]:
    for body, member, column in (
        ('{"key":[]}', "key", 11),
        ('{"key":1,"key2":{}}', "key", 20),
        ('{"offsets":[{}],"other":1}', "other", 26),
        ('{"offsets":[{}],"other":{"a":[1]}}', "other", 26),
    ):
        text = (
            f'Unrecognized field "{member}" (class {_ALL}), not marked as ignorable'
            ' (one known property: "offsets")'
        )
        yield body, text, column, f'{_ALL}["{member}"]'
    known = '(2 known properties: "partition", "offset")'
    text = f'Unrecognized field "key" (class {_ONE}), not marked as ignorable {known}'
    yield '{"offsets":[{"key":"v"}]}', text, 24, f'{_IN_LIST}->{_ONE}["key"]'
    twice = '{"offsets":[{"partition":{},"offset":{},"partition":{}}]}'
    text = "Should never call `set()` on setterless property ('partition')"
    yield twice, text, None, f'{_IN_LIST}->{_ONE}["partition"]'


def _unbound() -> Iterable[_Case]:
    yield from _no_objects(_ALL, "", "", "")
    yield from _no_objects(_ONE, '{"offsets":[', "]}", _IN_LIST)
    yield from _unfit(_LIST, '{"offsets":', "}", _IN_ALL)
    yield from _maps()
    yield from _unknown_members()
    yield '{"offsets":[{}]} x', f"Unrecognized token 'x': was expecting {TOKENS}", 18, ""


def _scenarios() -> Iterable[Scenario]:
    for body, text, column, chain in _unbound():
        location = "" if column is None else f"\n at [{_SOURCE}; line: 1, column: {column}]"
        reference = f" (through reference chain: {chain})" if chain else ""
        message = f"{text}{location}{reference}"
        yield error("PATCH", _TARGET, 500, message, body=body, headers=JSON)
    for body in ("{}", '{"offsets":null}', '{"offsets":[]}'):
        yield error("PATCH", _TARGET, 400, _NONE, body=body, headers=JSON)
    null = f'Cannot invoke "{_ALL}.offsets()" because "offsets" is null'
    yield error("PATCH", _TARGET, 500, null)
    yield error("PATCH", _TARGET, 500, null, body="null", headers=JSON)
    null = f'Cannot invoke "{_ONE}.partition()" because "offset" is null'
    yield error("PATCH", _TARGET, 500, null, body='{"offsets":[null]}', headers=JSON)
    yield error("PATCH", _TARGET, 415, UNSUPPORTED, body="{}", headers=PLAIN, content_type="")
    for body in ('{"offsets":[{}]}', '{"offsets":[{"partition":{"a":1},"offset":{"b":null}}]}'):
        yield error("PATCH", _TARGET, 404, "Connector absent not found", body=body, headers=JSON)
    yield error("DELETE", _TARGET, 404, "Connector absent not found")
    yield error("DELETE", _TARGET, 404, "Connector absent not found", body="{}", headers=JSON)
    yield error("GET", _TARGET, 404, "Connector absent not found")


OFFSETS: tuple[Scenario, ...] = tuple(_scenarios())
