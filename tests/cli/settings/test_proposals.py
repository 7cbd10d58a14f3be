"""Commands and options that hints propose."""

from pyconnect_cli.parsing.nouns import slip_of
from pyconnect_cli.session import proposer
from tests.support.cases import cases

OPTIONS = [
    "--kafka-bootstrap", "--to-start", "--to-end", "--cert", "--class", "--output", "--yes",
    "--failed", "-o",
]  # fmt: skip


@cases(
    "typed, meant",
    ("--ouput", "--output"), ("--to-star", "--to-start"), ("--OUTPUT", "--output"),
    ("--to-offset", None), ("--set", None), ("--file", None), ("--yess", None),
    ("--bootstrap-server", "--kafka-bootstrap"), ("--command-config", None),
)  # fmt: skip
def test_only_a_slip_of_an_option_is_proposed(typed: str, meant: str | None) -> None:
    """A merely similar option may do something else; an option of consent is never proposed."""
    assert slip_of(typed, OPTIONS) == meant


def test_proposed_commands_carry_how_the_cluster_is_reached() -> None:
    """A proposed command gets the options that it accepts, each once and with secrets masked."""
    propose = proposer(
        {
            "url": ("http://me:hunter2@a:8083", "b"),
            "context": "prod",
            "password": "s3cret",
            "insecure": True,
            "kafka_bootstrap": "k:9092",
            "output": "json",
        },
        (),
    )
    front = (
        "pyconnect --context prod --url 'http://me:********@a:8083' --url b"
        " --password '********' --insecure"
    )
    assert propose("list them: pyconnect connectors list") == f"list them: {front} connectors list"
    expected = f"undo: {front} --kafka-bootstrap k:9092 offsets undo 7"
    assert propose("undo: pyconnect offsets undo 7") == expected
    wanted = "choose one: pyconnect context use NAME"
    assert propose("choose one: pyconnect context use NAME") == wanted
    wanted = "see: pyconnect sandbox up; no command: my-pyconnect x"
    assert propose("see: pyconnect sandbox up; no command: my-pyconnect x") == wanted
    propose = proposer({"url": ("a",)}, ())
    assert propose("run: pyconnect connectors delete x --url a --yes; or: pyconnect health") == (
        "run: pyconnect connectors delete x --url a --yes; or: pyconnect --url a health"
    )


def test_facts_of_workers_go_to_the_commands_that_take_them() -> None:
    """Only `acls` and `upgrade` commands get the options of worker facts."""
    arguments = ("upgrade", "--phase", "enabled", "--worker-config", "w 1.properties")
    propose = proposer({}, (*arguments, "--worker-property=sasl.password=x"))
    facts = "--worker-config 'w 1.properties' --worker-property 'sasl.password=********'"
    expected = f"pyconnect acls check {facts} --phase enabled"
    assert propose("pyconnect acls check --phase enabled") == expected
    expected = f"first: pyconnect upgrade {facts} --phase preparing"
    assert propose("first: pyconnect upgrade --phase preparing") == expected
    assert propose("pyconnect upgrade status") == "pyconnect upgrade status"
    assert propose("pyconnect health") == "pyconnect health"
