"""Requests whose answers do not depend on what a cluster holds, with Apache's answers.

The same list is asked of the application over a fake herder, of a real Java worker (so that the
expectations are facts) and of a complete agent. No connector named `absent` exists anywhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from tests.support.rest_client import Answer

JSON = {"Content-Type": "application/json"}
PLAIN = {"Content-Type": "text/plain"}

_REST = "org.apache.kafka.connect.runtime.rest.entities.CreateConnectorRequest"
_TOKENS = "(JSON String, Number, Array, Object or token 'null', 'true' or 'false')"
_NOT_FOUND = "HTTP 404 Not Found"
_NOT_ALLOWED = "HTTP 405 Method Not Allowed"
_NOT_ACCEPTABLE = "HTTP 406 Not Acceptable"
_UNSUPPORTED = "HTTP 415 Unsupported Media Type"
_MAP = "java.util.LinkedHashMap"
_MAP_TYPE = f"{_MAP}<java.lang.String,java.lang.String>"
_NULL_REQUEST = f'Cannot invoke "{_REST}.name()" because "createRequest" is null'
_NULL_CONFIG = 'Cannot invoke "java.util.Map.get(Object)" because "connectorConfig" is null'
_NULL_LEVEL = 'Cannot invoke "java.util.Map.get(Object)" because "levelMap" is null'
_NO_SIGNATURE = "Internal request missing required signature"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """A request and what is asserted about its answer; None asserts nothing.

    `message`: of the envelope, whole. `message_start`: only its beginning. `content_type`: `""`
    asserts that there is none.
    """

    method: str
    target: str
    body: str | bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    status: int
    message: str | None = None
    message_start: str | None = None
    text: str | None = None
    content_type: str | None = None
    allow: str | None = None

    @property
    def name(self) -> str:
        """For test ids and failure messages."""
        parts = [self.method, self.target]
        if self.body is not None:
            parts.append(repr(self.body)[:60])
        parts.extend(
            f"{key}={value}"
            for key, value in self.headers.items()
            if (key, value) not in JSON.items()
        )
        return " ".join(parts)

    def differences(self, answer: Answer) -> list[str]:
        """Return what is not as expected."""
        found: list[str] = []

        def expect(what: str, expected: object, actual: object) -> None:
            if expected is not None and expected != actual:
                found.append(f"{what}: expected {expected!r}, got {actual!r}")

        expect("status", self.status, answer.status)
        expect("content type", self.content_type, answer.headers.get("content-type", ""))
        expect("allow", self.allow, answer.headers.get("allow"))
        if self.text is not None:
            expect("body", self.text, answer.text)
        if self.message is not None or self.message_start is not None:
            try:
                envelope = answer.json()
            except ValueError:
                return [*found, f"no envelope: {answer.body[:200]!r}"]
            expect("members", {"error_code", "message"}, set(envelope))
            expect("error_code", self.status, envelope["error_code"])
            expect("message", self.message, envelope["message"])
            start = self.message_start
            if start is not None and not str(envelope["message"]).startswith(start):
                found.append(f"message: expected start {start!r}, got {envelope['message']!r}")
        return found


def _error(
    method: str,
    target: str,
    status: int,
    message: str,
    *,
    body: str | bytes | None = None,
    headers: Mapping[str, str] | None = None,
    content_type: str = "application/json",
) -> Scenario:
    return Scenario(
        method=method,
        target=target,
        body=body,
        headers=headers or {},
        status=status,
        message=message,
        content_type=content_type,
    )


def _router_errors() -> Iterable[Scenario]:
    for method, target in (
        ("GET", "/nope"),
        ("GET", "/Connectors"),
        ("GET", "/admin"),
        ("FOO", "/nope"),
        ("OPTIONS", "/nope"),
        ("OPTIONS", "/application.wadl"),
        ("GET", "/%63onnectors"),
        ("GET", "/connectors/absent/tasks-config"),
        ("GET", "/connectors/absent/tasks/0"),
        ("GET", "/admin/loggers/a/b"),
        ("GET", "/connectors/../connectors"),
    ):
        yield _error(method, target, 404, _NOT_FOUND, content_type="")
    for method, target in (
        ("POST", "/"),
        ("DELETE", "/connectors"),
        ("PUT", "/connectors"),
        ("POST", "/connectors/absent"),
        ("PATCH", "/connectors/absent"),
        ("GET", "/connectors/absent/pause"),
        ("GET", "/connectors/absent/tasks/0/restart"),
        ("PUT", "/connectors/absent/restart"),
        ("TRACE", "/connectors"),
        ("FOO", "/connectors"),
        ("DELETE", "/health"),
        ("GET", "/connector-plugins/x/config/validate"),
    ):
        yield _error(method, target, 405, _NOT_ALLOWED, content_type="")
    for number in ("abc", "99999999999", "1.0", "1_0", "%201"):
        for method, suffix in (("GET", "status"), ("POST", "restart")):
            yield _error(method, f"/connectors/absent/tasks/{number}/{suffix}", 404, _NOT_FOUND)
    yield _error(
        "GET", "/connectors/absent/tasks/+1/status", 404, "No status found for task absent-1"
    )
    yield _error(
        "GET", "/connectors/absent/tasks/007/status", 404, "No status found for task absent-7"
    )


def _media_types() -> Iterable[Scenario]:
    for method, target in (
        ("PUT", "/connectors/absent/pause"),
        ("GET", "/connectors"),
        ("DELETE", "/connectors/absent"),
        ("GET", "/admin/loggers"),
        ("GET", "/connector-plugins"),
    ):
        yield _error(method, target, 415, _UNSUPPORTED, headers=PLAIN, content_type="")
    for name in ("text/plain", "application/vnd.api+json"):
        yield _error(
            "POST",
            "/connectors",
            415,
            _UNSUPPORTED,
            body="{}",
            headers={"Content-Type": name},
            content_type="",
        )
    # With these a method is chosen, and only reading the body fails.
    yield _error("POST", "/connectors", 415, _UNSUPPORTED, body="{}")
    for name in ("application/*", "*/*"):
        yield _error(
            "POST",
            "/connectors",
            415,
            _UNSUPPORTED,
            body="{}",
            headers={"Content-Type": name},
        )
    for name in ("application/json; charset=utf-8", "APPLICATION/JSON"):
        yield _error(
            "POST",
            "/connectors",
            500,
            _NULL_CONFIG,
            body="{}",
            headers={"Content-Type": name},
        )
    for name in ("nonsense", ""):
        yield Scenario(
            method="POST",
            target="/connectors",
            body="{}",
            headers={"Content-Type": name},
            status=400,
            content_type="text/html;charset=iso-8859-1",
        )
    for target in ("/", "/health"):
        yield Scenario(method="GET", target=target, headers=PLAIN, status=200)
    yield _error("PUT", "/connectors/absent/pause", 404, "Unknown connector absent", body="hello")
    for accept in ("text/plain", "text/html", "nonsense", "application/xml"):
        for method, target in (
            ("GET", "/connectors"),
            ("GET", "/"),
            ("GET", "/admin/loggers"),
            ("DELETE", "/connectors/absent"),
            ("PUT", "/connectors/absent/pause"),
            ("POST", "/connectors/absent/tasks"),
            ("PUT", "/connectors/absent/fence"),
        ):
            yield _error(
                method, target, 406, _NOT_ACCEPTABLE, headers={"Accept": accept}, content_type=""
            )
    for accept in ("*/*", "application/*", "application/json;q=0", "", "*", "text/html, */*;q=0.1"):
        yield Scenario(
            method="GET",
            target="/connector-plugins",
            headers={"Accept": accept},
            status=200,
            content_type="application/json",
        )
    yield _error(
        "PUT",
        "/connectors/absent/pause",
        415,
        _UNSUPPORTED,
        headers={"Accept": "text/plain", **PLAIN},
        content_type="",
    )
    yield _error(
        "DELETE",
        "/connectors",
        405,
        _NOT_ALLOWED,
        headers={"Accept": "text/plain"},
        content_type="",
    )


def _options() -> Iterable[Scenario]:
    for target, allow in (
        ("/", "HEAD,GET,OPTIONS"),
        ("/health", "HEAD,GET,OPTIONS"),
        ("/connectors", "HEAD,POST,GET,OPTIONS"),
        ("/connectors/", "HEAD,POST,GET,OPTIONS"),
        ("/connectors/x", "HEAD,DELETE,GET,OPTIONS"),
        ("/connectors/x/config", "HEAD,GET,OPTIONS,PUT,PATCH"),
        ("/connectors/x/status", "HEAD,GET,OPTIONS"),
        ("/connectors/x/tasks", "HEAD,POST,GET,OPTIONS"),
        ("/connectors/x/tasks/0/status", "HEAD,GET,OPTIONS"),
        ("/connectors/x/tasks/abc/status", "HEAD,GET,OPTIONS"),
        ("/connectors/x/tasks/0/restart", "POST,OPTIONS"),
        ("/connectors/x/pause", "OPTIONS,PUT"),
        ("/connectors/x/resume", "OPTIONS,PUT"),
        ("/connectors/x/stop", "OPTIONS,PUT"),
        ("/connectors/x/restart", "POST,OPTIONS"),
        ("/connectors/x/topics", "HEAD,GET,OPTIONS"),
        ("/connectors/x/topics/reset", "OPTIONS,PUT"),
        ("/connectors/x/fence", "OPTIONS,PUT"),
        ("/connector-plugins", "HEAD,GET,OPTIONS"),
        ("/connector-plugins/x/config", "HEAD,GET,OPTIONS"),
        ("/connector-plugins/x/config/validate", "OPTIONS,PUT"),
        ("/admin/loggers", "HEAD,GET,OPTIONS"),
        ("/admin/loggers/x", "HEAD,GET,OPTIONS,PUT"),
    ):
        yield Scenario(
            method="OPTIONS",
            target=target,
            status=200,
            allow=allow,
            text=allow.replace(",", ", "),
            content_type="text/plain",
        )
    for accept in ("application/json", "image/png"):
        yield Scenario(
            method="OPTIONS",
            target="/connectors",
            headers={"Accept": accept},
            status=200,
            allow="HEAD,POST,GET,OPTIONS",
            text="",
            content_type=accept,
        )


def _malformed_bodies() -> Iterable[Scenario]:
    closed = "Unexpected end-of-input: expected close marker for Object (start marker at ["
    for body, start in (
        ("{", closed),
        ('{"a', "Unexpected end-of-input in field name"),
        ('{"name"', "Unexpected end-of-input within/between Object entries"),
        ('{"name":', "Unexpected end-of-input within/between Object entries"),
        ('{"name":"x"', closed),
        ('{"name":"x",', "Unexpected end-of-input within/between Object entries"),
        ('{"name":"x', "Unexpected end-of-input in VALUE_STRING"),
        ('{"name":"x","config":{"a":"b"', closed),
        ("tru", f"Unrecognized token 'tru': was expecting {_TOKENS}"),
        ("nullx", f"Unrecognized token 'nullx': was expecting {_TOKENS}"),
        ("a-b", f"Unrecognized token 'a': was expecting {_TOKENS}"),
        ('{"name":x}', f"Unrecognized token 'x': was expecting {_TOKENS}"),
        (
            "{x}",
            "Unexpected character ('x' (code 120)): was expecting double-quote to start field name",
        ),
        (
            "{'a':1}",
            "Unexpected character (''' (code 39)): was expecting double-quote to start field name",
        ),
        (
            '{"name" x}',
            "Unexpected character ('x' (code 120)): was expecting a colon to separate field name "
            "and value",
        ),
        (
            '{"name":"x" "y"}',
            "Unexpected character ('\"' (code 34)): was expecting comma to separate Object entries",
        ),
        (
            '{"name":"x",}',
            "Unexpected character ('}' (code 125)): was expecting double-quote to start field name",
        ),
        ('{"name":01}', "Invalid numeric value: Leading zeroes not allowed"),
        (
            '{"name":-}',
            "Unexpected character ('}' (code 125)) in numeric value: expected digit (0-9) to "
            "follow minus sign, for valid numeric value",
        ),
        (
            '{"name":1.}',
            "Unexpected character ('}' (code 125)) in numeric value: Decimal point not followed by "
            "a digit",
        ),
        (
            '{"name":1e}',
            "Unexpected character ('}' (code 125)) in numeric value: Exponent indicator not "
            "followed by a digit",
        ),
        ('{"name":+1}', "Unexpected character ('+' (code 43)) in numeric value: JSON spec"),
        (
            '{"name":.5}',
            f"Unexpected character ('.' (code 46)): expected a valid value {_TOKENS}",
        ),
        ('{"name":NaN}', "Non-standard token 'NaN': enable "),
        ('{"name":-Infinity}', "Non-standard token '-Infinity': enable "),
        ('{"name":"\\x"}', "Unrecognized character escape 'x' (code 120)"),
        (
            '{"name":"\\u12zz"}',
            "Unexpected character ('z' (code 122)): expected a hex-digit for character escape "
            "sequence",
        ),
        ('{"name":"a\nb"}', "Illegal unquoted character ((CTRL-CHAR, code 10)): has to be escaped"),
        ('{"name":"x"} x', f"Unrecognized token 'x': was expecting {_TOKENS}"),
        (
            '{"name":"x"}{}',
            "Trailing token (of type START_OBJECT) found after value (bound as "
            f"`{_REST}`): not allowed as per `DeserializationFeature.FAIL_ON_TRAILING_TOKENS`",
        ),
        ('{"name":"x"} null', "Trailing token (of type VALUE_NULL) found after value"),
        ('{"name":"x"}]', "Unexpected close marker ']': no open Array to close"),
        ('{"name":"x"},', "Unexpected character (',' (code 44)): expected a value"),
        ("// c", "Unexpected character ('/' (code 47)): maybe a (non-standard) comment? "),
        ("}", "Unexpected close marker '}': no open Object to close"),
        (")", f"Unexpected character (')' (code 41)): expected a valid value {_TOKENS}"),
        ("1x", "Unexpected character ('x' (code 120)): Expected space separating root-level"),
        ('{"name":"x"}\x00', "Illegal character ((CTRL-CHAR, code 0)): only regular white space"),
        (b'{"name":"\xff"}', "Invalid UTF-8 start byte 0xff"),
        (b'{"name":"\xc3("}', "Invalid UTF-8 middle byte 0x28"),
    ):
        yield Scenario(
            method="POST",
            target="/connectors",
            body=body,
            headers=JSON,
            status=500,
            message_start=start,
            content_type="application/json",
        )


def _create_bodies() -> Iterable[Scenario]:
    for body in (None, "", "null", "   ", "\n"):
        yield _error("POST", "/connectors", 500, _NULL_REQUEST, body=body, headers=JSON)
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
        yield _error("POST", "/connectors", 500, _NULL_CONFIG, body=body, headers=JSON)
    no_creator = f"Cannot construct instance of `{_REST}` (although at least one Creator exists): "
    no_map = f"Cannot construct instance of `{_MAP}` (although at least one Creator exists): "
    state = f"Cannot construct instance of `{_REST}$InitialState`, problem: No enum constant "
    for body, start in (
        ("[]", f"Cannot deserialize value of type `{_REST}` from Array value (token `JsonToken."),
        ("[1", f"Cannot deserialize value of type `{_REST}` from Array value (token `JsonToken."),
        ('"abc"', f"{no_creator}no String-argument constructor/factory method"),
        ('""', 'Cannot coerce empty String ("") to `org.apache.kafka.connect.runtime.rest.'),
        ("12", f"{no_creator}no int/Int-argument constructor/factory method"),
        ("1 x", f"{no_creator}no int/Int-argument constructor/factory method"),
        ("12.5", f"{no_creator}no double/Double-argument constructor/factory method"),
        ("true", f"{no_creator}no boolean/Boolean-argument constructor/factory method"),
        ('{"name":{}}', "Cannot deserialize value of type `java.lang.String` from Object value"),
        ('{"name":[]}', "Cannot deserialize value of type `java.lang.String` from Array value"),
        ('{"config":1}', f"Cannot deserialize value of type `{_MAP_TYPE}` from Integer value"),
        ('{"config":1.5}', f"Cannot deserialize value of type `{_MAP_TYPE}` from Floating-point"),
        ('{"config":true}', f"Cannot deserialize value of type `{_MAP_TYPE}` from Boolean value"),
        ('{"config":[]}', f"Cannot deserialize value of type `{_MAP_TYPE}` from Array value"),
        ('{"config":"x"}', f"{no_map}no String-argument constructor/factory method"),
        ('{"config":" "}', f'Cannot coerce empty String ("") to element of `{_MAP}`'),
        (
            '{"config":{"a":{}}}',
            "Cannot deserialize value of type `java.lang.String` from Object value (token "
            "`JsonToken.START_OBJECT`)",
        ),
        ('{"foo":1}', f'Unrecognized field "foo" (class {_REST}), not marked as ignorable'),
        ('{"foo":{"b":[1]}}', f'Unrecognized field "foo" (class {_REST})'),
        ('{"Name":"x"}', f'Unrecognized field "Name" (class {_REST})'),
        ('{"initial_state":"x"}', f"{state}{_REST}.InitialState.X"),
        ('{"initial_state":"started"}', f"{state}{_REST}.InitialState.STARTED"),
        ('{"initial_state":""}', f"{state}{_REST}.InitialState."),
        ('{"initial_state":1.5}', f"{state}{_REST}.InitialState.1.5"),
        ('{"initial_state":[]}', f"Input mismatch reading Enum `{_REST}$InitialState`"),
        ('{"initial_state":{}}', f"Cannot deserialize value of type `{_REST}$InitialState` from"),
    ):
        yield Scenario(
            method="POST",
            target="/connectors",
            body=body,
            headers=JSON,
            status=500,
            message_start=start,
            content_type="application/json",
        )
    yield _error(
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
        yield _error(
            "POST",
            "/connectors",
            400,
            f"Connector config {printed} contains no connector type",
            body=body,
            headers=JSON,
        )


def _config_bodies() -> Iterable[Scenario]:
    target = "/connectors/absent/config"
    for body in (None, "", "null"):
        yield _error("PUT", target, 500, _NULL_CONFIG, body=body, headers=JSON)
    for method in ("PUT", "PATCH"):
        for body, start in (
            ("1", f"Cannot deserialize value of type `{_MAP_TYPE}` from Integer value"),
            ('"a"', f"Cannot construct instance of `{_MAP}` (although at least one Creator"),
            ("[]", f"Cannot deserialize value of type `{_MAP_TYPE}` from Array value"),
            ('{"a":{}}', "Cannot deserialize value of type `java.lang.String` from Object value"),
            ('{"a":1} 2', "Trailing token (of type VALUE_NUMBER_INT) found after value (bound as"),
        ):
            yield Scenario(
                method=method,
                target=target,
                body=body,
                headers=JSON,
                status=500,
                message_start=start,
                content_type="application/json",
            )
    for body in ("null", "{}", '{"a":1}'):
        yield _error("PATCH", target, 404, "Connector absent not found", body=body, headers=JSON)
    for body, printed in (
        ("{}", "{name=absent}"),
        ('{"name":null}', "{name=absent}"),
    ):
        yield _error(
            "PUT",
            target,
            400,
            f"Connector config {printed} contains no connector type",
            body=body,
            headers=JSON,
        )
    yield _error(
        "PUT",
        target,
        400,
        "Connector name configuration (y) doesn't match connector name in the URL (absent)",
        body='{"name":"y"}',
        headers=JSON,
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
        yield _error(method, target, 404, message)
    yield Scenario(
        method="GET",
        target="/connectors/absent/topics",
        status=200,
        text='{"absent":{"topics":[]}}',
        content_type="application/json",
    )
    yield Scenario(
        method="PUT",
        target="/connectors/absent/topics/reset",
        status=202,
        text="",
        content_type="",
    )


def _refused_targets() -> Iterable[Scenario]:
    for target in (
        "/connectors/a%2Fb",
        "/connectors/a%2fb",
        "/connectors/a%25b",
        "/connectors/a%5Cb",
        "/connectors/a\\b",
        "/connectors/a%00",
        "/connectors/a%0Ab",
        "/connectors/a%7Fb",
        "/connectors/a%zz",
        "/connectors/a%",
        "/connectors/a%E9",
        "/connectors/%2E%2E/x",
        "/connectors/%2e",
        "/connectors/a/..;/b",
        "/connectors/{c}",
        "/connectors/a|b",
        '/connectors/a"b',
        "/connectors//",
        "//connectors",
    ):
        yield Scenario(
            method="GET", target=target, status=400, content_type="text/html;charset=iso-8859-1"
        )


def _loggers() -> Iterable[Scenario]:
    target = "/admin/loggers/root"
    for body in (None, "", "null"):
        yield _error("PUT", target, 500, _NULL_LEVEL, body=body, headers=JSON)
    missing = "Desired 'level' parameter was not specified in request."
    for scope in ("", "?scope=cluster"):
        for body in ("{}", '{"level":null}', '{"Level":"INFO"}'):
            yield _error("PUT", target + scope, 400, missing, body=body, headers=JSON)
        for level, shown in (
            ('"nope"', "nope"),
            ("1", "1"),
            ('" "', " "),
            ('"warning"', "warning"),
        ):
            yield _error(
                "PUT",
                target + scope,
                404,
                f"invalid log level '{shown}'.",
                body=f'{{"level":{level}}}',
                headers=JSON,
            )
        yield _error(
            "PUT",
            target + scope,
            500,
            "Illegal null or empty Level name.",
            body='{"level":""}',
            headers=JSON,
        )
    yield _error("GET", "/admin/loggers/nope", 404, "Logger nope not found.")
    yield Scenario(
        method="PUT",
        target=target,
        body="[]",
        headers=JSON,
        status=500,
        message_start=f"Cannot deserialize value of type `{_MAP_TYPE}` from Array value",
    )


def _plugins() -> Iterable[Scenario]:
    target = "/connector-plugins/FileStreamSource/config/validate"
    for body in (None, "", "null"):
        yield _error("PUT", target, 500, _NULL_CONFIG, body=body, headers=JSON)
    for name in ("", "x", "FileStreamSink"):
        yield _error(
            "PUT",
            target,
            400,
            f"Included connector type {name} does not match request type FileStreamSource",
            body=f'{{"connector.class":"{name}"}}',
            headers=JSON,
        )
    bad_request = "org.apache.kafka.connect.runtime.rest.errors.BadRequestException: "
    for body, printed in (("{}", "{}"), ('{"connector.class":null}', "{connector.class=null}")):
        yield _error(
            "PUT",
            target,
            500,
            f"{bad_request}Connector config {printed} contains no connector type",
            body=body,
            headers=JSON,
        )
    # A Java worker puts another exception's name between from the second time on.
    yield Scenario(
        method="PUT",
        target=target,
        body='{"connector.class":"xFileStreamSource"}',
        headers=JSON,
        status=500,
        message_start=bad_request,
        content_type="application/json",
    )
    yield _error("GET", "/connector-plugins/nope/config", 404, "Unknown plugin nope.")


def _internal_requests() -> Iterable[Scenario]:
    target = "/connectors/absent/tasks"
    for body in ("[]", "null", "[null]", '[{"a":1}]', "[] x", "[]]"):
        yield _error("POST", target, 400, _NO_SIGNATURE, body=body)
    yield _error("POST", target, 400, _NO_SIGNATURE, body="[]", headers=PLAIN)
    yield _error("PUT", "/connectors/absent/fence", 400, _NO_SIGNATURE)
    for body, start in (
        ("", "No content to map due to end-of-input"),
        ("[1]", f"Cannot deserialize value of type `{_MAP_TYPE}` from Integer value"),
        ("{}", "Cannot deserialize value of type `java.util.ArrayList<java.util.Map<"),
        ('"x"', "Cannot deserialize value of type `java.util.ArrayList<java.util.Map<"),
        ('["x"]', f"Cannot construct instance of `{_MAP}` (although at least one Creator"),
        ('[""]', f'Cannot coerce empty String ("") to element of `{_MAP}`'),
        ('[{"a":[]}]', "Cannot deserialize value of type `java.lang.String` from Array value"),
        ("[", "Unexpected end-of-input: expected close marker for Array (start marker at ["),
        ('[{"a":"b"},', "Unexpected end-of-input within/between Array entries"),
        ('[{"a":"b"} {', "Unexpected character ('{' (code 123)): was expecting comma to separate"),
    ):
        yield Scenario(
            method="POST",
            target=target,
            body=body,
            status=500,
            message_start=start,
            content_type="application/json",
        )
    for signature, algorithm, status, message in (
        ("abc", None, 400, _NO_SIGNATURE),
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
            "This worker does not support the 'hmacsha256' key signing algorithm used by other "
            "workers. This worker is currently configured to use: [HmacSHA256]. Check that all "
            "workers' configuration files permit the same set of signature algorithms, and correct "
            "any misconfigured worker and restart it.",
        ),
        ("aaaa", "HmacSHA256", 403, "Internal request contained invalid signature."),
        ("aa==", "HmacSHA256", 403, "Internal request contained invalid signature."),
        ("", "HmacSHA256", 403, "Internal request contained invalid signature."),
    ):
        headers = {"X-Connect-Authorization": signature}
        if algorithm is not None:
            headers["X-Connect-Request-Signature-Algorithm"] = algorithm
        yield _error("POST", target, status, message, body="[]", headers=headers)


SCENARIOS: tuple[Scenario, ...] = (
    *_router_errors(),
    *_media_types(),
    *_options(),
    *_malformed_bodies(),
    *_create_bodies(),
    *_config_bodies(),
    *_absent_connector(),
    *_refused_targets(),
    *_loggers(),
    *_plugins(),
    *_internal_requests(),
)
