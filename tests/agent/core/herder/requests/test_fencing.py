"""Rounds of zombie fencing by a leader, and the tasks that wait for them, step by step."""

from functools import partial
from itertools import pairwise

from pyconnect_agent.core.errors import BadRequestError, InternalError, NoAnswerError, NotFoundError
from pyconnect_agent.core.herder import effects as do
from pyconnect_agent.core.herder import events as on
from pyconnect_agent.core.herder.requests import (
    FenceZombies,
    PutConnectorConfig,
    RestartTask,
    SetTargetState,
)
from pyconnect_agent.core.herder.requests.reconfiguration import ApplyTaskConfigs
from pyconnect_agent.core.herder.start_permissions import LastRead, TaskStartRead
from pyconnect_agent.core.herder.state import HerderSettings, Life, Step
from pyconnect_agent.core.ids import ConnectorTaskId, State, TargetState
from pyconnect_agent.core.internal_topics import config_records
from pyconnect_agent.core.internal_topics.config_snapshot import ConnectorConfig
from tests.simulation.herder_world import TASKS, World
from tests.support.cases import cases

TASK = ConnectorTaskId("c", 0)


def configured(world: World, tasks: int, **settings: str) -> World:
    config = {"name": "c", "connector.class": "x", TASKS: str(tasks), **settings}
    world.ask(PutConnectorConfig(connector="c", config=config))
    return world


def world_with(tasks: int) -> World:
    """Return a worker at `enabled` that runs this number of tasks."""
    world = configured(World(exactly_once=True), tasks)
    world.settle()
    return world


def until_fencing(world: World) -> None:
    """Take all steps until producers are being fenced."""
    world.go_on(but={"fencing"})
    assert world.fencing


def round_of(tasks: int) -> World:
    """Return a worker with a changed connector whose older producers are being fenced."""
    world = world_with(tasks)
    configured(world, tasks, other="value")
    until_fencing(world)
    return world


def test_the_first_task_set_has_nothing_to_fence() -> None:
    """The first task set needs no fencing, but its count is recorded before tasks start."""
    world = world_with(3)
    assert world.fenced == []
    assert world.log_keys().count("tasks-fencing-c") == 1
    assert world.replayed().task_count_records == {"c": 3}
    assert world.tasks.keys() == {ConnectorTaskId("c", n) for n in range(3)}


def test_as_many_ids_are_fenced_as_the_last_count_record_says() -> None:
    """The last recorded count decides how many ids are fenced; then the new count is written."""
    world = world_with(3)
    configured(world, 5).settle()
    assert world.fenced == [("group-c-0", "group-c-1", "group-c-2")]
    configured(world, 1).settle()
    assert world.fenced[1:] == [tuple(f"group-c-{n}" for n in range(5))]
    assert world.replayed().task_count_records == {"c": 1}


def test_no_round_is_needed_without_exactly_once_or_with_single_tasks() -> None:
    """One new task fences one old task itself, and without exactly-once no count is written."""
    world = world_with(1)
    configured(world, 1, other="value").settle()
    assert world.fenced == []
    assert world.log_keys().count("tasks-fencing-c") == 2
    assert not world.replayed().pending_fencing
    world = World()
    configured(world, 2).settle()
    assert len(world.tasks) == 2
    assert "tasks-fencing-c" not in world.log_keys()
    assert not any(isinstance(answer, do.FenceProducers) for answer in world.answers)


def test_no_task_starts_before_the_round_is_over() -> None:
    """During a round the old tasks are stopped, and the new ones wait without a process."""
    world = round_of(2)
    assert world.tasks == {}
    assert {task.life for task in world.state.work["c"].tasks.values()} == {Life.AWAITING}
    world.settle()
    assert len(world.tasks) == 2


def test_a_failed_round_fails_the_tasks_until_they_are_restarted() -> None:
    """A failed round writes no count, so that a restart of a task fences again."""
    world = round_of(2)
    before = world.log_keys().count("tasks-fencing-c")
    world.answer(world.fencing[0], well=False)
    world.settle()
    assert world.tasks == {}
    statuses = [world.task_statuses[ConnectorTaskId("c", n)] for n in range(2)]
    assert [status.state for status in statuses] == [State.FAILED] * 2
    assert statuses[0].trace == "Failed to perform zombie fencing: Error on purpose"
    assert world.log_keys().count("tasks-fencing-c") == before
    assert world.settled(RestartTask(task_id=TASK)).error is None
    assert world.tasks.keys() == {TASK}
    assert len(world.fenced) == 2


@cases("permanent", True, False)
def test_a_round_that_was_denied_is_not_repeated(permanent: bool) -> None:
    """The policy restarts tasks after a failed round, unless the failure is permanent."""
    world = world_with(2)
    configured(world, 2, **{"agent.restart.policy": "on-failure"})
    effect_id = until_asked(world)
    error = InternalError("Failed on purpose", permanent=permanent)
    world.inbox.append(on.EffectFailed(effect_id=effect_id, error=error))
    world.deliver_all()
    failed = world.task_statuses[TASK]
    assert failed.state is State.FAILED
    assert (failed.trace or "").startswith("Failed on purpose\nThis is ")
    assert ("authorization has to be corrected" in (failed.trace or "")) is permanent
    world.settle()
    expected = State.FAILED if permanent else State.RUNNING
    assert {status.state for status in world.task_statuses.values()} == {expected}


@cases(
    "seen, text",
    (True, "Failed to complete zombie fencing because a new set of task configs was generated"),
    (False, "Fencing failed because new task configurations were generated for the connector"),
)
def test_task_configs_made_meanwhile_spoil_the_round(seen: bool, text: str) -> None:
    """A newer task set makes a round fail, and has a round of its own."""
    world = round_of(2)
    number = world.ask(FenceZombies(connector="c"))
    world.write_elsewhere(
        config_records.task_config(TASK, {"n": "0", "newer": "yes"}),
        config_records.tasks_commit("c", 1),
    )
    if seen:
        world.read_log()
        world.deliver_all()
    told: list[str] = []
    world.answer(world.fencing[0])
    for _ in range(500):
        told += [str(event.error) for event in world.inbox if isinstance(event, on.EffectFailed)]
        if not world.step():
            break
    assert text in told
    assert not world.replayed().pending_fencing
    assert world.tasks.keys() == set(world.replayed().tasks("c"))
    assert world.replies[number].error is None
    assert State.FAILED not in {status.state for status in world.task_statuses.values()}


@cases("before, between, after", (2, 2, 5), (1, 1, 4))
def test_a_round_does_not_count_an_older_task_set(before: int, between: int, after: int) -> None:
    """No count is written beside a write of a newer task set, as it would count for that set."""
    world = world_with(before)
    configured(world, between, other="value")
    world.go_on(but={"fencing", "reads"}, until=lambda: bool(world.own_fencings))
    configured(world, after)
    world.go_on(but={"fencing", "reads"}, until=lambda: writing_a_task_set(world))
    world.go_on(but={"writes"})
    world.settle()
    assert world.replayed().task_count_records == {"c": after}
    assert len(world.tasks) == after
    world.check_rest()


def writing_a_task_set(world: World) -> bool:
    return any(
        isinstance(operation.request, ApplyTaskConfigs) and operation.step is Step.WRITING
        for operation in world.state.operations.values()
    )


def until_asked(world: World) -> int:
    """Take all steps until the leader is asked to fence; lose the request, return its number."""
    while not world.own_fencings:
        assert world.step(), "the leader was not asked"
    number, effect_id = world.own_fencings.popitem()
    arrived = [event for event in world.inbox if isinstance(event, on.RequestArrived)]
    world.inbox.remove(*(event for event in arrived if event.request_id == number))
    return effect_id


def asked_world() -> tuple[World, int]:
    """Return a worker with a changed connector, and the request for fencing that it has sent."""
    world = world_with(2)
    configured(world, 2, other="value")
    return world, until_asked(world)


def test_a_leader_that_died_while_answering_is_asked_again() -> None:
    """After a lost answer the next leader completes the round, and no request fails."""
    world, effect_id = asked_world()
    world.after(on.EffectFailed(effect_id=effect_id, error=NoAnswerError("reset")))
    assert len(world.tasks) == 2
    assert {status.state for status in world.task_statuses.values()} == {State.RUNNING}


def test_a_leader_that_never_answers_is_asked_for_90_seconds() -> None:
    """The pauses between requests grow; after 90 seconds the tasks fail with the last text."""
    world = world_with(2)
    configured(world, 2, other="value")
    asked_ms = []
    while not world.tasks_in(Life.REFUSED):
        effect_id = until_asked(world)
        asked_ms.append(world.now_ms)
        world.inbox.append(on.EffectFailed(effect_id=effect_id, error=NoAnswerError("reset")))
        world.deliver_all()
    assert world.task_statuses[TASK].trace == "reset"
    waits = [after - before for before, after in pairwise(asked_ms)]
    assert waits[:6] == [250, 500, 1_000, 2_000, 4_000, 5_000]
    assert 90_000 <= asked_ms[-1] - asked_ms[0] <= 96_000


def test_an_answer_from_before_a_rebalance_does_not_count() -> None:
    """After a rebalance, fencing is requested again, and the old leader's answer is ignored."""
    world, effect_id = asked_world()
    world.after(on.RejoinNeeded())
    assert len(world.tasks) == 2
    world.after(on.EffectFailed(effect_id=effect_id, error=InternalError("late")))
    assert {status.state for status in world.task_statuses.values()} == {State.RUNNING}


def test_nothing_is_fenced_for_tasks_that_start_paused() -> None:
    """Tasks of a paused connector get no process and no fencing until they are resumed."""
    world = world_with(2)
    world.settled(SetTargetState(connector="c", target_state=TargetState.PAUSED))
    for task_id, config in world.replayed().task_configs.items():
        world.write_elsewhere(config_records.task_config(task_id, config))
    world.write_elsewhere(config_records.tasks_commit("c", 2))
    world.settle()
    assert (world.tasks, world.fenced) == ({}, [])
    assert {status.state for status in world.task_statuses.values()} == {State.PAUSED}
    world.check_rest()
    world.ask(SetTargetState(connector="c", target_state=TargetState.STARTED))
    until_fencing(world)
    world.answer(world.fencing[0], well=False)
    world.settle()
    assert world.task_statuses[TASK].state is State.FAILED
    assert world.settled(RestartTask(task_id=TASK)).error is None
    assert world.tasks.keys() == {TASK}


def test_a_paused_task_that_leaves_is_unassigned() -> None:
    """A worker that ends sets its paused tasks to UNASSIGNED, although they had no process."""
    world = world_with(1)
    world.settled(SetTargetState(connector="c", target_state=TargetState.PAUSED))
    world.crash()
    world.settle()
    assert world.tasks_in(Life.PAUSED) == {TASK}
    world.after(on.Stopping())
    assert world.task_statuses[TASK].state is State.UNASSIGNED


def test_reading_after_a_round_is_repeated() -> None:
    """A failed read after a round is repeated, and the round is not."""
    world = round_of(2)
    world.answer(world.fencing[0])
    world.deliver()
    reads = [answer for answer in world.answerable() if answer.queue == "reads"]
    world.answer(reads[0], well=False)
    world.settle()
    assert len(world.fenced) == 1
    assert len(world.tasks) == 2


@cases("asked", "tasks that wait", "a task's process")
def test_a_topic_that_cannot_be_read_is_read_again_in_growing_intervals(asked: str) -> None:
    """Pauses between failed reads grow to 5 s, so that the brokers have little load."""
    world = world_with(1)
    if asked == "tasks that wait":
        world.write_elsewhere(
            config_records.task_config(TASK, {"n": "9"}), config_records.tasks_commit("c", 1)
        )
        world.write_elsewhere(config_records.task_count_record("c", 1))
    else:
        world.inbox.append(on.TaskStartAsked(task_id=TASK, request_id=7))
    read_ms = []
    while len(read_ms) < 9:
        reads = [answer for answer in world.answerable() if answer.queue == "reads"]
        if reads and waits_for_tasks(world):
            read_ms.append(world.now_ms)
            world.answer(reads[0], well=False)
        else:
            assert world.step()
    waits = [after - before for before, after in pairwise(read_ms)]
    assert waits == [250, 500, 1_000, 2_000, 4_000, 5_000, 5_000, 5_000]
    world.settle()
    assert world.tasks.keys() == {TASK}
    if asked == "a task's process":
        assert world.started_answers == [(TASK, 7, None)]


def waits_for_tasks(world: World) -> bool:
    """Return whether the config topic is being read before tasks may start."""
    kinds = (LastRead, TaskStartRead)
    return any(isinstance(waiter, kinds) for waiter in world.state.waiters.values())


def test_a_task_that_was_stopped_waits_for_no_read() -> None:
    """A stopped task's question is dropped, because its next process asks again."""
    world = world_with(1)
    world.inbox.append(on.TaskStartAsked(task_id=TASK, request_id=7))
    world.deliver()
    (read,) = (answer for answer in world.answerable() if answer.queue == "reads")
    world.answer(read, well=False)
    world.settled(SetTargetState(connector="c", target_state=TargetState.STOPPED))
    assert world.started_answers == []
    world.check_rest()


def test_a_fencing_round_answers_all_waiting_requests() -> None:
    """A request for fencing that waits for another's round finds nothing left to fence."""
    world = round_of(2)
    assert world.settled(FenceZombies(connector="c")).error is None
    assert len(world.fenced) == 1


def test_fencing_needs_a_readable_topic_and_a_known_connector() -> None:
    """An unknown connector is a NotFoundError; a failed read of the topic has Apache's text."""
    world = world_with(1)
    assert isinstance(world.settled(FenceZombies(connector="absent")).error, NotFoundError)
    world = world_with(1)
    number = world.ask(FenceZombies(connector="c"))
    world.deliver()
    world.answer(world.answerable()[0], well=False)
    world.settle()
    error = world.replies[number].error
    assert isinstance(error, InternalError)
    expected = "Failed to read to end of config topic before performing zombie fencing"
    assert error.message == expected


def test_a_task_begins_only_here_and_from_the_newest_configs() -> None:
    """A task may begin only if it is still assigned here and its task set is the newest."""
    world = world_with(1)
    world.after(on.TaskStartAsked(task_id=TASK, request_id=7))
    assert world.started_answers == [(TASK, 7, None)]
    world.inbox.append(on.TaskStartAsked(task_id=TASK, request_id=8))
    world.deliver()
    world.write_elsewhere(
        config_records.task_config(TASK, {"n": "9"}), config_records.tasks_commit("c", 1)
    )
    world.settle()
    (_, _, refusal) = world.started_answers[1]
    assert refusal is not None
    assert "already" in refusal
    world = world_with(1)
    gone = ConnectorTaskId("c", 5)
    world.after(on.TaskStartAsked(task_id=gone, request_id=7))
    assert world.started_answers == [
        (gone, 7, "Cannot start source task c-5 as it has already been revoked from this worker")
    ]


def test_a_connector_of_unknown_type_is_fenced_too() -> None:
    """A class outside the list of plugins may be a source, so only known sinks are not fenced."""
    for kind, needed in (("source", True), ("unknown", True), ("sink", False)):
        settings = HerderSettings(
            worker_id="w", connector_type=partial(_constant, kind), exactly_once_source=True
        )
        assert settings.needs_start_permission({"name": "c"}) is needed


def test_a_connector_whose_producers_would_fence_anothers_is_not_created() -> None:
    """With exactly-once, a config is refused if two connectors would share a transactional id."""
    config = {"name": "c-0", "connector.class": "x", TASKS: "1"}
    world = world_with(1)
    number = world.ask(PutConnectorConfig(connector="c-0", config=config))
    reply = world.settled(PutConnectorConfig(connector="c-1", config={**config, "name": "c-1"}))
    error = world.replies[number].error
    assert isinstance(error, BadRequestError)
    assert "the transactional id group-c-0 with connector c" in error.message
    assert reply.error is None
    plain = World()
    configured(plain, 1)
    assert plain.settled(PutConnectorConfig(connector="c-0", config=config)).error is None


def _constant(kind: str, _: ConnectorConfig | None) -> str:
    return kind
