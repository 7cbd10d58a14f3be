"""`pyconnect offsets`: what it prints, changes, keeps and exits with."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Run
from tests.support.connect_server import FakeConnect, FakeConnector, serve

pytestmark = pytest.mark.wire

A = {"filename": "a.txt"}
B = {"filename": "b.txt"}


def entry(partition: dict[str, Any], position: int) -> dict[str, Any]:
    return {"partition": partition, "offset": {"position": position}}


def sink_entry(topic: str, partition: int, offset: int) -> dict[str, Any]:
    return {
        "partition": {"kafka_topic": topic, "kafka_partition": partition},
        "offset": {"kafka_offset": offset},
    }


@pytest.fixture(autouse=True)
def stored(connect: FakeConnect) -> FakeConnector:
    """A running source with two partitions, and a stopped sink with two."""
    orders = connect.connectors["orders"]
    orders.offsets = [entry(A, 30), entry(B, 7)]
    broken = connect.connectors["broken"]
    broken.type, broken.state, broken.tasks = "sink", "STOPPED", []
    broken.offsets = [sink_entry("t", 0, 100), sink_entry("t", 1, 200)]
    return orders


def stop(connect: FakeConnect) -> None:
    connect.connectors["orders"].state = "STOPPED"
    connect.connectors["orders"].tasks = []


def changes(connect: FakeConnect) -> list[str]:
    """The requests that could have changed something."""
    return [request for request in connect.requests if not request.startswith("GET ")]


def backups(environ: dict[str, str]) -> list[Path]:
    return sorted((Path(environ["XDG_STATE_HOME"]) / "pyconnect" / "offsets").glob("*.json"))


def test_get_shows_partitions_and_offsets(run: Run) -> None:
    """JSON of a source, topic and number of a sink."""
    lines = run("offsets", "get", "orders").out.splitlines()
    assert lines[1].split() == ['{"filename":"a.txt"}', '{"position":30}']
    assert run("offset", "get", "broken").out.splitlines()[2].split() == ["t:1", "200"]


def test_get_as_json_is_exactly_the_rest_body(run: Run, stored: FakeConnector) -> None:
    """Nothing added, nothing left out."""
    assert json.loads(run("offsets", "get", "orders", "-o", "json").out) == {
        "offsets": stored.offsets
    }


def test_get_of_an_unknown_connector_is_exit_3_with_the_near_names(run: Run) -> None:
    """As for connectors."""
    outcome = run("offsets", "get", "order")
    assert outcome.code == 3
    assert "did you mean `orders`?" in outcome.err


def test_what_get_prints_is_what_alter_takes(
    run: Run, connect: FakeConnect, tmp_path: Path
) -> None:
    """Piped back it is no change at all."""
    stop(connect)
    file = tmp_path / "offsets.json"
    file.write_text(run("offsets", "get", "orders", "-o", "json").out)
    outcome = run("offsets", "alter", "orders", "-f", str(file), "--yes")
    assert outcome.code == 0, outcome.err
    assert outcome.out == "orders: unchanged\n"
    assert changes(connect) == []


def test_reset_never_stops_a_connector_unasked(run: Run, connect: FakeConnect) -> None:
    """Exit 9 with the command to run; nothing was sent."""
    outcome = run("offsets", "reset", "orders", "--yes")
    assert outcome.code == 9
    assert "orders is RUNNING" in outcome.err
    assert "pyconnect offsets reset orders --yes --stop" in outcome.err
    assert changes(connect) == []


def test_reset_without_a_terminal_shows_the_plan_and_asks_for_yes(
    run: Run, connect: FakeConnect
) -> None:
    """Exit 9; the plan says what becomes of states and partitions."""
    outcome = run("offsets", "reset", "orders", "--stop", "--resume")
    assert outcome.code == 9
    assert "RUNNING -> STOPPED -> RUNNING" in outcome.err
    assert '{"filename":"a.txt"}  {"position":30} -> forgotten' in outcome.err
    assert "pyconnect offsets reset orders --stop --resume --yes" in outcome.err
    assert changes(connect) == []


def test_reset_stops_backs_up_forgets_and_resumes(
    run: Run, connect: FakeConnect, stored: FakeConnector, environ: dict[str, str]
) -> None:
    """In this order, with an undo command at the end."""
    outcome = run("offsets", "reset", "orders", "--stop", "--resume", "--wait", "--yes")
    assert outcome.code == 0, outcome.err
    assert stored.offsets == []
    assert stored.state == "RUNNING"
    assert changes(connect) == [
        "PUT /connectors/orders/stop",
        "DELETE /connectors/orders/offsets",
        "PUT /connectors/orders/resume",
    ]
    (backup,) = backups(environ)
    assert f"undo: pyconnect offsets undo {backup.stem}" in outcome.err
    assert outcome.out == f"orders: reset (2 partitions, backup {backup.stem})\n"


def test_a_backup_says_where_it_comes_from_and_is_its_owners(
    run: Run, stored: FakeConnector, environ: dict[str, str]
) -> None:
    """Mode 0600; cluster, connector, class, time, version and offsets; no configuration."""
    before = stored.offsets
    assert run("offsets", "reset", "orders", "--stop", "--yes").code == 0
    (path,) = backups(environ)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    document = json.loads(path.read_text())
    assert document["cluster_id"] == "k"
    assert document["connector"] == "orders"
    assert document["class"] == "org.example.FileSource"
    assert document["version"] == "4.3.1"
    assert document["action"] == "reset"
    assert document["time"].endswith("Z")
    assert document["offsets"] == before
    assert "hunter2" not in path.read_text()


def test_a_backup_holds_what_the_tasks_committed_while_they_stopped(
    run: Run, stored: FakeConnector, environ: dict[str, str]
) -> None:
    """The plan is made again after the stop: the offsets it showed are old by then."""
    stored.committed_while_stopping = [entry(A, 31), entry(B, 8)]
    assert run("offsets", "reset", "orders", "--stop", "--yes").code == 0
    (path,) = backups(environ)
    assert json.loads(path.read_text())["offsets"] == [entry(A, 31), entry(B, 8)]


def test_reset_of_one_partition_leaves_the_others(run: Run, connect: FakeConnect) -> None:
    """A sink's partition is TOPIC:NUMBER, or JSON."""
    outcome = run("offsets", "reset", "broken", "--partition", "t:0", "--yes")
    assert outcome.code == 0, outcome.err
    assert connect.connectors["broken"].offsets == [sink_entry("t", 1, 200)]


def test_reset_of_an_unknown_partition_changes_nothing(run: Run, connect: FakeConnect) -> None:
    """Exit 3."""
    outcome = run("offsets", "reset", "broken", "-p", "t:0", "-p", "t:9", "--yes")
    assert outcome.code == 3
    assert "no offset of partition t:9" in outcome.err
    assert changes(connect) == []


def test_reset_may_run_twice(run: Run, connect: FakeConnect, environ: dict[str, str]) -> None:
    """The second run succeeds, and has nothing to back up."""
    for _ in range(2):
        outcome = run("offsets", "reset", "orders", "--stop", "--yes")
        assert outcome.code == 0, outcome.err
    assert len(backups(environ)) == 1


def test_reset_of_a_selection_does_the_others_when_one_is_refused(
    run: Run, connect: FakeConnect
) -> None:
    """Exit 8; the running one is named and not stopped."""
    outcome = run("offsets", "reset", "--all", "--yes")
    assert outcome.code == 8
    assert "orders is RUNNING" in outcome.err
    assert connect.connectors["broken"].offsets == []
    assert changes(connect) == ["DELETE /connectors/broken/offsets"]


def test_a_dry_run_prints_the_plan_and_changes_nothing(
    run: Run, connect: FakeConnect, environ: dict[str, str]
) -> None:
    """`--exit-code` turns a change into exit 1."""
    outcome = run("offsets", "reset", "orders", "--stop", "--dry-run", "--exit-code")
    assert outcome.code == 1
    assert '{"filename":"b.txt"}  {"position":7} -> forgotten' in outcome.out
    assert changes(connect) == []
    assert backups(environ) == []
    (plan,) = json.loads(run("offsets", "reset", "orders", "--stop", "--dry-run", "-o", "json").out)
    assert plan["states"] == ["RUNNING", "STOPPED"]
    assert plan["changes"][0] == {"partition": A, "before": {"position": 30}, "after": None}


def test_a_state_directory_that_is_a_file_stops_the_change_before_anything(
    run: Run, connect: FakeConnect, environ: dict[str, str]
) -> None:
    """Exit 9; --no-backup goes on without."""
    Path(environ["XDG_STATE_HOME"]).write_text("")
    outcome = run("offsets", "reset", "orders", "--stop", "--yes")
    assert outcome.code == 9
    assert "a backup cannot be written" in outcome.err
    assert changes(connect) == []
    outcome = run("offsets", "reset", "orders", "--stop", "--yes", "--no-backup")
    assert outcome.code == 0, outcome.err
    assert "undo" not in outcome.err


def test_a_change_that_is_not_read_back_is_a_server_error(run: Run, connect: FakeConnect) -> None:
    """Exit 10: the worker said yes and answers the old offsets."""
    connect.connectors["broken"].forgets_changes = True
    outcome = run("offsets", "reset", "broken", "--yes", "--timeout", "1s")
    assert outcome.code == 10
    assert "does not hold what was sent" in outcome.err


def test_consumers_that_linger_are_waited_out(run: Run, connect: FakeConnect) -> None:
    """The worker's 500 that says it can be retried is retried."""
    text = (
        "Failed to reset consumer group offsets for connector broken either because its tasks"
        " haven't stopped completely yet or the connector was resumed before the request to reset"
        " its offsets could be successfully completed. If the connector is in a stopped state,"
        " this operation can be safely retried."
    )
    connect.failures["DELETE /connectors/broken/offsets"] = [(500, text), (500, text)]
    outcome = run("offsets", "reset", "broken", "--yes")
    assert outcome.code == 0, outcome.err
    assert connect.connectors["broken"].offsets == []


def test_a_failed_change_leaves_the_connector_stopped_and_says_so(
    run: Run, stored: FakeConnector, connect: FakeConnect
) -> None:
    """--resume is for success only."""
    connect.failures["DELETE /connectors/orders/offsets"] = [(500, "no luck")]
    outcome = run("offsets", "reset", "orders", "--stop", "--resume", "--yes")
    assert outcome.code == 10
    assert "no luck" in outcome.err
    assert "pyconnect connectors resume orders" in outcome.err
    assert stored.state == "STOPPED"


def test_a_refused_change_leaves_no_backup(
    run: Run, connect: FakeConnect, environ: dict[str, str]
) -> None:
    """There is nothing to undo then."""
    stop(connect)
    connect.failures["DELETE /connectors/orders/offsets"] = [(400, "not stopped")]
    assert run("offsets", "reset", "orders", "--yes").code == 2
    assert backups(environ) == []


def test_an_older_worker_is_told_by_version(run: Run, connect: FakeConnect) -> None:
    """Exit 9 and the Kafka version that brought the endpoint."""
    connect.failures["GET /connectors/orders/offsets"] = [(404, "HTTP 404 Not Found")]
    outcome = run("offsets", "get", "orders")
    assert outcome.code == 9
    assert "3.5 (KIP-875)" in outcome.err
    connect.failures["PATCH /connectors/broken/offsets"] = [(405, "HTTP 405 Method Not Allowed")]
    outcome = run("offsets", "alter", "broken", "--set", "t:0=1", "--yes")
    assert outcome.code == 9
    assert "3.6 (KIP-875)" in outcome.err


def test_offsets_kept_elsewhere_are_told(run: Run, connect: FakeConnect) -> None:
    """A connector without the hook has only its stored offsets changed."""
    connect.connectors["broken"].takes_part = False
    outcome = run("offsets", "reset", "broken", "--yes")
    assert outcome.code == 0
    assert "offsets that the connector keeps elsewhere are not changed" in outcome.out


def test_alter_sets_many_partitions_in_one_request(run: Run, connect: FakeConnect) -> None:
    """Null forgets one."""
    outcome = run("offsets", "alter", "broken", "--set", "t:0=5", "--set", "t:1=null", "--yes")
    assert outcome.code == 0, outcome.err
    assert connect.connectors["broken"].offsets == [sink_entry("t", 0, 5)]
    assert changes(connect) == ["PATCH /connectors/broken/offsets"]


def test_alter_takes_json_on_both_sides(
    run: Run, connect: FakeConnect, stored: FakeConnector
) -> None:
    """A source's maps are its own."""
    stop(connect)
    text = '{"filename": "a.txt"} = {"position": 4}'
    outcome = run("offsets", "alter", "orders", "--set", text, "--yes")
    assert outcome.code == 0, outcome.err
    assert stored.offsets == [entry(B, 7), entry(A, 4)]


def test_alter_of_another_connectors_file_is_refused(
    run: Run, connect: FakeConnect, tmp_path: Path
) -> None:
    """Exit 2, and the command that imports it."""
    stop(connect)
    file = tmp_path / "exported.json"
    assert run("offsets", "export", "orders", "-f", str(file)).code == 0
    connect.connectors["later"] = FakeConnector(config=dict(connect.connectors["orders"].config))
    outcome = run("offsets", "alter", "later", "-f", str(file), "--yes", "--stop")
    assert outcome.code == 2
    assert "holds the offsets of orders, not of later" in outcome.err
    assert changes(connect) == []


BAD_SINK_BODIES = {
    "is not JSON": "{offsets}",
    "an object with `offsets` was expected": "[]",
    "at least one entry": '{"offsets": []}',
    "must be a list": '{"offsets": {}}',
    "must be an object": '{"offsets": [7]}',
    "`offset` is missing": '{"offsets": [{"partition": {"kafka_topic": "t", "kafka_partition":'
    " 0}}]}",
    "`partition` is missing": '{"offsets": [{"offset": null}]}',
    "exactly `kafka_topic`": '{"offsets": [{"partition": {"kafka_topic": "t"}, "offset": null}]}',
    "is not a whole number": '{"offsets": [{"partition": {"kafka_topic": "t", "kafka_partition":'
    ' 0}, "offset": {"kafka_offset": 1.5}}]}',
    "-1 is negative": '{"offsets": [{"partition": {"kafka_topic": "t", "kafka_partition": 0},'
    ' "offset": {"kafka_offset": -1}}]}',
    "partition t:0 stands twice": '{"offsets": [{"partition": {"kafka_topic": "t",'
    ' "kafka_partition": 0}, "offset": null}, {"partition": {"kafka_partition": "0",'
    ' "kafka_topic": "t"}, "offset": {"kafka_offset": 1}}]}',
    "partition t:9 has no stored offset": '{"offsets": [{"partition": {"kafka_topic": "t",'
    ' "kafka_partition": 9}, "offset": {"kafka_offset": 1}}]}',
    "stands twice in one object": '{"offsets": [], "offsets": []}',
    "unknown member other": '{"offsets": [], "other": 1}',
}


@pytest.mark.parametrize("reason", BAD_SINK_BODIES)
def test_what_a_worker_would_take_or_misread_is_refused_before_it_is_sent(
    run: Run, connect: FakeConnect, tmp_path: Path, reason: str
) -> None:
    """Exit 2 with the reason; nothing was sent."""
    file = tmp_path / "offsets.json"
    file.write_text(BAD_SINK_BODIES[reason])
    outcome = run("offsets", "alter", "broken", "-f", str(file), "--yes")
    assert outcome.code == 2
    assert reason in outcome.err
    assert changes(connect) == []


BAD_SOURCE_BODIES = {
    "`position` is a text, the stored one is a number": '[{"partition": {"filename": "a.txt"},'
    ' "offset": {"position": "5"}}]',
    "`position` is negative: -1": '[{"partition": {"filename": "a.txt"}, "offset": {"position":'
    " -1}}]",
    "has no stored offset": '[{"partition": {"filename": "c.txt"}, "offset": {"position": 5}}]',
    "has none of place": '[{"partition": {"filename": "a.txt"}, "offset": {"place": 5}}]',
}


@pytest.mark.parametrize("reason", BAD_SOURCE_BODIES)
def test_what_does_not_look_like_a_sources_offsets_needs_force(
    run: Run, connect: FakeConnect, tmp_path: Path, reason: str
) -> None:
    """A source's maps are its own: the user may know better."""
    stop(connect)
    file = tmp_path / "offsets.json"
    file.write_text(f'{{"offsets": {BAD_SOURCE_BODIES[reason]}}}')
    outcome = run("offsets", "alter", "orders", "-f", str(file), "--yes")
    assert outcome.code == 2
    assert reason in outcome.err
    assert changes(connect) == []
    assert run("offsets", "alter", "orders", "-f", str(file), "--yes", "--force").code == 0
    assert changes(connect) == ["PATCH /connectors/orders/offsets"]


def test_nested_values_and_keys_that_are_no_text_are_refused(
    run: Run, connect: FakeConnect, tmp_path: Path
) -> None:
    """Only primitive values can be stored; keys of YAML may be numbers."""
    stop(connect)
    file = tmp_path / "offsets.yaml"
    for text, reason in (
        ("offsets: [{partition: {1: a}, offset: null}]", "key 1 is not a text"),
        ("offsets: [{partition: {a: [1]}, offset: null}]", "`a` is a list"),
    ):
        file.write_text(text)
        outcome = run("offsets", "alter", "orders", "-f", str(file), "--yes")
        assert outcome.code == 2
        assert reason in outcome.err
    assert changes(connect) == []


def test_undo_makes_the_offsets_what_they_were_and_can_be_undone(
    run: Run, connect: FakeConnect, environ: dict[str, str]
) -> None:
    """Without an id it takes the newest change: after an undo, that undo."""
    before = connect.connectors["broken"].offsets
    assert run("offsets", "alter", "broken", "--set", "t:0=5", "--set", "t:1=6", "--yes").code == 0
    assert run("offsets", "undo", "--yes").code == 0
    assert connect.connectors["broken"].offsets == before
    assert run("offsets", "undo", "--yes").code == 0
    assert connect.connectors["broken"].offsets == [sink_entry("t", 0, 5), sink_entry("t", 1, 6)]
    first = backups(environ)[0].stem
    assert run("offsets", "undo", first, "--yes").code == 0
    assert connect.connectors["broken"].offsets == before


def test_undo_forgets_partitions_that_came_later(run: Run, connect: FakeConnect) -> None:
    """The snapshot is restored as it was, not merged."""
    before = list(connect.connectors["broken"].offsets)
    assert run("offsets", "alter", "broken", "--set", "u:0=1", "--force", "--yes").code == 0
    assert len(connect.connectors["broken"].offsets) == 3
    assert run("offsets", "undo", "--yes").code == 0
    assert connect.connectors["broken"].offsets == before


def test_history_lists_the_newest_change_first(run: Run) -> None:
    """With what was about to be done, and how many partitions are kept."""
    assert run("offsets", "alter", "broken", "--set", "t:0=5", "--yes").code == 0
    assert run("offsets", "reset", "broken", "--yes").code == 0
    rows = [line.split() for line in run("offsets", "history").out.splitlines()]
    assert [row[2:] for row in rows[1:]] == [["broken", "reset", "2"], ["broken", "alter", "2"]]
    assert "no backups" in run("offsets", "history", "orders").err


def test_missing_and_expired_backups_are_told(run: Run, connect: FakeConnect) -> None:
    """Exit 3 for both, exit 2 for what is no id; nothing was changed."""
    outcome = run("offsets", "undo", "--yes")
    assert (outcome.code, "nothing to undo" in outcome.err) == (3, True)
    outcome = run("offsets", "undo", "20200101T000000000000Z-abcdef", "--yes")
    assert (outcome.code, "has expired" in outcome.err) == (3, True)
    outcome = run("offsets", "undo", "29990101T000000000000Z-abcdef", "--yes")
    assert (outcome.code, "there is no backup" in outcome.err) == (3, True)
    assert run("offsets", "undo", "yesterday", "--yes").code == 2
    assert changes(connect) == []


def test_undo_on_another_cluster_is_refused(
    run: Run, connect: FakeConnect, environ: dict[str, str]
) -> None:
    """The same name may be another connector there."""
    assert run("offsets", "reset", "broken", "--yes").code == 0
    connect.cluster_id = "other"
    outcome = run("offsets", "undo", backups(environ)[0].stem, "--yes")
    assert outcome.code == 9
    assert "Kafka cluster k" in outcome.err
    assert run("offsets", "undo", "--yes").code == 3
    assert changes(connect) == ["DELETE /connectors/broken/offsets"]


def test_export_and_import_move_offsets(run: Run, connect: FakeConnect, tmp_path: Path) -> None:
    """The file names its origin; it is its owner's."""
    file = tmp_path / "offsets.json"
    assert run("offsets", "export", "broken", "-f", str(file)).code == 0
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    before = connect.connectors["broken"].offsets
    assert run("offsets", "reset", "broken", "--yes").code == 0
    outcome = run("offsets", "import", "broken", "-f", str(file), "--yes")
    assert outcome.code == 0, outcome.err
    assert connect.connectors["broken"].offsets == before


def test_import_into_another_class_needs_force(
    run: Run, connect: FakeConnect, tmp_path: Path
) -> None:
    """So do another connector's name and, of a sink, another Kafka cluster; never another type."""
    file = tmp_path / "offsets.json"
    assert run("offsets", "export", "broken", "-f", str(file)).code == 0
    config = connect.connectors["broken"].config
    connect.connectors["broken"].config = {**config, "connector.class": "org.example.Other"}
    connect.connectors["broken"].offsets = []
    outcome = run("offsets", "import", "broken", "-f", str(file), "--yes")
    assert outcome.code == 9
    assert "org.example.Other" in outcome.err
    connect.connectors["broken"].config = config
    connect.cluster_id = "other"
    assert run("offsets", "import", "broken", "-f", str(file), "--yes").code == 9
    assert run("offsets", "import", "orders", "-f", str(file), "--yes", "--force").code == 9
    assert changes(connect) == []
    assert run("offsets", "import", "broken", "-f", str(file), "--yes", "--force").code == 0
    assert len(connect.connectors["broken"].offsets) == 2


def test_copy_gives_the_offsets_of_one_connector_to_another(run: Run, connect: FakeConnect) -> None:
    """Of the same class; the source of the copy may run."""
    stored = connect.connectors["orders"]
    copied = FakeConnector(config=dict(stored.config), state="STOPPED", tasks=[])
    connect.connectors["orders-2"] = copied
    outcome = run("offsets", "copy", "orders", "orders-2", "--yes")
    assert outcome.code == 0, outcome.err
    assert copied.offsets == stored.offsets
    assert run("offsets", "copy", "orders", "broken", "--yes").code == 9


def test_diff_is_a_negative_answer_when_something_differs(
    run: Run, connect: FakeConnect, tmp_path: Path
) -> None:
    """Exit 1 and the partitions; exit 0 without a difference."""
    file = tmp_path / "offsets.json"
    assert run("offsets", "export", "broken", "-f", str(file)).code == 0
    assert run("offsets", "diff", "broken", "-f", str(file)).code == 0
    connect.connectors["broken"].offsets = [sink_entry("t", 0, 101), sink_entry("t", 1, 200)]
    outcome = run("offsets", "diff", "broken", "-f", str(file))
    assert outcome.code == 1
    assert outcome.out.splitlines()[1].split() == ["t:0", "101", "100"]


def test_a_second_run_resumes_what_an_interrupted_one_left_stopped(
    run: Run, connect: FakeConnect, stored: FakeConnector
) -> None:
    """Nothing to change, but --resume was asked for."""
    stop(connect)
    text = '{"filename":"a.txt"}={"position":30}'
    outcome = run("offsets", "alter", "orders", "--set", text, "--stop", "--resume", "--yes")
    assert outcome.code == 0, outcome.err
    assert outcome.out == "orders: unchanged (resumed)\n"
    assert stored.state == "RUNNING"


def test_a_run_of_cron_is_one_line_of_json(run: Run) -> None:
    """The backup's id is in it."""
    outcome = run("offsets", "reset", "broken", "--yes", "--summary-json")
    summary = json.loads(outcome.out)
    assert outcome.err == ""
    assert summary["succeeded"] == 1
    assert "backup " in summary["results"][0]["detail"]


@pytest.mark.parametrize("verb", [("seek", "broken", "--to-earliest"), ("lag", "broken")])
def test_what_needs_kafka_says_so(run: Run, connect: FakeConnect, verb: tuple[str, ...]) -> None:
    """Exit 9 and how to give the brokers."""
    outcome = run("offsets", *verb)
    assert outcome.code == 9
    assert "--kafka-bootstrap" in outcome.err
    assert changes(connect) == []


def test_a_seek_has_one_target(run: Run) -> None:
    """None, two, or a time that is none: exit 2."""
    for flags in ((), ("--to-earliest", "--to-latest"), ("--to-datetime", "yesterday")):
        assert run("offsets", "seek", "broken", *flags).code == 2


def test_brokers_that_do_not_answer_are_exit_7(run: Run, connect: FakeConnect) -> None:
    """Nothing was sent to the worker."""
    where = ("--kafka-bootstrap", "127.0.0.1:1", "--timeout", "1s", "--yes")
    assert run("offsets", "seek", "broken", "--to-latest", *where).code == 7
    assert run("offsets", "alter", "broken", "--set", "t:0=1", *where).code == 7
    assert changes(connect) == []


def test_a_connector_is_created_with_offsets(
    run: Run, connect: FakeConnect, tmp_path: Path
) -> None:
    """STOPPED, then the offsets, then resumed; another class is refused before it is created."""
    file = tmp_path / "offsets.json"
    assert run("offsets", "export", "orders", "-f", str(file)).code == 0
    config = ("--set", "connector.class=org.example.FileSource", "--offsets-from", str(file))
    outcome = run("connectors", "create", "later", *config, "--wait", "RUNNING")
    assert outcome.code == 0, outcome.err
    assert connect.connectors["later"].offsets == connect.connectors["orders"].offsets
    assert changes(connect) == [
        "POST /connectors",
        "PATCH /connectors/later/offsets",
        "PUT /connectors/later/resume",
    ]
    other = ("--set", "connector.class=org.example.Other", "--offsets-from", str(file))
    assert run("connectors", "create", "wrong", *other).code == 9
    assert "wrong" not in connect.connectors


def test_a_connector_whose_offsets_are_not_taken_stays_stopped(
    run: Run, connect: FakeConnect, tmp_path: Path
) -> None:
    """It has done nothing yet, and the way on is told."""
    file = tmp_path / "offsets.json"
    assert run("offsets", "export", "orders", "-f", str(file)).code == 0
    connect.failures["PATCH /connectors/later/offsets"] = [(500, "no luck")]
    config = ("--set", "connector.class=org.example.FileSource", "--offsets-from", str(file))
    outcome = run("connectors", "create", "later", *config)
    assert outcome.code == 10
    assert "pyconnect connectors delete later" in outcome.err
    assert connect.connectors["later"].state == "STOPPED"


def test_copy_reaches_another_cluster_with_its_own_credentials(
    run: Run, connect: FakeConnect, environ: dict[str, str]
) -> None:
    """What was given for the first cluster does not go to the other; the undo names the context."""
    stored = connect.connectors["orders"]
    copied = FakeConnector(config=dict(stored.config), state="STOPPED", tasks=[])
    elsewhere = FakeConnect(connectors={"orders": copied}, cluster_id="other")
    environ |= {"PYCONNECT_TOKEN": "secret", "PYCONNECT_KAFKA_BOOTSTRAP": "127.0.0.1:1"}
    with serve(elsewhere) as address:
        assert run("context", "set", "there", "--url", address).code == 0
        copy = ("offsets", "copy", "orders", "orders", "--to-context", "there", "--yes", "-v")
        outcome = run(*copy)
    assert outcome.code == 0, outcome.err
    assert copied.offsets == stored.offsets
    assert "pyconnect --context there offsets undo" in outcome.err
    assert changes(connect) == []
    assert set(connect.authorizations) == {"Bearer secret"}
    assert set(elsewhere.authorizations) == {None}


def test_a_damaged_backup_hides_no_other(run: Run, environ: dict[str, str]) -> None:
    """It is warned of and left out; asked for by its id it is exit 2."""
    for offset in ("5", "6"):
        assert run("offsets", "alter", "broken", "--set", f"t:0={offset}", "--yes").code == 0
    older, newer = backups(environ)
    newer.write_text('{"format": "pyconnect-offsets/1"')
    outcome = run("offsets", "history", "-o", "name")
    assert outcome.out.split() == [older.stem]
    assert "is not JSON" in outcome.err
    assert run("offsets", "undo", newer.stem, "--yes").code == 2
