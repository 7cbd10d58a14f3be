"""The record of each changing request, written before its answer.

`core.journal` says what a record holds. The worker that makes a change writes the record. For a
Java worker, the worker that has forwarded the request to it writes the record. Changes of one
connector run one after the other, so that each record begins where the one before ended. A
forwarded request does not wait for others, because it may come back.

A change that cannot be recorded has happened all the same: the log gets the record as an error.

Records hide the values of keys that have a secret's name, or that their class defines as passwords.
A child process describes each class once. For a class that cannot be described, such as one that
only a Java worker has, the process is asked twice a minute.
"""

import asyncio
import logging
import time
import uuid
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any, Protocol
from weakref import WeakValueDictionary

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from pyconnect_agent.core.config.effective import literal_secrets
from pyconnect_agent.core.errors import AgentError, RequestTimedOutError
from pyconnect_agent.core.ids import TargetState
from pyconnect_agent.core.internal_topics.config_snapshot import ConnectorConfig
from pyconnect_agent.core.java_text import json_text
from pyconnect_agent.core.journal import ConnectorThen, change_record
from pyconnect_agent.core.reporting import timed_out_text
from pyconnect_agent.herder.port import Herder
from pyconnect_agent.rest.access import Caller
from pyconnect_agent.rest.errors import RelayedError, error_response
from pyconnect_agent.rest.forwarding import JOURNAL_HEADER, WorkerResponse
from pyconnect_agent.stores.journal import ChangeRecords
from pyconnect_api.errors import ConnectException

LOG = logging.getLogger(__name__)

DESCRIBED_WITHIN_S = 10.0
ASKED_AGAIN_AFTER_S = 30.0


class PasswordKeys:
    """The password keys of connectors' classes, shared by all requests."""

    def __init__(self, now_s: Callable[[], float] = time.monotonic) -> None:
        self._now_s = now_s
        self._known: dict[str, frozenset[str]] = {}
        self._unknown_until_s: dict[str, float] = {}
        self._one_at_a_time = asyncio.Lock()
        self._secrets: Mapping[str, str] = {}
        self._secrets_of: Mapping[str, ConnectorConfig] = {}
        self._secrets_without: set[str] = set()

    async def secrets(self, herder: Herder) -> Mapping[str, str]:
        """Return `literal_secrets` of all connectors.

        The result is kept until a config changes, or until an unknown class may be described.
        """
        async with self._one_at_a_time:
            configs = herder.connector_configs()
            # Unchanged configs are the same objects, so that this compares pointers.
            if configs == self._secrets_of and all(map(self._is_unknown, self._secrets_without)):
                return self._secrets
            secrets: dict[str, str] = {}
            without: set[str] = set()
            for config in configs.values():
                secrets |= literal_secrets(config, await self.of(herder, config))
                connector_class = config.get("connector.class")
                if connector_class and connector_class not in self._known:
                    without.add(connector_class)
            self._secrets, self._secrets_of, self._secrets_without = secrets, configs, without
            return secrets

    async def of(self, herder: Herder, config: ConnectorConfig) -> frozenset[str]:
        """Return the keys that the connector's class defines as passwords."""
        connector_class = config.get("connector.class")
        if not connector_class or self._is_unknown(connector_class):
            return frozenset()
        if connector_class not in self._known:
            try:
                async with asyncio.timeout(DESCRIBED_WITHIN_S):
                    keys = await herder.plugin_config(connector_class, None)
            except (AgentError, ConnectException, TimeoutError) as error:
                LOG.warning(
                    "keys of a connector are not known; its secrets are hidden by their names only",
                    extra={"class": connector_class, "reason": str(error) or "no answer in time"},
                )
                now_s = self._now_s()
                # Classes of deleted connectors are forgotten after their wait.
                waiting = {c: at for c, at in self._unknown_until_s.items() if now_s < at}
                waiting[connector_class] = now_s + ASKED_AGAIN_AFTER_S
                self._unknown_until_s = waiting
                return frozenset()
            self._unknown_until_s.pop(connector_class, None)
            self._known[connector_class] = frozenset(
                str(key["name"]) for key in keys if key["type"] == "PASSWORD"
            )
        return self._known[connector_class]

    def _is_unknown(self, connector_class: str) -> bool:
        """Return whether a class could not be described and must not be asked about yet."""
        return self._now_s() < self._unknown_until_s.get(connector_class, 0.0)


class ChangeUnderWay:
    """A changing request; call `begin` as soon as its connector is known."""

    def __init__(
        self,
        herder: Herder,
        locks: WeakValueDictionary[str, asyncio.Lock],
        connector: str | None,
        passwords: PasswordKeys,
    ) -> None:
        self._herder = herder
        self._passwords = passwords
        self._locks = locks
        self._lock: asyncio.Lock | None = None
        self._passed_on = False
        self._answered: WorkerResponse | None = None
        self.recorded_elsewhere = False
        self.connector = connector
        self.before = ConnectorThen()

    async def begin(self, connector: str, timeout_ms: int) -> None:
        """Wait for other changes of the connector; raises RequestTimedOutError."""
        self.connector = connector
        lock = self._locks.setdefault(connector, asyncio.Lock())
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                await lock.acquire()
        except TimeoutError:
            raise RequestTimedOutError(timed_out_text(self._herder.stage)) from None
        self._lock = lock
        self.before = await self._now()

    def release(self) -> None:
        lock, self._lock = self._lock, None
        if lock is not None:
            lock.release()

    def pass_on(self) -> None:
        self._passed_on = True
        self.release()

    def answered(self, answer: WorkerResponse) -> None:
        """Note the success of the worker to which the request was forwarded."""
        self._answered = answer
        self.recorded_elsewhere = answer.journaled

    async def after(self, status: int, method: str) -> ConnectorThen:
        """Return the connector after the change, as the answer of a Java worker shows it."""
        if not self._passed_on:
            return await self._now()
        body = None if self._answered is None else self._answered.body
        if isinstance(body, dict) and isinstance(body.get("config"), dict):
            return await self._then(body["config"], self.before.target_state)
        gone = method == "DELETE" and status < HTTPStatus.BAD_REQUEST
        return ConnectorThen() if gone else self.before

    async def _now(self) -> ConnectorThen:
        if self.connector is None:
            return ConnectorThen()
        info = await self._herder.connector_info(self.connector)
        if info is None:
            return ConnectorThen()
        state = self._herder.target_state(self.connector)
        return await self._then(info["config"], state)

    async def _then(self, config: ConnectorConfig, state: TargetState | None) -> ConnectorThen:
        passwords = await self._passwords.of(self._herder, config)
        return ConnectorThen(config=config, passwords=passwords, target_state=state)


class Recordable(Protocol):
    """The part of an exchange that a record needs."""

    @property
    def request(self) -> Request: ...
    @property
    def caller(self) -> Caller: ...
    @property
    def forward(self) -> bool | None: ...


class ChangeJournal:
    """The writer of records; `worker` is the worker's advertised URL."""

    def __init__(self, journal: ChangeRecords, worker: str) -> None:
        self.journal = journal
        self._worker = worker
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def change(
        self, herder: Herder, connector: str | None, passwords: PasswordKeys
    ) -> ChangeUnderWay:
        """Return a change; `connector` is the one in the path."""
        return ChangeUnderWay(herder, self._locks, connector, passwords)

    async def answer(
        self, exchange: Recordable, change: ChangeUnderWay, answering: Any
    ) -> Response:
        """Await the answer to a request and record the change."""
        error: str | None = None
        try:
            try:
                response: Response = await answering
            except (ClientDisconnect, asyncio.CancelledError):
                raise
            except Exception as failure:  # noqa: BLE001  every failure becomes an answer
                response, error = error_response(failure), str(failure)
                if isinstance(failure, RelayedError) and failure.journaled:
                    change.recorded_elsewhere = True
            if not change.recorded_elsewhere:
                await self._write(exchange, change, response.status_code, error)
        finally:
            change.release()
        if exchange.forward is not None:
            response.headers[JOURNAL_HEADER] = "written"
        return response

    async def _write(
        self, exchange: Recordable, change: ChangeUnderWay, status: int, error: str | None
    ) -> None:
        request = exchange.request
        query = "&".join(
            part for part in request.url.query.split("&") if not part.startswith("forward=")
        )
        about = {
            "id": uuid.uuid4().hex,
            "time_ms": round(time.time() * 1000),
            "worker": self._worker,
            "user": exchange.caller.name,
            "address": exchange.caller.address,
            "method": request.method,
            "path": request.url.path + (f"?{query}" if query else ""),
            "connector": change.connector,
        }
        after = await change.after(status, request.method)
        body: bytes = getattr(request.state, "body", b"")
        record = await asyncio.to_thread(
            lambda: json_text.dumps(
                change_record(
                    about, body=body, before=change.before, after=after, status=status, error=error
                )
            )
        )
        try:
            await asyncio.to_thread(self.journal.write, change.connector, record)
        except AgentError as failure:
            LOG.error(
                "a change was made and is not in the journal",
                extra={"reason": failure.message, "record": record.decode()},
            )
