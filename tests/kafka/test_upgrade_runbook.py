"""The runbook of the upgrade: its commands are run here, in its order, on a real agent."""

import re
import shlex
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.agents.upgrade_cluster import SETTLE, Tool, phases, upgradable_cluster
from tests.support.servers.kafka import SharedBroker

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(900)]

RUNBOOK = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "upgrade-to-exactly-once.md"
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PHASED = (["plan", "--phase"], ["run", "--phase"])
LINE = re.compile(r"\$ pyconnect (?P<arguments>[^#]*)(?:# exit (?P<code>\d+).*)?")


class Step(NamedTuple):
    """A command of the runbook and the exit code that it announces."""

    arguments: list[str]
    code: int


def steps() -> list[Step]:
    found = []
    for block in BLOCK.findall(RUNBOOK.read_text("utf-8")):
        for line in block.splitlines():
            match = LINE.fullmatch(line)
            assert match is not None, line
            found.append(Step(shlex.split(match["arguments"]), int(match["code"] or 0)))
    return found


@pytest.mark.long(only=True)
def test_the_runbook_does_what_it_says(kafka_broker: SharedBroker, tmp_path: Path) -> None:
    """From disabled to enabled and back."""
    assert sum(step.arguments[1:3] in PHASED for step in steps()) >= 6
    reached = []
    with upgradable_cluster(1, kafka_broker.bootstrap_servers, tmp_path) as cluster:
        tool = Tool(kafka_broker.bootstrap_servers, cluster.agents[0].url, tmp_path)
        for arguments, code in steps():
            quick = ["--settle", SETTLE] if arguments[:2] == ["upgrade", "run"] else []
            done = tool.run(*arguments, *quick)
            assert done.returncode == code, f"{arguments}: {done.stdout}{done.stderr}"
            reached += phases(cluster)
    assert list(dict.fromkeys(reached)) == ["disabled", "preparing", "enabled"]
    assert reached[-1] == "disabled"
