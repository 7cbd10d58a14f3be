"""A wrong --kafka-bootstrap is reported soon, with the address and the reason."""

import json
import time

import pytest

from pyconnect_cli.kafka import admin
from tests.cli.conftest import Run
from tests.support.fakes.connect_server import FakeConnect

pytestmark = pytest.mark.wire
NOBODY = "127.0.0.1:1"


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admin, "CONTACT_S", 1.0)


def test_the_limit_of_the_first_contact_is_not_the_runs(run: Run, connect: FakeConnect) -> None:
    """The first contact with brokers has its own limit, which is shorter than --timeout."""
    connect.connectors["orders"].type = "sink"
    started = time.monotonic()
    outcome = run("offsets", "lag", "orders", "--kafka-bootstrap", NOBODY, code=7)
    assert f"no broker answers at {NOBODY} within 1s" in outcome.err
    assert "refused" in outcome.err
    assert time.monotonic() - started < 20
    outcome = run(
        "offsets", "orphans", "list", "--topic", "connect-offsets", "--kafka-bootstrap", NOBODY
    )
    assert outcome.code == 7
    assert NOBODY in outcome.err
    outcome = run("doctor", "--kafka-bootstrap", NOBODY, "-o", "json")
    (found,) = (check for check in json.loads(outcome.out) if check["check"] == "kafka")
    assert found["status"] == "failed"
    assert NOBODY in found["detail"]
    assert outcome.code == 1
