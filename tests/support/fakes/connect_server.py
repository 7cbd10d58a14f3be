"""A small Connect REST server in memory, for tests of the command line.

It keeps connectors and their states and answers in Connect's shapes. The commands of
`tests/java/test_cli_on_workers.py` run against real workers and against this one.
"""

import json
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from pyconnect_cli.rest.client import kafka_version

WORKER_ID = "worker-1:8083"
NOT_STOPPED = (
    "Connectors must be in the STOPPED state before their offsets can be modified. This can be done"
    " for the specified connector by issuing a 'PUT' request to the '/connectors/c/stop' endpoint"
)
ALTERED = "The offsets for this connector have been {verb} successfully"
FRAMEWORK_ALTERED = (
    "The Connect framework-managed offsets for this connector have been {verb} successfully."
    " However, if this connector manages offsets externally, they will need to be manually {verb}"
    " in the system that the connector uses."
)


NO_STATUS = (404, {"error_code": 404, "message": "No status found for the connector"})


@dataclass
class FakeConnector:
    config: dict[str, str | None]
    state: str = "RUNNING"
    """Empty: a new connector without a status."""
    tasks: list[str] = field(default_factory=lambda: ["RUNNING"])
    trace: str | None = None
    type: str = "source"
    offsets: list[dict[str, Any]] = field(default_factory=list)
    committed_while_stopping: list[dict[str, Any]] | None = None
    """The offsets that the tasks leave when they stop."""
    takes_part: bool = True
    """The answer of the connector's hook: whether it altered external offsets itself."""
    topics: list[str] = field(default_factory=lambda: ["t1"])
    forgets_changes: bool = False
    """Whether changes are answered with success but not stored."""

    def enter(self, state: str) -> None:
        if state == "STOPPED" and self.committed_while_stopping is not None:
            self.offsets = self.committed_while_stopping
        self.state = state
        self.tasks = [] if state == "STOPPED" else [state]


@dataclass
class FakeConnect:
    """The test owns the state; the server's threads take `lock`."""

    connectors: dict[str, FakeConnector] = field(default_factory=dict)
    loggers: dict[str, str] = field(default_factory=lambda: {"root": "INFO"})
    cluster_id: str = "k"
    worker_id: str = WORKER_ID
    version: str = "4.3.1"
    requests: list[str] = field(default_factory=list)
    queries: dict[str, dict[str, list[str]]] = field(default_factory=dict)
    """The query of the last request: `METHOD path` -> parameters."""
    authorizations: list[str | None] = field(default_factory=list)
    """The `Authorization` header of each request, None where there was none."""
    failures: dict[str, list[tuple[int, str]]] = field(default_factory=dict)
    """Answers to give first: `METHOD path` -> (status, message) in order."""
    plugins: dict[str, list[dict[str, Any]]] = field(
        default_factory=lambda: {"org.example.FileSource": []}
    )
    """The settings of each connector class; names of sinks contain `Sink`."""
    invalid_keys: tuple[str, ...] = ()
    needed_keys: tuple[str, ...] = ()
    defined_keys: tuple[str, ...] = ()
    """The keys that connectors define in a validation; empty: none."""
    authorization: str | None = None
    """The only accepted `Authorization` header; None accepts all requests."""
    stale_statuses: dict[str, list[FakeConnector]] = field(default_factory=dict)
    """States to show first, because a status lags behind the requested change."""
    slow: dict[str, threading.Event] = field(default_factory=dict)
    """`METHOD path`: the answer waits for the event."""
    target_states: dict[str, str] = field(default_factory=dict)
    """The target states that an agent reports below /agent; empty: the server is a Java worker."""
    lock: threading.Lock = field(default_factory=threading.Lock)

    def answer(
        self, method: str, target: str, body: Any, authorization: str | None = None
    ) -> tuple[int, Any]:
        if self.authorization is not None and authorization != self.authorization:
            return 401, {"error_code": 401, "message": "User cannot access the resource."}
        split = urlsplit(target)
        path = [unquote(part) for part in split.path.strip("/").split("/") if part]
        with self.lock:
            self.requests.append(f"{method} {split.path}")
            self.queries[self.requests[-1]] = parse_qs(split.query)
        if event := self.slow.get(f"{method} {split.path}"):
            event.wait(30)
        with self.lock:
            waiting = self.failures.get(f"{method} {split.path}")
            if waiting:
                status, message = waiting.pop(0)
                return status, {"error_code": status, "message": message}
            return self._route(method, path, parse_qs(split.query), body)

    def _route(
        self, method: str, path: list[str], query: dict[str, list[str]], body: Any
    ) -> tuple[int, Any]:
        match method, path:
            case "GET", []:
                return 200, {
                    "version": self.version,
                    "commit": "c",
                    "kafka_cluster_id": self.cluster_id,
                }
            case "GET", ["health"]:
                return 200, {"status": "healthy", "message": "ready"}
            case "GET", ["agent", "connectors"] if self.target_states:
                return 200, {n: {"target_state": s} for n, s in self.target_states.items()}
            case "GET", ["connectors"]:
                if "expand" not in query:
                    return 200, list(self.connectors)
                expand = query["expand"]
                known = [n for n, c in self.connectors.items() if c.state or "status" not in expand]
                return 200, {name: self._expanded(name, expand) for name in known}
            case "POST", ["connectors"]:
                return self._create(body)
            case _, ["connector-plugins", *rest]:
                return self._on_plugins(method, rest, body)
            case "GET", ["admin", "loggers"]:
                return 200, {n: _logger(level) for n, level in self.loggers.items()}
            case "GET", ["admin", "loggers", name] if name in self.loggers:
                return 200, _logger(self.loggers[name])
            case "PUT", ["admin", "loggers", name]:
                changed = self._set_level(name, body["level"])
                return (204, None) if query.get("scope") == ["cluster"] else (200, changed)
            case _, ["connectors", name, *rest] if name in self.connectors:
                return self._on_connector(method, name, rest, query, body)
            case "PUT", ["connectors", name, "config"]:
                return self._create({"name": name, "config": body})
            case _, ["connectors", name, *_]:
                return 404, {"error_code": 404, "message": f"Connector {name} not found"}
        return 404, {"error_code": 404, "message": "HTTP 404 Not Found"}

    def _on_plugins(self, method: str, path: list[str], body: Any) -> tuple[int, Any]:
        match method, path:
            case "GET", []:
                return 200, [
                    {"class": name, "type": "sink" if "Sink" in name else "source", "version": "1"}
                    for name in self.plugins
                ]
            case "GET", [name, "config"] if name in self.plugins:
                return 200, self.plugins[name]
            case "PUT", [_, "config", "validate"]:
                return 200, self._validation(body)
        return 404, {"error_code": 404, "message": "HTTP 404 Not Found"}

    def _create(self, body: Any) -> tuple[int, Any]:
        name = body["name"]
        if name in self.connectors:
            return 409, {"error_code": 409, "message": f"Connector {name} already exists"}
        state = (body.get("initial_state") or "RUNNING").upper()
        # The worker asks a connector that begins PAUSED for tasks only after it is resumed.
        tasks = ["RUNNING"] if state == "RUNNING" else []
        config = {**body["config"], "name": name}
        kind = "sink" if "Sink" in (config.get("connector.class") or "") else "source"
        self.connectors[name] = FakeConnector(config=config, state=state, tasks=tasks, type=kind)
        return 201, self._info(name)

    def _restart(self, name: str, query: dict[str, list[str]]) -> tuple[int, Any]:
        connector = self.connectors[name]
        flags = query if kafka_version(self.version) >= (3, 0) else {}
        if not flags:
            connector.state = "RUNNING"
            return 204, None
        chosen = connector.tasks if "includeTasks" in flags else []
        states = [
            "RESTARTING" if state == "FAILED" or "onlyFailed" not in flags else state
            for state in chosen
        ]
        plan = self._status(name)
        if connector.state == "FAILED" or "onlyFailed" not in flags:
            connector.state = "RUNNING"
            plan["connector"]["state"] = "RESTARTING"
        for task, state in zip(plan["tasks"], states, strict=False):
            task["state"] = state
        connector.tasks = ["RUNNING" if s == "RESTARTING" else s for s in states] or connector.tasks
        return 202, plan

    def _on_connector(
        self, method: str, name: str, rest: list[str], query: dict[str, list[str]], body: Any
    ) -> tuple[int, Any]:
        connector = self.connectors[name]
        match method, rest:
            case "GET", []:
                return 200, self._info(name)
            case "GET", ["config"]:
                return 200, connector.config
            case "PUT", ["config"]:
                connector.config = {**body, "name": name}
                return 200, self._info(name)
            case "PATCH", ["config"]:
                merged = {**connector.config, **body}
                connector.config = {k: v for k, v in merged.items() if v is not None}
                return 200, self._info(name)
            case "DELETE", []:
                del self.connectors[name]
                return 204, None
            case "GET", ["status"]:
                return (200, self._status(name)) if connector.state else NO_STATUS
            case "GET" | "PUT", ["topics", *_]:
                connector.topics = connector.topics if method == "GET" else []
                return 200, {name: {"topics": connector.topics}}
            case "GET", ["tasks"]:
                ids = range(len(connector.tasks))
                return 200, [{"id": {"connector": name, "task": n}, "config": {}} for n in ids]
            case "GET", ["tasks", number, "status"] if int(number) < len(connector.tasks):
                return 200, self._status(name)["tasks"][int(number)]
            case "POST", ["tasks", number, "restart"] if int(number) < len(connector.tasks):
                connector.tasks[int(number)] = "RUNNING"
                return 204, None
            case "PUT", ["pause" | "resume" | "stop" as verb]:
                state = {"pause": "PAUSED", "resume": "RUNNING", "stop": "STOPPED"}[verb]
                connector.enter(state)
                return (204 if verb == "stop" else 202), None
            case _, ["offsets"]:
                return self._on_offsets(connector, method, body)
            case "POST", ["restart"]:
                return self._restart(name, query)
        return 404, {"error_code": 404, "message": "HTTP 404 Not Found"}

    def _on_offsets(self, connector: FakeConnector, method: str, body: Any) -> tuple[int, Any]:
        if method == "GET":
            return 200, {"offsets": connector.offsets}
        if connector.state != "STOPPED" or connector.tasks:
            return 400, {"error_code": 400, "message": NOT_STOPPED}
        kept = [] if method == "DELETE" else list(connector.offsets)
        for entry in [] if method == "DELETE" else body["offsets"]:
            kept = [other for other in kept if other["partition"] != entry["partition"]]
            if entry["offset"] is not None:
                kept.append(entry)
        if not connector.forgets_changes:
            connector.offsets = kept
        verb = "reset" if method == "DELETE" else "altered"
        text = ALTERED if connector.takes_part else FRAMEWORK_ALTERED
        return 200, {"message": text.format(verb=verb)}

    def _expanded(self, name: str, expand: list[str]) -> dict[str, Any]:
        members: dict[str, Any] = {}
        if "info" in expand:
            members["info"] = self._info(name)
        if "status" in expand:
            members["status"] = self._status(name)
        return members

    def _info(self, name: str) -> dict[str, Any]:
        connector = self.connectors[name]
        tasks = [{"connector": name, "task": n} for n in range(len(connector.tasks))]
        return {"name": name, "config": connector.config, "tasks": tasks, "type": connector.type}

    def _status(self, name: str) -> dict[str, Any]:
        stale = self.stale_statuses.get(name)
        connector = stale.pop(0) if stale else self.connectors[name]
        common = {"worker_id": self.worker_id, "version": "1"}
        trace = {"trace": connector.trace} if connector.trace else {}
        return {
            "name": name,
            "connector": {"state": connector.state, **common},
            "tasks": [
                {"id": n, "state": state, **common, **(trace if state == "FAILED" else {})}
                for n, state in enumerate(connector.tasks)
            ],
            "type": connector.type,
        }

    def _set_level(self, name: str, level: str) -> list[str]:
        affected = {n for n in self.loggers if name == "root" or n.startswith(name)} | {name}
        changed = sorted(n for n in affected if self.loggers.get(n) != level)
        self.loggers.update(dict.fromkeys(affected, level))
        return changed

    def _validation(self, config: dict[str, str]) -> dict[str, Any]:
        wrong = [key for key in self.invalid_keys if key in config]
        wrong += [key for key in self.needed_keys if key not in config]
        values = [
            {
                "definition": None,
                "value": {"name": key, "value": config.get(key), "errors": ["is bad"]},
            }
            for key in wrong
        ]
        values += [
            {"definition": {"name": key}, "value": {"name": key, "value": None, "errors": []}}
            for key in self.defined_keys
        ]
        return {"name": "c", "error_count": len(wrong), "groups": [], "configs": values}


def _logger(level: str) -> dict[str, Any]:
    return {"level": level, "last_modified": None}


@contextmanager
def frozen() -> Iterator[str]:
    """Yield the URL of a stopped process: the kernel accepts connections, and no answer comes."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


@contextmanager
def serve(connect: FakeConnect, tls: ssl.SSLContext | None = None) -> Iterator[str]:
    """Serve on a free port of the loopback address, with TLS on request; yield the URL."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # Head and body are two packets: without this option each answer waits 40 ms for an ACK.
        disable_nagle_algorithm = True

        def _handle(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            data = self.rfile.read(length)
            body = json.loads(data) if data else None
            connect.authorizations.append(self.headers.get("Authorization"))
            status, document = connect.answer(
                self.command, self.path, body, self.headers.get("Authorization")
            )
            content = b"" if document is None else json.dumps(document).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _handle  # noqa: N815 - http.server's

        def log_message(self, *_: Any) -> None:
            """Tests read the requests from `FakeConnect.requests`."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 256

        def handle_error(self, *_: Any) -> None:
            """Ignore clients that leave or refuse the certificate: some tests are about them."""

    server = Server(("127.0.0.1", 0), Handler)
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"{'https' if tls else 'http'}://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
