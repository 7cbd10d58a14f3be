"""`pyconnect acls` without brokers: what configurations alone tell, and what stays unknown."""

import json
from pathlib import Path

import pytest
import yaml

from tests.cli.conftest import Run
from tests.support.cases import cases
from tests.support.fakes.connect_server import FakeConnect
from tests.support.servers.secured import sasl

pytestmark = pytest.mark.wire


@pytest.fixture
def worker_file(tmp_path: Path, connect: FakeConnect) -> str:
    """A Java worker's file; the fake worker runs a source and a sink."""
    connect.connectors["orders"].config |= {"topic": "records", "tasks.max": "2"}
    broken = connect.connectors["broken"]
    broken.type, broken.config["topics"] = "sink", "records"
    properties = {
        "bootstrap.servers": "b:9092",
        "group.id": "g",
        "config.storage.topic": "configs",
        "offset.storage.topic": "offsets",
        "status.storage.topic": "statuses",
        **sasl("worker"),
        **sasl("writer", "producer."),
        **sasl("reader", "consumer."),
    }
    file = tmp_path / "worker.properties"
    file.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
    return str(file)


def test_a_java_workers_configuration_is_needed_whole(run: Run) -> None:
    """Exit 2, with the options that give it or the missing keys, before a comparison."""
    assert "--worker-config" in run("acls", "check", code=2).err
    outcome = run("acls", "check", "--worker-property", "group.id=g", code=2)
    assert "config.storage.topic" in outcome.err


def test_without_brokers_nothing_is_decided(run: Run, worker_file: str) -> None:
    """Exit 9, unless the user accepts that; the next phase is looked at by itself."""
    outcome = run("acls", "check", "--worker-config", worker_file, code=9)
    assert "not ready for preparing" in outcome.err
    assert run("acls", "check", "--worker-config", worker_file, "--accept-unknown").code == 0


def test_a_worker_that_is_away_does_not_end_the_check(run: Run, url: str, worker_file: str) -> None:
    """Another one answers for the cluster; what is not known of the first is said."""
    both = f"http://127.0.0.1:9,{url}"
    words = ("acls", "check", "--worker-config", worker_file, "--accept-unknown")
    outcome = run(*words, address=both)
    assert (outcome.code, "its grants are not probed" in outcome.err) == (0, True)


def test_the_document_has_need_verdict_reason_and_symptom(run: Run, worker_file: str) -> None:
    """Of every grant, with the principal of its client."""
    outcome = run(
        "acl", "check", "--worker-config", worker_file, "--phase", "enabled", "-o", "json"
    )
    document = json.loads(outcome.out)
    assert document["phase"] == "enabled"
    fencing = [grant for grant in document["grants"] if grant["rule"] == "X2"]
    assert [grant["resource"] for grant in fencing] == ["g-orders-0", "g-orders-1"]
    assert {grant["principal"] for grant in fencing} == {"User:worker"}
    assert {grant["verdict"] for grant in fencing} == {"unknown"}
    assert "secret" not in outcome.out + outcome.err


def test_ids_of_one_connectors_tasks_share_a_row(run: Run, worker_file: str) -> None:
    """Tables are for people."""
    outcome = run(
        "acls", "check", "--worker-config", worker_file, "--phase", "enabled", "--columns", "need"
    )
    assert "Write TransactionalId g-orders-0 … g-orders-1 (2)" in outcome.out


def test_one_connector_can_be_looked_at_alone(run: Run, worker_file: str) -> None:
    """An unknown one is exit 3."""
    arguments = ("acls", "check", "--worker-config", worker_file, "-o", "ndjson")
    owners = {
        json.loads(line)["owner"]
        for line in run(*arguments, "--connector", "broken").out.splitlines()
    }
    assert owners == {worker_file, "broken"}
    assert run(*arguments, "--connector", "nobody").code == 3


@cases(
    "option, value",
    ("--phase", "soon"),
    ("--principal", "writer"),
    ("--principal", "tool=User:x"),
    ("--topic", "orders"),
    ("--worker-property", "group.id"),
)
def test_bad_options_are_exit_2(run: Run, worker_file: str, option: str, value: str) -> None:
    """Named in the message."""
    assert value in run("acls", "check", "--worker-config", worker_file, option, value, code=2).err


def test_principals_can_be_named(run: Run, worker_file: str) -> None:
    """Of one connector before those of all; names of certificates hold equals signs."""
    outcome = run(
        *("acls", "check", "--worker-config", worker_file, "--phase", "enabled", "-o", "json"),
        *("--principal", "producer=User:all", "--principal", "orders:producer=User:one"),
    )
    grants = json.loads(outcome.out)["grants"]
    assert {g["principal"] for g in grants if g["client"] == "producer"} == {"User:one"}
    outcome = run(
        *("acls", "check", "--worker-config", worker_file, "--phase", "enabled", "-o", "json"),
        *("--principal", "orders:producer=User:CN=connect,OU=data"),
    )
    grants = json.loads(outcome.out)["grants"]
    principals = {g["principal"] for g in grants if g["client"] == "producer"}
    assert "User:CN=connect,OU=data" in principals


def test_an_error_of_a_later_phase_is_explained(run: Run, worker_file: str) -> None:
    """The meaning of the error does not depend on the present needs."""
    arguments = ("--worker-config", worker_file, "--phase", "disabled")
    outcome = run("acls", "explain", "Failed to perform zombie fencing", *arguments, code=0)
    assert outcome.out.startswith("X2: admin needs Write")
    assert "for disabled" in outcome.err


def test_errors_are_explained_without_a_cluster(run: Run) -> None:
    """Its meaning depends on no phase; the broker's line tells what is missing, for whom."""
    outcome = run("acls", "explain", "Failed to perform zombie fencing", code=0)
    assert outcome.out.startswith("X2: admin needs Write")
    outcome = run(
        "acls",
        "explain",
        "Principal = User:w is Denied operation = WRITE from host = 10.0.0.5 on resource ="
        " TransactionalId:LITERAL:g-c-0 for request = InitProducerId",
    )
    assert outcome.code == 0
    assert "User:w lacks Write TransactionalId g-c-0" in outcome.out


def test_a_name_is_explained_by_the_cluster(run: Run, worker_file: str) -> None:
    """And one that nothing needs is exit 3."""
    arguments = ("--worker-config", worker_file, "--phase", "enabled")
    outcome = run("acls", "explain", "records", *arguments, "--columns", "client,need")
    assert outcome.out.splitlines()[1:] == [
        "consumer  Read Topic records",
        "producer  Write Topic records",
        "admin     Read Topic records",
    ]
    assert run("acls", "explain", "elsewhere", *arguments).code == 3


def test_the_whole_set_is_generated_as_commands(run: Run, worker_file: str) -> None:
    """Sorted, one per principal and set of operations; removal is the mirror."""
    arguments = ("acls", "generate", "--worker-config", worker_file, "--phase", "enabled", "--all")
    lines = run(*arguments).out.splitlines()
    assert any(
        "--allow-principal User:worker --operation Write --transactional-id connect-cluster-g"
        in line
        for line in lines
    )
    removal = run(*arguments, "--remove").out.splitlines()
    assert len(removal) == len(lines)
    assert all("--remove --force" in line for line in removal)


def test_grants_are_generated_for_strimzi_and_terraform(run: Run, worker_file: str) -> None:
    """A YAML document per principal, a block per entry of the JSON."""
    outcome = run(
        *("acls", "generate", "--worker-config", worker_file, "--phase", "enabled", "--all"),
        *("-o", "strimzi", "--strimzi-cluster", "kafka"),
    )
    users = list(yaml.safe_load_all(outcome.out))
    assert {user["metadata"]["name"] for user in users} == {"worker", "writer", "reader"}
    assert users[0]["metadata"]["labels"] == {"strimzi.io/cluster": "kafka"}
    arguments = ("acls", "generate", "--worker-config", worker_file, "--all")
    grants = json.loads(run(*arguments, "-o", "json").out)["grants"]
    blocks = run(*arguments, "-o", "terraform").out.split("\n\n")
    assert len(blocks) == len(grants)
    assert all(block.startswith('resource "kafka_acl" ') for block in blocks)


def test_a_wide_prefix_needs_a_yes(run: Run, connect: FakeConnect, worker_file: str) -> None:
    """The ids of `orders-eu` start with those of `orders`."""
    config = {**connect.connectors["orders"].config, "name": "orders-eu"}
    connect.connectors["orders-eu"] = type(connect.connectors["orders"])(config=config)
    arguments = (
        *("acls", "generate", "--worker-config", worker_file, "--phase", "enabled"),
        *("--all", "--prefixed"),
    )
    assert "g-orders-eu" in run(*arguments, code=9).err
    assert "--resource-pattern-type prefixed" in run(*arguments, "--yes").out


def test_grants_can_be_generated_before_anything_runs(run: Run, worker_file: str) -> None:
    """From the worker's file alone; that connectors were not looked at is told."""
    nobody = "http://127.0.0.1:1"
    outcome = run("acls", "generate", "--worker-config", worker_file, "--all", address=nobody)
    assert outcome.code == 0, outcome.err
    assert "--group g" in outcome.out
    assert "only the workers' own grants" in outcome.err
