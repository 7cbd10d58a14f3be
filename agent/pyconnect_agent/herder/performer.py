"""Perform the herder's effects: one method per kind, none waits on the event loop.

Layer: herder. Threads: `leader-writes` writes to the config topic, in order; `config-reads` reads
it to its end, so that a read never queues behind a slow write; `herder-io` runs other calls that
may wait (target states, logger levels, flushing statuses, topics). Each awaited effect has exactly
one answer, `EffectDone` or `EffectFailed`.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, assert_never

from pyconnect_agent.children.children import ChildProcesses
from pyconnect_agent.core.errors import AgentError, BadRequestError
from pyconnect_agent.core.herder import effects as do
from pyconnect_agent.core.herder import events as on
from pyconnect_agent.core.ids import ConnectorTaskId, State
from pyconnect_agent.core.internal_topics.config_snapshot import (
    ConfigSnapshot,
    ConnectorConfig,
    SessionKey,
)
from pyconnect_agent.herder.clock import WorkerClock
from pyconnect_agent.herder.statuses import StatusView
from pyconnect_agent.stores.config import ConfigStore
from pyconnect_agent.stores.status import StatusStore

LOG = logging.getLogger(__name__)

FLUSH_TIMEOUT_MS = 10_000
IO_THREADS = 4


SendTaskConfigs = Callable[[str, str, tuple[ConnectorConfig, ...]], Coroutine[Any, Any, None]]
RequestFencing = Callable[[str | None, str], Coroutine[Any, Any, None]]


class Group(Protocol):
    """The worker's membership; it posts `Joined` after a join. `start` and `stop` block.

    `confirmed_s`: when, on the monotonic clock, the group has last confirmed that this worker is a
    member, so that the work it was assigned may continue for a session; None: it is not a member.
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

    `apply_logger_level`: namespace and level, on this worker. `send_task_configs` sends the
    task configs of a connector to the leader at a URL; `request_fencing` asks the leader there
    (None: this worker) to fence the zombies of a connector.
    """

    config_store: ConfigStore
    status_store: StatusStore
    statuses: StatusView
    children: ChildProcesses
    group: Group
    apply_logger_level: Callable[[str, str], object]
    send_task_configs: SendTaskConfigs
    request_fencing: RequestFencing


class EffectPerformer:
    """`perform` on the event loop; `close` after the last effect."""

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

    def perform(self, effect: do.PerformedEffect) -> None:
        """Begin an effect; an event brings its result."""
        if isinstance(effect, do.GroupEffect):
            self._perform_on_group(effect)
        elif isinstance(effect, do.ChildEffect):
            self._perform_on_children(effect)
        elif isinstance(effect, do.StatusEffect):
            self._perform_on_statuses(effect)
        elif isinstance(effect, do.ConfigWrite):
            self._write_config(effect)
        else:
            self._perform_here(effect)

    def in_thread(self, call: Callable[[], Any]) -> Coroutine[Any, Any, Any]:
        """Await a blocking call of a client of the herder in the pool."""
        return _in_thread(self._io, call)

    async def close(self) -> None:
        """Cancel effects under way; threads end when their call returns."""
        for timer in self._timers:
            timer.cancel()
        for task in self._under_way:
            task.cancel()
        await asyncio.gather(*self._under_way, return_exceptions=True)
        for executor in (self._leader_writes, self._config_reads, self._io):
            executor.shutdown(wait=False, cancel_futures=True)

    def _wake(self, at_ms: int, timer: on.Timer) -> None:
        delay_s = max(0, at_ms - self._clock.now_ms()) / 1000

        def due() -> None:
            self._timers.discard(handle)
            self._post(on.TimerDue(timer=timer))

        handle = asyncio.get_running_loop().call_later(delay_s, due)
        self._timers.add(handle)

    def _perform_here(
        self,
        effect: do.Reply
        | do.WakeAt
        | do.ReadConfigToEnd
        | do.ClaimWrites
        | do.SendTaskConfigs
        | do.RequestFencing
        | do.ApplyLoggerLevel,
    ) -> None:
        match effect:
            case do.Reply():
                self._reply(effect)
            case do.WakeAt(at_ms=at_ms, timer=timer):
                self._wake(at_ms, timer)
            case do.ReadConfigToEnd(effect_id=effect_id, timeout_ms=timeout_ms):
                read = partial(self._to.config_store.refresh, timeout_ms)
                self._on_config_topic(self._config_reads, effect_id, read)
            case do.ClaimWrites(effect_id=effect_id):
                self._answer(effect_id, _in_thread(self._leader_writes, self._claim_writes))
            case do.SendTaskConfigs(effect_id=effect_id, leader_url=leader_url):
                sending = self._to.send_task_configs(leader_url, effect.connector, effect.configs)
                self._answer(effect_id, sending, about=effect.connector)
            case do.RequestFencing(effect_id=effect_id, leader_url=leader, connector=connector):
                fencing = self._to.request_fencing(leader, connector)
                self._answer(effect_id, fencing, about=connector)
            case do.ApplyLoggerLevel(namespace=namespace, level=level):
                self._to.apply_logger_level(namespace, level)
            case _:
                assert_never(effect)

    def _perform_on_group(self, effect: do.GroupEffect) -> None:
        match effect:
            case do.RequestRejoin():
                self._to.group.request_rejoin(effect)
            case do.LeaveGroup(reason=reason):
                self._to.group.leave(reason)
            case do.WarnOfOtherConfigTopic():
                _warn_of_other_config_topic(effect)
            case _:
                assert_never(effect)

    def _perform_on_children(self, effect: do.ChildEffect) -> None:
        children = self._to.children
        match effect:
            case do.StartConnector():
                self._start_connector(effect)
            case do.StartTask():
                self._start_task(effect)
            case do.StopWork(effect_id=effect_id):
                self._answer(effect_id, self._stop(effect.connectors, effect.tasks))
            case do.TransitionConnector(connector=connector, target_state=target):
                children.set_connector_target_state(connector, target)
            case do.TransitionTask(task_id=task_id, target_state=target):
                children.set_task_target_state(task_id, target)
            case do.GenerateTaskConfigs(effect_id=effect_id):
                generation = children.generate_task_configs(
                    effect.connector, effect.config, effect.applied_config
                )
                self._answer(effect_id, generation, about=effect.connector)
            case do.ValidateConfig(effect_id=effect_id):
                self._answer(effect_id, self._validate(effect))
            case do.FenceProducers(effect_id=effect_id):
                fencing = children.jobs.fence_producers(
                    effect.connector,
                    effect.config,
                    effect.transactional_ids,
                    effect.timeout_ms,
                    ids_if_permitted=effect.ids_if_permitted,
                )
                self._answer(effect_id, fencing, about=effect.connector)
            case do.AnswerTaskStart(task_id=task_id):
                children.answer_task_start(task_id, effect.request_id, effect.refusal)
            case do.PrepareOffsetChange(effect_id=effect_id):
                preparation = children.offset_changes.prepare(
                    effect.connector, effect.config, effect.offsets, effect.timeout_ms
                )
                self._answer(effect_id, preparation, about=effect.connector)
            case do.CommitOffsetChange(effect_id=effect_id, connector=connector):
                commit = children.offset_changes.commit(connector)
                self._answer(effect_id, commit, about=connector)
            case do.AbandonOffsetChange(connector=connector):
                children.offset_changes.abandon(connector)
            case _:
                assert_never(effect)

    def _perform_on_statuses(self, effect: do.StatusEffect) -> None:
        store, statuses = self._to.status_store, self._to.statuses
        match effect:
            case do.PutConnectorStatus(connector=connector, status=status):
                store.put_connector(connector, status, safe=effect.safe, late=effect.late)
            case do.PutTaskStatus(task_id=task_id, status=status):
                store.put_task(task_id, status, safe=effect.safe, late=effect.late)
            case do.ReadStatus(effect_id=effect_id, connector=connector):
                info = statuses.state_info(connector, self._snapshot())
                self._post(on.EffectDone(effect_id=effect_id, result=info))
            case do.FlushStatuses(effect_id=effect_id):
                flush = partial(store.flush, FLUSH_TIMEOUT_MS)
                self._answer(effect_id, _in_thread(self._io, flush))
            case do.CleanStatuses(snapshot=snapshot, revoked=revoked):
                statuses.clean(snapshot, revoked)
            case do.ForgetTopics(connectors=connectors):
                for connector in connectors:
                    statuses.forget_topics(connector)
            case _:
                assert_never(effect)

    def _write_config(self, effect: do.ConfigWrite) -> None:
        store = self._to.config_store
        executor = self._leader_writes
        match effect:
            case do.WriteConnectorConfig(connector=connector):
                write = partial(
                    store.put_connector_config, connector, effect.config, effect.target_state
                )
            case do.RemoveConnectorConfig(connector=connector):
                write = partial(store.remove_connector_config, connector)
            case do.WriteTaskConfigs(connector=connector, configs=configs):
                write = partial(store.put_task_configs, connector, configs)
            case do.WriteTargetState(connector=connector, target_state=target):
                write = partial(store.put_target_state, connector, target)
                executor = self._io
            case do.WriteRestartRequest(connector=connector):
                write = partial(
                    store.put_restart_request,
                    connector,
                    only_failed=effect.only_failed,
                    include_tasks=effect.include_tasks,
                )
            case do.WriteTaskCountRecord(connector=connector, task_count=count):
                write = partial(store.put_task_count_record, connector, count)
            case do.WriteSessionKey(algorithm=algorithm, length_bytes=length):
                key = SessionKey(
                    key=secrets.token_bytes(length),
                    algorithm=algorithm,
                    created_ms=self._clock.now_ms(),
                )
                write = partial(store.put_session_key, key)
            case _:
                assert_never(effect)
        self._on_config_topic(executor, effect.effect_id, write)

    def _claim_writes(self) -> None:
        """Claim even if this worker has the privileges: another worker may have fenced it."""
        self._to.config_store.relinquish_write_privileges()
        self._to.config_store.claim_write_privileges()

    def _on_config_topic(
        self, executor: Executor, effect_id: int, call: Callable[[], None]
    ) -> None:
        """Answer with the snapshot that the tailing thread has published by then."""

        def call_and_look() -> ConfigSnapshot:
            call()
            return self._to.config_store.snapshot()

        self._answer(effect_id, _in_thread(executor, call_and_look))

    def _start_connector(self, effect: do.StartConnector) -> None:
        try:
            self._to.children.start_connector(effect.connector, effect.config, effect.target_state)
        except AgentError as error:
            report = on.ConnectorReported(
                connector=effect.connector, state=State.FAILED, trace=error.message
            )
            self._post(report)

    def _start_task(self, effect: do.StartTask) -> None:
        try:
            self._to.children.start_task(
                effect.task_id,
                effect.connector_config,
                effect.task_config,
                effect.target_state,
                task_count=effect.task_count,
            )
        except AgentError as error:
            report = on.TaskReported(
                task_id=effect.task_id, state=State.FAILED, trace=error.message
            )
            self._post(report)

    async def _stop(self, connectors: tuple[str, ...], tasks: tuple[ConnectorTaskId, ...]) -> None:
        await asyncio.gather(
            self._to.children.stop_tasks(tasks), self._to.children.stop_connectors(connectors)
        )

    async def _validate(self, effect: do.ValidateConfig) -> None:
        infos = await self._to.children.jobs.validate(effect.config, effect.timeout_ms)
        if text := infos.error_text():
            raise BadRequestError(text)

    def _answer(
        self, effect_id: int, work: Coroutine[Any, Any, Any], *, about: str | None = None
    ) -> None:
        async def answer() -> None:
            try:
                result = await work
            except asyncio.CancelledError:
                raise
            # The herder decides about every kind of failure.
            except Exception as error:
                LOG.log(
                    logging.DEBUG if isinstance(error, AgentError) else logging.ERROR,
                    "effect failed",
                    extra={"connector": about or "", "reason": str(error)},
                    exc_info=None if isinstance(error, AgentError) else error,
                )
                self._post(on.EffectFailed(effect_id=effect_id, error=error))
            else:
                self._post(on.EffectDone(effect_id=effect_id, result=result))

        task = asyncio.get_running_loop().create_task(answer())
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)


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
