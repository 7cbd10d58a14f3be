"""Perform the herder's effects: one table, and no entry waits on the event loop.

Threads: `leader-writes` writes to the config topic, in order; `config-reads` reads it to its end,
so that a read never queues behind a slow write; `herder-io` runs other calls that may wait (target
states, logger levels, flushing statuses, topics). Each awaited effect has exactly one answer,
`EffectDone` or `EffectFailed`.

`StatusView`: reads do not block; the docstring of a method that blocks says so.
"""

import asyncio
import logging
import secrets
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, TypeVar

from pyconnect_agent.children.children import ChildProcesses
from pyconnect_agent.core.errors import AgentError, BadRequestError
from pyconnect_agent.core.group_protocol import Work
from pyconnect_agent.core.herder import effects as do
from pyconnect_agent.core.herder import events as on
from pyconnect_agent.core.ids import ConnectorTaskId, Instance, State
from pyconnect_agent.core.internal_topics.config_snapshot import (
    ConfigSnapshot,
    ConnectorConfig,
    SessionKey,
)
from pyconnect_agent.core.reporting import ConnectorStateInfo, Reported
from pyconnect_agent.herder.port import WorkerClock
from pyconnect_agent.stores.config import ConfigStore
from pyconnect_agent.stores.status import StatusStore

ConnectorType = Callable[[ConnectorConfig | None], str]


class StatusView:
    """A view of the status store, which also removes statuses without work."""

    def __init__(self, store: StatusStore, connector_type: ConnectorType) -> None:
        self._store = store
        self._connector_type = connector_type

    def state_info(self, connector: str, snapshot: ConfigSnapshot) -> ConnectorStateInfo | None:
        """Return the connector's and its tasks' statuses, None when it has none."""
        status = self._store.connector(connector)
        if status is None:
            return None
        return ConnectorStateInfo(
            name=connector,
            connector=status,
            tasks=tuple(sorted(self._store.tasks(connector).items())),
            type=self._connector_type(snapshot.connector_config(connector)),
        )

    def latest_generation(self) -> int:
        """Return the latest generation of all statuses, as new statuses must not be older."""
        store = self._store
        generations = [0]
        for name in store.connectors():
            status = store.connector(name)
            if status is not None:
                generations.append(status.generation)
            generations.extend(task.generation for task in store.tasks(name).values())
        return max(generations)

    def clean(self, snapshot: ConfigSnapshot, revoked: Work) -> None:
        """Write tombstones for statuses of unconfigured work; tasks before their connector.

        `revoked`: included, because its last statuses may not have been read yet.
        """
        connectors = self._store.connectors() | frozenset(revoked.connectors)
        tasks = {name: set(self._store.tasks(name)) for name in connectors}
        for task_id in revoked.tasks:
            tasks.setdefault(task_id.connector, set()).add(task_id.task)
        for name in sorted(tasks):
            usable = len(snapshot.tasks(name)) if snapshot.contains(name) else 0
            for number in sorted(tasks[name]):
                if number >= usable:
                    self._store.delete(ConnectorTaskId(name, number))
        for name in sorted(connectors - snapshot.connector_configs.keys()):
            self._store.delete(name)

    def forget_topics(self, *connectors: str) -> None:
        """Write tombstones for all active topics of connectors."""
        for connector in connectors:
            for topic in self._store.topics(connector):
                self._store.delete_topic(connector, topic)


LOG = logging.getLogger(__name__)

FLUSH_TIMEOUT_MS = 10_000
IO_THREADS = 4


E = TypeVar("E", bound=do.Effect)
Entry = tuple[type[do.Effect], Callable[[Any], object]]
"""A kind of effect, and the call that begins it; for an awaited one it returns a coroutine."""


class Group(Protocol):
    """The worker's membership; it posts `Joined` after a join. `start` and `stop` block.

    `confirmed_s`: the last time, on the monotonic clock, at which the group confirmed that this
    worker is a member. Assigned work may go on for a session from then. None: it is not a member.
    """

    def begin_after(self, generation: int) -> None: ...
    def start(self) -> None: ...
    def stop(self, timeout_ms: int) -> None: ...
    def confirmed_s(self) -> float | None: ...
    def request_rejoin(self, effect: do.RequestRejoin) -> None: ...
    def leave(self, reason: str) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Collaborators:
    """The parts of the worker that effects use.

    `apply_logger_level`: sets a namespace's level on this worker. `send_task_configs` sends the
    task configs of a connector to the leader at a URL; `request_fencing` asks the leader at a URL
    (None: this worker) to fence the zombies of a connector.
    """

    config_store: ConfigStore
    status_store: StatusStore
    statuses: StatusView
    children: ChildProcesses
    group: Group
    apply_logger_level: Callable[[str, str], object]
    send_task_configs: Callable[[str, str, tuple[ConnectorConfig, ...]], Coroutine[Any, Any, None]]
    request_fencing: Callable[[str | None, str], Coroutine[Any, Any, None]]


class EffectPerformer:
    """The performer of effects: `perform` on the event loop; `close` after the last effect."""

    def __init__(
        self,
        collaborators: Collaborators,
        *,
        post: Callable[[on.Event], None],
        reply: Callable[[do.Reply], None],
        clock: WorkerClock,
        snapshot: Callable[[], ConfigSnapshot],
    ) -> None:
        self._to = collaborators
        self._post = post
        self._reply = reply
        self._clock = clock
        self._snapshot = snapshot
        self._leader_writes = ThreadPoolExecutor(1, thread_name_prefix="leader-writes")
        self._config_reads = ThreadPoolExecutor(1, thread_name_prefix="config-reads")
        self._io = ThreadPoolExecutor(IO_THREADS, thread_name_prefix="herder-io")
        self._under_way: set[asyncio.Task[None]] = set()
        self._timers: set[asyncio.TimerHandle] = set()
        self.table = dict((*self._here(), *self._on_children(), *self._on_topics()))

    def perform(self, effect: do.Effect) -> None:
        """Begin an effect; for an awaited one, an event brings the result."""
        begun = self.table[type(effect)](effect)
        if isinstance(effect, do.Awaited):
            assert asyncio.iscoroutine(begun)
            task = asyncio.get_running_loop().create_task(self._answer(effect, begun))
            self._under_way.add(task)
            task.add_done_callback(self._under_way.discard)

    def in_thread(self, call: Callable[[], Any]) -> Coroutine[Any, Any, Any]:
        """Run a blocking call of a herder's client in the thread pool."""
        return _in_thread(self._io, call)

    async def close(self) -> None:
        """Cancel unfinished effects; threads end when their call returns."""
        for timer in self._timers:
            timer.cancel()
        for task in self._under_way:
            task.cancel()
        await asyncio.gather(*self._under_way, return_exceptions=True)
        for executor in (self._leader_writes, self._config_reads, self._io):
            executor.shutdown(wait=False, cancel_futures=True)

    def _here(self) -> tuple[Entry, ...]:
        to = self._to
        return (
            _on(do.Reply, self._reply),
            _on(do.WakeAt, self._wake),
            _on(do.ApplyLoggerLevel, lambda e: to.apply_logger_level(e.namespace, e.level)),
            _on(do.RequestRejoin, to.group.request_rejoin),
            _on(do.LeaveGroup, lambda e: to.group.leave(e.reason)),
            _on(do.WarnOfOtherConfigTopic, _warn_of_other_config_topic),
            _on(
                do.SendTaskConfigs,
                lambda e: to.send_task_configs(e.leader_url, e.connector, e.configs),
            ),
            _on(do.RequestFencing, lambda e: to.request_fencing(e.leader_url, e.connector)),
        )

    def _on_children(self) -> tuple[Entry, ...]:
        children = self._to.children
        connectors, tasks, changes = children.connectors, children.tasks, children.offset_changes
        return (
            _on(do.StartConnector, self._start),
            _on(do.StartTask, self._start),
            _on(do.StopWork, self._stop),
            _on(
                do.TransitionConnector,
                lambda e: connectors.set_target_state(e.connector, e.target_state),
            ),
            _on(do.TransitionTask, lambda e: tasks.set_target_state(e.task_id, e.target_state)),
            _on(
                do.AnswerTaskStart, lambda e: tasks.answer_start(e.task_id, e.request_id, e.refusal)
            ),
            _on(
                do.GenerateTaskConfigs,
                lambda e: connectors.generate_task_configs(e.connector, e.config, e.applied_config),
            ),
            _on(do.ValidateConfig, self._validate),
            _on(
                do.FenceProducers,
                lambda e: children.jobs.fence_producers(
                    e.connector,
                    e.config,
                    e.transactional_ids,
                    e.timeout_ms,
                    ids_if_permitted=e.ids_if_permitted,
                ),
            ),
            _on(
                do.PrepareOffsetChange,
                lambda e: changes.prepare(e.connector, e.config, e.offsets, e.timeout_ms),
            ),
            _on(do.CommitOffsetChange, lambda e: changes.commit(e.connector)),
            _on(do.AbandonOffsetChange, lambda e: changes.abandon(e.connector)),
        )

    def _on_topics(self) -> tuple[Entry, ...]:
        store, statuses, written = self._to.config_store, self._to.statuses, self._to.status_store
        reads, writes = self._config_reads, self._leader_writes
        return (
            self._snap(reads, do.ReadConfigToEnd, lambda e: store.refresh(e.timeout_ms)),
            _on(do.ClaimWrites, lambda _: _in_thread(writes, self._claim_writes)),
            self._snap(
                writes,
                do.WriteConnectorConfig,
                lambda e: store.put_connector_config(e.connector, e.config, e.target_state),
            ),
            self._snap(
                writes,
                do.RemoveConnectorConfig,
                lambda e: store.remove_connector_config(e.connector),
            ),
            self._snap(
                writes,
                do.WriteTaskConfigs,
                lambda e: store.put_task_configs(e.connector, e.configs),
            ),
            self._snap(
                self._io,
                do.WriteTargetState,
                lambda e: store.put_target_state(e.connector, e.target_state),
            ),
            self._snap(
                writes,
                do.WriteRestartRequest,
                lambda e: store.put_restart_request(
                    e.connector, only_failed=e.only_failed, include_tasks=e.include_tasks
                ),
            ),
            self._snap(
                writes,
                do.WriteTaskCountRecord,
                lambda e: store.put_task_count_record(e.connector, e.task_count),
            ),
            self._snap(writes, do.WriteSessionKey, self._write_session_key),
            _on(do.PutStatus, lambda e: written.put(e.item, e.status, safe=e.safe, late=e.late)),
            _on(do.ReadStatus, self._read_status),
            _on(
                do.FlushStatuses, lambda _: self.in_thread(partial(written.flush, FLUSH_TIMEOUT_MS))
            ),
            _on(do.CleanStatuses, lambda e: statuses.clean(e.snapshot, e.revoked)),
            _on(do.ForgetTopics, lambda e: statuses.forget_topics(*e.connectors)),
        )

    def _snap(self, executor: Executor, kind: type[E], call: Callable[[E], None]) -> Entry:
        """Answer with the snapshot that the tailing thread has published by the end of the call."""

        def call_and_look(effect: E) -> ConfigSnapshot:
            call(effect)
            return self._to.config_store.snapshot()

        return kind, lambda effect: _in_thread(executor, partial(call_and_look, effect))

    def _claim_writes(self) -> None:
        """Claim the privileges, even if this worker has them: another worker may have fenced it."""
        self._to.config_store.relinquish_write_privileges()
        self._to.config_store.claim_write_privileges()

    def _write_session_key(self, effect: do.WriteSessionKey) -> None:
        key = SessionKey(
            key=secrets.token_bytes(effect.length_bytes),
            algorithm=effect.algorithm,
            created_ms=self._clock.now_ms(),
        )
        self._to.config_store.put_session_key(key)

    def _wake(self, effect: do.WakeAt) -> None:
        delay_s = max(0, effect.at_ms - self._clock.now_ms()) / 1000

        def due() -> None:
            self._timers.discard(handle)
            self._post(on.TimerDue(timer=effect.timer))

        handle = asyncio.get_running_loop().call_later(delay_s, due)
        self._timers.add(handle)

    def _start(self, effect: do.StartConnector | do.StartTask) -> None:
        children, target = self._to.children, effect.target_state
        try:
            if isinstance(effect, do.StartConnector):
                item: Instance = effect.connector
                children.connectors.start(effect.connector, effect.config, target)
            else:
                item, count = effect.task_id, effect.task_count
                config, own = effect.connector_config, effect.task_config
                children.tasks.start(effect.task_id, config, own, target, task_count=count)
        except AgentError as error:
            report = Reported(state=State.FAILED, trace=error.message)
            self._post(on.InstanceReported(item=item, report=report))

    async def _stop(self, effect: do.StopWork) -> None:
        children = self._to.children
        await asyncio.gather(
            children.tasks.stop(effect.tasks), children.connectors.stop(effect.connectors)
        )

    async def _validate(self, effect: do.ValidateConfig) -> None:
        infos = await self._to.children.jobs.validate(effect.config, effect.timeout_ms)
        if text := infos.error_text():
            raise BadRequestError(text)

    async def _read_status(self, effect: do.ReadStatus) -> ConnectorStateInfo | None:
        return self._to.statuses.state_info(effect.connector, self._snapshot())

    async def _answer(self, effect: do.Awaited, work: Coroutine[Any, Any, Any]) -> None:
        try:
            result = await work
        except asyncio.CancelledError:
            raise
        # The herder decides about every kind of failure.
        except Exception as error:
            known = isinstance(error, AgentError)
            LOG.log(
                logging.DEBUG if known else logging.ERROR,
                "effect failed",
                extra={"connector": getattr(effect, "connector", ""), "reason": str(error)},
                exc_info=None if known else error,
            )
            self._post(on.EffectFailed(effect_id=effect.effect_id, error=error))
        else:
            self._post(on.EffectDone(effect_id=effect.effect_id, result=result))


def _on(kind: type[E], call: Callable[[E], object]) -> Entry:
    return kind, call


def _warn_of_other_config_topic(effect: do.WarnOfOtherConfigTopic) -> None:
    LOG.warning(
        "workers of one group seem to have different config topics: check group.id and"
        " config.storage.topic of both",
        extra={
            "config_topic": effect.own_topic,
            "config_offset": effect.own_offset,
            "other_workers": ",".join(effect.others),
            "other_config_offset": effect.their_offset,
        },
    )


async def _in_thread(executor: Executor, call: Callable[[], Any]) -> Any:
    return await asyncio.get_running_loop().run_in_executor(executor, call)
