"""Short-lived children: validation of a connector config, description of a plugin, fencing.

Layer: children. Plugin code may hang, exit or crash there without harm to the worker.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import TypeVar

from pyconnect_agent.channel import (
    ConfigValidated,
    ConsumerOffsets,
    DescribePluginJob,
    FenceProducersJob,
    Job,
    Message,
    OwnOffsets,
    PluginDescribed,
    ProducersFenced,
    ReadOffsetsJob,
    RequestFailed,
    ValidateConfigJob,
)
from pyconnect_agent.children.child import Child, kill_children
from pyconnect_agent.children.child_end import ChildEnd
from pyconnect_agent.children.settings import REQUEST_TIMEOUT_MS, ChildFactory, ChildSettings
from pyconnect_agent.core import errors
from pyconnect_agent.core.config.validation import ConfigInfos
from pyconnect_agent.core.internal_topics.config_snapshot import ConnectorConfig
from pyconnect_agent.core.offsets.connector_offsets import CommittedOffset
from pyconnect_api.config_key import KeyInfo

LOG = logging.getLogger(__name__)

Answer = TypeVar("Answer", bound=Message)

ERRORS: Mapping[str, type[errors.RequestError]] = {
    error.__name__: error
    for error in (
        errors.AlreadyExistsError,
        errors.BadRequestError,
        errors.NotFoundError,
        errors.InternalError,
    )
}


class Jobs:
    """Runs one process per job; called on the event loop only."""

    def __init__(self, settings: ChildSettings, factory: ChildFactory) -> None:
        self._settings = settings
        self._factory = factory
        self._children: set[Child] = set()

    async def validate(self, config: Mapping[str, str | None], timeout_ms: int) -> ConfigInfos:
        """Raise BadRequestError for an unusable `connector.class`.

        Also RequestTimedOutError, and InternalError if the process fails in another way.
        """
        job = ValidateConfigJob(worker=self._settings.worker, config=dict(config))
        answer = await self._ask("validation", job, timeout_ms, ConfigValidated)
        return answer.result

    async def plugin_config(self, plugin: str, version: str | None) -> tuple[KeyInfo, ...]:
        """Return a plugin's keys; NotFound-, BadRequest-, RequestTimedOut- or InternalError."""
        job = DescribePluginJob(worker=self._settings.worker, plugin=plugin, version=version)
        answer = await self._ask("plugin description", job, REQUEST_TIMEOUT_MS, PluginDescribed)
        return answer.keys

    async def consumer_offsets(
        self, connector: str, config: Mapping[str, str | None], timeout_ms: int
    ) -> tuple[CommittedOffset, ...] | None:
        """Raise RequestTimedOutError, or InternalError for whatever else prevents an answer."""
        job = self._read_offsets(connector, config, timeout_ms, own=False)
        return (await self._ask("offset", job, timeout_ms, ConsumerOffsets)).committed

    async def own_offsets(
        self, connector: str, config: Mapping[str, str | None], timeout_ms: int
    ) -> Mapping[bytes, bytes]:
        """Raise RequestTimedOutError, or InternalError for whatever else prevents an answer."""
        job = self._read_offsets(connector, config, timeout_ms, own=True)
        return (await self._ask("offset", job, timeout_ms, OwnOffsets)).entries

    def _read_offsets(
        self, connector: str, config: Mapping[str, str | None], timeout_ms: int, *, own: bool
    ) -> ReadOffsetsJob:
        return ReadOffsetsJob(
            worker=self._settings.worker,
            connector=connector,
            config=dict(config),
            timeout_ms=timeout_ms,
            own=own,
        )

    async def fence_producers(
        self,
        connector: str,
        config: ConnectorConfig,
        transactional_ids: Sequence[str],
        timeout_ms: int,
        *,
        ids_if_permitted: Sequence[str] = (),
    ) -> None:
        """Raise RequestTimedOutError, and InternalError when an id could not be fenced."""
        job = FenceProducersJob(
            worker=self._settings.worker,
            connector=connector,
            connector_config=dict(config),
            transactional_ids=tuple(transactional_ids),
            ids_if_permitted=tuple(ids_if_permitted),
            timeout_ms=timeout_ms,
        )
        await self._ask("fencing", job, timeout_ms, ProducersFenced)

    async def stop(self) -> None:
        """Kill the jobs that still run."""
        await kill_children(tuple(self._children))

    async def _ask(self, what: str, job: Job, timeout_ms: int, expected: type[Answer]) -> Answer:
        answered: asyncio.Future[Message] = asyncio.get_running_loop().create_future()

        def on_message(message: Message) -> None:
            if not answered.done():
                answered.set_result(message)

        def on_exit(end: ChildEnd) -> None:
            if not answered.done():
                text = end.describe(f"The {what} process", "before it answered")
                LOG.error("process ended before it answered", extra={"how": text})
                answered.set_exception(errors.InternalError(text))

        child = self._factory(what, job, on_message, on_exit)
        self._children.add(child)
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                answer = await answered
        except TimeoutError:
            raise errors.RequestTimedOutError(
                f"The {what} process did not answer within {timeout_ms} ms; "
                "plugin code may hang in it."
            ) from None
        finally:
            await kill_children((child,))
            self._children.discard(child)
        if isinstance(answer, RequestFailed):
            raise error_of(answer)
        if not isinstance(answer, expected):
            raise errors.InternalError(f"The {what} process answered with {type(answer).__name__}")
        return answer


def error_of(answer: RequestFailed) -> errors.RequestError:
    """Return the error of a REST request for a child's refusal."""
    kind = ERRORS.get(answer.error_class)
    if kind is not None:
        return kind(answer.message)
    java_name = answer.error_class if "." in answer.error_class else None
    return errors.InternalError(answer.message, cause_class=java_name, permanent=answer.permanent)
