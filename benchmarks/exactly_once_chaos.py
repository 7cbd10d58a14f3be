"""Kills and freezes for a given time, and the lines that a reader of committed records sees.

    scripts/benchmark exactly_once_chaos [--minutes N] [--seed S] [--mode MODE] [--keep DIR]

MODE is exactly-once or at-least-once. With exactly-once every line must be seen once and in order,
and some transaction must have been aborted; else the exit code is 1. With at-least-once every line
must be seen, and duplicates are counted. Files of sinks have every line in either mode. With
`--keep` the broker goes on running, and DIR has the input of a reconciliation: `chaos.json`
(bootstrap servers, the broker's pid, seed, mode, and by topic its connector, file and number of
lines) beside the connectors' files.
"""

import argparse
import json
import random
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from pyconnect_sandbox.broker import BrokerConfig, KafkaBroker
from pyconnect_sandbox.jars import find_runtime
from tests.support.chaos.chaos import ENABLED, Chaos
from tests.support.plugins.java_jars import file_connectors
from tests.support.servers.cluster import cluster_of

MODES = ("exactly-once", "at-least-once")


def run(options: argparse.Namespace, directory: Path, bootstrap_servers: str) -> tuple[Chaos, str]:
    """Return the finished run and the group id of its cluster."""
    exactly_once = options.mode == MODES[0]
    properties = {**(ENABLED if exactly_once else {}), "plugin.path": str(directory / "plugins")}
    (directory / "plugins").mkdir()
    if options.in_java:
        file_connectors(find_runtime(), directory / "plugins")
    with cluster_of(3, bootstrap_servers, directory, properties) as cluster:
        chaos = Chaos(
            cluster,
            bootstrap_servers,
            directory,
            seed=options.seed,
            connectors=options.connectors,
            with_several_tasks=options.with_several_tasks,
            in_java=options.in_java,
            lines_per_s=options.lines_per_s,
            exactly_once=exactly_once,
        )
        try:
            chaos.run(options.minutes * 60)
        finally:
            print(f"{options.mode}, {chaos.report.summary()}")
            for reason, count in chaos.report.reasons.most_common():
                print(f"  {count} x {reason}")
            for gap in chaos.report.gaps:
                print(f"  missing: {gap}")
        return chaos, cluster.group_id


def is_right(chaos: Chaos, mode: str) -> bool:
    missing = chaos.report.missing + chaos.report.missing_in_sinks
    if missing or mode != MODES[0]:
        return not missing
    return chaos.report.aborted_transactions > 0 and all(
        chaos.seen[topic] == list(range(1, last + 1)) for topic, last in chaos.expected().items()
    )


def description(chaos: Chaos, group_id: str, mode: str, broker: KafkaBroker) -> dict[str, Any]:
    expected = chaos.expected()
    return {
        "bootstrap_servers": broker.bootstrap_servers,
        "broker_pid": broker.pid,
        "group_id": group_id,
        "seed": chaos.report.seed,
        "mode": mode,
        "topics": {
            topic: {"connector": subject.name, "file": str(file), "lines": expected[topic]}
            for subject in chaos.subjects
            for topic, file in subject.files.items()
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1_000_000))
    parser.add_argument("--mode", choices=MODES, default=MODES[0])
    parser.add_argument("--connectors", type=int, default=3, help="of one task each")
    parser.add_argument("--with-several-tasks", type=int, default=2, help="more connectors")
    parser.add_argument("--in-java", type=int, default=1, help="Java sources and sinks more")
    parser.add_argument("--lines-per-s", type=int, default=100)
    parser.add_argument("--keep", type=Path)
    options = parser.parse_args()
    with ExitStack() as stack:
        if options.keep is None:
            directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        else:
            directory = options.keep.resolve()
            directory.mkdir(parents=True)
        config = BrokerConfig(
            runtime=find_runtime(), directory=directory / "broker", hold_file=directory / "hold"
        )
        broker = KafkaBroker(config)
        stack.callback(broker.stop)
        broker.start()
        chaos, group_id = run(options, directory, broker.bootstrap_servers)
        if options.keep is not None:
            found = description(chaos, group_id, options.mode, broker)
            (directory / "chaos.json").write_text(json.dumps(found, indent=2))
            broker.detach()
            print(f"broker {broker_address(found)} goes on; see {directory / 'chaos.json'}")
        sys.exit(0 if is_right(chaos, options.mode) else 1)


def broker_address(found: dict[str, Any]) -> str:
    return f"{found['bootstrap_servers']} (pid {found['broker_pid']})"
