"""How long a rolling change of phase takes for three agents with a source running.

    scripts/benchmark upgrade [--settle 1s]

A broker and the agents are started here; `pyconnect upgrade` runs as a process, three times: to
preparing, to enabled, and to disabled directly. What its steps wait for is real; only `--settle`
and `scheduled.rebalance.max.delay.ms` (1 s) are shorter than by default.
"""

import argparse
import tempfile
import time
from pathlib import Path

from pyconnect_sandbox.broker import BrokerConfig, KafkaBroker
from pyconnect_sandbox.jars import find_runtime
from tests.support.agents.upgrade_cluster import Tool, upgradable_cluster
from tests.support.audits.sequences import Sequences

AGENTS = 3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--settle", default="1s")
    settle = parser.parse_args().settle
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        broker_config = BrokerConfig(
            runtime=find_runtime(), directory=directory / "broker", hold_file=directory / "hold"
        )
        with (
            KafkaBroker(broker_config) as broker,
            upgradable_cluster(AGENTS, broker.bootstrap_servers, directory) as cluster,
        ):
            sequences = Sequences(broker.bootstrap_servers, directory)
            config = {**sequences.config(2), "exactly.once.support": "requested"}
            cluster.agents[0].create("numbers", config)
            cluster.wait_until_running({"numbers": 2}, 60)
            sequences.allow(1_000)
            tool = Tool(broker.bootstrap_servers, cluster.agents[0].url, directory)
            for phase, options in (("preparing", ()), ("enabled", ()), ("disabled", ("--direct",))):
                started_s = time.perf_counter()
                tool.must_upgrade(phase, *options, "--settle", settle)
                print(f"{AGENTS} agents to {phase}: {time.perf_counter() - started_s:.1f} s")
