"""An authorization server in a process of its own: authlib's, with client credentials and JWKS.

`python -m tests.support.servers.authorization_server DIRECTORY` writes its port to `port` and signs
tokens that are valid for the number of seconds in the file `lifetime`. While a file `hang` exists,
it accepts requests for tokens and does not answer them. Each token adds a line to `given`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from tests.support.commands.processes import python_environment
from tests.support.eventually import eventually

CLIENT, SECRET = "connect", "SECRET-of-the-client"
ISSUER, AUDIENCE = "https://issuer.test", "kafka"
SCOPE = "streams"


class AuthorizationServer:
    """The running process; `endpoint` is the address for tokens."""

    def __init__(self, directory: Path, port: int) -> None:
        self._directory = directory
        self.endpoint = f"http://127.0.0.1:{port}/token"
        self.jwks = f"http://127.0.0.1:{port}/jwks"

    def lifetime(self, lifetime_s: int) -> None:
        """Set the lifetime of the next tokens."""
        (self._directory / "lifetime").write_text(str(lifetime_s))

    def given(self) -> int:
        """Return the number of tokens so far."""
        path = self._directory / "given"
        return len(path.read_text().splitlines()) if path.exists() else 0

    @contextmanager
    def hanging(self) -> Iterator[None]:
        mark = self._directory / "hang"
        mark.touch()
        try:
            yield
        finally:
            mark.unlink()


@contextmanager
def authorization_server(directory: Path, lifetime_s: int) -> Iterator[AuthorizationServer]:
    directory.mkdir()
    (directory / "lifetime").write_text(str(lifetime_s))
    process = subprocess.Popen(
        [sys.executable, "-m", __name__, str(directory)],
        env=python_environment(os.environ),
        stdin=subprocess.DEVNULL,
    )
    port = directory / "port"
    try:
        eventually(port.exists, 60.0)
        yield AuthorizationServer(directory, int(port.read_text()))
    finally:
        process.kill()
        process.wait()


def _serve(directory: Path) -> None:  # noqa: C901 - classes of one import
    from authlib.oauth2.rfc6749 import (
        AuthorizationServer,
        ClientMixin,
        OAuth2Payload,
        OAuth2Request,
        grants,
    )
    from joserfc import jwt
    from joserfc.jwk import RSAKey

    key = RSAKey.generate_key(2048, parameters={"use": "sig", "alg": "RS256"}, auto_kid=True)

    class Client(ClientMixin):  # type: ignore[misc]
        def get_client_id(self) -> str:
            return CLIENT

        def get_allowed_scope(self, scope: str | None) -> str:
            return SCOPE if scope == SCOPE else ""

        def check_client_secret(self, secret: str) -> bool:
            return secret == SECRET

        def check_endpoint_auth_method(self, method: str, endpoint: str) -> bool:
            return bool(method == "client_secret_basic")

        def check_grant_type(self, grant_type: str) -> bool:
            return bool(grant_type == "client_credentials")

    class Payload(OAuth2Payload):  # type: ignore[misc]
        def __init__(self, form: dict[str, str]) -> None:
            self._form = form

        @property
        def data(self) -> dict[str, str]:
            return self._form

        @property
        def datalist(self) -> dict[str, list[str]]:
            return {name: [value] for name, value in self._form.items()}

    class Request(OAuth2Request):  # type: ignore[misc]
        def __init__(self, handler: Handler) -> None:
            super().__init__("POST", "https://issuer.test/token", headers=handler.headers)
            body = handler.rfile.read(int(handler.headers["Content-Length"])).decode()
            self._parsed = dict(parse_qsl(body))
            self.payload = Payload(self._parsed)

        @property
        def form(self) -> dict[str, str]:
            return self._parsed

        @property
        def args(self) -> dict[str, str]:
            return {}

    class Server(AuthorizationServer):  # type: ignore[misc]
        def query_client(self, client_id: str) -> Client | None:
            return Client() if client_id == CLIENT else None

        def save_token(self, token: object, request: object) -> None:
            with (directory / "given").open("a") as file:
                file.write(f"{time.time()}\n")

        def send_signal(self, *arguments: object, **named: object) -> None:
            pass

        def create_oauth2_request(self, request: Any) -> Any:
            return request

        def handle_response(self, status: int, body: Any, headers: Any) -> Any:
            return status, body, headers

    def token(**_: object) -> dict[str, object]:
        now, lifetime_s = int(time.time()), int((directory / "lifetime").read_text())
        claims = {"iss": ISSUER, "aud": AUDIENCE, "sub": CLIENT, "scope": SCOPE}
        times = {"iat": now, "exp": now + lifetime_s}
        text = jwt.encode({"alg": "RS256", "kid": key.kid}, {**claims, **times}, key)
        return {"access_token": text, "token_type": "Bearer", "expires_in": lifetime_s}

    server = Server()
    server.register_grant(grants.ClientCredentialsGrant)
    server.register_token_generator("default", token)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._send(200, {"keys": [key.as_dict(private=False)]})

        def do_POST(self) -> None:
            if (directory / "hang").exists():
                while (directory / "hang").exists():
                    time.sleep(0.1)
                return
            status, body, _ = server.create_token_response(Request(self))
            self._send(status, body)

        def _send(self, status: int, body: object) -> None:
            data = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *arguments: object) -> None:
            pass

    listening = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    written = directory / "port.new"
    written.write_text(str(listening.server_address[1]))
    written.rename(directory / "port")
    listening.serve_forever()


if __name__ == "__main__":
    _serve(Path(sys.argv[1]))
