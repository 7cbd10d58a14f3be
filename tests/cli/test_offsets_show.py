"""`pyconnect offsets get diff history seek lag`: output, and the need of brokers."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from pyconnect_cli.kafka.model import TopicPartition
from tests.cli.conftest import Run
from tests.cli.offsets_world import changes, sink_entry, stored
from tests.support.cases import cases
from tests.support.fakes.connect_server import FakeConnect, FakeConnector

pytestmark = pytest.mark.wire

__all__ = ["stored"]


def test_get_shows_partitions_and_offsets(run: Run, stored: FakeConnector) -> None:
    """The table shows partitions of sources as JSON and of sinks as TOPIC:NUMBER."""
    lines = run("offsets", "get", "orders").out.splitlines()
    assert lines[1].split() == ['{"filename":"a.txt"}', '{"position":30}']
    assert run("offset", "get", "broken").out.splitlines()[2].split() == ["t:1", "200"]
    expected = {"offsets": stored.offsets}
    assert json.loads(run("offsets", "get", "orders", "-o", "json").out) == expected
    assert "did you mean `orders`?" in run("offsets", "get", "order", code=3).err


def test_get_shows_several_connectors(run: Run, stored: FakeConnector) -> None:
    """Several connectors are a table with their names, or a JSON object with a body for each."""
    lines = run("offsets", "get", "orders", "broken").out.splitlines()
    assert [line.split()[0] for line in lines] == ["CONNECTOR", *["orders"] * 2, *["broken"] * 2]
    document = json.loads(run("offsets", "get", "--type", "source", "-o", "json").out)
    assert document == {"orders": {"offsets": stored.offsets}}
    assert run("offsets", "get").code == 2


def test_export_writes_a_file_for_each_connector(run: Run, tmp_path: Path) -> None:
    """An export of several connectors needs --dir, and writes a file for each."""
    assert run("offsets", "export", "--all").code == 2
    directory = tmp_path / "saved"
    assert run("offsets", "export", "--all", "--dir", str(directory)).code == 0
    assert {file.name for file in directory.iterdir()} == {"broken.json", "orders.json"}
    file = str(directory / "broken.json")
    assert run("offsets", "import", "broken", "-f", file, "--dry-run").code == 0


def test_an_unwritable_file_has_its_own_exit_code(run: Run, tmp_path: Path) -> None:
    """An output file that cannot be written is exit 74, because the command itself was correct."""
    (tmp_path / "file").write_text("")
    outcome = run("offsets", "export", "orders", "-f", str(tmp_path / "file" / "below"), code=74)
    assert "cannot be written" in outcome.err


def test_history_lists_the_newest_change_first(run: Run) -> None:
    """`history` lists changes with their kind and number of partitions, the newest first."""
    assert run("offsets", "alter", "broken", "--set", "t:0=5", "--yes").code == 0
    assert run("offsets", "reset", "broken", "--yes").code == 0
    rows = [line.split() for line in run("offsets", "history").out.splitlines()]
    assert [row[2:] for row in rows[1:]] == [["broken", "reset", "2"], ["broken", "alter", "2"]]
    assert "no backups" in run("offsets", "history", "orders").err


def test_a_difference_is_a_negative_answer(run: Run, connect: FakeConnect, tmp_path: Path) -> None:
    """A difference is exit 1 with its partitions, and no difference is exit 0."""
    file = tmp_path / "offsets.json"
    assert run("offsets", "export", "broken", "-f", str(file)).code == 0
    assert run("offsets", "diff", "broken", "-f", str(file)).code == 0
    connect.connectors["broken"].offsets = [sink_entry("t", 0, 101), sink_entry("t", 1, 200)]
    outcome = run("offsets", "diff", "broken", "-f", str(file), code=1)
    assert outcome.out.splitlines()[1].split() == ["t:0", "101", "100"]


@cases("verb", ("seek", "broken", "--to-earliest"), ("lag", "broken"))
def test_verbs_say_they_need_kafka(run: Run, connect: FakeConnect, verb: tuple[str, ...]) -> None:
    """A verb that needs brokers is exit 9 with a hint at --kafka-bootstrap."""
    assert "--kafka-bootstrap" in run("offsets", *verb, code=9).err
    assert changes(connect) == []


def test_a_seek_has_one_target_on_known_brokers(run: Run, connect: FakeConnect) -> None:
    """A seek without exactly one target is exit 2; brokers that do not answer are exit 7."""
    for flags in ((), ("--to-earliest", "--to-latest"), ("--to-datetime", "yesterday")):
        assert run("offsets", "seek", "broken", *flags).code == 2
    where = ("--kafka-bootstrap", "127.0.0.1:1", "--timeout", "1s", "--yes")
    assert run("offsets", "seek", "broken", "--to-latest", *where).code == 7
    assert run("offsets", "alter", "broken", "--set", "t:0=1", *where).code == 7
    assert changes(connect) == []


@cases("command", ("get",), ("export", "--dir", "d"), ("get", "-o", "json"))
@cases("status", 500, 404, 400)
def test_one_unreadable_connector_does_not_hide_the_others(
    run: Run, connect: FakeConnect, command: tuple[str, ...], status: int
) -> None:
    """A connector whose offsets cannot be read is named, the others are printed: exit 8."""
    connect.failures["GET /connectors/broken/offsets"] = [(status, "topic not readable")]
    ended = run("offsets", *command, "--all", code=8)
    assert "error: broken: " in ended.err
    assert "1 of 2 could not be read" in ended.err
    assert "orders" in ended.out or Path("d/orders.json").exists()
    assert "broken" not in ended.out


def test_connectors_that_fail_alike_keep_the_exit_code(run: Run, connect: FakeConnect) -> None:
    """If all connectors fail for the same reason, the error has its own exit code."""
    for name in connect.connectors:
        connect.failures[f"GET /connectors/{name}/offsets"] = [(404, "HTTP 404 Not Found")]
    ended = run("offsets", "get", "--all", code=9)
    assert ended.err.count("error:") == 1
    assert "1 more failed" in ended.err


def test_lags_are_shown(run: Run, connect: FakeConnect, monkeypatch: pytest.MonkeyPatch) -> None:
    """`lag` shows the sinks that it can read and names the others: exit 8."""
    other = FakeConnector(config={"name": "late"}, type="sink", offsets=[sink_entry("t", 0, 1)])
    connect.connectors["late"] = other
    connect.failures["GET /connectors/broken/offsets"] = [(500, "topic not readable")]
    kafka = SimpleNamespace(
        partitions=lambda topics: {TopicPartition(topic, 0) for topic in topics},
        ends=lambda partitions: dict.fromkeys(partitions, 3),
    )
    monkeypatch.setattr("pyconnect_cli.offsets.change.kafka_admin", lambda *_: kafka)
    monkeypatch.setattr("pyconnect_cli.offsets.change.all_read", lambda *_: set())
    ended = run("offsets", "lag", "--kafka-bootstrap", "127.0.0.1:1", code=8)
    assert ended.out.splitlines()[1].split() == ["late", "t", "0", "1", "3", "2"]
    assert "error: broken: " in ended.err
