"""The worker's HTTP servers: listeners, TLS, addresses, orderly stop.

Corresponds to Kafka Connect's ``RestServer``. Uvicorn serves; the worker handles signals. Steps:
`bind` (ports known, connections refused), `start` (answers), `wait` (ends by failure only), `stop`.
All but `bind` run on the event loop.

uvicorn limits the time between requests, h11 the size of a head, `exchange` the time and the size
of a body. A connection has two more limits here: the time until a head is complete, and the time
for the rest of a body after the answer to its request.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import socket
import ssl
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import h11
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from pyconnect_agent.core.clients.configs import config_record_limit
from pyconnect_agent.core.config.listeners import Listener, advertised_url
from pyconnect_agent.core.config.worker_config import WorkerConfig
from pyconnect_agent.core.errors import WorkerConfigError
from pyconnect_agent.core.rest_access import subject_text
from pyconnect_agent.herder.port import Herder, WorkerAdmin
from pyconnect_agent.rest.access import (
    BASIC_FILE,
    CERTIFICATE,
    TOKEN_FILE,
    USERS,
    AdminAccess,
    RestAccess,
    extension_of,
    loopback_addresses,
)
from pyconnect_agent.rest.app import ADMIN_ROUTES, MAIN_ROUTES, METRICS_ROUTES, RestApplication
from pyconnect_agent.rest.exchange import AdminServices, Services
from pyconnect_agent.rest.forwarding import Forwarder, WorkerClient
from pyconnect_agent.rest.journaling import ChangeJournal
from pyconnect_agent.rest.response_headers import CrossOriginPolicy, WebPages
from pyconnect_agent.rest.sockets import (
    BACKLOG,
    BoundListener,
    bind,
    client_context,
    local_address,
    refusal_text,
    server_context,
)
from pyconnect_agent.stores.journal import ChangeRecords

HEAD_TIMEOUT_S = 90.0
"""Time from the first byte of a head to its last; the first head's begins with the connection."""
MAX_HEAD_BYTES = 8_192
"""Limit of a head that arrives in parts; a head in one part has the limit of a socket read."""


class HttpConnection(H11Protocol):
    """A connection that reads a client's requests one by one and passes them to the application."""

    head_timeout_s = HEAD_TIMEOUT_S

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._patience: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # uvicorn's
        super().connection_made(transport)
        if certificate := transport.get_extra_info("peercert"):
            subject = subject_text(certificate.get("subject", ()))
            self.app_state = {**self.app_state, CERTIFICATE: subject}
        self._limit_wait()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._limit_wait()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.conn.their_state is h11.SEND_BODY:
            self._limit_wait()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end_wait()
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        """Answer bytes that are not a request with 400, and close the connection."""
        # h11 raises an error if the answer to the request has started already.
        with contextlib.suppress(h11.LocalProtocolError):
            super().send_400_response(msg)
        self.transport.close()

    def _limit_wait(self) -> None:
        """Start a timer when the server begins to wait for the client, end it after the wait."""
        waits_for_head = self.conn.their_state is h11.IDLE
        if self.transport.is_closing() or not (waits_for_head or self.conn.our_state is h11.DONE):
            self._end_wait()
        elif self._patience is None:
            self._patience = self.loop.call_later(self.head_timeout_s, self._give_up)

    def _end_wait(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None

    def _give_up(self) -> None:
        self._patience = None
        self.timeout_keep_alive_handler()


LOG = logging.getLogger(__name__)

GRACEFUL_STOP_MS = 60_000
_KEEP_ALIVE_S = 90
_MAIN_TLS_PREFIX = "listeners.https."
_ADMIN_TLS_PREFIX = "admin.listeners.https."


class RestServer:
    """The servers of the REST API of one worker, one for each listener."""

    def __init__(self, config: WorkerConfig) -> None:
        self._config = config
        self.client = WorkerClient(
            lambda: client_context(config.rest_ssl()),
            lambda reason: refusal_text(config.rest_ssl(), reason),
        )
        self._main: tuple[BoundListener, ...] = ()
        self._admin: tuple[BoundListener, ...] = ()
        self._metrics: tuple[BoundListener, ...] = ()
        self._tls: dict[str, ssl.SSLContext] = {}
        self._users: RestAccess | None = None
        self._running: list[_Running] = []

    def bind(self) -> None:
        """Bind all listeners. Raises WorkerStartError, WorkerConfigError and ConfigException."""
        config = self._config
        metrics = config.agent_metrics_listeners
        self._load_tls((*config.listeners, *metrics), _MAIN_TLS_PREFIX)
        self._load_tls(self._config.admin_listeners or (), _ADMIN_TLS_PREFIX)
        try:
            for listener in self._config.listeners:
                self._main += (bind(listener),)
            for listener in self._config.admin_listeners or ():
                self._admin += (bind(listener),)
            for listener in metrics:
                self._metrics += (bind(listener),)
            self.advertised_url  # noqa: B018  wrong settings are to be found now
            self._access().check_files()
            self._users = self._rest_access()
        except BaseException:
            self._close_sockets()
            raise

    @property
    def listeners(self) -> tuple[Listener, ...]:
        return tuple(bound.listener for bound in self._main)

    @property
    def admin_listeners(self) -> tuple[Listener, ...]:
        return tuple(bound.listener for bound in self._admin)

    @property
    def metrics_listeners(self) -> tuple[Listener, ...]:
        return tuple(bound.listener for bound in self._metrics)

    @property
    def _bound(self) -> tuple[BoundListener, ...]:
        return (*self._main, *self._admin, *self._metrics)

    @functools.cached_property
    def advertised_url(self) -> str:
        """The address for other workers, with a slash at the end; known after `bind`."""
        config = self._config
        return advertised_url(
            self.listeners,
            default_host=local_address(),
            host_name=config.rest_advertised_host_name,
            port=config.rest_advertised_port,
            protocol=config.rest_advertised_listener,
        )

    async def start(
        self, herder: Herder, admin: WorkerAdmin | None = None, journal: ChangeRecords | None = None
    ) -> None:
        """Serve requests; return when all listeners answer. `admin` None: no `/agent`.

        Raises WorkerStartError if another process has taken an address meanwhile.
        """
        config = self._config
        for bound in self._bound:
            bound.listen()
        # Clients may know this server by these names.
        hosts = (bound.listener.host for bound in (*self._main, *self._admin))
        names = (urlsplit(self.advertised_url).hostname, socket.gethostname(), *hosts)
        known = frozenset(name.lower() for name in names if name)
        cross_origin = CrossOriginPolicy.parse(
            config.access_control_allow_origin, config.access_control_allow_methods
        )
        services = Services(
            herder=herder,
            forwarder=Forwarder(self.client),
            topic_tracking_enable=config.topic_tracking_enable,
            topic_tracking_allow_reset=config.topic_tracking_allow_reset,
            admin=None if admin is None else AdminServices(worker=admin, access=self._access()),
            journal=None if journal is None else ChangeJournal(journal, self.advertised_url),
            max_config_bytes=4 * config_record_limit(config),
            web_pages=WebPages(names=known, policy=cross_origin),
        )
        main = RestApplication(
            services,
            (*MAIN_ROUTES, *ADMIN_ROUTES) if config.admin_listeners is None else MAIN_ROUTES,
            access=self._users,
            cross_origin=cross_origin,
            header_rules=config.response_http_headers_config,
        )
        await self._serve(main, self._main, _MAIN_TLS_PREFIX)
        if self._admin:
            # Apache's extension does not guard these requests, as in a Java worker; roles do.
            roles = self._users if self._users is not None and self._users.has_roles else None
            separate = RestApplication(services, ADMIN_ROUTES, access=roles)
            await self._serve(separate, self._admin, _ADMIN_TLS_PREFIX)
        if self._metrics:
            await self._serve(
                RestApplication(services, METRICS_ROUTES), self._metrics, _MAIN_TLS_PREFIX
            )
        LOG.info(
            "REST server is listening",
            extra={
                "listeners": ",".join(f"{at.protocol}://{at.netloc}" for at in self.listeners),
                "advertised_url": self.advertised_url,
            },
        )

    async def wait(self) -> None:
        """Return when any server has ended, by `stop` or unexpectedly; raise its failure."""
        done, _ = await asyncio.wait(
            [running.task for running in self._running], return_when=asyncio.FIRST_COMPLETED
        )
        for task in done:
            task.result()

    async def stop(self, timeout_ms: int = GRACEFUL_STOP_MS) -> None:
        """Accept no further connections; let requests end within the time, then abort them."""
        for running in self._running:
            running.server.stop(timeout_ms)
        tasks = [running.task for running in self._running]
        await asyncio.gather(*tasks, return_exceptions=True)
        self._running.clear()
        self._close_sockets()
        await self.client.close()
        LOG.info("REST server has stopped")

    async def _serve(
        self, app: ASGIApp, listeners: Sequence[BoundListener], tls_prefix: str
    ) -> None:
        for protocol in ("http", "https"):
            sockets = [bound.socket for bound in listeners if bound.listener.protocol == protocol]
            if not sockets:
                continue
            context = self._tls[tls_prefix] if protocol == "https" else None
            server = _Server(_uvicorn_config(app, context))
            task = asyncio.create_task(server.serve(sockets), name=f"rest-{protocol}")
            self._running.append(_Running(server, task))
            await server.wait_started(task)

    def _access(self) -> AdminAccess:
        serving = self._main if self._config.admin_listeners is None else self._admin
        return AdminAccess(
            basic_file=self._config.agent_admin_basic_auth_file,
            token_file=self._config.agent_admin_bearer_token_file,
            loopback=loopback_addresses(bound.socket.getsockname()[:2] for bound in serving),
        )

    def _rest_access(self) -> RestAccess | None:
        """Return the access of users, None without users; ConfigException or WorkerConfigError."""
        config, extension = self._config, None
        if config.rest_extension_classes:
            extension = extension_of(config.java_security_auth_login_config)
        if extension is None and config.agent_rest_users is None:
            return None
        access = RestAccess(extension, config.agent_rest_users)
        access.check()
        if access.has_roles and self._access().has_credentials:
            raise WorkerConfigError(
                f"{USERS} names the users of the admin interface too: remove {BASIC_FILE} and"
                f" {TOKEN_FILE}."
            )
        asks = any(each.verify_mode is not ssl.CERT_NONE for each in self._tls.values())
        if access.has_certificates and not asks:
            raise WorkerConfigError(
                f"{USERS}: users have certificates, and no https listener asks for one: set"
                " ssl.client.auth=requested."
            )
        return access

    def _load_tls(self, listeners: Sequence[Listener], prefix: str) -> None:
        if any(listener.protocol == "https" for listener in listeners):
            self._tls[prefix] = server_context(self._config.rest_ssl(prefix))

    def _close_sockets(self) -> None:
        for bound in self._bound:
            bound.socket.close()


@dataclass(frozen=True, slots=True)
class _Running:
    server: _Server
    task: asyncio.Task[None]


class _Server(uvicorn.Server):
    """A uvicorn server without signal handlers, which an event stops instead of a polled flag."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._started_event = asyncio.Event()
        self._stop_event = asyncio.Event()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: Any = None) -> None:
        await super().startup(sockets)
        self._started_event.set()

    async def main_loop(self) -> None:
        while not self._stop_event.is_set():
            # The loop renews the Date header.
            await self.on_tick(0)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stop_event.wait(), 1)

    async def wait_started(self, serving: asyncio.Task[None]) -> None:
        """Return when the server answers requests; raise the error if it ended before."""
        started = asyncio.create_task(self._started_event.wait())
        await asyncio.wait([started, serving], return_when=asyncio.FIRST_COMPLETED)
        started.cancel()
        if serving.done():
            serving.result()

    def stop(self, timeout_ms: int) -> None:
        graceful_s = timeout_ms / 1000
        # uvicorn passes the timeout to wait_for.
        self.config.timeout_graceful_shutdown = graceful_s  # type: ignore[assignment]  # takes fractions
        self.should_exit = True
        self._stop_event.set()


def _uvicorn_config(app: ASGIApp, context: ssl.SSLContext | None) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        loop="none",
        http=HttpConnection,
        ws="none",
        lifespan="off",
        backlog=BACKLOG,
        interface="asgi3",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=_KEEP_ALIVE_S,
        h11_max_incomplete_event_size=MAX_HEAD_BYTES,
        ssl_context_factory=None if context is None else lambda _config, _default: context,
    )
