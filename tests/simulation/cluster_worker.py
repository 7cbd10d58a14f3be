"""One worker of a simulated cluster: `herder_world.World` with a group, peers and a shared log.

The worker runs the real herder's `decide` with the real `ConnectGroup` (claims, elections,
assignor) on a fake member of a fake coordinator. It checks the rules of a cluster whenever an
effect is emitted:

- no task is started by two workers of one generation, nor while another member of that generation
  runs it;
- a worker joins only when everything that it runs is claimed, from the newest task sets;
- only the leader that holds the privilege writes what only leaders write.

The rules of exactly-once support are in `cluster_producers`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pyconnect_agent.core.assign import LeaderIds
from pyconnect_agent.core.errors import NoAnswerError, PrivilegedWriteError
from pyconnect_agent.core.herder import effects as do
from pyconnect_agent.core.herder import events as on
from pyconnect_agent.core.herder.requests import Request, SubmitTaskConfigs
from pyconnect_agent.core.herder.state import HerderSettings, SessionKeySettings, WritePrivilege
from pyconnect_agent.core.ids import ConnectorTaskId
from pyconnect_agent.core.internal_topics import LogRecord, config_records
from pyconnect_agent.core.internal_topics.config_snapshot import SessionKey
from pyconnect_agent.herder.connect_group import ConnectGroup, GroupOptions, GroupPorts
from tests.simulation.herder_world import Answer, World
from tests.support.fakes.fake_group import NO_SETTINGS, FakeMember, member_maker

if TYPE_CHECKING:
    from tests.simulation.cluster_world import Cluster

_PRIVILEGED = (
    do.WriteConnectorConfig
    | do.RemoveConnectorConfig
    | do.WriteTaskConfigs
    | do.WriteTaskCountRecord
    | do.WriteRestartRequest
    | do.WriteSessionKey
)
_FAR_MS = 600_000
APACHES_LEADER_ID = "connect-cluster-group"


class Worker(World):
    """One worker of the cluster.

    `up`: False after a crash, until `boot`; `lagging`: the worker cannot read the config log;
    `frozen`: nothing happens there while others go on, but its tasks' processes live;
    `stray`: a worker of this cluster has another config topic; `leader_id` is used from the next
    `boot` on.
    """

    def __init__(self, cluster: Cluster, name: str, *, exactly_once: bool = False) -> None:
        self.cluster = cluster
        self.name = name
        self.url = f"http://{name}:8083/"
        self.up = True
        self.lagging = False
        self.frozen = False
        self.stray = False
        self.warnings: list[do.WarnOfOtherConfigTopic] = []
        self.epoch = -1
        self.claimed = False
        self.leader_id = APACHES_LEADER_ID
        self.waiting: dict[int, Callable[[do.Reply | None], None]] = {}
        super().__init__(
            exactly_once=exactly_once,
            log=cluster.log,
            connector_statuses=cluster.connector_statuses,
            task_statuses=cluster.task_statuses,
            now_ms=cluster.now_ms,
        )

    @property
    def now_ms(self) -> int:
        return self.cluster.now_ms

    @now_ms.setter
    def now_ms(self, value: int) -> None:
        self.cluster.now_ms = max(value, self.cluster.now_ms)

    def crash(self) -> None:
        """End the worker and all children; the group notices only when the session is over."""
        self.up = False
        self.member.alive = False
        self.lost |= self.deadlines.keys() - self.replies.keys()
        self.connectors, self.tasks = {}, {}
        self.inbox.clear()
        waiting, self.waiting = self.waiting, {}
        for answer in waiting.values():
            answer(None)

    def boot(self) -> None:
        self.up = True
        self.claimed = False
        self._start_worker()

    def fire_due(self) -> None:
        due = [timer for at_ms, timer in self.timers if at_ms <= self.now_ms]
        self.timers = [entry for entry in self.timers if entry[0] > self.now_ms]
        for timer in due:
            self.inbox.append(on.TimerDue(timer=timer))
            self.deliver()

    def urgent_timers(self) -> bool:
        """Return whether a timer is due, apart from deadlines of answered requests."""
        self._drop_stale_deadlines()
        return any(at_ms < self.now_ms + _FAR_MS for at_ms, _ in self.timers)

    # Parts of `World` that are different in a cluster

    def _start_worker(self) -> None:
        super()._start_worker()
        self.state = type(self.state)(settings=self._settings())
        options = GroupOptions(
            membership=NO_SETTINGS,
            worker_url=self.url,
            protocol=self.cluster.protocol,
            scheduled_rebalance_max_delay_ms=self.cluster.max_delay_ms,
            open_timeout_ms=0,
            leader_ids=LeaderIds(own=self.leader_id, apaches=APACHES_LEADER_ID, fencing=True),
        )
        ports = GroupPorts(
            post=self._posted,
            # Not bound once: `boot` makes a new log.
            config_snapshot=lambda: self.tail.snapshot(),  # noqa: PLW0108
            herder_alive=lambda: True,
            failed=_fail,
        )
        make = member_maker(self.cluster.coordinator, self.name, self._made)
        self.group = ConnectGroup(options, ports, _Clock(self.cluster), make)

    def _settings(self, **settings: Any) -> HerderSettings:
        return HerderSettings(
            worker_id=self.name,
            connector_type=lambda config: "source" if config is not None else "unknown",
            leader_transactional_id=self.leader_id,
            scheduled_rebalance_max_delay_ms=self.cluster.max_delay_ms,
            session_key=SessionKeySettings(
                algorithm="HmacSHA256", size_bits=None, ttl_ms=3_600_000
            ),
            **settings,
        )

    def _made(self, member: FakeMember) -> None:
        self.member = member

    def _posted(self, event: on.Event) -> None:
        if isinstance(event, on.Joined):
            self.generation = event.generation
            self.claimed = self.claimed and event.assignment.leader == event.member_id
            assert 0 <= event.assignment.delay_ms <= self.cluster.max_delay_ms
        self.inbox.append(event)

    def _perform(self, effect: do.Effect) -> None:
        super()._perform(effect)
        if isinstance(effect, do.Reply):
            self.cluster.replied(self, effect.request_id, effect)
        elif isinstance(effect, do.LeaveGroup):
            self.group.leave(effect.reason)
        elif isinstance(effect, do.WarnOfOtherConfigTopic):
            assert self.stray, "warned of another config topic, but there is only one"
            self.warnings.append(effect)

    def _rejoin(self, effect: do.RequestRejoin) -> None:
        claimed = set(effect.owned.tasks)
        for task_id, task in self.tasks.items():
            generations = effect.snapshot.task_config_generations
            assert task.generation == generations[task_id.connector], f"{task_id} is stale"
            assert task_id in claimed, f"{task_id} still runs, and is not claimed"
        assert self.connectors.keys() <= set(effect.owned.connectors)
        self.group.request_rejoin(effect)

    def _perform_on_topics(self, effect: do.Effect) -> None:
        if isinstance(effect, _PRIVILEGED):
            assert self.state.membership is not None
            assert self.state.is_leader, "a follower writes"
            assert self.state.privilege is WritePrivilege.HELD
            assert not self.state.disputed, "members would lead under another id"
            assert self.claimed, "claimed during an earlier leadership only"
        match effect:
            case do.ClaimWrites(effect_id=effect_id):
                self._later("writes", effect_id, self._claim)
            case do.WriteSessionKey(effect_id=effect_id):
                key = SessionKey(
                    key=bytes(effect.length_bytes),
                    algorithm=effect.algorithm,
                    created_ms=self.now_ms,
                )
                self._write(effect_id, config_records.session_key(key))
            case do.WriteTargetState():
                record = config_records.target_state(effect.connector, effect.target_state)
                self._write_plainly(effect.effect_id, record)
            case do.SendTaskConfigs(connector=connector, configs=configs):
                self._ask_leader(effect, SubmitTaskConfigs(connector=connector, configs=configs))
            case _:
                super()._perform_on_topics(effect)

    def _perform_on_statuses(self, effect: do.Effect) -> None:
        if isinstance(effect, do.PutStatus) and effect.safe:
            of_tasks = isinstance(effect.item, ConnectorTaskId)
            known = self.task_statuses if of_tasks else self.connector_statuses
            existing, status = known.get(effect.item), effect.status
            # A safe write does not overwrite a later status of another worker.
            if (
                existing is not None
                and existing.worker_id != status.worker_id
                and existing.generation > status.generation
            ):
                return
        super()._perform_on_statuses(effect)

    def _claim(self) -> None:
        self.claimed = True
        self.cluster.epoch += 1
        self.epoch = self.cluster.epoch

    def _write(self, effect_id: int, *records: LogRecord) -> None:
        """Write as the leader; fail if another leader has claimed the topic meanwhile."""
        super()._write(effect_id, *records)
        written = self.answers.pop()

        def finish(well: bool) -> None:
            if self.epoch == self.cluster.epoch:
                written.finish(well)
                return
            error = PrivilegedWriteError("Failed to perform fencable send to config topic")
            self.inbox.append(on.EffectFailed(effect_id=effect_id, error=error))

        self.answers.append(Answer("writes", finish))

    def _write_plainly(self, effect_id: int, record: LogRecord) -> None:
        super()._write(effect_id, record)
        self.answers[-1].queue = "target states"

    def _start_task(self, effect: do.StartTask) -> None:
        super()._start_task(effect)
        task_id = effect.task_id
        owner = self.cluster.started.setdefault((self.generation, task_id), self.name)
        assert owner == self.name, f"{task_id} was started by {owner} in the same generation"
        members = self.cluster.coordinator.generations[self.generation]
        for other in self.cluster.running():
            if other is not self and task_id in other.tasks:
                assert other.member.member_id not in members, f"{task_id} runs at {other.name} too"
        self.cluster.starts.append((self.now_ms, self.name, task_id))

    def _ask_leader(self, effect: do.SendTaskConfigs | do.RequestFencing, request: Request) -> None:
        """Send a request to the leader, which answers when done; a lost connection is a failure."""
        effect_id, leader_url = effect.effect_id, effect.leader_url
        assert leader_url is not None

        def sent(well: bool) -> None:
            leader = self.cluster.at(leader_url)
            if not well or not leader.up:
                answered(None)
                return
            leader.waiting[leader.ask(request)] = answered

        member = self.member

        def answered(reply: do.Reply | None) -> None:
            if member is not self.member:
                return
            error = NoAnswerError("IO Error") if reply is None else reply.error
            if error is None:
                self.inbox.append(on.EffectDone(effect_id=effect_id))
            else:
                self.inbox.append(on.EffectFailed(effect_id=effect_id, error=error))

        self.answers.append(Answer(f"send {effect_id}", sent))


class _Clock:
    """The cluster's clock, as an object for the group."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def now_ms(self) -> int:
        return self._cluster.now_ms


def _fail(error: Exception) -> None:
    raise error
