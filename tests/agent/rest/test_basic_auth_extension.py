"""Users and passwords of Apache's REST extension."""

import base64
import re
from pathlib import Path

import pytest

from pyconnect_agent.core.rest_access import EXTENSION_NAMES
from pyconnect_agent.rest.access import AdminAccess, BasicAuthExtension, RestAccess
from pyconnect_agent.rest.app import MAIN_ROUTES
from pyconnect_agent.rest.exchange import AdminServices
from pyconnect_agent.rest.server import RestServer
from pyconnect_api.errors import ConfigException
from tests.support.agents.rest_client import call_app
from tests.support.cases import cases
from tests.support.fakes.fake_admin import FakeAdmin
from tests.support.fakes.fake_herder import FakeHerder
from tests.support.fakes.rest_services import application, rest_config


def basic(user: str, password: str) -> dict[str, str]:
    return {"Authorization": "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()}


@pytest.fixture
def credentials(tmp_path: Path) -> Path:
    file = tmp_path / "credentials.properties"
    file.write_text("anna=a\n")
    return file


EXEMPT = {("POST", "/connectors/{connector}/tasks"), ("PUT", "/connectors/{connector}/fence")}


def test_every_route_needs_a_password_but_those_of_workers(credentials: Path) -> None:
    """Health too; an answer of 401 names the scheme."""
    app = application(FakeHerder(), access=RestAccess(BasicAuthExtension(str(credentials)), None))
    for route in MAIN_ROUTES:
        path = re.sub("[{}]", "", route.template)
        answer = call_app(app, route.method, path, headers=basic("anna", "b"))
        assert (answer.status != 401) == ((route.method, route.template) in EXEMPT)
        if answer.status == 401:
            assert answer.headers["www-authenticate"].startswith("Basic")
    assert call_app(app, "GET", "/health", headers=basic("anna", "a")).status == 200


def test_passwords_are_read_at_each_request(credentials: Path) -> None:
    """A new password counts at once; a file that cannot be read admits no client."""
    app = application(FakeHerder(), access=RestAccess(BasicAuthExtension(str(credentials)), None))
    credentials.write_text("anna=b\nempty=\n")
    assert call_app(app, "GET", "/", headers=basic("anna", "a")).status == 401
    assert call_app(app, "GET", "/", headers=basic("anna", "b")).status == 200
    assert call_app(app, "GET", "/", headers=basic("empty", "")).status == 401
    credentials.unlink()
    assert call_app(app, "GET", "/", headers=basic("anna", "b")).status == 401


def test_the_admin_interface_has_its_own_credentials(credentials: Path, tmp_path: Path) -> None:
    """With them the extension's do not count there; without them both rules hold."""
    tokens = tmp_path / "tokens"
    tokens.write_text("secret\n")
    for access, headers, status in (
        (AdminAccess(token_file=str(tokens)), {"Authorization": "Bearer secret"}, 200),
        (AdminAccess(token_file=str(tokens)), basic("anna", "a"), 401),
        (AdminAccess(), basic("anna", "a"), 401),
        (AdminAccess(loopback=frozenset({("127.0.0.1", 8083)})), {}, 401),
        (AdminAccess(loopback=frozenset({("127.0.0.1", 8083)})), basic("anna", "a"), 200),
    ):
        app = application(
            FakeHerder(),
            access=RestAccess(BasicAuthExtension(str(credentials)), None),
            admin=AdminServices(worker=FakeAdmin(), access=access),
        )
        given = {"Host": "localhost:8083", **headers}
        assert call_app(app, "GET", "/agent", headers=given).status == status


@cases("users", "", "# nobody\n", None)
def test_a_worker_without_users_does_not_start(users: str | None, tmp_path: Path) -> None:
    """A Java worker would admit every client."""
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
