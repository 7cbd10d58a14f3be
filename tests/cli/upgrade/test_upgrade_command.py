"""`pyconnect upgrade` before its first request: usage, missing options, status."""

import json

from typer import Context

from pyconnect_cli.app import load_noun
from pyconnect_cli.parsing.nouns import find_noun
from pyconnect_cli.upgrade.commands import UpgradeGroup
from pyconnect_cli.upgrade.perform import Journal, journal_directory
from pyconnect_cli.upgrade.plan.run import Halted, StepStarted
from pyconnect_clients.connect_names import Phase
from tests.cli.conftest import Run
from tests.cli.upgrade.plan.upgrade_world import STARTED
from tests.support.cases import cases


def test_a_phase_and_kafka_must_be_named(run: Run) -> None:
    """Without a phase the command is exit 2, and without brokers exit 9 with the option to give."""
    assert run("upgrade").code == 2
    assert run("upgrade", "--phase", "ready").code == 2
    assert "--kafka-bootstrap" in run("upgrade", "--phase", "preparing", code=9).err


@cases(
    "words, verb",
    (["--phase", "preparing"], "run"),
    (["-v", "--context", "status", "--phase", "preparing"], "run"),
    (["--resume"], "run"),
    ([], "run"),
    (["--context", "run", "plan"], "--context"),
    (["status"], "status"),
)
def test_a_verb_that_is_left_out_is_run(words: list[str], verb: str) -> None:
    """Without a verb the verb is `run`; the value of an option is not taken as a verb."""
    noun = find_noun("upgrade")
    assert noun is not None
    command = load_noun(noun)
    assert isinstance(command, UpgradeGroup)
    assert command.with_verb(Context(command, info_name="upgrade"), words)[0] == verb


@cases("option", "--hard", "--direct")
def test_ways_down_go_down(run: Run, option: str) -> None:
    """--hard and --direct on the way up are exit 2."""
    assert "need --phase disabled" in run("upgrade", "--phase", "enabled", option, code=2).err


def test_the_status_sends_no_request(run: Run, environ: dict[str, str]) -> None:
    """`status` reads the last run of each journal, with its reason to halt, without a request."""
    assert "has not run an upgrade" in run("upgrade", "status", address=None).err
    journal = Journal(journal_directory(environ), "k", "g")
    with journal.lock():
        journal.append(STARTED)
        journal.append(StepStarted(url="http://w", phase=Phase.PREPARING, instance="m"))
        shown = json.loads(run("upgrade", "status", "-o", "json", address=None).out)
        assert shown[0]["state"] == "ROLLING (0 of 1)"
        assert shown[0]["under_way"] == ["http://w"]
        journal.append(Halted(reason="it is broken", hint="repair it", operator=True))
    outcome = run("upgrade", "status", address=None)
    assert "WAITING FOR OPERATOR" in outcome.out
    assert "it is broken" in outcome.out
