"""Servers that all processes of one test session share, pytest-xdist's workers included.

The first process that asks starts the server, under a lock; each holds it (see
`pyconnect_sandbox.processes`), and it is killed once the last holder is gone, also when a
process is killed.
"""

import fcntl
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from pyconnect_sandbox.broker import BrokerConfig, KafkaBroker
from pyconnect_sandbox.processes import Hold, ProcessIdentity, is_running
from pyconnect_sandbox.server import Server
from tests.support.servers.kafka import SharedBroker


@contextmanager
def shared_server(
    directory: Path, name: str, start: Callable[[Path], tuple[Server, Mapping[str, str]]]
) -> Iterator[Mapping[str, str]]:
    """Yield the addresses of the session's server `name`, started by `start` if need be.

    `directory` is the session's, common to its processes. `start(hold_file)` returns the started
    server, tethered to that file, and its addresses.
    """
    hold = Hold(directory / f"{name}.hold")
    state_path = directory / f"{name}.json"
    server: Server | None = None
    try:
        with (directory / f"{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            addresses = _running(state_path)
            if addresses is None:
                server, addresses = start(hold.path)
                identity = server.identity
                state_path.write_text(
                    json.dumps(
                        {
                            "pid": identity.pid,
                            "start_mark": identity.start_mark,
                            "addresses": dict(addresses),
                        }
                    )
                )
        yield addresses
    finally:
        if server is not None:
            server.disown()
        hold.release()


SELDOM_FENCED = {"broker.session.timeout.ms": "15000"}
"""Of a broker that no test kills: one that a busy machine stalls for seconds keeps its partitions.

One that pytest starts again in its directory has to wait for so long."""


@contextmanager
def shared_broker(directory: Path, name: str, config: BrokerConfig) -> Iterator[SharedBroker]:
    """Yield the session's broker `name`; it gets a directory of its own and a hold file."""
    properties = {**SELDOM_FENCED, **config.properties}
    config = replace(config, directory=directory / f"shared-{name}", properties=properties)

    def start(hold_file: Path) -> tuple[Server, Mapping[str, str]]:
        broker = KafkaBroker(replace(config, hold_file=hold_file)).start()
        addresses = {"bootstrap_servers": broker.bootstrap_servers}
        if config.security.sasl_users:
            addresses["sasl_bootstrap_servers"] = broker.sasl_bootstrap_servers
        return broker, addresses

    with shared_server(directory, name, start) as addresses:
        yield SharedBroker(**addresses)


def _running(state_path: Path) -> Mapping[str, str] | None:
    if not state_path.exists():
        return None
    state = json.loads(state_path.read_text())
    identity = ProcessIdentity(pid=state["pid"], start_mark=state["start_mark"])
    addresses: Mapping[str, str] = state["addresses"]
    return addresses if is_running(identity) else None
