"""Paths, methods and media types."""

from collections.abc import Iterable

from tests.support.rest_scenarios.scenario import (
    NOT_ACCEPTABLE,
    NOT_ALLOWED,
    NOT_FOUND,
    PLAIN,
    UNSUPPORTED,
    Scenario,
    error,
)


def _router_errors() -> Iterable[Scenario]:
    for method, target in (
        ("GET", "/nope"), ("GET", "/Connectors"), ("GET", "/admin"), ("FOO", "/nope"),
        ("OPTIONS", "/nope"), ("OPTIONS", "/application.wadl"), ("GET", "/%63onnectors"),
        ("GET", "/connectors/absent/tasks-config"), ("GET", "/connectors/absent/tasks/0"),
        ("GET", "/admin/loggers/a/b"), ("GET", "/connectors/../connectors"),
    ):  # fmt: skip
        yield error(method, target, 404, NOT_FOUND, content_type="")
    for method, target in (
        ("POST", "/"), ("DELETE", "/connectors"), ("PUT", "/connectors"),
        ("POST", "/connectors/absent"), ("PATCH", "/connectors/absent"),
        ("GET", "/connectors/absent/pause"), ("GET", "/connectors/absent/tasks/0/restart"),
        ("PUT", "/connectors/absent/restart"), ("TRACE", "/connectors"), ("FOO", "/connectors"),
        ("DELETE", "/health"), ("GET", "/connector-plugins/x/config/validate"),
    ):  # fmt: skip
        yield error(method, target, 405, NOT_ALLOWED, content_type="")
    for number in ("abc", "99999999999", "1.0", "1_0", "%201"):
        for method, suffix in (("GET", "status"), ("POST", "restart")):
            yield error(method, f"/connectors/absent/tasks/{number}/{suffix}", 404, NOT_FOUND)
    yield error(
        "GET", "/connectors/absent/tasks/+1/status", 404, "No status found for task absent-1"
    )
    yield error(
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
        yield error(method, target, 415, UNSUPPORTED, headers=PLAIN, content_type="")
    for name in ("text/plain", "application/vnd.api+json"):
        yield error(
            "POST",
            "/connectors",
            415,
            UNSUPPORTED,
            body="{}",
            headers={"Content-Type": name},
            content_type="",
        )
    # With these headers a method is found, and only reading the body fails.
    yield error("POST", "/connectors", 415, UNSUPPORTED, body="{}")
    for name in ("application/*", "*/*"):
        yield error(
            "POST", "/connectors", 415, UNSUPPORTED, body="{}", headers={"Content-Type": name}
        )
    for name in (
        "application/json; charset=utf-8",
        "APPLICATION/JSON",
        "application/json;",
        "application/json ; a=b",
    ):
        yield Scenario(
            method="POST",
            target="/connectors",
            body="{}",
            headers={"Content-Type": name},
            status=500,
            content_type="application/json",
        )
    for name in (
        "nonsense", "", "/json", "application/", "application/json/x",
        "application/json,text/plain", "application/json; charset", 'application/json; a="b',
    ):  # fmt: skip
        yield Scenario(
            method="POST",
            target="/connectors",
            body="{}",
            headers={"Content-Type": name},
            status=400,
        )
    for target in ("/", "/health"):
        yield Scenario(method="GET", target=target, headers=PLAIN, status=200)
    yield error("PUT", "/connectors/absent/pause", 404, "Unknown connector absent", body="hello")
    for accept in ("text/plain", "text/html", "nonsense", "application/xml"):
        for method, target in (
            ("GET", "/connectors"), ("GET", "/"), ("GET", "/admin/loggers"),
            ("DELETE", "/connectors/absent"), ("PUT", "/connectors/absent/pause"),
            ("POST", "/connectors/absent/tasks"), ("PUT", "/connectors/absent/fence"),
        ):  # fmt: skip
            yield error(
                method, target, 406, NOT_ACCEPTABLE, headers={"Accept": accept}, content_type=""
            )
    for accept in ("*/*", "application/*", "application/json;q=0", "", "*", "text/html, */*;q=0.1"):
        yield Scenario(
            method="GET",
            target="/connector-plugins",
            headers={"Accept": accept},
            status=200,
            content_type="application/json",
        )
    yield error(
        "PUT",
        "/connectors/absent/pause",
        415,
        UNSUPPORTED,
        headers={"Accept": "text/plain", **PLAIN},
        content_type="",
    )
    yield error(
        "DELETE", "/connectors", 405, NOT_ALLOWED, headers={"Accept": "text/plain"}, content_type=""
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


def _refused_targets() -> Iterable[Scenario]:
    for target in (
        "/connectors/a%2Fb", "/connectors/a%2fb", "/connectors/a%25b", "/connectors/a%5Cb",
        "/connectors/a\\b", "/connectors/a%00", "/connectors/a%0Ab", "/connectors/a%7Fb",
        "/connectors/a%zz", "/connectors/a%", "/connectors/a%E9", "/connectors/%2E%2E/x",
        "/connectors/%2e", "/connectors/a/..;/b", "/connectors/{c}", "/connectors/a|b",
        '/connectors/a"b', "/connectors//", "//connectors",
    ):  # fmt: skip
        yield Scenario(method="GET", target=target, status=400)


ROUTING: tuple[Scenario, ...] = (
    *_router_errors(),
    *_media_types(),
    *_options(),
    *_refused_targets(),
)
