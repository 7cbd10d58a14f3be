"""The client of a schema registry: access, refusals, and registries that do not answer."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from pyconnect_reconcile.errors import ReconcileError
from pyconnect_reconcile.spec import Registry
from pyconnect_reconcile.values.schemas import open_registry

pytestmark = pytest.mark.wire

BASIC = "Basic " + base64.b64encode(b"me:hunter2:x").decode()
REFERENCES = [{"name": "p", "subject": "a/b", "version": 3}]
ANSWERS = {
    "/schemas/ids/1": {"schema": '"string"'},
    "/schemas/ids/2": {"schema": "s", "schemaType": "PROTOBUF", "references": REFERENCES},
    "/subjects/a%2Fb/versions/3": {
        "schema": "q",
        "references": [{"name": "r", "subject": "c", "version": 1}],
    },
    "/subjects/c/versions/1": {"schema": "r"},
    "/schemas/ids/3": [],
}


class Handler(BaseHTTPRequestHandler):
    """Answers those who know the password or the token."""

    def do_GET(self) -> None:
        known = self.headers.get("Authorization") in {BASIC, "Bearer token"}
        found = ANSWERS.get(self.path)
        self.send_response(401 if not known else 404 if found is None else 200)
        self.end_headers()
        self.wfile.write(json.dumps(found).encode())

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def url() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join(30)


@pytest.fixture
def access(tmp_path: Path) -> str:
    path = tmp_path / "registry.properties"
    path.write_text("basic.auth.user.info=me:hunter2:x\n")
    return str(path)


def test_a_schema_comes_with_all_that_it_refers_to(url: str, access: str) -> None:
    """Referenced schemas come first; a schema without a type is Avro."""
    with open_registry(Registry(url=url, properties=access)) as registry:
        plain, used = registry.schema(1), registry.schema(2)
        assert registry.schema(9) is None
    assert plain is not None
    assert (plain.kind, plain.text, plain.references) == ("AVRO", '"string"', ())
    assert used is not None
    assert (used.kind, used.references) == ("PROTOBUF", ("r", "q"))


def test_the_address_may_hold_user_and_password(url: str) -> None:
    """As the converters take it."""
    with open_registry(Registry(url=url.replace("//", "//me:hunter2%3Ax@"))) as registry:
        assert registry.schema(1) is not None


def test_a_token_gives_access_too(url: str, tmp_path: Path) -> None:
    """As the converters name it."""
    path = tmp_path / "token.properties"
    path.write_text("bearer.auth.token=token\n")
    with open_registry(Registry(url=f"{url}/", properties=str(path))) as registry:
        assert registry.schema(1) is not None


def test_refusals_of_a_registry_are_reported_without_secrets(url: str, access: str) -> None:
    """A refusal, an odd answer, and a missing server are errors, not missing schemas."""
    with (
        open_registry(Registry(url=url)) as registry,
        pytest.raises(ReconcileError, match="answers 401") as caught,
    ):
        registry.schema(1)
    assert "--registry-properties" in str(caught.value.hint)
    with (
        open_registry(Registry(url=url, properties=access)) as registry,
        pytest.raises(ReconcileError, match="is not a schema registry"),
    ):
        registry.schema(3)
    with (
        open_registry(Registry(url="http://me:hunter2@127.0.0.1:1")) as registry,
        pytest.raises(ReconcileError, match="cannot be reached") as caught,
    ):
        registry.schema(1)
    assert "hunter2" not in caught.value.message


def test_the_next_address_is_asked_where_one_does_not_answer(url: str, access: str) -> None:
    """Several addresses are one registry."""
    urls = f"http://127.0.0.1:1, {url}"
    with open_registry(Registry(url=urls, properties=access)) as registry:
        assert registry.schema(1) is not None


def test_stores_that_are_not_pem_are_refused(tmp_path: Path) -> None:
    """Java's own formats cannot be read."""
    store, path = tmp_path / "trust.jks", tmp_path / "registry.properties"
    store.write_bytes(b"\xfe\xed\xfe\xed")
    path.write_text(f"schema.registry.ssl.truststore.location={store}\n")
    settings = Registry(url="https://127.0.0.1:1", properties=str(path))
    with pytest.raises(ReconcileError, match="cannot be read as PEM"), open_registry(settings):
        pass
