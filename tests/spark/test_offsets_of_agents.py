"""What a real worker leaves in its internal topics is read as what happened."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pyconnect_reconcile.findings import Verdict
from tests.support.agent import Agents, append_lines, closing, source_config
from tests.support.audits import Audit
from tests.support.eventually import eventually
from tests.support.kafka import SharedBroker
from tests.support.names import unique_name

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

WAIT_S = 90
LINES = 30


@pytest.fixture
def agents(kafka_broker: SharedBroker, tmp_path: Path) -> Iterator[Agents]:
    yield from closing(lambda: Agents(kafka_broker.bootstrap_servers, tmp_path))


def test_what_an_operator_did_over_rest_is_told_from_faults(
    audit: Audit, agents: Agents, tmp_path: Path
) -> None:
    """Read, stopped, set back, read again, stopped, reset, deleted: notes only, each once."""
    topics = {kind: unique_name(kind) for kind in ("offset", "config", "status")}
    properties = {f"{kind}.storage.topic": topic for kind, topic in topics.items()}
    agent = agents.start(properties={**properties, "offset.flush.interval.ms": "200"})
    file, name, other = tmp_path / "in.txt", unique_name("lines"), unique_name("left")
    append_lines(file, 1, LINES)
    path, source = f"/connectors/{name}", {"filename": str(file)}
    end = {"position": file.stat().st_size}

    def committed(connector: str) -> list[object]:
        offsets: list[object] = agent.get(f"/connectors/{connector}/offsets")["offsets"]
        return offsets

    def stop() -> None:
        assert agent.call("PUT", f"{path}/stop").status == 204
        agent.wait_for_states(name, "STOPPED")

    for connector in (name, other):
        agent.create(connector, source_config(file, unique_name("lines")))
        whole = [{"partition": source, "offset": end}]
        eventually(lambda connector=connector, whole=whole: committed(connector) == whole, WAIT_S)
    stop()
    back = {"partition": source, "offset": {"position": 0}}
    assert agent.call("PATCH", f"{path}/offsets", {"offsets": [back]}).status == 200
    assert agent.call("PUT", f"{path}/resume").status == 202
    eventually(lambda: committed(name) == whole, WAIT_S)
    stop()
    assert agent.call("DELETE", f"{path}/offsets").status == 200
    assert agent.call("DELETE", f"/connectors/{other}").status == 204
    answer = audit.run(
        "offsets",
        offsets={
            "worker": topics["offset"],
            "config": topics["config"],
            "status": topics["status"],
        },
    )
    told = sorted((each.kind, each.group) for each in answer.outcome.findings)
    assert told == [("altered", name), ("orphan", other), ("reset", name)]
    [reset] = answer.of("reset")
    assert "a reset over REST" in reset.message
    assert answer.verdict is Verdict.AGREE
