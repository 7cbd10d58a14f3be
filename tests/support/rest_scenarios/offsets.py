"""Bodies of `PATCH /connectors/absent/offsets` (KIP-875)."""

from collections.abc import Iterable

from tests.support.rest_scenarios.scenario import (
    JSON,
    PLAIN,
    UNSUPPORTED,
    Scenario,
    error,
    refused_body,
)

_TARGET = "/connectors/absent/offsets"
_NONE = "Partitions / offsets need to be provided for an alter offsets request"
_NO_OBJECTS = ("[]", '""', '"x"', "1", "1.5", "true")


def _unbound() -> Iterable[str | None]:
    yield from (None, "null", '{"offsets":[null]}', '{"offsets":[{}]} x')
    yield from _NO_OBJECTS
    for value in _NO_OBJECTS:
        yield f'{{"offsets":[{value}]}}'
    for value in ("1", "1.5", "true"):
        yield f'{{"offsets":{value}}}'
    for member in ("partition", "offset"):
        for value in (*_NO_OBJECTS, "{1:2}", '{"a":{"b":nope}}'):
            yield f'{{"offsets":[{{"{member}":{value}}}]}}'
    yield from ('{"key":[]}', '{"key":1,"key2":{}}', '{"offsets":[{"key":"v"}]}')
    yield from ('{"offsets":[{}],"other":1}', '{"offsets":[{}],"other":{"a":[1]}}')


def _scenarios() -> Iterable[Scenario]:
    for body in _unbound():
        yield refused_body("PATCH", _TARGET, body)
    for body in ("{}", '{"offsets":null}', '{"offsets":[]}'):
        yield error("PATCH", _TARGET, 400, _NONE, body=body, headers=JSON)
    yield error("PATCH", _TARGET, 415, UNSUPPORTED, body="{}", headers=PLAIN, content_type="")
    for body in ('{"offsets":[{}]}', '{"offsets":[{"partition":{"a":1},"offset":{"b":null}}]}'):
        yield error("PATCH", _TARGET, 404, "Connector absent not found", body=body, headers=JSON)
    yield error("DELETE", _TARGET, 404, "Connector absent not found")
    yield error("DELETE", _TARGET, 404, "Connector absent not found", body="{}", headers=JSON)
    yield error("GET", _TARGET, 404, "Connector absent not found")


OFFSETS: tuple[Scenario, ...] = tuple(_scenarios())
