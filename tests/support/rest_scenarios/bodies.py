"""Bodies that cannot be read or bound, and what they lack."""

from collections.abc import Iterable

from tests.support.rest_scenarios.scenario import JSON, Scenario, error, refused_body

_MALFORMED = (
    "{", '{"a', '{"name"', '{"name":', '{"name":"x"', '{"name":"x",', '{"name":"x',
    '{"name":"x","config":{"a":"b"', "tru", "nullx", "a-b", '{"name":x}', "{x}", "{'a':1}",
    '{"name" x}', '{"name":"x" "y"}', '{"name":"x",}', '{"name":01}', '{"name":-}', '{"name":1.}',
    '{"name":1e}', '{"name":+1}', '{"name":.5}', '{"name":NaN}', '{"name":-Infinity}',
    '{"name":"\\x"}', '{"name":"\\u12zz"}', '{"name":"a\nb"}', '{"name":"x"} x', '{"name":"x"}{}',
    '{"name":"x"} null', '{"name":"x"}]', '{"name":"x"},', "// c", "}", ")", "1x",
    '{"name":"x"}\x00', b'{"name":"\xff"}', b'{"name":"\xc3("}',
)  # fmt: skip
_NO_CREATE_REQUESTS = (
    "[]", "[1", '"abc"', '""', "12", "1 x", "12.5", "true", '{"name":{}}', '{"name":[]}',
    '{"config":1}', '{"config":1.5}', '{"config":true}', '{"config":[]}', '{"config":"x"}',
    '{"config":" "}', '{"config":{"a":{}}}', '{"foo":1}', '{"foo":{"b":[1]}}', '{"Name":"x"}',
    '{"initial_state":"x"}', '{"initial_state":"started"}', '{"initial_state":""}',
    '{"initial_state":1.5}', '{"initial_state":[]}', '{"initial_state":{}}',
)  # fmt: skip
_NO_CONFIGS = ("1", '"a"', "[]", '{"a":{}}', '{"a":1} 2')


def _refused_bodies() -> Iterable[Scenario]:
    for body in (*_MALFORMED, *_NO_CREATE_REQUESTS):
        yield refused_body("POST", "/connectors", body)
    for method in ("PUT", "PATCH"):
        for body in _NO_CONFIGS:
            yield refused_body(method, "/connectors/absent/config", body)


def _create_bodies() -> Iterable[Scenario]:
    for body in (None, "", "null", "   ", "\n"):
        yield refused_body("POST", "/connectors", body)
    for body in (
        "{}",
        '{"name":1}',
        '{"name":1.50}',
        '{"name":null}',
        '{"config":null}',
        '{"initial_state":"stopped"}',
        '{"initial_state":null}',
        b"\xef\xbb\xbf{}",
        '{"name":"x"}'.encode("utf-16-le"),
    ):
        yield refused_body("POST", "/connectors", body)
    yield error(
        "POST",
        "/connectors",
        400,
        "Connector name configuration (y) doesn't match connector name in the URL (x)",
        body='{"config":{"name":"y"},"name":" x\\t"}',
        headers=JSON,
    )
    for body, printed in (
        ('{"config":{}}', "{name=}"),
        ('{"config":{},"initial_state":"Stopped"}', "{name=}"),
        ('{"config":{"name":"x"},"name":" x "}', "{name=x}"),
        ('{"name":"a","name":"b","config":{}}', "{name=b}"),
    ):
        message = f"Connector config {printed} contains no connector type"
        yield error("POST", "/connectors", 400, message, body=body, headers=JSON)


def _config_bodies() -> Iterable[Scenario]:
    target = "/connectors/absent/config"
    for body in (None, "", "null"):
        yield refused_body("PUT", target, body)
    for body in ("null", "{}", '{"a":1}'):
        yield error("PATCH", target, 404, "Connector absent not found", body=body, headers=JSON)
    for body, printed in (("{}", "{name=absent}"), ('{"name":null}', "{name=absent}")):
        yield error(
            "PUT",
            target,
            400,
            f"Connector config {printed} contains no connector type",
            body=body,
            headers=JSON,
        )
    message = "Connector name configuration (y) doesn't match connector name in the URL (absent)"
    yield error("PUT", target, 400, message, body='{"name":"y"}', headers=JSON)


BODIES: tuple[Scenario, ...] = (*_refused_bodies(), *_create_bodies(), *_config_bodies())
