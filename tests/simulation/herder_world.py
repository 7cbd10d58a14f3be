"""A world for one herder's decisions: a log that survives, children, a group of one, a clock.

Nothing happens by itself: a test picks the next step. The world checks the herder's rules
(`herder_performer`) whenever an effect is emitted.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass

from pyconnect_agent.core.herder import events as on
from pyconnect_agent.core.herder.decide import decide
from pyconnect_agent.core.herder.effects import Reply
from pyconnect_agent.core.herder.requests import Request
from pyconnect_agent.core.herder.requests.operations import RequestExpiry
from pyconnect_agent.core.herder.state import Life
from pyconnect_agent.core.ids import ConnectorTaskId, State, TargetState
from pyconnect_agent.core.internal_topics import LogRecord
from pyconnect_agent.core.internal_topics.config_snapshot import ConfigSnapshot
from tests.simulation.herder_performer import TASKS, Performer, generated_configs
from tests.simulation.herder_surroundings import Answer

__all__ = ["TASKS", "Answer", "World", "check_count_records"]


@dataclass(slots=True)
class World(Performer):
    """The world. `log` and `statuses` survive a crash of the worker, the rest does not."""

    def deliver(self) -> None:
        """Let the herder decide on the oldest event of its inbox."""
        event = self.inbox.popleft()
        before = self.state
        self.state, emitted = decide(self.state, event, self.now_ms)
        # As text, because errors compare by identity.
        again = decide(before, event, self.now_ms)
        assert repr(again[1]) == repr(emitted), "decisions are not pure"
        for effect in emitted:
            self._perform(effect)

    def deliver_all(self) -> None:
        while self.inbox:
            self.deliver()

    def answerable(self) -> list[Answer]:
        """Return the effects that may end now: the oldest of each queue."""
        first: dict[str, Answer] = {}
        for answer in self.answers:
            first.setdefault(answer.queue, answer)
        return list(first.values())

    def answer(self, answer: Answer, *, well: bool = True) -> None:
        self.answers.remove(answer)
        answer.finish(well or not answer.may_fail)

    def pass_time(self) -> None:
        """Go to the next timer, after the herder has handled all events, so that it is punctual."""
        while self.inbox:
            self.deliver()
        if not self.timers:
            return
        due_ms = min(at_ms for at_ms, _ in self.timers)
        self.now_ms = max(self.now_ms, due_ms)
        due = [timer for at_ms, timer in self.timers if at_ms <= self.now_ms]
        self.timers = [entry for entry in self.timers if entry[0] > self.now_ms]
        for timer in due:
            self.inbox.append(on.TimerDue(timer=timer))
            self.deliver()

    def crash(self) -> None:
        """End the worker and all its children; clients lose their connections."""
        self.lost |= self.deadlines.keys() - self.replies.keys()
        self._start_worker()

    def write_elsewhere(self, *records: LogRecord) -> None:
        """Write to the config topic as another worker."""
        self.log.extend(records)

    @property
    def fencing(self) -> list[Answer]:
        """The rounds of fencing that are under way."""
        return [answer for answer in self.answers if answer.queue == "fencing"]

    def log_keys(self) -> list[str]:
        return [(record.key or b"").decode() for record in self.log]

    def settle(self, rounds: int = 3_000) -> None:
        """Let all steps succeed until only request deadlines are left."""
        for _ in range(rounds):
            if not self.step():
                return
        raise AssertionError(f"never at rest: {self.state.phase}, {len(self.answers)} answers due")

    def after(self, event: on.Event) -> None:
        """Post an event, and let all steps succeed until rest."""
        self.inbox.append(event)
        self.settle()

    def settled(self, request: Request) -> Reply:
        """Send a request, let all steps succeed, and return the answer."""
        number = self.ask(request)
        self.settle()
        return self.replies[number]

    def go_on(
        self,
        *,
        until: Callable[[], bool] = lambda: False,
        but: Collection[str] = (),
        fails: Callable[[Answer], bool] = lambda _: False,
    ) -> None:
        """Take steps until `until` is true or none is left, without time and the queues `but`."""
        for _ in range(500):
            waiting = [answer for answer in self.answerable() if answer.queue not in but]
            if until():
                return
            if self.inbox:
                self.deliver()
            elif self.tailed < len(self.log):
                self.read_log()
            elif waiting:
                self.answer(waiting[0], well=not fails(waiting[0]))
            else:
                return
        raise AssertionError("never reached")

    def step(self) -> bool:
        """Let one step succeed; return False at rest."""
        if self.inbox:
            self.deliver()
        elif self.tailed < len(self.log):
            self.read_log()
        elif self.answers:
            self.answer(self.answerable()[0])
        elif any(not isinstance(timer, RequestExpiry) for _, timer in self.timers):
            self._drop_stale_deadlines()
            self.pass_time()
        else:
            return False
        return True

    def check_replies(self) -> None:
        """Check that each request, unless lost with its worker, is answered before its deadline."""
        for number, deadline_ms in self.deadlines.items():
            if number not in self.replies and number not in self.lost:
                assert deadline_ms >= self.now_ms, f"request {number} was never answered"

    def check_rest(self) -> None:
        """Check that the running work is the configured work, by the latest configs."""
        snapshot = self.replayed()
        assert self.state.snapshot == snapshot
        assert self.connectors.keys() == snapshot.connector_configs.keys()
        wanted = {
            task_id
            for connector in snapshot.connectors()
            if snapshot.target_state(connector) is not TargetState.STOPPED
            for task_id in snapshot.tasks(connector)
        }
        check_count_records(snapshot)
        refused, paused = self.tasks_in(Life.REFUSED), self.tasks_in(Life.PAUSED)
        assert self.tasks.keys() == wanted - refused - paused
        for task_id in refused:
            assert self.task_statuses[task_id].state is State.FAILED
        for task_id in paused:
            assert self.task_statuses[task_id].state is State.PAUSED
            assert snapshot.target_state(task_id.connector) is TargetState.PAUSED
        for connector, running in self.connectors.items():
            assert running.config == snapshot.connector_config(connector)
            assert running.target_state is snapshot.target_state(connector)
            started = running.target_state is TargetState.STARTED
            if started and self.connector_statuses[connector].state is State.RUNNING:
                expected = generated_configs(connector, running.config)
                actual = [snapshot.task_config(task_id) for task_id in snapshot.tasks(connector)]
                assert actual == list(expected)
        for task_id, task in self.tasks.items():
            assert task.config == snapshot.task_config(task_id)
            assert task.target_state is snapshot.target_state(task_id.connector)
        assert self.connector_statuses.keys() == snapshot.connector_configs.keys()
        assert self.task_statuses.keys() >= wanted

    def tasks_in(self, life: Life) -> set[ConnectorTaskId]:
        """Return the tasks of this life; exactly-once REFUSED or PAUSED ones have no process."""
        return {
            ConnectorTaskId(connector, number)
            for connector, share in self.state.work.items()
            for number, task in share.tasks.items()
            if task.life is life
        }

    def _drop_stale_deadlines(self) -> None:
        self.timers = [
            (at_ms, timer)
            for at_ms, timer in self.timers
            if not (isinstance(timer, RequestExpiry) and timer.request_id in self.replies)
        ]


def check_count_records(snapshot: ConfigSnapshot) -> None:
    """Check that a count behind a task set is that set's, as the next round fences as many."""
    for connector in snapshot.connectors():
        counted = snapshot.task_count_records.get(connector)
        if counted is not None and connector not in snapshot.pending_fencing:
            assert counted == snapshot.task_count(connector), f"{connector}: wrong task count"
