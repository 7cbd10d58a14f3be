"""The plugins of the pages for authors, on a real agent with the configs of the pages."""

import gzip
import json
import socket
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, ClassVar
from urllib.parse import parse_qs, urlsplit
from urllib.request import Request, urlopen

import pytest

from pyconnect_sandbox.server import free_port
from tests.support.agents.agent import Agent, Agents
from tests.support.eventually import eventually
from tests.support.names import unique_name
from tests.support.plugins.plugin_directories import install, write_project
from tests.support.servers.kafka import SharedBroker
from tests.support.servers.topics import create_topics, read_topic

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(800)]

WAIT_S = 150
ITEMS = [{"id": number, "name": f"item {number}"} for number in range(1, 251)]


class Api(BaseHTTPRequestHandler):
    """An HTTP API that lists items in pages and keeps the lists that it gets."""

    got: ClassVar[list[list[Any]]] = []

    def do_GET(self) -> None:
        query = parse_qs(urlsplit(self.path).query)
        after, limit = int(query["after"][0]), int(query["limit"][0])
        self.answer({"items": [item for item in ITEMS if item["id"] > after][:limit]})  # type: ignore[operator]

    def do_POST(self) -> None:
        self.got.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.answer({})

    def answer(self, body: object) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(body).encode())

    def log_message(self, format: str, *args: object) -> None:
        """Write nothing."""


@pytest.fixture
def url(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setattr(Api, "got", [])
    with ThreadingHTTPServer(("127.0.0.1", 0), Api) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/items"
        server.shutdown()


class Reader:
    """A reader of the pages whose agent has the plugins of some of them."""

    def __init__(self, agents: Agents, directory: Path, *pages: str) -> None:
        self.projects = {page: write_project(page, directory) for page in pages}
        plugins = directory / "plugins"
        for project in self.projects.values():
            install(project, plugins)
        self.agent: Agent = agents.start(properties={"plugin.path": str(plugins)})

    def create(self, page: str, file: str, **changed: str) -> str:
        """Create the connector of a page's file, with changes, and return its name."""
        config: dict[str, str] = json.loads((self.projects[page] / file).read_text())
        name = config.pop("name")
        changes: Mapping[str, str] = {key.replace("_", "."): text for key, text in changed.items()}
        assert set(changes) <= set(config)
        self.agent.create(name, config | changes)
        eventually(lambda: self.agent.states(name) == ("RUNNING", "RUNNING"), WAIT_S)
        return name


def test_pages_of_an_api_reach_a_topic_and_another_api(
    agents: Agents, kafka_broker: SharedBroker, tmp_path: Path, url: str
) -> None:
    """The page's HTTP source feeds the page's batching sink."""
    topic, dead = unique_name("items"), unique_name("dead")
    create_topics(kafka_broker.bootstrap_servers, [dead])
    reader = Reader(agents, tmp_path, "http-source", "batching-sink")
    reader.create("http-source", "items.json", url=url, topic=topic)
    eventually(lambda: len(read_topic(kafka_broker.bootstrap_servers, topic)) == len(ITEMS), WAIT_S)
    reader.create(
        "batching-sink", "posts.json", url=url, topics=topic, errors_deadletterqueue_topic_name=dead
    )
    eventually(lambda: [item for batch in Api.got for item in batch] == ITEMS, WAIT_S)
    assert max(map(len, Api.got)) <= 100


@pytest.mark.long(only=True)
def test_a_webhook_is_answered_when_its_record_is_in_the_topic(
    agents: Agents, kafka_broker: SharedBroker, tmp_path: Path
) -> None:
    topic, port = unique_name("hooks"), free_port()
    reader = Reader(agents, tmp_path, "webhook-source")
    reader.create("webhook-source", "hooks.json", topic=topic, port=str(port))
    with urlopen(Request(f"http://127.0.0.1:{port}/orders", b"{}"), timeout=WAIT_S) as answer:
        assert answer.status == 204
    (message,) = read_topic(kafka_broker.bootstrap_servers, topic)
    assert message.value() == b"{}"
    assert message.headers() == [("path", b"/orders")]


@pytest.mark.long(only=True)
def test_plugins_beside_connectors_change_records(
    agents: Agents, kafka_broker: SharedBroker, tmp_path: Path, url: str
) -> None:
    """A generator uses the page's transformation and predicate, the HTTP source its converter."""
    orders, items = unique_name("orders"), unique_name("items")
    reader = Reader(agents, tmp_path, "transformations-and-converters", "http-source")
    reader.create("transformations-and-converters", "orders.json", kafka_topic=orders)
    reader.create(
        "http-source", "items.json", url=url, topic=items, value_converter="GzipJsonConverter"
    )
    bootstrap = kafka_broker.bootstrap_servers
    eventually(lambda: len(read_topic(bootstrap, orders)) == 50, WAIT_S)
    for message in read_topic(bootstrap, orders):
        order = json.loads(message.value())["payload"]
        assert (len(order["itemid"]) == 64) == (order["orderunits"] >= 5)
    eventually(lambda: len(read_topic(bootstrap, items)) == len(ITEMS), WAIT_S)
    values = [message.value() for message in read_topic(bootstrap, items)]
    assert [json.loads(gzip.decompress(value)) for value in values] == ITEMS


@pytest.mark.long(only=True)
def test_pdb_stops_a_running_task(
    agents: Agents, kafka_broker: SharedBroker, tmp_path: Path, url: str
) -> None:
    """The page's module stops `poll` at its beginning, and the source goes on afterwards."""
    topic, port = unique_name("items"), free_port()
    (tmp_path / "shown").mkdir()
    debugger = write_project("debugging", tmp_path / "shown") / "debugger.py"
    reader = Reader(agents, tmp_path, "http-source")
    plugin = tmp_path / "plugins" / "http-source"
    (plugin / "debugger.py").write_text(debugger.read_text())
    source = plugin / "paging_source.py"
    text = source.read_text()
    stop = f"import debugger\n        debugger.set_trace({port})\n        items = self.page()"
    source.write_text(text.replace("items = self.page()", stop))
    reader.create("http-source", "items.json", url=url, topic=topic)
    connection = eventually(lambda: _connected(port), WAIT_S)
    with connection, connection.makefile("rw", buffering=1) as lines:
        assert _answer(lines, "") != ""
        assert "0" in _answer(lines, "p self.after")
        source.write_text(text)
        lines.write("c\n")
        assert read_topic(kafka_broker.bootstrap_servers, topic) == []
    reader.agent.do("POST", "/connectors/items/restart?includeTasks=true")
    eventually(lambda: len(read_topic(kafka_broker.bootstrap_servers, topic)) == len(ITEMS), WAIT_S)


def _connected(port: int) -> socket.socket | None:
    try:
        return socket.create_connection(("127.0.0.1", port), WAIT_S)
    except ConnectionRefusedError:
        return None


def _answer(lines: Any, command: str) -> str:
    """Send a command to pdb and return what it prints before its next prompt."""
    if command:
        lines.write(f"{command}\n")
    printed = ""
    while not printed.endswith("(Pdb) "):
        printed += lines.read(1)
    return printed
