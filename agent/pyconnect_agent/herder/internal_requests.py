"""Requests of this worker to its leader, signed if the group's protocol says so (KIP-507).

Layer: herder. Kafka: the follower's half of DistributedHerder.publishConnectorTaskConfigs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol
from urllib.parse import quote

from pyconnect_agent.core.errors import ServiceUnavailableError
from pyconnect_agent.core.internal_topics.config_snapshot import ConnectorConfig, SessionKey
from pyconnect_agent.core.java_text import json_text
from pyconnect_agent.core.session_key import signature_headers


class RequestSender(Protocol):
    """Sends a request; raises a RequestError unless it succeeds."""

    async def send(
        self,
        method: str,
        url: str,
        *,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Any: ...


class InternalRequests:
    """`session_key`: the newest one that was read; `signed`: whether the group's protocol signs."""

    def __init__(
        self,
        client: RequestSender,
        *,
        algorithm: str,
        session_key: Callable[[], SessionKey | None],
        signed: Callable[[], bool],
    ) -> None:
        self._client = client
        self._algorithm = algorithm
        self._session_key = session_key
        self._signed = signed

    async def send_task_configs(
        self, leader_url: str, connector: str, configs: tuple[ConnectorConfig, ...]
    ) -> None:
        """`POST /connectors/{connector}/tasks` at the leader; the caller retries."""
        url = f"{leader_url.rstrip('/')}/connectors/{quote(connector, safe='')}/tasks?forward=false"
        body = json_text.dumps([dict(config) for config in configs])
        await self._client.send("POST", url, body=body, headers=self._signature(body))

    async def fence_zombies(self, leader_url: str, connector: str) -> None:
        """`PUT /connectors/{connector}/fence` at the leader."""
        url = f"{leader_url.rstrip('/')}/connectors/{quote(connector, safe='')}/fence?forward=false"
        await self._client.send("PUT", url, headers=self._signature(b""))

    def sign(self, content: bytes) -> dict[str, str]:
        """Return headers that sign `content`; none without a session key."""
        session_key = self._session_key()
        if session_key is None or not self._signed():
            return {}
        return signature_headers(content, session_key=session_key, algorithm=self._algorithm)

    def _signature(self, body: bytes) -> dict[str, str]:
        if self._signed() and self._session_key() is None:
            raise ServiceUnavailableError(
                "No session key has been read from the config topic yet; the leader writes one"
                " soon after it was elected"
            )
        return self.sign(body)
