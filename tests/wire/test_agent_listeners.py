"""The addresses of the admin interface: real listeners."""

from pathlib import Path

import pytest

from pyconnect_agent.core.errors import WorkerConfigError
from pyconnect_agent.rest.server import RestServer
from tests.support.agents.rest_client import call_url
from tests.support.fakes.fake_admin import FakeAdmin
from tests.support.fakes.fake_herder import FakeHerder
from tests.support.fakes.rest_services import rest_config, serving

pytestmark = pytest.mark.wire


def test_listeners_are_open_on_loopback_only() -> None:
    """Without credentials; the REST API stays open."""
    with serving(rest_config(), FakeHerder(), FakeAdmin()) as server:
        url = f"http://{server.listeners[0].netloc}"
        assert call_url(url, "GET", "/agent").status == 200
        assert call_url(url, "POST", "/agent/drain", headers={"Origin": "http://a"}).status == 401
    with serving(rest_config(listeners="http://:0"), FakeHerder(), FakeAdmin()) as server:
        url = f"http://127.0.0.1:{server.listeners[0].port}"
        assert call_url(url, "GET", "/agent").status == 401
        assert call_url(url, "GET", "/connectors").status == 200


def test_admin_listeners_take_it_over() -> None:
    """The REST listeners answer 404 then, the others serve nothing else."""
    config = rest_config(admin_listeners="http://127.0.0.1:0")
    with serving(config, FakeHerder(), FakeAdmin()) as server:
        main = f"http://{server.listeners[0].netloc}"
        separate = f"http://{server.admin_listeners[0].netloc}"
        assert call_url(main, "GET", "/agent").status == 404
        assert call_url(separate, "GET", "/agent").status == 200
        assert call_url(separate, "GET", "/connectors").status == 404


def test_metrics_have_listeners_of_their_own() -> None:
    """On every interface without credentials, and with nothing else of the admin interface."""
    config = rest_config(agent_metrics_listeners="http://:0", admin_listeners="http://127.0.0.1:0")
    with serving(config, FakeHerder(), FakeAdmin()) as server:
        url = f"http://127.0.0.1:{server.metrics_listeners[0].port}"
        answer = call_url(url, "GET", "/metrics")
        admin = f"http://{server.admin_listeners[0].netloc}"
        assert (answer.status, answer.body) == (200, call_url(admin, "GET", "/agent/metrics").body)
        for path in ("/agent", "/agent/metrics", "/agent/tasks", "/admin/loggers", "/connectors"):
            assert call_url(url, "GET", path).status == 404
        assert call_url(url, "POST", "/metrics").status == 405
        assert call_url(f"http://{server.listeners[0].netloc}", "GET", "/metrics").status == 404


def test_no_admin_listeners_no_interface() -> None:
    """An empty list serves it nowhere."""
    with serving(rest_config(admin_listeners=""), FakeHerder(), FakeAdmin()) as server:
        assert call_url(f"http://{server.listeners[0].netloc}", "GET", "/agent").status == 404


def test_tokens_open_a_listener_on_every_interface(tmp_path: Path) -> None:
    """And a loopback listener asks for them too."""
    tokens = tmp_path / "tokens"
    tokens.write_text("token\n")
    config = rest_config(
        listeners="http://:0,http://127.0.0.1:0", agent_admin_bearer_token_file=str(tokens)
    )
    with serving(config, FakeHerder(), FakeAdmin()) as server:
        for listener in server.listeners:
            url = f"http://127.0.0.1:{listener.port}"
            assert call_url(url, "GET", "/agent").status == 401
            headers = {"Authorization": "Bearer token"}
            assert call_url(url, "GET", "/agent", headers=headers).status == 200


def test_a_missing_credentials_file_is_found_before_anything_is_served(tmp_path: Path) -> None:
    """With the name of the key and of the file."""
    config = rest_config(agent_admin_basic_auth_file=str(tmp_path / "missing"))
    with pytest.raises(WorkerConfigError, match=r"agent\.admin\.basic\.auth\.file.*missing"):
        RestServer(config).bind()
