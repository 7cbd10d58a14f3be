"""How long a check of ACLs takes once the brokers have answered.

1,000 source connectors with 10 tasks each (by default) against 10,000 bindings: literal ones for
half of the connectors, prefixed ones for the others, and those of strangers. Prints seconds for
deriving the needs, for judging them and for the whole report with its JSON, best of three.

    scripts/benchmark acls [CONNECTORS [TASKS [BINDINGS]]]
"""

import argparse
import json
import time
from collections.abc import Callable

from pyconnect_cli.acls.plan.check import AclReport, assess, check
from pyconnect_clients.acls.model import Binding, Evidence, GrantOperation, Pattern, ResourceType
from pyconnect_clients.acls.needs import ClusterFacts, ConnectorFacts, WorkerFacts, cluster_needs
from pyconnect_clients.connect_names import Phase

JAAS = 'org.example.PlainLoginModule required username="worker" password="p";'
SECURITY = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "PLAIN",
    "sasl.jaas.config": JAAS,
}
WORKER = WorkerFacts(
    name="worker",
    properties={
        "bootstrap.servers": "b:9092",
        "group.id": "group",
        "config.storage.topic": "configs",
        "offset.storage.topic": "offsets",
        "status.storage.topic": "statuses",
        **SECURITY,
        **{f"producer.{key}": text for key, text in SECURITY.items()},
        **{f"consumer.{key}": text for key, text in SECURITY.items()},
    },
)


def cluster(connectors: int, tasks: int) -> ClusterFacts:
    return ClusterFacts(
        workers=(WORKER,),
        connectors=tuple(
            ConnectorFacts(
                name=f"connector-{number}",
                type="source",
                config={"topic": f"topic-{number}", "tasks.max": str(tasks)},
                tasks=tasks,
                topics=(f"topic-{number}",),
            )
            for number in range(connectors)
        ),
        existing_topics={"": frozenset(f"topic-{number}" for number in range(connectors))},
    )


def bindings(connectors: int, tasks: int, count: int) -> tuple[Binding, ...]:
    """Return `count` bindings; those of the cluster come first."""

    def write(kind: ResourceType, name: str, pattern: Pattern, user: str = "worker") -> Binding:
        return Binding(kind, name, pattern, f"User:{user}", "*", GrantOperation.WRITE, True)

    own = []
    ids = ResourceType.TRANSACTIONAL_ID
    for number in range(connectors):
        stem = f"group-connector-{number}"
        own.append(write(ResourceType.TOPIC, f"topic-{number}", Pattern.LITERAL))
        if number % 2:
            own.append(write(ids, f"{stem}-", Pattern.PREFIXED))
        else:
            own += [write(ids, f"{stem}-{task}", Pattern.LITERAL) for task in range(tasks)]
    strangers = [
        write(ResourceType.TOPIC, f"elsewhere-{number}", Pattern.PREFIXED, f"user-{number % 97}")
        for number in range(max(count - len(own), 0))
    ]
    return (*own, *strangers)[:count]


def best(action: Callable[[], object]) -> float:
    times = []
    for _ in range(3):
        started = time.perf_counter()
        action()
        times.append(time.perf_counter() - started)
    return min(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("connectors", type=int, nargs="?", default=1_000)
    parser.add_argument("tasks", type=int, nargs="?", default=10)
    parser.add_argument("bindings", type=int, nargs="?", default=10_000)
    options = parser.parse_args()
    measure(options.connectors, options.tasks, options.bindings)


def measure(connectors: int, tasks: int, count: int) -> None:
    facts = cluster(connectors, tasks)
    evidence = Evidence(bindings={"": bindings(connectors, tasks, count)})
    wanted = cluster_needs(facts, Phase.ENABLED).needs
    report: AclReport = check(facts, Phase.ENABLED, evidence)
    print(f"{connectors} connectors x {tasks} tasks, {count} bindings, {len(wanted)} needs")
    print(f"needs    {best(lambda: cluster_needs(facts, Phase.ENABLED)):.3f} s")
    print(f"verdicts {best(lambda: assess(wanted, evidence)):.3f} s")
    whole = best(lambda: json.dumps(check(facts, Phase.ENABLED, evidence).to_json()))
    print(f"report   {whole:.3f} s, {len(report.blockers)} blockers missing")
