"""`pyconnect acls` without brokers: results from configurations, and unknown grants."""

import json
from pathlib import Path

import pytest
import yaml

from tests.cli.conftest import Outcome, Run
from tests.support.cases import cases
from tests.support.fakes.connect_server import FakeConnect
from tests.support.servers.secured import WORKER

pytestmark = pytest.mark.wire


@pytest.fixture
def worker_file(tmp_path: Path, connect: FakeConnect) -> str:
    """Return a Java worker's properties file; the worker has a source and a sink."""
    connect.connectors["orders"].config |= {"topic": "records", "tasks.max": "2"}
    broken = connect.connectors["broken"]
    broken.type, broken.config["topics"] = "sink", "records"
    file = tmp_path / "worker.properties"
    file.write_text("".join(f"{key}={value}\n" for key, value in WORKER.properties.items()))
    return str(file)


@pytest.fixture
def acls(run: Run, worker_file: str) -> Run:
    """Run `pyconnect acls VERB` with the worker's file."""

    def invoke(verb: str, *words: str, address: str | None = None, code: int = 0) -> Outcome:
        where = {} if address is None else {"address": address}
        return run("acls", verb, *words, "--worker-config", worker_file, code=code, **where)

    return invoke


def test_a_java_workers_configuration_is_needed_whole(run: Run) -> None:
    """Without all needed properties of a Java worker the command is exit 2 and names the rest."""
    assert "--worker-config" in run("acls", "check", code=2).err
    outcome = run("acls", "check", "--worker-property", "group.id=g", code=2)
    assert "config.storage.topic" in outcome.err


def test_without_brokers_nothing_is_decided(acls: Run) -> None:
    """Without brokers all grants are unknown, which is exit 9 unless --accept-unknown is given."""
    assert "not ready for preparing" in acls("check", code=9).err
    acls("check", "--accept-unknown")


def test_workers_that_are_away_do_not_end_a_command(acls: Run, url: str) -> None:
    """If a worker does not answer, another worker or the file gives the facts, with a warning."""
    outcome = acls("check", "--accept-unknown", address=f"http://127.0.0.1:9,{url}")
    assert "its grants are not probed" in outcome.err
    outcome = acls("generate", "--all", address="http://127.0.0.1:1")
    assert "--group g" in outcome.out
    assert "only the workers' own grants" in outcome.err


def test_the_document_has_need_verdict_reason_and_symptom(acls: Run) -> None:
    """The JSON has each grant with client and principal; a table joins the tasks of a connector."""
    outcome = acls("check", "--phase", "enabled", "-o", "json", code=9)
    document = json.loads(outcome.out)
    assert document["phase"] == "enabled"
    fencing = [grant for grant in document["grants"] if grant["rule"] == "X2"]
    assert [grant["resource"] for grant in fencing] == ["g-orders-0", "g-orders-1"]
    assert {grant["principal"] for grant in fencing} == {"User:worker"}
    assert {grant["verdict"] for grant in fencing} == {"unknown"}
    assert "secret" not in outcome.out + outcome.err
    outcome = acls("check", "--phase", "enabled", "--columns", "need", code=9)
    assert "Write TransactionalId g-orders-0 … g-orders-1 (2)" in outcome.out


def test_one_connector_can_be_looked_at_alone(acls: Run, worker_file: str) -> None:
    """--connector limits the check to one connector, and an unknown one is exit 3."""
    lines = acls("check", "-o", "ndjson", "--connector", "broken", code=9).out.splitlines()
    assert {json.loads(line)["owner"] for line in lines} == {worker_file, "broken"}
    acls("check", "-o", "ndjson", "--connector", "nobody", code=3)


@cases(
    "option, value",
    ("--phase", "soon"),
    ("--principal", "writer"),
    ("--principal", "tool=User:x"),
    ("--topic", "orders"),
    ("--worker-property", "group.id"),
)
def test_bad_options_are_exit_2(acls: Run, option: str, value: str) -> None:
    """An option that cannot be read is exit 2, and the error names its value."""
    assert value in acls("check", option, value, code=2).err


@cases(
    "given, principals",
    (["producer=User:all", "orders:producer=User:one"], {"User:one"}),
    (["orders:producer=User:CN=connect,OU=data"], {"User:CN=connect,OU=data"}),
)
def test_principals_can_be_named(acls: Run, given: list[str], principals: set[str]) -> None:
    """--principal of a connector wins over that of a client; a name may contain `=`."""
    words = [word for each in given for word in ("--principal", each)]
    outcome = acls("check", "--phase", "enabled", "-o", "json", *words, code=9)
    grants = json.loads(outcome.out)["grants"]
    assert {grant["principal"] for grant in grants if grant["client"] == "producer"} == principals


def test_errors_are_explained_without_a_cluster(run: Run, acls: Run) -> None:
    """An error text is explained without a cluster and independent of the phase."""
    outcome = run("acls", "explain", "Failed to perform zombie fencing", code=0)
    assert outcome.out.startswith("X2: admin needs Write")
    outcome = acls("explain", "Failed to perform zombie fencing", "--phase", "disabled")
    assert outcome.out.startswith("X2: admin needs Write")
    assert "for disabled" in outcome.err
    line = (
        "Principal = User:w is Denied operation = WRITE from host = 10.0.0.5 on resource ="
        " TransactionalId:LITERAL:g-c-0 for request = InitProducerId"
    )
    assert "User:w lacks Write TransactionalId g-c-0" in run("acls", "explain", line, code=0).out


def test_a_name_is_explained_by_the_cluster(acls: Run) -> None:
    """A name is explained by the needs of the cluster, and one that nothing needs is exit 3."""
    outcome = acls("explain", "records", "--phase", "enabled", "--columns", "client,need")
    assert outcome.out.splitlines()[1:] == [
        "consumer  Read Topic records",
        "producer  Write Topic records",
        "admin     Read Topic records",
    ]
    acls("explain", "elsewhere", "--phase", "enabled", code=3)


def test_the_whole_set_is_generated_as_commands(acls: Run) -> None:
    """--all generates every needed grant, and --remove the same commands with --remove."""
    words = ("generate", "--phase", "enabled", "--all")
    lines = acls(*words).out.splitlines()
    leader = "--allow-principal User:worker --operation Write --transactional-id connect-cluster-g"
    assert any(leader in line for line in lines)
    removal = acls(*words, "--remove").out.splitlines()
    assert len(removal) == len(lines)
    assert all("--remove --force" in line for line in removal)


def test_grants_are_generated_for_strimzi_and_terraform(acls: Run) -> None:
    """Strimzi's output has a document for each user, Terraform's a block for each grant."""
    words = ("generate", "--phase", "enabled", "--all", "-o")
    outcome = acls(*words, "strimzi", "--strimzi-cluster", "kafka")
    users = list(yaml.safe_load_all(outcome.out))
    assert {user["metadata"]["name"] for user in users} == {"worker", "writer", "reader"}
    assert users[0]["metadata"]["labels"] == {"strimzi.io/cluster": "kafka"}
    blocks = acls(*words, "terraform").out.split("\n\n")
    assert len(blocks) == len(json.loads(acls(*words, "json").out)["grants"])
    assert all(block.startswith('resource "kafka_acl" ') for block in blocks)


def test_a_wide_prefix_needs_a_yes(connect: FakeConnect, acls: Run) -> None:
    """A prefix that covers another connector's ids needs --yes."""
    config = {**connect.connectors["orders"].config, "name": "orders-eu"}
    connect.connectors["orders-eu"] = type(connect.connectors["orders"])(config=config)
    words = ("generate", "--phase", "enabled", "--all", "--prefixed")
    assert "g-orders-eu" in acls(*words, code=9).err
    assert "--resource-pattern-type prefixed" in acls(*words, "--yes").out
