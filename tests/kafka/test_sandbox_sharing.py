"""One broker serves a whole test session, however many processes it has."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pyconnect_sandbox.ports import is_free
from tests.support.eventually import eventually

pytestmark = pytest.mark.kafka

_SESSION = """
import pytest

pytestmark = pytest.mark.kafka

@pytest.mark.parametrize("number", range(4))
def test_address(kafka_broker, number, record_property, worker_id):
    with open({addresses!r}, "a") as file:
        file.write(worker_id + " " + kafka_broker.bootstrap_servers + "\\n")
"""


def test_the_processes_of_a_session_share_one_broker_and_leave_none(tmp_path: Path) -> None:
    """Workers of pytest-xdist get the same broker, which is gone after the session."""
    root = Path(__file__).resolve().parents[2]
    addresses = tmp_path / "addresses"
    module = tmp_path / "test_session.py"
    module.write_text(_SESSION.format(addresses=str(addresses)))
    session = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-n", "2", "--dist", "load", "-q"),
            *("-c", str(root / "pyproject.toml"), "--rootdir", str(root)),
            *("-p", "tests.conftest", f"--basetemp={tmp_path / 'base'}", str(module)),
        ],
        cwd=root,
        env={key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")},
        capture_output=True,
        text=True,
        check=False,
        timeout=400,
    )
    assert session.returncode == 0, session.stdout + session.stderr
    rows = [line.split() for line in addresses.read_text().splitlines()]
    assert {worker for worker, _ in rows} == {"gw0", "gw1"}
    (address,) = {address for _, address in rows}
    port = int(address.rpartition(":")[2])
    eventually(lambda: is_free(port), describe="the end of the session's broker")
