"""Java workers of earlier versions, with the answers of Kafka Connect 2.8.2, and odd names."""

from pathlib import Path

import pytest

from pyconnect_cli.errors import ExitCode, PreconditionFailed
from pyconnect_cli.kafka.model import SinkGroup, TopicPartition
from pyconnect_cli.offsets.plan.entries import find_orphans
from pyconnect_cli.offsets.stored import sink_offsets
from pyconnect_cli.rest.client import kafka_version
from pyconnect_cli.session import Session
from tests.cli.conftest import Run
from tests.support.cases import cases
from tests.support.fakes.connect_server import FakeConnect, FakeConnector


@pytest.fixture
def old(connect: FakeConnect) -> FakeConnect:
    connect.version = "2.8.2"
    return connect


def posts(connect: FakeConnect) -> list[str]:
    return [request for request in connect.requests if request.startswith("POST")]


def test_tasks_of_a_worker_before_3_0_are_restarted_one_by_one(run: Run, old: FakeConnect) -> None:
    """A worker before 3.0 ignores `includeTasks`, so tasks are restarted one by one."""
    ended = run("connectors", "restart", "broken")
    assert (ended.code, ended.out) == (0, "broken: restarted (connector, task 0, task 1)\n")
    assert old.connectors["broken"].tasks == ["RUNNING", "RUNNING"]
    assert posts(old) == [
        "POST /connectors/broken/restart",
        "POST /connectors/broken/tasks/0/restart",
        "POST /connectors/broken/tasks/1/restart",
    ]


def test_only_failed_restarts_nothing_else_before_3_0(run: Run, old: FakeConnect) -> None:
    """A worker before 3.0 ignores `onlyFailed`, so failed instances are restarted one by one."""
    ended = run("connectors", "restart", "--all", "--only-failed", code=0)
    assert "broken: restarted (task 1)\n" in ended.out
    assert "orders: restarted (nothing had failed)\n" in ended.out
    assert posts(old) == ["POST /connectors/broken/tasks/1/restart"]
    old.connectors["broken"].state = "FAILED"
    old.requests.clear()
    run("connectors", "restart", "broken", "--only-failed", "--connector-only")
    assert posts(old) == ["POST /connectors/broken/restart"]
    old.requests.clear()
    assert run("connectors", "restart", "broken", "--connector-only").code == 0
    assert posts(old) == ["POST /connectors/broken/restart"]


@cases(
    "text, version",
    ("2.8.2", (2, 8)),
    ("3.0.0-cp1", (3, 0)),
    ("4.4", (4, 4)),
    ("trunk", (10**9, 0)),
)
def test_versions_are_compared_as_numbers(text: str, version: tuple[int, int]) -> None:
    """Versions are compared as numbers, and an unknown text counts as the latest."""
    assert kafka_version(text) == version


@cases("name", "semi;colon", "pct%41")
@cases(
    "command",
    ("connectors", "delete", "NAME", "--yes"),
    ("connectors", "restart", "NAME"),
    ("connectors", "patch", "NAME", "--set", "a=b"),
    ("tasks", "restart", "NAME/0"),
    ("offsets", "reset", "NAME", "--yes"),
)
def test_a_java_worker_gets_no_change_that_it_could_forward_to_another_connector(
    run: Run, connect: FakeConnect, name: str, command: tuple[str, ...]
) -> None:
    """A Java follower decodes names when it forwards: it could change `semi` for `semi;colon`."""
    connect.connectors[name] = FakeConnector(config={"name": name}, state="STOPPED", tasks=[])
    ended = run(*(word.replace("NAME", name) for word in command))
    assert ended.code == ExitCode.PRECONDITION, ended.err
    assert "is not the leader forwards" in ended.err
    assert not [request for request in connect.requests if not request.startswith("GET")]


def test_an_agent_forwards_every_name_as_it_is(
    run: Run, connect: FakeConnect, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An agent forwards every name as it is, and any worker writes states of every name."""
    connect.connectors["semi;colon"] = FakeConnector(config={"name": "semi;colon"})
    for verb in ("pause", "resume", "stop"):
        assert run("connectors", verb, "semi;colon").code == 0
    monkeypatch.setattr("pyconnect_cli.rest.model.WorkerInfo.agent", property(lambda _: True))
    assert run("connectors", "delete", "semi;colon", "--yes").code == 0
    assert "semi;colon" not in connect.connectors


@cases("name, code", (".", ExitCode.USAGE), ("..", ExitCode.USAGE), ("a;b", ExitCode.PRECONDITION))
@cases("verb", ("create", "--set", "connector.class=C"), ("apply",))
def test_a_name_that_no_path_carries_is_not_created(
    run: Run, connect: FakeConnect, tmp_path: Path, name: str, code: int, verb: tuple[str, ...]
) -> None:
    """A name that no path can carry is not created: it could be neither shown nor deleted."""
    file = tmp_path / "c.json"
    file.write_text(f'{{"name": "{name}", "connector.class": "C"}}')
    given = (name,) if verb[0] == "create" else ("-f", str(file), "--yes")
    run("connectors", *verb, *given, code=code)
    assert name not in connect.connectors


def test_a_deletion_is_read_back(run: Run, connect: FakeConnect) -> None:
    """A deletion is read back, because the worker's answer does not prove it."""
    connect.failures["DELETE /connectors/orders"] = [(200, "")]
    ended = run("connectors", "delete", "orders", "--yes", "--timeout", "2s")
    assert ended.code == ExitCode.SERVER_ERROR
    assert "orders still exists" in ended.err


@cases("verb", ("kill", "--yes"), ("restart",), ("stacks",), ("describe",))
def test_a_connector_is_no_task(run: Run, connect: FakeConnect, verb: tuple[str, ...]) -> None:
    """`t-1` is task 1 of `t` only if no connector has the name `t-1`."""
    connect.connectors["t-1"] = FakeConnector(config={"name": "t-1"})
    connect.connectors["t"] = FakeConnector(config={"name": "t"}, tasks=["RUNNING"] * 2)
    ended = run("tasks", verb[0], "t-1", *verb[1:])
    assert ended.code == ExitCode.USAGE
    assert "`t-1` is the name of a connector" in ended.err
    assert "pyconnect tasks list t-1" in ended.err
    assert run("tasks", "describe", "t-0").code == 0
    assert run("tasks", "describe", "t/1").code == 0


@cases("text", "t/²", "t/" + "9" * 5000, "t/", "/1", "t")
def test_a_number_of_a_task_has_decimal_digits(run: Run, text: str) -> None:
    """A task's number has decimal ASCII digits; any other text is a usage error."""
    ended = run("tasks", "describe", text)
    assert ended.code == ExitCode.USAGE
    assert "is not the name of a task" in ended.err


def test_a_patch_before_3_8_is_read_merged_and_replaced(run: Run, old: FakeConnect) -> None:
    """Before 3.8 a patch is a GET and a PUT of the configuration."""
    old.failures["PATCH /connectors/orders/config"] = [(405, "HTTP 405 Method Not Allowed")]
    run("connectors", "patch", "orders", "--set", "a=b", "--unset", "team", code=0)
    config = old.connectors["orders"].config
    assert (config["a"], "team" in config, config["db.password"]) == ("b", False, "hunter2")


def test_a_patch_that_a_later_worker_lacks_is_not_replaced(run: Run, connect: FakeConnect) -> None:
    """A later worker that refuses PATCH is probably not a worker, so no PUT follows."""
    connect.failures["PATCH /connectors/orders/config"] = [(405, "HTTP 405 Method Not Allowed")]
    assert run("connectors", "patch", "orders", "--set", "a=b").code == ExitCode.PRECONDITION
    assert "PUT /connectors/orders/config" not in connect.requests


@cases("status", 400, 500)
def test_an_initial_state_needs_3_7(run: Run, old: FakeConnect, status: int) -> None:
    """An initial state before 3.7 is exit 9 with the needed version and no JSON error."""
    text = (
        'Unrecognized field "initial_state" (class org.apache.kafka.connect.runtime.rest.entities'
        ".CreateConnectorRequest), not marked as ignorable (2 known properties: ..."
    )
    old.failures["POST /connectors"] = [(status, text)]
    ended = run("connectors", "create", "c", "-s", "connector.class=C", "--initial-state", "paused")
    assert ended.code == ExitCode.PRECONDITION
    assert "came with Kafka 3.7 (KIP-980); nothing was created" in ended.err
    assert "Unrecognized" not in ended.err


def test_a_scope_that_the_worker_ignores_is_refused(run: Run, old: FakeConnect) -> None:
    """--scope cluster before 3.7 is refused, because the worker would set only its own level."""
    ended = run("loggers", "set", "org.x", "DEBUG", "--scope", "cluster")
    assert ended.code == ExitCode.PRECONDITION
    assert "org.x" not in old.loggers
    assert run("loggers", "set", "org.x", "DEBUG", "--scope", "worker").code == 0


class Groups:
    """Consumer groups without brokers."""

    asked: list[str] = []  # noqa: RUF012 - one test looks at it

    def __init__(self, *_: object) -> None:
        pass

    def offsets(self, group: str) -> dict[TopicPartition, int]:
        self.asked.append(group)
        return {TopicPartition("t", 0): 40}


def test_a_sinks_offsets_before_3_5_are_those_of_its_group(
    environ: dict[str, str], url: str, old: FakeConnect, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before 3.5 a sink's offsets are read from its group, if that is on the workers' Kafka."""
    monkeypatch.setattr("pyconnect_cli.offsets.stored.ConsumerGroups", Groups)
    missing = [(404, "HTTP 404 Not Found")] * 3
    old.failures["GET /connectors/broken/offsets"] = missing
    session = Session({**environ, "PYCONNECT_URL": url, "PYCONNECT_KAFKA_BOOTSTRAP": "k:9"})
    view = session.client.connector_views()["broken"]
    assert [entry.to_json() for entry in sink_offsets(session, view)] == [
        {"partition": {"kafka_topic": "t", "kafka_partition": 0}, "offset": {"kafka_offset": 40}}
    ]
    assert Groups.asked == ["connect-broken"]
    old.connectors["broken"].config["consumer.override.bootstrap.servers"] = "other:9"
    elsewhere = session.client.connector_views()["broken"]
    with pytest.raises(PreconditionFailed, match=r"3\.5"):
        sink_offsets(session, elsewhere)
    session.close()


def test_sinks_without_a_known_lag_are_not_no_sinks(run: Run, old: FakeConnect) -> None:
    """If lags are not known, `status` says so and does not report that there are no sinks."""
    old.connectors["broken"].type = "sink"
    old.failures["GET /connectors/broken/offsets"] = [(404, "HTTP 404 Not Found")]
    ended = run("status", "--kafka-bootstrap", "127.0.0.1:1", "--timeout", "10s")
    assert "no sinks" not in ended.out
    assert "not known" in next(line for line in ended.out.splitlines() if line.startswith("lag"))


def test_a_group_with_members_is_no_orphan() -> None:
    """A group with members belongs to a sink of another Connect cluster and is not an orphan."""
    partitions = {TopicPartition("t", 0): 4}
    groups = [
        SinkGroup(group=f"connect-{state.lower()}", state=state, offsets=partitions)
        for state in ("STABLE", "PREPARING_REBALANCING", "COMPLETING_REBALANCING", "EMPTY")
    ]
    assert [orphan.name for orphan in find_orphans((), groups, {})] == ["empty"]
