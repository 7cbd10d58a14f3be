"""A catalog that speaks Iceberg's REST protocol, over pyiceberg's catalog of SQL."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import (
    CommitFailedException,
    NamespaceAlreadyExistsError,
    NoSuchNamespaceError,
    NoSuchTableError,
    TableAlreadyExistsError,
)
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import CommitTableRequest, Table

TOKEN = "rest-token"
_STATUS = {
    CommitFailedException: (409, "CommitFailedException"),
    NamespaceAlreadyExistsError: (409, "AlreadyExistsException"),
    NoSuchNamespaceError: (404, "NoSuchNamespaceException"),
    NoSuchTableError: (404, "NoSuchTableException"),
    TableAlreadyExistsError: (409, "AlreadyExistsException"),
}


class Handler(BaseHTTPRequestHandler):
    catalog: SqlCatalog
    one_by_one = threading.Lock()
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def log_message(self, *_: object) -> None:
        """Drop the message."""

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            self._send(401, _error(401, "NotAuthorizedException", "wrong token"))
            return
        try:
            with self.one_by_one:
                found = self._found(body)
            self._send(200, found)
        except tuple(_STATUS) as error:
            status, kind = _STATUS[type(error)]
            self._send(status, _error(status, kind, str(error)))

    def _found(self, body: bytes) -> object:
        match self.command, self.path.partition("?")[0].strip("/").split("/")[1:]:
            case "GET", ["config"]:
                return {"defaults": {}, "overrides": {}}
            case "GET", ["namespaces"]:
                return {"namespaces": self.catalog.list_namespaces()}
            case "POST", ["namespaces"]:
                name = json.loads(body)["namespace"]
                self.catalog.create_namespace(tuple(name))
                return {"namespace": name, "properties": {}}
            case "POST", ["namespaces", namespace, "tables"]:
                return _loaded(self._created(namespace, json.loads(body)))
            case "GET", ["namespaces", namespace, "tables", name]:
                return _loaded(self.catalog.load_table((namespace, name)))
            case "POST", ["namespaces", namespace, "tables", name]:
                return self._committed((namespace, name), body)
        raise AssertionError(f"not supported: {self.command} {self.path}")

    def _created(self, namespace: str, wanted: dict[str, Any]) -> Table:
        """Create a table; or return one that a client will create by a commit."""
        staged = wanted.get("stage-create")
        create = self.catalog._create_staged_table if staged else self.catalog.create_table
        return create(
            (namespace, wanted["name"]),
            schema=Schema.model_validate(wanted["schema"]),
            partition_spec=PartitionSpec.model_validate(wanted["partition-spec"]),
            properties=wanted["properties"],
        )

    def _committed(self, identifier: tuple[str, str], body: bytes) -> object:
        # Java clients do not repeat the table's name.
        named = {"identifier": {"namespace": [identifier[0]], "name": identifier[1]}}
        request = CommitTableRequest.model_validate(named | json.loads(body))
        try:
            table = self.catalog.load_table(identifier)
        except NoSuchTableError:
            table = Table(identifier, None, "", None, self.catalog)  # type: ignore[arg-type]
        done = self.catalog.commit_table(table, request.requirements, request.updates)
        return json.loads(done.model_dump_json(by_alias=True))

    def _send(self, status: int, document: object) -> None:
        content = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


def _loaded(table: Table) -> object:
    return {
        "metadata-location": table.metadata_location,
        "metadata": json.loads(table.metadata.model_dump_json(by_alias=True)),
        "config": {},
    }


def _error(status: int, kind: str, message: str) -> object:
    return {"error": {"message": message, "type": kind, "code": status}}


@contextmanager
def running_rest_catalog(directory: Path) -> Iterator[str]:
    """Yield the address of a catalog whose tables are below a directory."""
    catalog = SqlCatalog(
        "served", uri=f"sqlite:///{directory}/served.db", warehouse=f"file://{directory}"
    )
    handler = type("OneCatalog", (Handler,), {"catalog": catalog})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    # Clients keep their connections, whose threads end with the process.
    server.daemon_threads, server.block_on_close = True, False
    thread = threading.Thread(target=server.serve_forever, name="catalog")
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
        catalog.close()
