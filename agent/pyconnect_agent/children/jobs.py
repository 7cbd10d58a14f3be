"""Short-lived children: validation of a connector config, description of a plugin, fencing.

Plugin code may hang, exit or crash there without harm to the worker.

A Java process takes seconds to start and to load a plugin's classes; a Java worker has them loaded.
So a process that has validated a config waits for another config of the same Java plugins.
"""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import TypeVar

from pyconnect_agent.channel import Message
from pyconnect_agent.channel.reports import (
    ConfigValidated,
    ConnectorTried,
    ConsumerOffsets,
    OwnOffsets,
    PluginDescribed,
    ProducersFenced,
    RequestFailed,
)
from pyconnect_agent.channel.requests import (
    DescribePluginJob,
    FenceProducersJob,
    Job,
    ReadOffsetsJob,
    TryConnectorJob,
    ValidateConfigJob,
)
from pyconnect_agent.children.child import Child, ChildEnd, kill_children
from pyconnect_agent.children.ports import REQUEST_TIMEOUT_MS, ChildFactory, ChildSettings
from pyconnect_agent.core import errors
from pyconnect_agent.core.config.config_infos import ConfigInfos
from pyconnect_agent.core.internal_topics.config_snapshot import ConnectorConfig
from pyconnect_agent.core.offsets.connector_offsets import CommittedOffset
from pyconnect_agent.core.plugin_catalog import Catalog, PluginNotFoundError
from pyconnect_api.configdef import KeyInfo

IDLE_S = 60.0
MOST_IDLE = 2
"""The most waiting processes, each of 70 to 110 MiB."""
_OWN_OPTIONS = "agent.java."

Location = str
"""Where a connector's jars are, "" for Kafka's own."""


def location_of(catalog: Catalog, config: Mapping[str, str | None]) -> Location | None:
    """Return the location of a config's Java connector.

    The result is None for a Python connector, which gets a process of its own, and for a config
    with its own options for Java, which may hold secrets.
    """
    name = config.get("connector.class")
    if not name or any(key.startswith(_OWN_OPTIONS) for key in config):
        return None
    try:
        found = catalog.connector(name, version_range=config.get("connector.plugin.version"))
    except PluginNotFoundError:
        return None
    return found.search_path or "" if found.is_java else None


class JobProcess:
    """A child that answers several questions, one after the other."""

    def __init__(self, factory: ChildFactory, what: str, job: Job) -> None:
        self._answered: asyncio.Future[Message | ChildEnd] = self._new_answer()
        self.ended = False
        self.child: Child = factory(what, job, self._take, self._take)

    def ask_again(self, job: Message) -> None:
        """Send another question; only to be called after the answer to the one before."""
        self._answered = self._new_answer()
        self.child.send(job)

    async def answer(self) -> Message | ChildEnd:
        """Return the answer, or the end of the process if that comes first."""
        return await self._answered

    def _take(self, answer: Message | ChildEnd) -> None:
        self.ended = isinstance(answer, ChildEnd)
        if not self._answered.done():
            self._answered.set_result(answer)

    @staticmethod
    def _new_answer() -> asyncio.Future[Message | ChildEnd]:
        return asyncio.get_running_loop().create_future()


class IdleValidators:
    """At most `MOST_IDLE` waiting processes; the one that has waited longest ends first."""

    def __init__(self) -> None:
        self._idle: dict[JobProcess, tuple[Location, asyncio.TimerHandle]] = {}
        self._ending: set[asyncio.Task[None]] = set()

    def take(self, location: Location | None) -> JobProcess | None:
        """Return a process of the location, which the caller then owns."""
        for process, (known, timer) in self._idle.items():
            if known == location and not process.ended:
                timer.cancel()
                del self._idle[process]
                return process
        return None

    def keep(self, location: Location, process: JobProcess) -> None:
        """Keep a process that has answered for `IDLE_S` seconds."""
        timer = asyncio.get_running_loop().call_later(IDLE_S, self._drop, process)
        self._idle[process] = location, timer
        if len(self._idle) > MOST_IDLE:
            self._drop(next(iter(self._idle)))

    def end(self) -> None:
        """Begin to end all of them."""
        for process in tuple(self._idle):
            self._drop(process)

    async def gone(self) -> None:
        """Wait for the processes that are ending."""
        await asyncio.gather(*self._ending)

    def _drop(self, process: JobProcess) -> None:
        _, timer = self._idle.pop(process)
        timer.cancel()
        ending = asyncio.get_running_loop().create_task(kill_children((process.child,)))
        self._ending.add(ending)
        ending.add_done_callback(self._ending.discard)


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
    """Runs one process per job; called on the event loop only.

    A process that has validated a Java connector's config is kept for a while.
    """

    def __init__(self, settings: ChildSettings, factory: ChildFactory) -> None:
        self._settings = settings
        self._factory = factory
        self._children: set[Child] = set()
        self._catalog = Catalog(settings.worker.plugins)
        self._idle = IdleValidators()

    async def validate(self, config: Mapping[str, str | None], timeout_ms: int) -> ConfigInfos:
        """Return the validation. Raises BadRequestError for an unusable `connector.class`.

        Also raises RequestTimedOutError, and InternalError if the process fails in another way.
        """
        location = location_of(self._catalog, config)
        job = ValidateConfigJob(
            worker=self._settings.worker, config=dict(config), keep=location is not None
        )
        answer = await self._ask("validation", job, timeout_ms, ConfigValidated, location)
        return answer.result

    async def plugin_config(self, plugin: str, version: str | None) -> tuple[KeyInfo, ...]:
        """Return a plugin's keys.

        Raises NotFound-, BadRequest-, RequestTimedOut- or InternalError.
        """
        job = DescribePluginJob(worker=self._settings.worker, plugin=plugin, version=version)
        answer = await self._ask("plugin description", job, REQUEST_TIMEOUT_MS, PluginDescribed)
        return answer.keys

    async def consumer_offsets(
        self, connector: str, config: Mapping[str, str | None], timeout_ms: int
    ) -> tuple[CommittedOffset, ...] | None:
        """Return a sink's committed offsets. Raises RequestTimedOutError or InternalError."""
        found = await self._read_offsets(connector, config, timeout_ms, ConsumerOffsets)
        return found.committed

    async def own_offsets(
        self, connector: str, config: Mapping[str, str | None], timeout_ms: int
    ) -> Mapping[bytes, bytes]:
        """Return the raw entries of a source's own topic. Raises as `consumer_offsets`."""
        return (await self._read_offsets(connector, config, timeout_ms, OwnOffsets)).entries

    async def _read_offsets(
        self,
        connector: str,
        config: Mapping[str, str | None],
        timeout_ms: int,
        expected: type[Answer],
    ) -> Answer:
        job = ReadOffsetsJob(
            worker=self._settings.worker,
            connector=connector,
            config=dict(config),
            timeout_ms=timeout_ms,
            own=expected is OwnOffsets,
        )
        return await self._ask("offset", job, timeout_ms, expected)

    async def fence_producers(
        self,
        connector: str,
        config: ConnectorConfig,
        transactional_ids: Sequence[str],
        timeout_ms: int,
        *,
        ids_if_permitted: Sequence[str] = (),
    ) -> None:
        """Fence the producers of ids.

        Raises RequestTimedOutError, and InternalError when an id could not be fenced.
        """
        job = FenceProducersJob(
            worker=self._settings.worker,
            connector=connector,
            connector_config=dict(config),
            transactional_ids=tuple(transactional_ids),
            ids_if_permitted=tuple(ids_if_permitted),
            timeout_ms=timeout_ms,
        )
        await self._ask("fencing", job, timeout_ms, ProducersFenced)

    async def try_connector(self, job: TryConnectorJob, timeout_ms: int) -> ConnectorTried:
        """Return the outcomes of records. Raises RequestTimedOutError or InternalError."""
        return await self._ask("trial", job, timeout_ms, ConnectorTried)

    async def stop(self) -> None:
        """Kill the jobs that still run."""
        await kill_children(tuple(self._children))
        self.end_idle()
        await self._idle.gone()

    def end_idle(self) -> None:
        """Begin to end the processes that wait for another validation."""
        self._idle.end()

    async def _ask(
        self,
        what: str,
        job: Job,
        timeout_ms: int,
        expected: type[Answer],
        location: Location | None = None,
    ) -> Answer:
        """Return the answer to a job; `location` is that of a process to keep, None for others."""
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                return await self._answer(what, job, expected, location)
        except TimeoutError:
            raise errors.RequestTimedOutError(
                f"The {what} process did not answer within {timeout_ms} ms; "
                "plugin code may hang in it."
            ) from None

    async def _answer(
        self, what: str, job: Job, expected: type[Answer], location: Location | None
    ) -> Answer:
        process = self._idle.take(location)
        waited = process is not None
        if process is None:
            process = JobProcess(self._factory, what, job)
        else:
            process.ask_again(job)
        self._children.add(process.child)
        keeps = False
        try:
            answer = await process.answer()
            keeps = location is not None and isinstance(answer, expected)
        finally:
            if location is not None and keeps:
                self._idle.keep(location, process)
            else:
                await kill_children((process.child,))
            self._children.discard(process.child)
        if waited and not isinstance(answer, expected):
            # The kept process, or its Java process, may have been killed while it waited.
            return await self._answer(what, job, expected, location)
        if isinstance(answer, ChildEnd):
            text = answer.describe(f"The {what} process", "before it answered")
            LOG.error("process ended before it answered", extra={"how": text})
            raise errors.InternalError(text)
        if isinstance(answer, RequestFailed):
            raise error_of(answer)
        if not isinstance(answer, expected):
            raise errors.InternalError(f"The {what} process answered with {type(answer).__name__}")
        return answer


def error_of(answer: RequestFailed) -> errors.RequestError:
    """Return the error of a REST request for the refusal of a child."""
    kind = ERRORS.get(answer.error_class)
    if kind is not None:
        return kind(answer.message)
    java_name = answer.error_class if "." in answer.error_class else None
    return errors.InternalError(answer.message, cause_class=java_name, permanent=answer.permanent)
