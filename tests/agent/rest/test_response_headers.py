"""CORS and configured headers, as a real Java worker sets them."""

from collections.abc import Mapping

from starlette.datastructures import MutableHeaders

from pyconnect_agent.core.config.listeners import parse_header_rules
from pyconnect_agent.rest.response_headers import CrossOriginPolicy, apply_rules
from tests.support.agents.rest_client import call_app
from tests.support.cases import cases
from tests.support.fakes.fake_herder import FakeHerder
from tests.support.fakes.rest_services import application

ORIGINS = "http://a.example, http://*.b.example"
PREFLIGHT = {"Origin": "http://a.example", "Access-Control-Request-Method": "PUT"}


def headers(
    target: str,
    request: Mapping[str, str],
    *,
    method: str = "GET",
    origins: str = ORIGINS,
    methods: str = "",
) -> Mapping[str, str]:
    app = application(FakeHerder(), cross_origin=CrossOriginPolicy.parse(origins, methods))
    return call_app(app, method, target, headers=request).headers


def test_origins_count_as_set() -> None:
    """Without the setting origins do not matter; `*` allows and repeats each origin."""
    answered = headers("/connectors", {"Origin": "http://a.example"}, origins="  ")
    assert not {"vary", "access-control-allow-origin"} & set(answered)
    answered = headers("/connectors", {"Origin": "http://any.example"}, origins="*")
    assert answered["access-control-allow-origin"] == "http://any.example"
    assert "vary" not in answered


@cases(
    "origin, allowed",
    ("http://a.example", True), ("HTTP://A.example", True), ("http://x.b.example", True),
    ("http://b.example", False), ("http://a.example.evil", False), ("http://a_example", False),
    ("http://c.example http://a.example", True), ("", False),
)  # fmt: skip
def test_allowed_origins_are_echoed(origin: str, allowed: bool) -> None:
    """The answer repeats an allowed origin at any status, and varies with it."""
    for target in ("/connectors", "/nope"):
        answered = headers(target, {"Origin": origin})
        assert answered.get("access-control-allow-origin") == (origin if allowed else None)
        assert answered["vary"] == "Origin"


@cases("methods, listed", ("", "GET,POST,HEAD"), ("PUT, GET", "PUT,GET"))
def test_preflights_are_answered_and_routed(methods: str, listed: str) -> None:
    """A preflight gets the CORS headers and the answer of its path."""
    answered = headers("/connectors", PREFLIGHT, method="OPTIONS", methods=methods)
    assert answered["access-control-allow-methods"] == listed
    assert answered["access-control-allow-headers"] == "Content-Type"
    assert answered["access-control-max-age"] == "60"
    assert answered["allow"] == "HEAD,POST,GET,OPTIONS"
    stranger = {**PREFLIGHT, "Origin": "http://c.example"}
    assert "access-control-allow-methods" not in headers("/x", stranger, method="OPTIONS")


def test_rules_put_headers_on_every_answer() -> None:
    """Errors and refused paths have the headers too."""
    rules = parse_header_rules('set X-One: 1, "add X-Two: a, b"')
    app = application(FakeHerder(), header_rules=rules)
    for target in ("/", "/nope", "/a%2Fb"):
        answered = call_app(app, "GET", target).headers
        assert (answered["x-one"], answered["x-two"]) == ("1", "a, b")


def test_set_replaces_add_appends_and_dates_count_from_now() -> None:
    """The four actions are applied in order, and dates count from now."""
    response = MutableHeaders()
    rules = parse_header_rules(
        "set A: 1, set A: 2, add B: 1, add B: 2, setDate Expires: 60000, addDate Expires: -1000"
    )
    apply_rules(rules, response, 0)
    assert response.getlist("A") == ["2"]
    assert response.getlist("B") == ["1", "2"]
    expected = ["Thu, 01 Jan 1970 00:01:00 GMT", "Wed, 31 Dec 1969 23:59:59 GMT"]
    assert response.getlist("Expires") == expected
