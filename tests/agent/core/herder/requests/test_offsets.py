"""Changes of a connector's offsets, step by step, with events between the steps."""

from pyconnect_agent.core.errors import BadRequestError, InternalError, NotFoundError, RequestError
from pyconnect_agent.core.herder.effects import Reply
from pyconnect_agent.core.herder.requests import (
    ChangeOffsets,
    DeleteConnector,
    PutConnectorConfig,
    SetTargetState,
    StopConnector,
)
from pyconnect_agent.core.ids import ConnectorTaskId, TargetState
from pyconnect_agent.core.internal_topics import LogRecord, config_records
from tests.simulation.herder_world import TASKS, World
from tests.support.cases import cases

CONFIG = {"name": "c", "connector.class": "x", TASKS: "2"}
RESET = ChangeOffsets(connector="c", offsets=None)
ALTER = ChangeOffsets(connector="c", offsets=b'{"offsets":[{}]}')
RESUMED = config_records.target_state("c", TargetState.STARTED)
MUST_BE_STOPPED = (
    "Connectors must be in the STOPPED state before their offsets can be modified. This can be done"
    " for the specified connector by issuing a 'PUT' request to the '/connectors/c/stop' endpoint"
)


def stopped_world(*, exactly_once: bool = False, standalone: bool = False) -> World:
    """Return a worker whose connector c has run and is stopped."""
    world = World(exactly_once=exactly_once, standalone=standalone)
    world.settled(PutConnectorConfig(connector="c", config=CONFIG))
    world.settled(StopConnector(connector="c"))
    assert world.tasks == {}
    return world


def run_to(world: World, queue: str, *, skip: int = 0) -> None:
    """Let all steps succeed until an effect of `queue` may end, after the first `skip` of them."""
    for _ in range(500):
        waiting = [answer for answer in world.answerable() if answer.queue == queue]
        if not world.inbox and waiting:
            if not skip:
                return
            skip -= 1
            world.answer(waiting[0])
        else:
            assert world.step()
    raise AssertionError(f"never came to {queue}")


def altered_up_to(queue: str, *, skip: int = 0, exactly_once: bool = False) -> tuple[World, int]:
    """Return a worker that changes offsets, up to an answer of `queue`, and its number."""
    world = stopped_world(exactly_once=exactly_once)
    number = world.ask(ALTER)
    run_to(world, queue, skip=skip)
    return world, number


def end(world: World, queue: str, *, well: bool = True) -> None:
    (answer,) = (answer for answer in world.answerable() if answer.queue == queue)
    world.answer(answer, well=well)


def text_of(reply: Reply) -> str:
    """Return the text of the reply's error."""
    assert isinstance(reply.error, RequestError)
    return str(reply.error)


@cases("standalone", False, True)
@cases("request_", RESET, ALTER)
def test_offsets_of_stopped_connectors_change(request_: ChangeOffsets, standalone: bool) -> None:
    """The connector's answer to a change decides the text for the client."""
    world = stopped_world(standalone=standalone)
    reply = world.settled(request_)
    done = "reset" if request_.offsets is None else "altered"
    assert reply.error is None
    text = f"The offsets for this connector have been {done} successfully"
    assert (reply.result, world.changed) == (text, ["c"])


def test_unknown_and_half_stopped_connectors_have_no_offsets_to_change() -> None:
    """An unknown connector has Connect's text; a connector with task configs is not stopped."""
    world = World()
    world.settle()
    reply = world.settled(RESET)
    assert isinstance(reply.error, NotFoundError)
    assert text_of(reply) == "Connector c not found"
    world = stopped_world()
    world.write_elsewhere(
        config_records.task_config(ConnectorTaskId("c", 0), {"n": "0"}),
        config_records.tasks_commit("c", 1),
    )
    assert text_of(world.settled(RESET)) == MUST_BE_STOPPED


@cases("target", TargetState.STARTED, TargetState.PAUSED)
def test_offsets_are_changed_of_stopped_connectors_only(target: TargetState) -> None:
    """The connector's target state must be STOPPED: STARTED and PAUSED are refused."""
    world = World()
    world.settled(PutConnectorConfig(connector="c", config=CONFIG, initial_state=target))
    reply = world.settled(RESET)
    assert isinstance(reply.error, BadRequestError)
    assert text_of(reply) == MUST_BE_STOPPED
    assert world.changed == []


@cases(
    "between, text",
    ((RESUMED,), MUST_BE_STOPPED),
    (tuple(config_records.connector_removal("c")), "Connector c not found"),
    ids=["resume", "delete"],
)
def test_a_write_of_another_worker_while_the_connector_is_asked_prevents_the_change(
    between: tuple[LogRecord, ...], text: str
) -> None:
    """A resume or removal by another worker is seen in the last read, and nothing is written."""
    world, number = altered_up_to("prepare c")
    world.write_elsewhere(*between)
    end(world, "prepare c")
    world.settle()
    assert text_of(world.replies[number]) == text
    assert (world.changed, world.prepared) == ([], {})


def test_a_new_config_while_the_connector_is_asked_restarts_the_change() -> None:
    """The connector is asked again, because the new config may name another group or topic."""
    world, number = altered_up_to("prepare c")
    newer = {**CONFIG, "text": "newer"}
    world.write_elsewhere(config_records.connector_config("c", newer))
    end(world, "prepare c")
    run_to(world, "prepare c")
    assert world.prepared == {"c": newer}
    world.settle()
    assert (world.replies[number].error, world.changed) == (None, ["c"])


def test_a_rebalance_while_the_connector_is_asked_restarts_the_change() -> None:
    """The change starts again after a rebalance, as another worker may lead."""
    world, number = altered_up_to("prepare c")
    world.write_elsewhere(config_records.connector_config("d", {**CONFIG, "name": "d"}))
    world.read_log()
    world.deliver_all()
    assert not world.state.serving
    end(world, "prepare c")
    world.settle()
    assert (world.replies[number].error, world.changed) == (None, ["c"])


def test_later_requests_wait_for_the_offset_change() -> None:
    """A resume and a removal wait for a change, so that no task runs beside it."""
    world = stopped_world()
    change = world.ask(RESET)
    resume = world.ask(SetTargetState(connector="c", target_state=TargetState.STARTED))
    delete = world.ask(DeleteConnector(connector="c"))
    run_to(world, "change c")
    assert world.replies.keys().isdisjoint({change, resume, delete})
    assert world.tasks == {}
    world.settle()
    assert [world.replies[n].error for n in (change, resume, delete)] == [None] * 3


@cases("skip", 0, 1, ids=["before it is asked", "after it was asked"])
def test_an_unreadable_config_topic_prevents_a_change(skip: int) -> None:
    """Without a read of the config topic a worker does not know that a connector is stopped."""
    world, number = altered_up_to("reads", skip=skip)
    end(world, "reads", well=False)
    world.settle()
    text = "Failed to read to end of config topic before modifying connector offsets"
    assert text_of(world.replies[number]) == text
    assert (world.changed, world.prepared) == ([], {})


def test_the_answer_has_the_childs_text_of_its_failure() -> None:
    """A failure of the child before or during the write reaches the client with its text."""
    world = stopped_world()
    for queue in ("prepare c", "change c"):
        number = world.ask(ALTER)
        run_to(world, queue)
        end(world, queue, well=False)
        world.settle()
        assert text_of(world.replies[number]) == "Error on purpose"
        assert world.prepared == {}


def test_a_client_that_gives_up_while_it_is_written_does_not_stop_it() -> None:
    """A change goes on after its client's timeout, and the next change waits for its end."""
    world = stopped_world()
    first = world.ask(ALTER, timeout_ms=1_000)
    run_to(world, "change c")
    second = world.ask(RESET)
    world.pass_time()
    assert "modifying offsets for connector c" in text_of(world.replies[first])
    assert world.changed == ["c"]
    world.settle()
    assert world.replies[second].error is None
    assert world.changed == ["c", "c"]


def test_an_exactly_once_sources_tasks_are_fenced_first_and_once() -> None:
    """A change fences the tasks and records the count 0, so that the next one need not fence."""
    world = stopped_world(exactly_once=True)
    for expected in ([("group-c-0", "group-c-1")], [("group-c-0", "group-c-1")]):
        assert world.settled(ALTER).error is None
        assert world.fenced == expected
        assert world.replayed().task_count_records == {"c": 0}


def test_resumed_tasks_start_after_the_changes_own_id_is_fenced() -> None:
    """Resumed tasks start after a change's id is fenced: a hanging change cannot commit later."""
    world = stopped_world(exactly_once=True)
    world.settled(ALTER)
    world.settled(SetTargetState(connector="c", target_state=TargetState.STARTED))
    assert world.fenced[1:] == [("group-c",)]
    assert len(world.tasks) == 2
    world = World(exactly_once=True)
    created = PutConnectorConfig(connector="c", config=CONFIG, initial_state=TargetState.STOPPED)
    world.settled(created)
    world.settled(ALTER)
    assert world.changed == ["c"]
    assert world.replayed().task_count_records == {"c": 0}
    world.settled(SetTargetState(connector="c", target_state=TargetState.STARTED))
    assert world.fenced == [("group-c",)]
    assert len(world.tasks) == 2


def test_nothing_is_changed_when_fencing_fails_or_a_resume_comes() -> None:
    """After a round the conditions are checked again; a failed round has Connect's text."""
    world, number = altered_up_to("fencing", exactly_once=True)
    end(world, "fencing", well=False)
    world.settle()
    assert isinstance(world.replies[number].error, InternalError)
    expected = "Failed to perform zombie fencing for source connector prior to modifying offsets"
    assert text_of(world.replies[number]) == expected
    assert world.changed == []
    world, number = altered_up_to("fencing", exactly_once=True)
    world.write_elsewhere(RESUMED)
    end(world, "fencing")
    world.settle()
    assert text_of(world.replies[number]) == MUST_BE_STOPPED
    assert world.changed == []
