"""`/agent` with a fake worker: routes, bodies, errors, credentials."""

import base64
import json
from pathlib import Path

import pytest

from pyconnect_agent.core.errors import WorkerConfigError
from pyconnect_agent.core.ids import ConnectorTaskId
from pyconnect_agent.rest.access import AdminAccess, loopback_addresses
from pyconnect_agent.rest.exchange import AdminServices
from tests.support.agents.rest_client import Answer, call_app
from tests.support.cases import cases
from tests.support.fakes.fake_admin import HERE, FakeAdmin
from tests.support.fakes.fake_herder import FakeHerder
from tests.support.fakes.rest_services import application

JSON = {"Content-Type": "application/json", "Host": "localhost:8083"}
LOOPBACK = AdminAccess(loopback=frozenset({("127.0.0.1", 8083)}))


class World:
    """Requests to an agent on a loopback listener, unless `access` says otherwise."""

    def __init__(self, access: AdminAccess = LOOPBACK) -> None:
        self.admin = FakeAdmin()
        services = AdminServices(worker=self.admin, access=access)
        self._app = application(FakeHerder(), admin=services)

    def call(self, method: str, path: str, body: str | None = None, **headers: str) -> Answer:
        return call_app(self._app, method, path, body, {**JSON, **headers})


def test_the_admin_interface_shows_worker_config_children_and_grants() -> None:
    """Grants are of the requested phase, or of the worker's own; another text is a 400."""
    world = World()
    assert world.call("GET", "/agent").json()["state"] == "active"
    expected = [{"name": "group.id", "value": "g", "source": "file"}]
    assert world.call("GET", "/agent/config").json() == expected
    assert world.call("GET", "/agent/tasks").json()[0]["pid"] == 1
    assert world.call("GET", "/agent/connectors").json() == {"c": {"target_state": "PAUSED"}}
    assert World().call("GET", "/agent/acls").json()["phase"] == "preparing"
    assert World().call("GET", "/agent/acls?phase=enabled").json()["phase"] == "enabled"
    assert World().call("GET", "/agent/acls?phase=soon").status == 400


def test_metrics_are_served_for_prometheus_and_as_json() -> None:
    """Texts are labels, and a value that is not a number is NaN for Prometheus and null in JSON."""
    answer = World().call(
        "GET", "/agent/metrics", Accept="text/plain;version=0.0.4;q=0.5,*/*;q=0.1"
    )
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    prefix = "kafka_connect_connector_task_metrics_"
    samples = [line for line in answer.text.splitlines() if not line.startswith("#")]
    assert samples == [
        prefix + 'status{connector="c",status="running",task="0"} 1.0',
        prefix + 'batch_size_max{connector="c",task="0"} 7.0',
        prefix + 'batch_size_avg{connector="c",task="0"} NaN',
    ]
    assert f"# TYPE {prefix}batch_size_max gauge" in answer.text
    found = World().call("GET", "/agent/metrics.json").json()
    assert [metric["value"] for metric in found] == ["running", 7.0, None]
    assert found[0]["tags"] == {"connector": "c", "task": "0"}


def test_paths_and_bodies_of_the_admin_interface() -> None:
    """Stacks are plain text, the body tells a drain from its end, and names are decoded."""
    answer = World().call("GET", "/agent/tasks/c/0/stacks", Accept="text/plain")
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert answer.text == "Thread MainThread\n"
    world = World()
    assert world.call("POST", "/agent/drain").status == 202
    assert world.call("POST", "/agent/drain", '{"undrain":true}').status == 202
    assert world.admin.drains == [False, True]
    world = World()
    expected = f"Unknown task: {ConnectorTaskId('a b', 0)}"
    assert world.call("POST", "/agent/tasks/a%20b/0/kill").message == expected


@cases("body, force", (None, False), ("{}", False), ('{"force":true}', True))
def test_a_kill_is_accepted(body: str | None, *, force: bool) -> None:
    """A kill is answered with 202, and is not forced without a body."""
    world = World()
    assert world.call("POST", "/agent/tasks/c/0/kill", body).status == 202
    assert world.admin.kills == [(HERE, force)]


@cases("path", "/agent/tasks/c/0/kill", "/agent/drain")
@cases("body", "[]", "null", '{"undrian":true}', '{"force":1,"undrain":1}', "{", "\xff")
def test_a_mistyped_body_does_nothing(path: str, body: str) -> None:
    """A wrong member is answered with 400, so that it does not count as a missing one."""
    world = World()
    answer = world.call("POST", path, body)
    assert answer.status == 400
    assert answer.json()["error_code"] == 400
    assert world.admin.kills == []
    assert world.admin.drains == []


@cases("action", ("POST", "kill"), ("GET", "stacks"))
def test_a_task_that_is_not_here(action: tuple[str, str]) -> None:
    """A task elsewhere is 409 with the address, one without a process 409, an unknown one 404."""
    method, verb = action
    world = World()
    elsewhere = world.call(method, f"/agent/tasks/c/1/{verb}")
    assert elsewhere.status == 409
    assert elsewhere.headers["location"] == f"http://other:8083/agent/tasks/c/1/{verb}"
    assert world.call(method, f"/agent/tasks/c/2/{verb}").status == 409
    assert world.call(method, f"/agent/tasks/c/3/{verb}").status == 404
    assert world.call(method, f"/agent/tasks/c/x/{verb}").status == 404


def test_without_the_interface_there_is_nothing() -> None:
    """Without the interface the answer is 404, as of a Java worker."""
    answer = call_app(application(FakeHerder()), "GET", "/agent", headers=JSON)
    assert answer.status == 404


# Credentials

PATHS = [
    ("GET", "/agent"), ("GET", "/agent/config"), ("GET", "/agent/tasks"), ("GET", "/agent/acls"),
    ("POST", "/agent/tasks/c/0/kill"), ("GET", "/agent/connectors/c/logs"),
    ("GET", "/agent/tasks/c/0/stacks"), ("POST", "/agent/drain"),
]  # fmt: skip


def basic(text: str) -> str:
    return f"Basic {base64.b64encode(text.encode()).decode()}"


@pytest.fixture
def guarded(tmp_path: Path) -> World:
    users, tokens = tmp_path / "users", tmp_path / "tokens"
    users.write_text("ann=pa:ss\nümit=schlüssel\nempty=\n", encoding="utf-8")
    tokens.write_text("first\n\nsecond \n")
    return World(AdminAccess(basic_file=str(users), token_file=str(tokens)))


@cases("authorization", "ann:pa:ss", "ümit:schlüssel")
@pytest.mark.parametrize(("method", "path"), PATHS)
def test_the_password_opens_all(guarded: World, method: str, path: str, authorization: str) -> None:
    """Names and passwords of the file may be any UTF-8 text."""
    answer = guarded.call(method, path, Authorization=basic(authorization))
    assert answer.status < 300


@cases("token", "Bearer first", "bearer second")
def test_any_of_the_tokens_opens(guarded: World, token: str) -> None:
    """Several tokens count, so that a new one can be introduced before the old one goes."""
    assert guarded.call("GET", "/agent", Authorization=token).status == 200


@cases(
    "authorization",
    None, "", "Basic", "Basic !!!", "Basic /w==", "Bearer", "Bearer third", "Bearer first second",
    "Negotiate first", basic("ann:wrong"), basic("ann"), basic("bob:pa:ss"), basic("bob:"),
    basic("empty:"), basic(":"),
)  # fmt: skip
def test_wrong_credentials_open_nothing(guarded: World, authorization: str | None) -> None:
    """Wrong credentials are answered with 401 and both schemes, on a loopback address too."""
    headers = {} if authorization is None else {"Authorization": authorization}
    for method, path in PATHS:
        answer = guarded.call(method, path, **headers)
        assert answer.status == 401
        assert answer.json()["error_code"] == 401
        assert "Basic" in answer.headers["www-authenticate"]
        assert "Bearer" in answer.headers["www-authenticate"]
    assert guarded.admin.kills == []
    assert guarded.admin.drains == []


def test_credentials_are_read_at_each_request(tmp_path: Path) -> None:
    """Changed credentials count at once, and a missing file is a server error."""
    tokens = tmp_path / "tokens"
    tokens.write_text("old")
    world = World(AdminAccess(token_file=str(tokens)))
    tokens.write_text("new")
    assert world.call("GET", "/agent", Authorization="Bearer old").status == 401
    assert world.call("GET", "/agent", Authorization="Bearer new").status == 200
    tokens = tmp_path / "tokens"
    tokens.write_text("token")
    world = World(AdminAccess(token_file=str(tokens)))
    tokens.unlink()
    assert world.call("GET", "/agent", Authorization="Bearer token").status == 500


@pytest.mark.parametrize(("method", "path"), PATHS)
def test_without_credentials_other_listeners_are_closed(method: str, path: str) -> None:
    """The answer 401 names the keys to set."""
    answer = World(AdminAccess()).call(method, path)
    assert answer.status == 401
    assert "agent.admin.basic.auth.file" in (answer.message or "")


@cases(
    "headers", {"Origin": "http://evil.example"}, {"Origin": "null"}, {"Host": "evil.example:8083"}
)
def test_without_credentials_web_pages_are_not_served(headers: dict[str, str]) -> None:
    """A foreign page's request is refused, and so is one under a name that points to this host."""
    world = World()
    assert world.call("POST", "/agent/drain", **headers).status == 401
    assert world.admin.drains == []


@cases("host", "localhost:8083", "127.0.0.1:8083", "[::1]:8083", "127.9.9.9")
def test_without_credentials_local_names_are_served(host: str) -> None:
    """Each client on this host is served."""
    assert World().call("GET", "/agent", Host=host).status == 200


def test_loopback_addresses_are_found_by_the_bound_address() -> None:
    """An address of all interfaces is not loopback, although loopback reaches it too."""
    bound = [("127.0.0.1", 1), ("::1", 2), ("0.0.0.0", 3), ("::", 4), ("10.0.0.1", 5)]
    assert loopback_addresses(bound) == {("127.0.0.1", 1), ("::1", 2)}


@cases("key", "basic_file", "token_file")
@cases("content", None, "", "\n \n")
def test_unusable_files_are_found_at_start(tmp_path: Path, key: str, content: str | None) -> None:
    """The worker does not start if the file is missing or names no user."""
    file = tmp_path / "credentials"
    if content is not None:
        file.write_text(content)
    with pytest.raises(WorkerConfigError, match=r"agent\.admin"):
        AdminAccess(**{key: str(file)}).check_files()


def test_a_change_of_phase_is_answered_before_the_restart() -> None:
    """The answer is 202 with the effects; a changed file is a 409 and restarts nothing."""
    world = World()
    body = {"phase": "preparing", "run_id": "r", "expect_config_sha256": "s"}
    answer = world.call("POST", "/agent/phase", json.dumps(body))
    assert answer.status == 202
    assert answer.json()["restart"] == "self"
    assert (world.admin.phase_changes, world.admin.restarts) == ([("preparing", "r")], 1)
    other = {**body, "expect_config_sha256": "t"}
    assert world.call("POST", "/agent/phase", json.dumps(other)).status == 409
    assert world.admin.restarts == 1


@cases(
    "body",
    "",
    "[]",
    "{",
    '{"phase":"preparing"}',
    '{"phase":"preparing","run_id":1,"expect_config_sha256":"s"}',
    '{"phase":"preparing","run_id":"r","expect_config_sha256":"s","force":"x"}',
)
def test_a_change_of_phase_is_read_strictly(body: str) -> None:
    """Another body is answered with 400, and nothing is changed."""
    world = World()
    assert world.call("POST", "/agent/phase", body).status == 400
    assert world.admin.phase_changes == []


@cases(
    "query, text",
    ("level=LOUD", "level=LOUD: must be one of ALL, TRACE"),
    ("task=-1", "task=-1: must be a number"),
    ("sinse_ms=1", "sinse_ms is not a parameter"),
)
def test_a_mistyped_question_for_logs_is_refused(query: str, text: str) -> None:
    """A mistyped parameter is refused: its answer could look like an empty log."""
    answer = World().call("GET", f"/agent/connectors/c/logs?{query}")
    assert answer.status == 400
    assert text in (answer.message or "")


def test_with_credentials_a_foreign_web_page_still_changes_nothing(tmp_path: Path) -> None:
    """A browser sends credentials that it knows with the requests of each page."""
    tokens = tmp_path / "tokens"
    tokens.write_text("secret\n")
    world = World(AdminAccess(token_file=str(tokens)))
    headers = {"Authorization": "Bearer secret", "Origin": "http://evil.example"}
    assert world.call("POST", "/agent/drain", **headers).status == 403
    assert world.call("GET", "/agent", **headers).status == 200
    del headers["Origin"]
    assert world.call("POST", "/agent/drain", **headers).status == 202
