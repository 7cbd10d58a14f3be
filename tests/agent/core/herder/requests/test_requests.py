"""The herder's answer to each request, and the order of its steps."""

from dataclasses import replace

import pytest

from pyconnect_agent.core.errors import (
    AlreadyExistsError,
    BadRequestError,
    InternalError,
    NotFoundError,
    PrivilegedWriteError,
    RequestTimedOutError,
)
from pyconnect_agent.core.herder import events as on
from pyconnect_agent.core.herder import requests as ask
from pyconnect_agent.core.herder.requests.configs import SharedId, shared_id
from pyconnect_agent.core.herder.state import WritePrivilege
from pyconnect_agent.core.ids import ConnectorTaskId, State, TargetState
from pyconnect_clients.connect_names import (
    alter_transactional_id,
    leader_transactional_id,
    task_transactional_ids,
)
from tests.simulation.herder_world import TASKS, World
from tests.support.cases import cases

CONFIG = {"name": "c", TASKS: "2", "text": "x"}


@pytest.fixture
def world() -> World:
    """Return a worker at rest that runs connector `c` with two tasks."""
    world = World()
    world.settled(ask.PutConnectorConfig(connector="c", config=CONFIG))
    return world


def error(world: World, request: ask.Request) -> tuple[type[Exception] | None, str]:
    reply = world.settled(request)
    return (None, "") if reply.error is None else (type(reply.error), str(reply.error))


def writes(world: World) -> list[str]:
    return [record.key.decode() for record in world.log]


def test_creating_writes_the_target_state_before_the_config() -> None:
    """The target state is written first, so that a STOPPED connector never starts (KIP-980)."""
    world = World()
    request = ask.PutConnectorConfig(
        connector="c", config=CONFIG, initial_state=TargetState.STOPPED, allow_replace=False
    )
    reply = world.settled(request)
    assert reply.result.created
    assert reply.result.info.tasks == ()
    assert writes(world) == ["target-state-c", "connector-c"]
    assert world.connector_statuses["c"].state is State.STOPPED
    assert world.tasks == {}


def test_a_name_is_created_once(world: World) -> None:
    """POST refuses an existing name, also one that is being created; PUT replaces the config."""
    post = ask.PutConnectorConfig(connector="c", config=CONFIG, allow_replace=False)
    assert error(world, post) == (AlreadyExistsError, "Connector c already exists")
    put = ask.PutConnectorConfig(connector="c", config=CONFIG)
    assert not world.settled(put).result.created
    world = World()
    post = ask.PutConnectorConfig(connector="c", config=CONFIG, allow_replace=False)
    first, second = world.ask(post), world.ask(post)
    world.settle()
    assert world.replies[first].error is None
    assert isinstance(world.replies[second].error, AlreadyExistsError)


def test_reads_show_the_config_and_its_tasks(world: World) -> None:
    """Raw configs are returned, those of tasks in order of task number."""
    info = world.settled(ask.GetConnectorInfo(connector="c")).result
    assert (info.config, info.type) == (CONFIG, "source")
    assert info.tasks == (ConnectorTaskId("c", 0), ConnectorTaskId("c", 1))
    tasks = world.settled(ask.GetTaskConfigs(connector="c")).result
    assert [task.config["n"] for task in tasks] == ["0", "1"]
    assert world.settled(ask.GetConnectorConfig(connector="c")).result == CONFIG


@cases(
    "request_, text",
    (ask.GetConnectorInfo(connector="no"), "Connector no not found"),
    (ask.GetConnectorConfig(connector="no"), "Connector no not found"),
    (ask.GetTaskConfigs(connector="no"), "Connector no not found"),
    (ask.PatchConnectorConfig(connector="no", patch={}), "Connector no not found"),
    (ask.DeleteConnector(connector="no"), "Connector no not found"),
    (ask.SubmitTaskConfigs(connector="no", configs=()), "Connector no not found"),
    (ask.StopConnector(connector="no"), "Unknown connector no"),
    (ask.SetTargetState(connector="no", target_state=TargetState.PAUSED), "Unknown connector no"),
    (ask.RestartConnector(connector="no"), "Unknown connector: no"),
    (
        ask.RestartConnectorAndTasks(connector="no", only_failed=False, include_tasks=True),
        "Unknown connector: no",
    ),
    (ask.RestartTask(task_id=ConnectorTaskId("no", 0)), "Unknown connector: no"),
    (ask.RestartTask(task_id=ConnectorTaskId("c", 7)), "Unknown task: c-7"),
)
def test_unknown_names_get_apaches_texts(world: World, request_: ask.Request, text: str) -> None:
    """Apache has three texts for an unknown name, depending on the request."""
    assert error(world, request_) == (NotFoundError, text)


def test_a_patch_removes_keys_that_are_null(world: World) -> None:
    """A null value in a patch removes the key, and the result has the merged config (KIP-477)."""
    patch = ask.PatchConnectorConfig(connector="c", patch={"text": None, "new": "1"})
    reply = world.settled(patch)
    assert reply.result.info.config == {"name": "c", TASKS: "2", "new": "1"}
    assert not reply.result.created


@cases(
    "request_",
    ask.PatchConnectorConfig(connector="c", patch={"text": "bad"}),
    ask.PutConnectorConfig(connector="c", config={"text": "bad"}),
    # As at Apache's worker, an existing name with an invalid config gets the validation's error.
    ask.PutConnectorConfig(connector="c", config={"text": "bad"}, allow_replace=False),
)
def test_an_invalid_config_changes_nothing(world: World, request_: ask.Request) -> None:
    """A request with an invalid config writes nothing and fails with the validation's error."""
    before = list(world.log)
    number = world.ask(request_)
    world.deliver()
    effect_id = max(world.state.waiters)
    world.answers.clear()
    world.after(on.EffectFailed(effect_id=effect_id, error=BadRequestError("not so")))
    assert isinstance(world.replies[number].error, BadRequestError)
    assert world.log == before


def test_stopping_empties_the_task_set_before_the_target_state(world: World) -> None:
    """A stop writes an empty task set first; then non-empty ones are refused (KIP-875)."""
    before = len(world.log)
    assert world.settled(ask.StopConnector(connector="c")).error is None
    assert writes(world)[before:] == ["commit-c", "target-state-c"]
    assert world.tasks == {}
    refused = ask.SubmitTaskConfigs(connector="c", configs=({"n": "0"},))
    text = "Cannot submit non-empty set of task configs for stopped connector c"
    assert error(world, refused) == (BadRequestError, text)


def test_pausing_moves_connector_and_tasks_without_new_processes(world: World) -> None:
    """Running instances change their target state and keep their processes."""
    tasks = dict(world.tasks)
    world.settled(ask.SetTargetState(connector="c", target_state=TargetState.PAUSED))
    assert world.tasks == tasks
    assert {task.target_state for task in world.tasks.values()} == {TargetState.PAUSED}
    assert world.connector_statuses["c"].state is State.PAUSED


def test_deleting_leaves_no_status_and_frees_the_name(world: World) -> None:
    """After a removal no status is left, and the name can be created again."""
    world.settled(ask.DeleteConnector(connector="c"))
    assert (world.connectors, world.tasks) == ({}, {})
    assert (world.connector_statuses, world.task_statuses) == ({}, {})
    again = ask.PutConnectorConfig(connector="c", config=CONFIG, allow_replace=False)
    assert world.settled(again).result.created


def test_restarting_a_connector_waits_for_its_start(world: World) -> None:
    """The answer waits for the start and has Apache's text if it fails; tasks go on."""
    tasks = dict(world.tasks)
    assert world.settled(ask.RestartConnector(connector="c")).error is None
    number = world.ask(ask.RestartConnector(connector="c"))
    world.go_on(until=lambda: number in world.replies, fails=lambda a: a.queue == "connector c")
    assert str(world.replies[number].error) == "Failed to start connector: c"
    assert world.tasks == tasks


def test_restarting_a_task_gives_a_new_one(world: World) -> None:
    """A restart of one task leaves the other one running."""
    first, second = sorted(world.tasks)
    before = dict(world.tasks)
    assert world.settled(ask.RestartTask(task_id=first)).error is None
    assert world.tasks[first] is not before[first]
    assert world.tasks[second] is before[second]


def test_a_lost_write_privilege_is_reported_and_claimed_again(world: World) -> None:
    """After a lost privilege the request fails, and can be repeated successfully (KIP-618)."""
    number = world.ask(ask.DeleteConnector(connector="c"))
    world.deliver()
    world.answer(world.answerable()[0], well=False)
    while number not in world.replies:
        world.deliver()
    assert str(world.replies[number].error) == (
        "Failed to write to config topic; this may be due to a transient error and the request"
        " can be safely retried"
    )
    assert world.settled(ask.DeleteConnector(connector="c")).error is None


def test_a_privilege_that_is_not_held_is_not_lost(world: World) -> None:
    """A late failure of a write does not change a privilege that is released or being claimed."""
    for privilege in (WritePrivilege.NONE, WritePrivilege.CLAIMING):
        world.state = replace(world.state, privilege=privilege)
        late = on.EffectFailed(effect_id=10_000, error=PrivilegedWriteError("fenced"))
        world.inbox.append(late)
        world.deliver_all()
        assert (world.state.privilege, world.answers) == (privilege, [])


def test_a_timed_out_request_names_the_stage(world: World) -> None:
    """A timed-out write still takes effect; a request that only waited is dropped."""
    writing = world.ask(ask.DeleteConnector(connector="c"), timeout_ms=1_000)
    queued = world.ask(ask.PutConnectorConfig(connector="c", config=CONFIG), timeout_ms=1_000)
    world.pass_time()
    stage = "removing the config for connector c from the config topic"
    for number in (writing, queued):
        assert isinstance(world.replies[number].error, RequestTimedOutError)
    assert stage in str(world.replies[writing].error)
    world.settle()
    assert not world.replayed().contains("c")


def test_a_stopping_worker_answers_all_requests(world: World) -> None:
    """Waiting and later requests get the same error when the worker stops."""
    waiting = world.ask(ask.DeleteConnector(connector="c"))
    world.deliver()
    world.inbox.append(on.Stopping())
    late = world.ask(ask.Probe())
    world.deliver_all()
    for number in (waiting, late):
        assert isinstance(world.replies[number].error, InternalError)
        assert str(world.replies[number].error) == "Worker is shutting down"


def test_a_standalone_worker_answers_a_creation_when_its_tasks_exist() -> None:
    """A standalone worker answers with the tasks, or with the failure of the start."""
    world = World(standalone=True)
    reply = world.settled(ask.PutConnectorConfig(connector="c", config=CONFIG))
    assert len(reply.result.info.tasks) == 2
    number = world.ask(ask.PutConnectorConfig(connector="d", config=CONFIG))
    world.go_on(until=lambda: number in world.replies, fails=lambda a: a.queue == "connector d")
    assert str(world.replies[number].error) == "Failed to start connector: d"


OTHERS = {"foo": 2, "bar-7": 1, "x-01": 1}
LEADER = "connect-cluster-g"


@cases(
    "connector, tasks_max, expected",
    ("new", 3, None),
    ("foo-1", 1, SharedId("g-foo-1", "foo")),
    ("foo-2", 1, None),
    ("foo-01", 1, None),
    ("bar", 8, SharedId("g-bar-7", "bar-7")),
    ("bar", 7, None),
    ("x", 5, None),
)
def test_the_id_for_offsets_of_one_may_be_that_of_anothers_task(
    connector: str, tasks_max: int, expected: SharedId | None
) -> None:
    """An offsets id equals another connector's task id, up to the largest number of tasks."""
    assert shared_id("g", connector, tasks_max, OTHERS.get, leader=LEADER) == expected


def test_it_is_found_by_comparing_all_ids_too() -> None:
    """For all names, two connectors share an id exactly when the function reports it."""

    def ids(name: str, tasks: int) -> set[str]:
        return {alter_transactional_id("g", name), *task_transactional_ids("g", name, tasks)}

    for name in ("foo", "foo-0", "foo-1", "foo-0-0", "bar-7", "bar", "bar-7-0", "x-1", "x"):
        for tasks in (1, 2, 9):
            for other, most in OTHERS.items():
                if other != name:
                    met = bool(ids(name, tasks) & ids(other, most))
                    found = shared_id("g", name, tasks, {other: most}.get, leader=LEADER)
                    assert (found is not None) is met


def test_a_connectors_id_may_be_its_leaders() -> None:
    """An id equal to that of the leader is reported, as its producer would fence the leader's."""
    leader = leader_transactional_id("connect")
    shared = SharedId(leader, None)
    assert shared_id("connect", "cluster-connect", 1, OTHERS.get, leader=leader) == shared
    assert shared_id("connect", "cluster", 1, OTHERS.get, leader=leader) is None
    own = "connect-writes-1"
    taken = SharedId(own, None)
    assert shared_id("connect", "writes", 2, OTHERS.get, leader=own) == taken
    assert shared_id("connect", "writes", 1, OTHERS.get, leader=own) is None
    assert shared_id("connect", "cluster-connect", 1, OTHERS.get, leader=own) is None
