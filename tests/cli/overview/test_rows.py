"""Rows of connectors, tasks and workers."""

from pyconnect_cli.acting.workers import WorkerHealth
from pyconnect_cli.overview.commands import JAVA
from pyconnect_cli.overview.rows import WorkerLook, connector_rows, failures, phase_of, worker_rows
from tests.cli.overview.worlds import agent, child, look, positions, view, worker
from tests.support.cases import cases


def test_a_connector_has_the_sums_of_its_tasks() -> None:
    """Rates and memory come from all agents that run its tasks."""
    found = look(
        view("orders", "RUNNING", "RUNNING"),
        workers=[
            agent(rates={"orders/0": 5.0}, children=[child("orders", None), child("orders", 0)]),
            agent("http://w2:8083", rates={"orders/1": 7.0}, children=[child("orders", 1)]),
        ],
    )
    (row,) = connector_rows(found)
    assert (row.rate, row.memory) == (12.0, 3 * 2**20)
    assert [task.rate for task in row.tasks] == [5.0, 7.0]


def test_unreported_values_and_unread_partitions_are_none() -> None:
    """A Java worker reports no rate or memory; a partition without committed offset has no lag."""
    (row,) = connector_rows(look(view("orders", "RUNNING")))
    assert (row.rate, row.memory, row.lag) == (None, None, None)
    places = positions(0, s=[(3, 10), (10, 10), (None, 5), (4, None)])
    (row,) = connector_rows(look(view("s", kind="sink"), positions=places))
    assert (row.lag, row.unread) == (7, 2)


def test_failures_show_their_root_cause() -> None:
    """The cause is the innermost exception; a failed connector is listed itself."""
    (row,) = connector_rows(look(view("orders", "RUNNING", "FAILED")))
    assert row.cause == "java.lang.IllegalStateException: disk full"
    assert row.progress == "1/2, 1 FAILED"
    assert [task.name for task in failures([row])] == ["orders/1"]
    rows = connector_rows(look(view("orders", "RUNNING", state="FAILED")))
    assert [task.name for task in failures(rows)] == ["orders"]


@cases("was, time_s, now, rate", (2, 14, 14, 3.0), (8, 14, 0, 0), (8, 10, 0, None))
def test_a_sink_has_the_rate_of_its_commits(
    was: int, time_s: float, now: int, rate: float | None
) -> None:
    """The rate is that between two looks; after a reset it is 0, at one moment it is None."""
    found = look(view("s", "RUNNING", kind="sink"), positions=positions(time_s, s=[(now, 19)]))
    (row,) = connector_rows(found, positions(10, s=[(was, 19)]))
    assert row.rate == rate


def test_workers_are_counted_by_what_they_report() -> None:
    """Connectors and tasks of agents and Java workers are counted; a silent worker has no kind."""
    found = look(
        view("a", "RUNNING", "RUNNING"),
        view("b", "RUNNING", worker="w2:8083"),
        workers=[agent(leader=True), worker("http://w2:8083")],
    )
    first, second = worker_rows(found)
    assert (first.kind, first.connectors, first.tasks, first.leader) == ("agent", 1, 2, True)
    assert (second.kind, second.connectors, second.tasks) == ("worker", 1, 1)
    health = WorkerHealth(url="http://w3:8083", status="unreachable", message="refused")
    (row,) = worker_rows(look(workers=[WorkerLook(health=health)]))
    assert row.kind == "-"


def test_the_phase_names_the_number_of_workers_that_report_it() -> None:
    """The reason of workers without a phase follows once."""
    java = [worker(f"http://w{number}:8083", silence=JAVA) for number in (2, 3)]
    rows = worker_rows(look(workers=[agent(phase="preparing"), *java]))
    assert phase_of(rows) == f"preparing; not known of 2 workers: {JAVA}"
    assert phase_of(worker_rows(look(workers=java))) == f"not known: {JAVA}"
    rows = worker_rows(look(workers=[agent(phase="preparing"), agent("http://w2:1")]))
    assert phase_of(rows) == "disabled on 1, preparing on 1"
    assert phase_of(worker_rows(look())) == "not known: no worker answers"
