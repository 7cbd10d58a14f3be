"""Bodies that cannot be read or bound, and what they lack."""

from __future__ import annotations

from collections.abc import Iterable

from tests.support.rest_scenarios.scenario import (
    JSON,
    MAP,
    MAP_TYPE,
    NULL_CONFIG,
    NULL_REQUEST,
    REST,
    TOKENS,
    Scenario,
    error,
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
        ("tru", f"Unrecognized token 'tru': was expecting {TOKENS}"),
        ("nullx", f"Unrecognized token 'nullx': was expecting {TOKENS}"),
        ("a-b", f"Unrecognized token 'a': was expecting {TOKENS}"),
        ('{"name":x}', f"Unrecognized token 'x': was expecting {TOKENS}"),
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
            (
                "Unexpected character ('x' (code 120)): was expecting a colon to separate field "
                "name and value"
            ),
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
            (
                "Unexpected character ('}' (code 125)) in numeric value: expected digit (0-9) to "
                "follow minus sign, for valid numeric value"
            ),
        ),
        (
            '{"name":1.}',
            (
                "Unexpected character ('}' (code 125)) in numeric value: Decimal point not "
                "followed by a digit"
            ),
        ),
        (
            '{"name":1e}',
            (
                "Unexpected character ('}' (code 125)) in numeric value: Exponent indicator not "
                "followed by a digit"
            ),
        ),
        ('{"name":+1}', "Unexpected character ('+' (code 43)) in numeric value: JSON spec"),
        (
            '{"name":.5}',
            f"Unexpected character ('.' (code 46)): expected a valid value {TOKENS}",
        ),
        ('{"name":NaN}', "Non-standard token 'NaN': enable "),
        ('{"name":-Infinity}', "Non-standard token '-Infinity': enable "),
        ('{"name":"\\x"}', "Unrecognized character escape 'x' (code 120)"),
        (
            '{"name":"\\u12zz"}',
            (
                "Unexpected character ('z' (code 122)): expected a hex-digit for character escape "
                "sequence"
            ),
        ),
        ('{"name":"a\nb"}', "Illegal unquoted character ((CTRL-CHAR, code 10)): has to be escaped"),
        ('{"name":"x"} x', f"Unrecognized token 'x': was expecting {TOKENS}"),
        (
            '{"name":"x"}{}',
            (
                "Trailing token (of type START_OBJECT) found after value (bound as "
                f"`{REST}`): not allowed as per `DeserializationFeature.FAIL_ON_TRAILING_TOKENS`"
            ),
        ),
        ('{"name":"x"} null', "Trailing token (of type VALUE_NULL) found after value"),
        ('{"name":"x"}]', "Unexpected close marker ']': no open Array to close"),
        ('{"name":"x"},', "Unexpected character (',' (code 44)): expected a value"),
        ("// c", "Unexpected character ('/' (code 47)): maybe a (non-standard) comment? "),
        ("}", "Unexpected close marker '}': no open Object to close"),
        (")", f"Unexpected character (')' (code 41)): expected a valid value {TOKENS}"),
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
        yield error("POST", "/connectors", 500, NULL_REQUEST, body=body, headers=JSON)
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
        yield error("POST", "/connectors", 500, NULL_CONFIG, body=body, headers=JSON)
    no_creator = f"Cannot construct instance of `{REST}` (although at least one Creator exists): "
    no_map = f"Cannot construct instance of `{MAP}` (although at least one Creator exists): "
    state = f"Cannot construct instance of `{REST}$InitialState`, problem: No enum constant "
    for body, start in (
        ("[]", f"Cannot deserialize value of type `{REST}` from Array value (token `JsonToken."),
        ("[1", f"Cannot deserialize value of type `{REST}` from Array value (token `JsonToken."),
        ('"abc"', f"{no_creator}no String-argument constructor/factory method"),
        ('""', 'Cannot coerce empty String ("") to `org.apache.kafka.connect.runtime.rest.'),
        ("12", f"{no_creator}no int/Int-argument constructor/factory method"),
        ("1 x", f"{no_creator}no int/Int-argument constructor/factory method"),
        ("12.5", f"{no_creator}no double/Double-argument constructor/factory method"),
        ("true", f"{no_creator}no boolean/Boolean-argument constructor/factory method"),
        ('{"name":{}}', "Cannot deserialize value of type `java.lang.String` from Object value"),
        ('{"name":[]}', "Cannot deserialize value of type `java.lang.String` from Array value"),
        ('{"config":1}', f"Cannot deserialize value of type `{MAP_TYPE}` from Integer value"),
        ('{"config":1.5}', f"Cannot deserialize value of type `{MAP_TYPE}` from Floating-point"),
        ('{"config":true}', f"Cannot deserialize value of type `{MAP_TYPE}` from Boolean value"),
        ('{"config":[]}', f"Cannot deserialize value of type `{MAP_TYPE}` from Array value"),
        ('{"config":"x"}', f"{no_map}no String-argument constructor/factory method"),
        ('{"config":" "}', f'Cannot coerce empty String ("") to element of `{MAP}`'),
        (
            '{"config":{"a":{}}}',
            (
                "Cannot deserialize value of type `java.lang.String` from Object value (token "
                "`JsonToken.START_OBJECT`)"
            ),
        ),
        ('{"foo":1}', f'Unrecognized field "foo" (class {REST}), not marked as ignorable'),
        ('{"foo":{"b":[1]}}', f'Unrecognized field "foo" (class {REST})'),
        ('{"Name":"x"}', f'Unrecognized field "Name" (class {REST})'),
        ('{"initial_state":"x"}', f"{state}{REST}.InitialState.X"),
        ('{"initial_state":"started"}', f"{state}{REST}.InitialState.STARTED"),
        ('{"initial_state":""}', f"{state}{REST}.InitialState."),
        ('{"initial_state":1.5}', f"{state}{REST}.InitialState.1.5"),
        ('{"initial_state":[]}', f"Input mismatch reading Enum `{REST}$InitialState`"),
        ('{"initial_state":{}}', f"Cannot deserialize value of type `{REST}$InitialState` from"),
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
        yield error(
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
        yield error("PUT", target, 500, NULL_CONFIG, body=body, headers=JSON)
    for method in ("PUT", "PATCH"):
        for body, start in (
            ("1", f"Cannot deserialize value of type `{MAP_TYPE}` from Integer value"),
            ('"a"', f"Cannot construct instance of `{MAP}` (although at least one Creator"),
            ("[]", f"Cannot deserialize value of type `{MAP_TYPE}` from Array value"),
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
        yield error("PATCH", target, 404, "Connector absent not found", body=body, headers=JSON)
    for body, printed in (
        ("{}", "{name=absent}"),
        ('{"name":null}', "{name=absent}"),
    ):
        yield error(
            "PUT",
            target,
            400,
            f"Connector config {printed} contains no connector type",
            body=body,
            headers=JSON,
        )
    yield error(
        "PUT",
        target,
        400,
        "Connector name configuration (y) doesn't match connector name in the URL (absent)",
        body='{"name":"y"}',
        headers=JSON,
    )


BODIES: tuple[Scenario, ...] = (*_malformed_bodies(), *_create_bodies(), *_config_bodies())
