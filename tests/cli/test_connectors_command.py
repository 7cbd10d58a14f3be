"""`pyconnect connectors` and `tasks`: output, changes and exit codes."""

import json
import threading
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.support.cases import cases
from tests.support.fakes.connect_server import FakeConnect, FakeConnector

pytestmark = pytest.mark.wire


def test_list_shows_states_and_tasks(run: Run) -> None:
    """The table has a line for each connector with its state and its running tasks of all."""
    outcome = run("connectors", "list", code=0)
    lines = outcome.out.splitlines()
    assert lines[0].split() == ["NAME", "TYPE", "STATE", "TASKS", "WORKER", "CLASS"]
    broken = ["broken", "source", "RUNNING", "1/2, 1 FAILED", "worker-1:8083", "FileSink"]
    assert lines[1].split("  ") == broken
    assert lines[2].split()[:4] == ["orders", "source", "RUNNING", "1/1"]


def test_secrets_are_masked_unless_asked_for(run: Run) -> None:
    """Every output masks secrets, except that of `get --show-secrets`."""
    outcome = run("connectors", "ls", "-o", "json")
    document = json.loads(outcome.out)
    assert document["orders"]["info"]["config"]["db.password"] == "********"
    assert document["broken"]["status"]["tasks"][1]["state"] == "FAILED"
    assert "hunter2" not in outcome.out
    assert "hunter2" not in run("connectors", "get", "orders").out
    assert "hunter2" in run("connectors", "get", "orders", "--show-secrets").out


def test_names_and_selections_without_a_match_are_errors(run: Run) -> None:
    """A name without a match is exit 3, and a verb without a selection is exit 2."""
    outcome = run("connectors", "pause", "order", code=3)
    assert "connector `order` does not exist" in outcome.err
    assert "did you mean `orders`?" in outcome.err
    assert run("connectors", "pause", "-l", "team=z").code == 3
    assert run("connectors", "pause", "-l", "team=z", "--allow-empty").code == 0
    assert "nothing is selected" in run("connectors", "pause", code=2).err


@cases(
    "words, state",
    (("pause", "orders", "--wait", "PAUSED"), "PAUSED"),
    (("stop", "orders", "--wait", "STOPPED"), "STOPPED"),
    (("resume", "orders", "--wait", "RUNNING"), "RUNNING"),
    (("pause", "--wait", "orders"), "PAUSED"),
    (("stop", "--wait", "orders"), "STOPPED"),
    (("restart", "--wait", "orders"), "RUNNING"),
)
def test_verbs_change_the_state_and_wait_for_it(
    run: Run, connect: FakeConnect, words: tuple[str, ...], state: str
) -> None:
    """--wait without a state waits for the verb's state and does not take a name as a state."""
    connect.stale_statuses["orders"] = [FakeConnector(config={}, state="UNASSIGNED")] * 3
    run("connectors", *words, "--timeout", "5s", code=0)
    assert connect.stale_statuses["orders"] == []
    assert connect.connectors["orders"].state == state


def test_a_deletion_is_waited_for_and_has_no_other_state(run: Run, connect: FakeConnect) -> None:
    """--wait of a deletion waits until the connector is gone, and refuses any other state."""
    refused = run("connectors", "delete", "orders", "--yes", "--wait", "RUNNING")
    assert (refused.code, "orders" in connect.connectors) == (2, True)
    assert run("connectors", "delete", "orders", "--yes", "--wait").code == 0
    assert connect.requests[-1] == "GET /connectors/orders/status"


def test_a_changed_paused_connector_stays_paused(run: Run, connect: FakeConnect) -> None:
    """--wait after a patch of a paused connector ends, although it never becomes RUNNING."""
    connect.connectors["orders"].enter("PAUSED")
    outcome = run(
        "connectors", "patch", "orders", "--set", "a=b", "--wait", "--timeout", "5s", "--yes"
    )
    assert outcome.code == 0, outcome.err


@cases(
    "flags, query",
    ((), {"includeTasks": ["true"]}),
    (("--only-failed",), {"includeTasks": ["true"], "onlyFailed": ["true"]}),
    (("--connector-only",), {}),
)
def test_a_restart_includes_the_tasks_without_connector_only(
    run: Run, connect: FakeConnect, flags: tuple[str, ...], query: dict[str, list[str]]
) -> None:
    """A restart asks for the tasks too, because the worker's default is the connector alone."""
    assert run("connectors", "restart", "orders", *flags).code == 0
    assert connect.queries["POST /connectors/orders/restart"] == query


def test_a_dry_run_asks_the_worker(run: Run, connect: FakeConnect, tmp_path: Path) -> None:
    """A dry run of `create` asks the worker and fails like the real run."""
    connect.invalid_keys = ("tasks.max",)
    file = tmp_path / "new.json"
    file.write_text('{"connector.class": "N"}')
    create = ("connectors", "create", "-f", str(file), "--dry-run")
    assert run(*create, "new").out == "would create new: new N\n"
    wrong = run(*create, "new", "--set", "tasks.max=x")
    assert (wrong.code, wrong.out) == (2, "")
    assert "new: tasks.max: is bad" in wrong.err
    assert run(*create, "orders").code == 6
    assert set(connect.connectors) == {"orders", "broken"}


def test_apply_validates_before_changes(run: Run, connect: FakeConnect, tmp_path: Path) -> None:
    """`apply` changes nothing if the worker finds an error in one of the files."""
    connect.invalid_keys = ("tasks.max",)
    (tmp_path / "b.json").write_text('{"name": "b", "connector.class": "N", "tasks.max": "x"}')
    outcome = run("connectors", "apply", "-f", str(tmp_path), "--dry-run", code=2)
    assert outcome.out == "+ create b\n"
    assert "b: tasks.max: is bad" in outcome.err
    assert run("connectors", "apply", "-f", str(tmp_path), "--dry-run", "--no-validate").code == 0
    (tmp_path / "a.json").write_text('{"name": "a", "connector.class": "N"}')
    outcome = run("connectors", "apply", "-f", str(tmp_path), code=2)
    assert "b.json: the worker finds 1 error(s); nothing was changed" in outcome.err
    assert "a" not in connect.connectors


def test_topics_are_listed_and_reset_for_several_connectors(run: Run, connect: FakeConnect) -> None:
    """A reset of topics needs a confirmation, and all its connectors must exist."""
    assert run("topics", "list", "orders").out.split() == ["TOPIC", "t1"]
    assert run("topics", "reset", "orders").code == 9
    assert run("topics", "reset", "orders", "none", "--yes").code == 3
    assert connect.connectors["orders"].topics == ["t1"]
    assert run("topics", "reset", "orders", "broken", "--yes").code == 0
    assert "no topics used yet" in run("topics", "list", "orders").err


def test_selection_filters_the_action(run: Run, connect: FakeConnect) -> None:
    """A condition on config values selects the connectors to pause."""
    run("connectors", "pause", "-l", "team=b", code=0)
    assert connect.connectors["broken"].state == "PAUSED"
    assert connect.connectors["orders"].state == "RUNNING"


def test_delete_asks_or_deletes(run: Run, connect: FakeConnect) -> None:
    """A deletion without a terminal is exit 9 with the full command; --yes deletes."""
    outcome = run("connectors", "delete", "orders", code=9)
    assert "pyconnect connectors delete orders --yes" in outcome.err
    assert "orders" in connect.connectors
    outcome = run("connectors", "delete", "orders", "--yes", "--wait", "DELETED", code=0)
    assert outcome.out == "orders: deleted\n"
    assert "orders" not in connect.connectors


def test_a_dry_run_changes_nothing_and_has_an_exit_code(run: Run, connect: FakeConnect) -> None:
    """A dry run changes nothing, and with --exit-code it exits with 1 if there is a change."""
    outcome = run("connectors", "stop", "--all", "--dry-run", "--exit-code", code=1)
    expected = ["would stop broken: RUNNING -> STOPPED", "would stop orders: RUNNING -> STOPPED"]
    assert outcome.out.splitlines() == expected
    assert connect.connectors["orders"].state == "RUNNING"


def test_part_of_a_batch_failing_is_exit_8(run: Run, connect: FakeConnect) -> None:
    """A failure in a batch is exit 8; only with --max-failures the rest is not tried."""
    failing = "PUT /connectors/broken/pause"
    connect.failures[failing] = [(500, "no luck")]
    outcome = run("connectors", "pause", "--all", "--max-failures", "1", code=8)
    assert connect.connectors["orders"].state == "RUNNING"
    assert "not tried: orders (--max-failures)" in outcome.err
    connect.failures[failing] = [(500, "no luck")]
    outcome = run("connectors", "pause", "--all", code=8)
    assert "orders: paused" in outcome.out
    assert "broken" in outcome.err
    assert "no luck" in outcome.err


def test_a_rebalance_is_waited_out(run: Run, connect: FakeConnect) -> None:
    """A request that a rebalance refuses with 409 is sent again within the timeout."""
    text = (
        "Cannot complete request momentarily due to stale configuration (typically caused by a"
        " concurrent config change)"
    )
    connect.failures["POST /connectors/orders/restart"] = [(409, text), (409, text)]
    run("connectors", "restart", "orders", "--timeout", "10s", code=0)
    assert connect.requests.count("POST /connectors/orders/restart") == 3


def test_an_existing_name_is_a_conflict_at_once(run: Run, tmp_path: Path) -> None:
    """An existing name is exit 6 at once, because a repetition would never succeed."""
    file = tmp_path / "c.json"
    file.write_text('{"connector.class": "X"}')
    assert "already exists" in run("connectors", "create", "orders", "-f", str(file), code=6).err


def test_create_takes_several_formats(run: Run, connect: FakeConnect, tmp_path: Path) -> None:
    """`create` reads JSON, YAML with several documents, and properties."""
    post = tmp_path / "a.json"
    post.write_text('{"name": "a", "config": {"x": 1, "y": true}, "initial_state": "paused"}')
    yaml = tmp_path / "b.yaml"
    yaml.write_text("name: b\nx: one\n---\nname: c\nx: two\n")
    properties = tmp_path / "d.properties"
    properties.write_text("name=d\nx: three\n")
    files = ["-f", str(post), "-f", str(yaml), "-f", str(properties)]
    run("connectors", "create", *files, code=0)
    assert connect.connectors["a"].config == {"name": "a", "x": "1", "y": "true"}
    assert connect.connectors["a"].state == "PAUSED"
    assert [connect.connectors[name].config["x"] for name in "bcd"] == ["one", "two", "three"]


def test_apply_shows_the_plan_and_changes_only_differences(
    run: Run, connect: FakeConnect, tmp_path: Path
) -> None:
    """`apply` sends only the differences, so that a second run has nothing to do."""
    config = dict(connect.connectors["broken"].config)
    (tmp_path / "new.json").write_text('{"name": "new", "connector.class": "N"}')
    (tmp_path / "broken.json").write_text(json.dumps({"name": "broken", **config, "team": "c"}))
    (tmp_path / "orders.json").write_text(
        json.dumps({"name": "orders", "config": connect.connectors["orders"].config})
    )
    outcome = run("connectors", "apply", "-f", str(tmp_path), code=0)
    assert "+ create new" in outcome.err
    assert "  - team=b\n  + team=c" in outcome.err
    assert "unchanged orders" not in outcome.err
    assert connect.connectors["broken"].config["team"] == "c"
    assert "PUT /connectors/orders/config" not in connect.requests
    before = len(connect.requests)
    assert run("connectors", "apply", "-f", str(tmp_path), "--dry-run", "--exit-code").code == 0
    assert not any(r.startswith(("PUT /connectors", "POST")) for r in connect.requests[before:])


def test_apply_prunes_only_the_selection(run: Run, connect: FakeConnect, tmp_path: Path) -> None:
    """--prune deletes only selected connectors that have no file."""
    (tmp_path / "new.json").write_text('{"name": "new", "connector.class": "N"}')
    run("connectors", "apply", "-f", str(tmp_path), "--prune", "-l", "team=b", "--yes", code=0)
    assert set(connect.connectors) == {"orders", "new"}


def test_a_mask_stands_for_a_stored_secret(run: Run, connect: FakeConnect, tmp_path: Path) -> None:
    """A mask in an applied file stands for the stored secret and is never stored itself."""
    printed = json.loads(run("connectors", "get", "orders", "-o", "json").out)
    (tmp_path / "orders.json").write_text(json.dumps(printed | {"topic": "t"}))
    outcome = run("connectors", "apply", "-f", str(tmp_path), code=0)
    assert "hunter2" not in outcome.out + outcome.err
    assert connect.connectors["orders"].config["db.password"] == "hunter2"
    assert connect.connectors["orders"].config["topic"] == "t"


@cases("name, key", ("orders", "other.password"), ("new", "db.password"))
def test_apply_refuses_a_mask_of_no_stored_secret(
    run: Run, connect: FakeConnect, tmp_path: Path, name: str, key: str
) -> None:
    """A mask is refused if the connector has no secret for it to stand for."""
    config = {"connector.class": "org.example.FileSource", key: "********"}
    (tmp_path / "one.json").write_text(json.dumps({"name": name, "config": config}))
    outcome = run("connectors", "apply", "-f", str(tmp_path), code=2)
    assert f"{key} holds ********, the mask of a secret that the connector" in outcome.err
    assert not any(request.startswith(("PUT", "POST")) for request in connect.requests)


def test_create_refuses_a_masked_secret(run: Run, connect: FakeConnect, tmp_path: Path) -> None:
    """A new connector cannot be created from a configuration with masked secrets."""
    config = json.loads(run("connectors", "get", "orders", "-o", "json").out)
    del config["name"]
    file = tmp_path / "copy.json"
    file.write_text(json.dumps(config))
    assert "--show-secrets" in run("connectors", "create", "copy", "-f", str(file), code=2).err
    assert "copy" not in connect.connectors


def test_apply_does_not_ignore_a_selection(run: Run, connect: FakeConnect, tmp_path: Path) -> None:
    """A selection without --prune is refused, because it does not limit the files."""
    (tmp_path / "new.json").write_text('{"name": "new", "connector.class": "N"}')
    assert "--prune" in run("connectors", "apply", "-f", str(tmp_path), "-l", "team=b", code=2).err
    assert "new" not in connect.connectors
    assert run("connectors", "create", "-f", str(tmp_path), "--all").code == 2


def test_a_name_that_could_not_be_deleted_is_not_created(run: Run, connect: FakeConnect) -> None:
    """A name that workers refuse in a path is not created, because it could not be deleted."""
    connect.failures["GET /connectors/a%2Fb"] = [(400, "Ambiguous URI path separator")]
    outcome = run("connectors", "create", "a/b", "-s", "connector.class=X", code=2)
    assert "Ambiguous URI path separator" in outcome.err
    assert "a/b" not in connect.connectors
    assert run("connectors", "create", "a/b", "-s", "connector.class=X").code == 0


def test_every_entry_of_a_map_is_a_line_of_ndjson(run: Run) -> None:
    """-o ndjson prints each entry of a map as an object with its key and values."""
    (line,) = run("loggers", "list", "-o", "ndjson").out.splitlines()
    assert json.loads(line)["name"] == "root"
    assert json.loads(line)["level"] == "INFO"
    assert run("connectors", "describe", "orders", "-o", "name").out == "orders\n"


@cases(
    "name, text",
    ("a.json", '{"name": "a",\r\n"x": "1"}\r\n'),
    ("a.yaml", "name: a\r\nx: 1\r\n"),
    ("a.properties", "name=a\r\nx=1\r\n"),
)
def test_files_of_windows_editors_are_read(
    run: Run, connect: FakeConnect, tmp_path: Path, name: str, text: str
) -> None:
    """Files may begin with a byte order mark and have lines that end with CR LF."""
    file = tmp_path / name
    file.write_bytes(b"\xef\xbb\xbf" + text.encode())
    run("connectors", "create", "-f", str(file), code=0)
    assert connect.connectors["a"].config == {"name": "a", "x": "1"}


@cases(
    "name, text, reason",
    ("a.json", '{"name": "a", "x": "1", "x": "2"}', "member `x` occurs twice in one object"),
    ("a.json", "[" * 100_000, "cannot be read"),
    ("a.yaml", "name: a\nx: 2020-99-99\n", "is not YAML"),
    ("a.json", "", "a.json: is empty\n"),
    ids=["member twice", "too deep", "no date", "empty"],
)
def test_files_that_cannot_be_meant_are_refused(
    run: Run, connect: FakeConnect, tmp_path: Path, name: str, text: str, reason: str
) -> None:
    """A file with a repeated key or that cannot be parsed is refused without a change."""
    file = tmp_path / name
    file.write_text(text)
    outcome = run("connectors", "create", "-f", str(file))
    assert (outcome.code, reason in outcome.err) == (2, True), outcome.err
    assert "a" not in connect.connectors


def test_diff_exits_1_at_a_difference(run: Run, connect: FakeConnect, tmp_path: Path) -> None:
    """`diff` exits with 1 at a difference and with 0 without one, and shows no secret."""
    file = tmp_path / "orders.json"
    config = dict(connect.connectors["orders"].config)
    file.write_text(json.dumps({"name": "orders", **config}))
    assert run("connectors", "diff", "-f", str(file)).code == 0
    file.write_text(json.dumps({"name": "orders", **config, "db.password": "other"}))
    outcome = run("connectors", "diff", "-f", str(file), code=1)
    assert "hunter2" not in outcome.out
    assert "other" not in outcome.out
    assert "(changed)" in outcome.out


def test_a_wait_in_vain_ends_with_the_reason(run: Run) -> None:
    """A wait ends with exit 1 at a failed task, or with exit 124 and the state at its timeout."""
    outcome = run("connectors", "wait", "broken", "--for", "RUNNING", "--timeout", "60s", code=1)
    assert "disk full" in outcome.err
    outcome = run("connectors", "wait", "orders", "--for", "PAUSED", "--timeout", "3s", code=124)
    assert "orders is RUNNING" in outcome.err


def test_patch_sets_and_unsets_keys(run: Run, connect: FakeConnect) -> None:
    """`patch` changes only the given keys."""
    run("connectors", "patch", "orders", "--set", "a=b=c", "--unset", "team", code=0)
    config = connect.connectors["orders"].config
    assert config["a"] == "b=c"
    assert "team" not in config
    assert config["db.password"] == "hunter2"


def test_names_with_any_character_reach_the_server(run: Run, connect: FakeConnect) -> None:
    """A name with reserved characters is encoded in the path."""
    connect.connectors["a b/c?d"] = connect.connectors["orders"]
    assert run("connectors", "pause", "a b/c?d").code == 0


def test_tasks_list_filters_by_the_tasks_own_state(run: Run) -> None:
    """`--state FAILED` of `tasks list` shows failed tasks with the root cause."""
    outcome = run("tasks", "list", "--state", "FAILED")
    assert outcome.out.splitlines()[1].split()[:3] == ["broken/1", "FAILED", "worker-1:8083"]
    assert "disk full" in outcome.out


def test_restarting_failed_tasks_leaves_the_others_alone(run: Run, connect: FakeConnect) -> None:
    """A restart of tasks without names restarts only FAILED tasks of the selection."""
    assert run("tasks", "restart", "--all", code=0).out == "broken/1: restarted\n"
    expected = ["POST /connectors/broken/tasks/1/restart"]
    assert [r for r in connect.requests if r.endswith("restart")] == expected


def test_an_address_that_does_not_answer_is_named_or_passed_over(run: Run, url: str) -> None:
    """An address that does not answer is exit 7, unless another address answers."""
    assert "127.0.0.1:9" in run("connectors", "list", address="http://127.0.0.1:9", code=7).err
    outcome = run("connectors", "list", "-o", "name", address=f"http://127.0.0.1:9,{url}")
    assert outcome.out.split() == ["broken", "orders"]


def test_statuses_become_exit_codes(run: Run, connect: FakeConnect) -> None:
    """Each HTTP status of an error has its exit code: 401 is 4, 403 is 5, 500 is 10."""
    for status, code in ((401, 4), (403, 5), (500, 10)):
        connect.failures["GET /connectors/orders"] = [(status, "no")]
        assert run("connectors", "get", "orders").code == code


def test_flags_stand_before_and_after_the_noun(run: Run) -> None:
    """Options before the noun mean the same as after the verb."""
    expected = run("connectors", "list", "-o", "name").out
    assert run("-o", "name", "connectors", "list").out == expected


def test_watch_prints_an_object_for_each_change(run: Run) -> None:
    """`watch -o ndjson` prints an object for each change; a given --timeout ends it with exit 0."""
    outcome = run("connectors", "watch", "-o", "ndjson", "--interval", "100ms", "--timeout", "3s")
    assert outcome.code == 0, outcome.err
    seen = {line["name"]: line for line in map(json.loads, outcome.out.splitlines())}
    assert set(seen) == {"orders", "orders/0", "broken", "broken/0", "broken/1"}
    assert (seen["broken/1"]["state"], seen["broken/1"]["worker"]) == ("FAILED", "worker-1:8083")


def test_watch_goes_on_until_it_is_ended(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """`watch` without --timeout continues until the user ends it."""
    monkeypatch.setattr("pyconnect_cli.settings.resolved.DEFAULT_RUN_S", 3)
    pauses = iter([1.0] * 4)

    def pause(_: float) -> None:
        if (seconds := next(pauses, None)) is None:
            raise KeyboardInterrupt
        threading.Event().wait(seconds)

    monkeypatch.setattr("pyconnect_cli.acting.wait.time.sleep", pause)
    assert run("connectors", "watch", "orders").code == 130


def test_lists_show_the_root_cause(run: Run, connect: FakeConnect) -> None:
    """Lists show the root cause, because the outermost exception is the same for every failure."""
    connect.connectors["broken"].trace = (
        "org.example.ConnectException: Exiting WorkerSinkTask\n\tat a.b\n"
        "Caused by: java.io.IOException: disk full\n\tat c.d"
    )
    for noun in ("connectors", "tasks"):
        outcome = run(noun, "list", "broken", "-o", "wide")
        assert "java.io.IOException: disk full" in outcome.out
        assert "Exiting" not in outcome.out


def test_a_proposed_command_reaches_the_same_cluster(run: Run, url: str) -> None:
    """A proposed command repeats an address from an option, but not one from a variable."""
    hint = "hint: list them: pyconnect{} connectors list"
    by_option = run("--url", url, "connectors", "stop", "xyzzy", address=None)
    assert hint.format(f" --url {url}") in by_option.err
    assert hint.format("") in run("connectors", "stop", "xyzzy").err


@cases(
    "words",
    ("offsets", "seek", "orders", "--to-offset", "5"),
    ("plugins", "test", "X", "--set", "a=b"),
)
def test_an_unknown_option_gets_no_other_meaning(run: Run, words: tuple[str, ...]) -> None:
    """The hint for an unknown option is the help page, and not an option with a similar name."""
    outcome = run(*words, code=2)
    assert outcome.err.splitlines()[-1] == f"hint: see: pyconnect {words[0]} {words[1]} --help"


def test_ignore_not_found_skips_missing_connectors(run: Run, connect: FakeConnect) -> None:
    """--ignore-not-found skips missing connectors; without it nothing is deleted."""
    assert run("connectors", "delete", "orders", "nosuch", "--yes").code == 3
    assert "orders" in connect.connectors
    words = ("connectors", "delete", "orders", "nosuch", "--ignore-not-found", "--yes")
    outcome = run(*words)
    assert (outcome.code, outcome.out) == (0, "orders: deleted\n")
    assert "not found: nosuch" in outcome.err
    again = run(*words)
    assert (again.code, again.out) == (0, "")
