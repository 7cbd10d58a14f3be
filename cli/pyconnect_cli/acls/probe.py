"""Ask brokers as the clients of Java workers would, from this host.

A worker's file, given by the user, holds its credentials. The questions are the agent's own, so its
program asks them; properties go over a pipe, never over a command line.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import asdict

from pyconnect_cli.errors import PyconnectError, ServerError, UsageError, WaitTimedOut
from pyconnect_cli.rest.binding import Json, as_object
from pyconnect_cli.session import Session
from pyconnect_clients.acls.facts import ClusterFacts, WorkerFacts
from pyconnect_clients.phases import Phase

_COMMAND = [sys.executable, "-m", "pyconnect_agent.acl_probe"]
_EXIT_CONFIG = 2
# Values for missing keys that only a running worker needs.
_UNIMPORTANT = {"key.converter": "unused", "value.converter": "unused"}


def probed_here(
    session: Session, facts: ClusterFacts, phase: Phase, workers: Iterable[WorkerFacts]
) -> dict[str, Json]:
    """Return a report like an agent's for each worker; a failure becomes a warning."""
    reports: dict[str, Json] = {}
    for worker in workers:
        try:
            reports[worker.name] = _report(session, facts, phase, worker)
        except PyconnectError as error:
            session.output.warning(f"{worker.name}: its clients were not probed: {error.message}")
    return reports


def _report(session: Session, facts: ClusterFacts, phase: Phase, worker: WorkerFacts) -> Json:
    question = {
        "properties": {**_UNIMPORTANT, **worker.properties},
        "phase": phase.value,
        "connectors": [asdict(connector) for connector in facts.connectors],
    }
    try:
        ended = subprocess.run(
            _COMMAND,
            input=json.dumps(question),
            capture_output=True,
            text=True,
            check=False,
            timeout=max(session.budget.remaining_s(), 1.0),
        )
    except subprocess.TimeoutExpired as exc:
        raise WaitTimedOut("the brokers did not answer in time") from exc
    if ended.returncode == _EXIT_CONFIG:
        raise UsageError(ended.stderr.strip())
    if ended.returncode != 0:
        raise ServerError(f"the probe ended with code {ended.returncode}")
    return as_object(json.loads(ended.stdout))
