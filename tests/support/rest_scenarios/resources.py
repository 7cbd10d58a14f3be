"""Answers of resources outside of connectors, and to bodies that cannot be read or bound."""

from collections.abc import Iterable

from tests.support.rest_scenarios.scenario import (
    JSON,
    NO_SIGNATURE,
    PLAIN,
    UNSUPPORTED,
    Scenario,
    error,
    refused_body,
)


def _absent_connector() -> Iterable[Scenario]:
    for method, target, message in (
        ("GET", "/connectors/absent", "Connector absent not found"),
        ("GET", "/connectors/absent/", "Connector absent not found"),
        ("GET", "/connectors/absent;v=1", "Connector absent not found"),
        ("GET", "/connectors/absent;v=1/config", "Connector absent not found"),
        ("GET", "/connectors/absent/config", "Connector absent not found"),
        ("GET", "/connectors/absent/tasks", "Connector absent not found"),
        ("DELETE", "/connectors/absent", "Connector absent not found"),
        ("GET", "/connectors/absent/status", "No status found for connector absent"),
        ("GET", "/connectors/absent/tasks/0/status", "No status found for task absent-0"),
        ("PUT", "/connectors/absent/pause", "Unknown connector absent"),
        ("PUT", "/connectors/absent/resume", "Unknown connector absent"),
        ("PUT", "/connectors/absent/stop", "Unknown connector absent"),
        ("POST", "/connectors/absent/restart", "Unknown connector: absent"),
        ("POST", "/connectors/absent/restart?onlyFailed=true", "Unknown connector: absent"),
        ("POST", "/connectors/absent/tasks/0/restart", "Unknown connector: absent"),
        ("POST", "/connectors/absent/tasks/-1/restart", "Unknown connector: absent"),
        ("GET", "/connectors/a+b", "Connector a+b not found"),
        ("GET", "/connectors/a%20b", "Connector a b not found"),
        ("GET", "/connectors/a%3Bb%3Fc%23d", "Connector a;b?c#d not found"),
        ("GET", "/connectors/%7Bc%7D", "Connector {c} not found"),
        ("GET", "/connectors/a%C3%A9", "Connector aé not found"),
        ("GET", "/connectors/a%F0%9F%98%80", "Connector a\U0001f600 not found"),
        ("GET", "/connectors/a:b@c", "Connector a:b@c not found"),
        ("GET", "/connectors/a?x=%zz", "Connector a not found"),
    ):
        yield error(method, target, 404, message)
    yield Scenario(
        method="GET",
        target="/connectors/absent/topics",
        status=200,
        text='{"absent":{"topics":[]}}',
        content_type="application/json",
    )
    yield Scenario(
        method="PUT", target="/connectors/absent/topics/reset", status=202, text="", content_type=""
    )


def _loggers() -> Iterable[Scenario]:
    target = "/admin/loggers/root"
    for body in (None, "", "null"):
        yield refused_body("PUT", target, body)
    missing = "Desired 'level' parameter was not specified in request."
    for scope in ("", "?scope=cluster"):
        for body in ("{}", '{"level":null}', '{"Level":"INFO"}'):
            yield error("PUT", target + scope, 400, missing, body=body, headers=JSON)
        for level, shown in (
            ('"nope"', "nope"),
            ("1", "1"),
            ('" "', " "),
            ('"warning"', "warning"),
        ):
            yield error(
                "PUT",
                target + scope,
                404,
                f"invalid log level '{shown}'.",
                body=f'{{"level":{level}}}',
                headers=JSON,
            )
        message = "Illegal null or empty Level name."
        yield error("PUT", target + scope, 500, message, body='{"level":""}', headers=JSON)
    yield error("GET", "/admin/loggers/nope", 404, "Logger nope not found.")
    yield refused_body("PUT", target, "[]")


def _plugins() -> Iterable[Scenario]:
    target = "/connector-plugins/FileStreamSource/config/validate"
    for body in (None, "", "null"):
        yield refused_body("PUT", target, body)
    for name in ("", "x", "FileStreamSink"):
        yield error(
            "PUT",
            target,
            400,
            f"Included connector type {name} does not match request type FileStreamSource",
            body=f'{{"connector.class":"{name}"}}',
            headers=JSON,
        )
    bad_request = "org.apache.kafka.connect.runtime.rest.errors.BadRequestException: "
    for body, printed in (("{}", "{}"), ('{"connector.class":null}', "{connector.class=null}")):
        message = f"{bad_request}Connector config {printed} contains no connector type"
        yield error("PUT", target, 500, message, body=body, headers=JSON)
    # From the second time on a Java worker puts another exception's name in between.
    yield Scenario(
        method="PUT",
        target=target,
        body='{"connector.class":"xFileStreamSource"}',
        headers=JSON,
        status=500,
        message_start=bad_request,
        content_type="application/json",
    )
    yield error("GET", "/connector-plugins/nope/config", 404, "Unknown plugin nope.")


def _internal_requests() -> Iterable[Scenario]:
    target = "/connectors/absent/tasks"
    for body in ("[]", "null", "[null]", '[{"a":1}]', "[] x", "[]]"):
        yield error("POST", target, 400, NO_SIGNATURE, body=body)
    yield error("POST", target, 400, NO_SIGNATURE, body="[]", headers=PLAIN)
    yield error("PUT", "/connectors/absent/fence", 400, NO_SIGNATURE)
    for body in (
        "", "[1]", "{}", '"x"', '["x"]', '[""]', '[{"a":[]}]', "[", '[{"a":"b"},', '[{"a":"b"} {',
    ):  # fmt: skip
        yield refused_body("POST", target, body)
    for signature, algorithm, status, message in (
        ("abc", None, 400, NO_SIGNATURE),
        ("!!!!", "HmacSHA256", 400, "Illegal base64 character 21"),
        ("aa_-", "HmacSHA256", 400, "Illegal base64 character 5f"),
        ("aaé-", "HmacSHA256", 400, "Illegal base64 character -17"),
        ("aa=a", "HmacSHA256", 400, "Input byte array has wrong 4-byte ending unit"),
        ("aaaa=", "HmacSHA256", 400, "Input byte array has wrong 4-byte ending unit"),
        ("aaa=x", "HmacSHA256", 400, "Input byte array has incorrect ending byte at 4"),
        ("aaaaa", "HmacSHA256", 400, "Last unit does not have enough valid bits"),
        ("a===", "HmacSHA256", 400, "Last unit does not have enough valid bits"),
        ("a", "HmacSHA256", 400, "Input byte[] should at least have 2 bytes for base64 bytes"),
        ("aaaa", "nope", 400, "Algorithm nope not available"),
        ("!", "", 400, "Algorithm  not available"),
        (
            "aaaa",
            "hmacsha256",
            400,
            (
                "This worker does not support the 'hmacsha256' key signing algorithm used by other "
                "workers. This worker is currently configured to use: [HmacSHA256]. Check that all "
                "workers' configuration files permit the same set of signature algorithms, and "
                "correct any misconfigured worker and restart it."
            ),
        ),
        ("aaaa", "HmacSHA256", 403, "Internal request contained invalid signature."),
        ("aa==", "HmacSHA256", 403, "Internal request contained invalid signature."),
        ("", "HmacSHA256", 403, "Internal request contained invalid signature."),
    ):
        headers = {"X-Connect-Authorization": signature}
        if algorithm is not None:
            headers["X-Connect-Request-Signature-Algorithm"] = algorithm
        yield error("POST", target, status, message, body="[]", headers=headers)


RESOURCES: tuple[Scenario, ...] = (
    *_absent_connector(),
    *_loggers(),
    *_plugins(),
    *_internal_requests(),
)


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
