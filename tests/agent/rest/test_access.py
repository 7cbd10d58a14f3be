"""Users with roles, and the users of Apache's REST extension, with a fake herder."""

import hashlib
import json
import re
from base64 import b64encode
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from starlette.types import ASGIApp, Receive, Scope, Send

from pyconnect_agent.core.config.config_infos import ConfigInfo, ConfigInfos, ConfigValueInfo
from pyconnect_agent.core.config.effective import literal_secrets
from pyconnect_agent.core.errors import WorkerConfigError
from pyconnect_agent.core.ids import ConnectorTaskId
from pyconnect_agent.core.internal_topics.config_snapshot import ConnectorConfig, SessionKey
from pyconnect_agent.core.offsets.connector_offsets import ConnectorOffset
from pyconnect_agent.core.rest_access import EXTENSION_NAMES, User, UserRole, token_hash
from pyconnect_agent.rest import access, journaling
from pyconnect_agent.rest.access import AdminAccess, BasicAuthExtension, Caller, RestAccess
from pyconnect_agent.rest.app import ADMIN_ROUTES, MAIN_ROUTES
from pyconnect_agent.rest.exchange import AdminServices
from pyconnect_agent.rest.server import RestServer
from pyconnect_api.errors import ConfigException
from tests.support.agents.rest_client import Answer, call_app
from tests.support.cases import cases
from tests.support.fakes.fake_admin import FakeAdmin
from tests.support.fakes.fake_herder import SOURCE_CLASS, FakeHerder
from tests.support.fakes.rest_services import application, rest_config

SECRET = "planted-hunter2"
CONFIG = {"connector.class": SOURCE_CLASS, "topic": "t"}
PLANTED = {
    **CONFIG,
    "db.password": SECRET,
    "url": f"jdbc:postgresql://u:{SECRET}@host/db?password={SECRET}",
    "producer.override.sasl.jaas.config": f'L required password="{SECRET}";',
    "reference": "${file:/run/secrets:token}",
}


def basic(user: str, password: str) -> dict[str, str]:
    return {"Authorization": "Basic " + b64encode(f"{user}:{password}".encode()).decode()}


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def users(**roles: str) -> str:
    """Users whose tokens are their names."""
    return "\n".join(
        f'[{name}]\n{rest}\ntokens = ["{token_hash(name)}"]' for name, rest in roles.items()
    )


USERS = users(
    viewer='role = "viewer"',
    operator='role = "operator"',
    editor='role = "editor"',
    admin='role = "admin"',
    limited='role = "editor"\nconnectors = ["orders-*"]',
)


class World:
    """Requests to an agent with these users."""

    def __init__(self, access: RestAccess | None = None) -> None:
        self.herder = FakeHerder()
        self.herder.session_key = SessionKey(key=bytes(32), algorithm="HmacSHA256", created_ms=0)
        self.admin = FakeAdmin()
        self.app = application(
            self.herder,
            access=access or RestAccess(None, USERS),
            admin=AdminServices(worker=self.admin, access=AdminAccess()),
        )

    def call(
        self,
        user: str | Mapping[str, str],
        method: str,
        path: str,
        body: object = None,
        **headers: str,
    ) -> Answer:
        given = bearer(user) if isinstance(user, str) else user
        sent = {"Content-Type": "application/json", **given, **headers}
        return call_app(self.app, method, path, None if body is None else json.dumps(body), sent)


@pytest.fixture
def world() -> World:
    return World()


def test_a_request_without_a_user_is_refused(world: World) -> None:
    """The answer 401 names both schemes, and probes need no user."""
    for given in ({}, bearer("other"), basic("viewer", "viewer"), {"Authorization": "Bearer"}):
        answer = world.call(given, "GET", "/connectors")
        assert answer.status == 401
        assert answer.headers["www-authenticate"].count("realm=") == 2
    assert world.call({}, "GET", "/health").status == 200
    assert world.call("viewer", "GET", "/connectors").status == 200


def test_a_role_is_refused_what_it_may_not_do(world: World) -> None:
    """The answer 403 names the role that is needed, and nothing is changed."""
    answer = world.call("operator", "PUT", "/connectors/c/config", CONFIG)
    assert answer.status == 403
    expected = "operator has the role operator; PUT /connectors/{connector}/config needs editor."
    assert answer.message == expected
    assert world.herder.submitted == []
    assert world.call("editor", "PUT", "/connectors/c/config", CONFIG).status == 201
    assert world.call("operator", "PUT", "/connectors/c/pause").status == 202


def test_a_limited_user_sees_and_changes_some_connectors(world: World) -> None:
    """Lists, with states and configs too, leave out connectors that are not the user's."""
    world.herder.configs = {"orders-1": CONFIG, "stock": CONFIG}
    assert world.call("limited", "GET", "/connectors").json() == ["orders-1"]
    expanded = world.call("limited", "GET", "/connectors?expand=info&expand=status").json()
    assert list(expanded) == ["orders-1"]
    assert world.call("limited", "GET", "/connectors/stock").status == 403
    for name, status in (("stock-2", 403), ("orders-2", 201)):
        body = {"name": name, "config": CONFIG}
        assert world.call("limited", "POST", "/connectors", body).status == status
    # A name with percent-encoded characters means the same connector.
    assert world.call("limited", "GET", "/connectors/%6frders-1").status == 200
    assert world.call("limited", "GET", "/connectors/orders-1/../stock").status in (403, 404)


def test_roles_count_for_the_admin_interface(world: World) -> None:
    """Roles replace the rule about loopback addresses on all listeners."""
    assert world.call({}, "GET", "/agent").status == 401
    assert world.call("viewer", "GET", "/agent").status == 200
    assert world.call("limited", "GET", "/agent").status == 403
    assert world.call("editor", "POST", "/agent/drain").status == 403
    assert world.call("admin", "POST", "/agent/drain").status == 202


@cases("user", "viewer", "operator")
def test_no_answer_of_a_reader_contains_a_secret(world: World, user: str) -> None:
    """No GET shows a secret: configs, tasks, traces, offsets, logs and lists."""
    herder = world.herder
    herder.configs = {"c": PLANTED}
    herder.task_counts = {"c": 2}
    herder.task_failures = {ConnectorTaskId("c", 1): f"Failed: cannot log in with {SECRET}"}
    herder.offsets = (
        ConnectorOffset(partition={"password": SECRET}, offset={"at": f"u:{SECRET}@h"}),
    )
    seen = 0
    values = {"connector": "c", "task": "1", "plugin": SOURCE_CLASS, "logger": "root"}
    for route in (*MAIN_ROUTES, *ADMIN_ROUTES):
        if route.method != "GET":
            continue
        path = re.sub(r"{(\w+)}", lambda found: values[found[1]], route.template)
        for query in ("", "?expand=info&expand=status"):
            answer = world.call(user, "GET", path + query, Accept="*/*")
            assert SECRET not in answer.text, (path, answer.text)
            seen += answer.status == 200
    assert seen > 30
    # A long list of offsets is sent in parts.
    noted = ConnectorOffset(partition={"at": 0}, offset={"note": f"of {SECRET}"})
    herder.offsets = (noted,) * 10_000
    answer = world.call(user, "GET", "/connectors/c/offsets")
    assert (answer.status, SECRET in answer.text) == (200, False)
    config = world.call(user, "GET", "/connectors/c/config").json()
    assert (config["db.password"], config["topic"]) == ("[hidden]", "t")
    assert config["reference"] == PLANTED["reference"]
    assert SECRET in world.call("editor", "GET", "/connectors/c/config").text


def test_passwords_of_a_connectors_class_are_hidden_from_readers(world: World) -> None:
    """Passwords are hidden whatever their names are, or by name if a class cannot be described."""
    world.herder.plugin_keys = {"pin": "PASSWORD", "topic": "STRING"}
    world.herder.configs = {
        "c": {**CONFIG, "pin": SECRET},
        "d": {"connector.class": "com.example.Unknown", "password": SECRET},
    }
    assert SECRET not in world.call("viewer", "GET", "/connectors?expand=info").text
    assert SECRET in world.call("editor", "GET", "/connectors/c").text


def test_secrets_are_found_after_a_change(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next answer takes a new, changed or deleted connector into account."""
    searched: list[Mapping[str, str | None]] = []

    def found(config: Mapping[str, str | None], passwords: Collection[str]) -> dict[str, str]:
        searched.append(config)
        return literal_secrets(config, passwords)

    monkeypatch.setattr(journaling, "literal_secrets", found)
    changes: tuple[dict[str, ConnectorConfig], ...] = (
        {"c": PLANTED},
        {"c": PLANTED, "d": {**CONFIG, "db.password": "another-secret"}},
        {"c": PLANTED, "d": {**CONFIG, "db.password": "third-secret"}},
        {"d": {**CONFIG, "db.password": "third-secret"}},
    )
    for configs in changes:
        world.herder.configs = configs
        values = [str(config.get("db.password")) for config in configs.values()]
        failures = {ConnectorTaskId(name, 0): f"Failed: {values}" for name in configs}
        world.herder.task_failures = failures
        world.herder.task_counts = dict.fromkeys(configs, 1)
        searched.clear()
        for _ in range(3):
            shown = world.call("viewer", "GET", "/connectors?expand=info&expand=status")
            assert shown.status == 200
            assert not any(value in shown.text for value in values)
        assert len(searched) == len(configs)


def test_validation_hides_passwords_from_readers(world: World) -> None:
    """Passwords are hidden in values, recommended values and errors; references are refused."""

    async def validate(config: Mapping[str, str | None], *, timeout_ms: int) -> ConfigInfos:
        value = ConfigValueInfo(
            name="pin", value=SECRET, recommended_values=(SECRET,), errors=(f"{SECRET} is short",)
        )
        definition = {"name": "pin", "type": "PASSWORD"}
        infos = (ConfigInfo(definition=definition, value=value),)  # type: ignore[arg-type]  # a part
        return ConfigInfos(name="c", error_count=1, groups=(), configs=infos)

    world.herder.validate = validate  # type: ignore[method-assign]
    path = "/connector-plugins/FileStreamSource/config/validate"
    body = {**CONFIG, "pin": SECRET}
    shown = world.call("viewer", "PUT", path, body)
    assert shown.status == 200
    assert SECRET not in shown.text
    assert SECRET in world.call("editor", "PUT", path, body).text
    refused = world.call("viewer", "PUT", path, {**CONFIG, "pin": "${file:/run/secrets:pin}"})
    assert refused.status == 403


def test_a_foreign_page_may_not_use_a_browsers_credentials(world: World) -> None:
    """A browser sends a password that it knows with the requests of each page."""
    world.herder.configs = {"c": CONFIG}
    for origin, status in (("http://evil", 403), (None, 204)):
        headers = {} if origin is None else {"Origin": origin}
        answer = world.call("admin", "POST", "/connectors/c/restart", **headers)
        assert answer.status == status


def test_a_password_has_a_hash_or_is_the_extensions(tmp_path: Path) -> None:
    """Users of Apache's extension get their roles, and a user without a role is refused."""
    credentials = tmp_path / "credentials.properties"
    credentials.write_text("anna=a\nstranger=s\n")
    hashed = hashlib.scrypt(b"b", salt=b"salt", n=2**14, r=8, p=1, dklen=32)
    password = f"scrypt:{b64encode(b'salt').decode()}:{b64encode(hashed).decode()}"
    text = f'[anna]\nrole = "admin"\n[bob]\nrole = "viewer"\npassword = "{password}"\n'
    world = World(RestAccess(BasicAuthExtension(str(credentials)), text))
    for user, given, status in (
        ("anna", "a", 200), ("anna", "b", 401), ("bob", "b", 200), ("bob", "b", 200),
        ("bob", "a", 401), ("stranger", "s", 401),
    ):  # fmt: skip
        assert world.call(basic(user, given), "GET", "/connectors").status == status


def test_a_wrong_password_is_hashed_once_for_a_client(monkeypatch: pytest.MonkeyPatch) -> None:
    """A quick refusal reveals nothing to other clients, and few wrong passwords are remembered."""
    hashed: list[str] = []

    def matches(given: str, written: str) -> bool:
        hashed.append(given)
        return written == f"scrypt:{given}"

    monkeypatch.setattr(access, "is_password", matches)
    monkeypatch.setattr(access, "_REMEMBERED_PASSWORDS", 3)
    user = User(name="bob", role=UserRole.VIEWER, password="scrypt:right")
    monkeypatch.setattr(RestAccess, "_read", lambda _: (user,))
    world = World(RestAccess(None, "users.toml"))

    def call(password: str, app: ASGIApp = world.app) -> int:
        return call_app(app, "GET", "/connectors", None, basic("bob", password)).status

    async def elsewhere(scope: Scope, receive: Receive, send: Send) -> None:
        await world.app({**scope, "client": ("10.0.0.9", 1)}, receive, send)

    assert [call("right"), call("wrong"), call("wrong"), call("right")] == [200, 401, 401, 200]
    assert hashed == ["right", "wrong"]
    assert [call("wrong", elsewhere), call("right", elsewhere)] == [401, 200]
    assert hashed == ["right", "wrong", "wrong"]
    assert {call(f"guess-{number}") for number in range(7)} == {401}
    assert [call("right"), call("wrong")] == [200, 401]
    assert len(hashed) == 3 + 7 + 1
    # The time of a refusal does not reveal which users exist: unknown ones are hashed, too.
    assert call_app(world.app, "GET", "/connectors", None, basic("eve", "right")).status == 401
    assert len(hashed) == 3 + 7 + 2
    # A user's new password counts at once, even if it was wrong before.
    user = replace(user, password="scrypt:guess-6")
    assert [call("guess-6"), call("right")] == [200, 401]


def test_users_are_read_at_each_request(tmp_path: Path) -> None:
    """A changed role counts at once, and an unreadable file admits no user."""
    file = tmp_path / "users.toml"
    file.write_text(users(anna='role = "viewer"'))
    world = World(RestAccess(None, str(file)))
    assert world.call("anna", "PUT", "/connectors/c/config", CONFIG).status == 403
    file.write_text(users(anna='role = "editor"'))
    assert world.call("anna", "PUT", "/connectors/c/config", CONFIG).status == 201
    file.write_text("[anna")
    assert world.call("anna", "GET", "/connectors").status == 401


def forwarded(world: World, method: str, target: str, body: bytes) -> dict[str, str]:
    """Return the headers with which another worker forwards a request of the user anna."""
    caller = Caller(address="10.0.0.7", name="anna")
    return caller.signed(world.herder, method, target, body)


def test_another_worker_vouches_for_its_user(world: World) -> None:
    """The signature covers user, method, target and body, and a client cannot make one."""
    body = json.dumps(CONFIG)
    target = "/connectors/c/config?forward=true"
    headers = {"Content-Type": "application/json"}
    headers |= forwarded(world, "PUT", target, body.encode())
    assert call_app(world.app, "PUT", target, body + " ", headers).status == 403
    assert call_app(world.app, "DELETE", "/connectors/c", None, headers).status == 401
    other = {**headers, "Pyconnect-User": headers["Pyconnect-User"][:-4] + "AAAA"}
    assert call_app(world.app, "PUT", target, body, other).status == 401
    assert call_app(world.app, "PUT", target, body, headers).status == 201
    world.herder.session_key = SessionKey(key=b"new", algorithm="HmacSHA256", created_ms=1)
    assert call_app(world.app, "PUT", target, body, headers).status == 401


@cases(
    "properties, reason",
    ({"agent.rest.users": "/no/such/file"}, "agent.rest.users: .*No such file"),
    ({"agent.rest.users": "a = 1"}, "agent.rest.users: the value: user a: write"),
    (
        {"agent.rest.users": USERS, "agent.admin.bearer.token.file": "/tokens"},
        "agent.rest.users names the users of the admin interface too",
    ),
    (
        {"agent.rest.users": 'a = {role = "admin", certificates = ["CN=a"]}'},
        "no https listener asks for one",
    ),
    ({"agent.rest.users": USERS, "connect.protocol": "compatible"}, "Must be sessioned"),
)
def test_unknown_users_are_refused(properties: dict[str, str], reason: str, tmp_path: Path) -> None:
    """The worker does not start with users that are not valid."""
    tokens = tmp_path / "tokens"
    tokens.write_text("t\n")
    given = {key: str(tokens) if value == "/tokens" else value for key, value in properties.items()}
    with pytest.raises((WorkerConfigError, ConfigException), match=reason):
        RestServer(rest_config(**given)).bind()


@pytest.fixture
def credentials(tmp_path: Path) -> Path:
    file = tmp_path / "credentials.properties"
    file.write_text("anna=a\n")
    return file


EXEMPT = {("POST", "/connectors/{connector}/tasks"), ("PUT", "/connectors/{connector}/fence")}


def test_every_route_needs_a_password_but_those_of_workers(credentials: Path) -> None:
    """Health needs a password too, and the answer 401 names the scheme."""
    app = application(FakeHerder(), access=RestAccess(BasicAuthExtension(str(credentials)), None))
    for route in MAIN_ROUTES:
        path = re.sub("[{}]", "", route.template)
        answer = call_app(app, route.method, path, headers=basic("anna", "b"))
        assert (answer.status != 401) == ((route.method, route.template) in EXEMPT)
        if answer.status == 401:
            assert answer.headers["www-authenticate"].startswith("Basic")
    assert call_app(app, "GET", "/health", headers=basic("anna", "a")).status == 200


def test_passwords_are_read_at_each_request(credentials: Path) -> None:
    """A new password counts at once, and an unreadable file admits no client."""
    app = application(FakeHerder(), access=RestAccess(BasicAuthExtension(str(credentials)), None))
    credentials.write_text("anna=b\nempty=\n")
    assert call_app(app, "GET", "/", headers=basic("anna", "a")).status == 401
    assert call_app(app, "GET", "/", headers=basic("anna", "b")).status == 200
    assert call_app(app, "GET", "/", headers=basic("empty", "")).status == 401
    credentials.unlink()
    assert call_app(app, "GET", "/", headers=basic("anna", "b")).status == 401


def test_the_admin_interface_has_its_own_credentials(credentials: Path, tmp_path: Path) -> None:
    """The admin interface's credentials replace the extension's; without them both rules apply."""
    tokens = tmp_path / "tokens"
    tokens.write_text("secret\n")
    for admin, headers, status in (
        (AdminAccess(token_file=str(tokens)), {"Authorization": "Bearer secret"}, 200),
        (AdminAccess(token_file=str(tokens)), basic("anna", "a"), 401),
        (AdminAccess(), basic("anna", "a"), 401),
        (AdminAccess(loopback=frozenset({("127.0.0.1", 8083)})), {}, 401),
        (AdminAccess(loopback=frozenset({("127.0.0.1", 8083)})), basic("anna", "a"), 200),
    ):
        app = application(
            FakeHerder(),
            access=RestAccess(BasicAuthExtension(str(credentials)), None),
            admin=AdminServices(worker=FakeAdmin(), access=admin),
        )
        given = {"Host": "localhost:8083", **headers}
        assert call_app(app, "GET", "/agent", headers=given).status == status


@cases("users", "", "# nobody\n", None)
def test_a_worker_without_users_does_not_start(users: str | None, tmp_path: Path) -> None:
    """Without users a Java worker would admit every client, so the worker does not start."""
    jaas, file = tmp_path / "jaas.conf", tmp_path / "credentials.properties"
    if users is not None:
        file.write_text(users)
    module = EXTENSION_NAMES[0].replace("BasicAuthSecurityRestExtension", "PropertyFileLoginModule")
    jaas.write_text(f'KafkaConnect {{ {module} required file="{file}"; }};')
    config = rest_config(
        rest_extension_classes=EXTENSION_NAMES[0], java_security_auth_login_config=str(jaas)
    )
    with pytest.raises(ConfigException, match=str(file)):
        RestServer(config).bind()
