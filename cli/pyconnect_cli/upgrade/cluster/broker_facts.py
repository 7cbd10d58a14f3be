"""The brokers' state before an upgrade: transactions, their log and limits, Connect's topics.

Facts that the ACLs hide (DescribeConfigs, Describe) stay unknown; they never refuse an upgrade.

Aborted offsets: Java workers that are not `enabled` read their offsets topic `read_uncommitted`: if
the newest record of a source partition belongs to an aborted transaction, they continue from there
and skip records that were never delivered. `aborted_offsets` reads the topic in both ways and
compares key by key. Sources may write meanwhile: the comparison waits for open transactions and
counts later commits.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyconnect_cli.errors import PyconnectError
from pyconnect_cli.kafka.admin import KafkaAdmin, protocol_errors
from pyconnect_cli.kafka.model import TopicPartition
from pyconnect_cli.kafka.reader import records
from pyconnect_cli.render.styles import counted
from pyconnect_cli.upgrade.plan.model import Brokers

if TYPE_CHECKING:
    from pyconnect_clients.brokers.protocol import KafkaProtocol

TRANSACTION_LOG = "__transaction_state"
RECOMMENDED_REPLICAS = 3
CONFIG_TOPIC = "config topic"
_WITH_TRANSACTIONS = (0, 11)


def brokers(protocol: KafkaProtocol, topics: Mapping[str, str]) -> Brokers:
    """Return the known facts; `topics`: the use of each (`CONFIG_TOPIC`, any words), by name."""
    ids = protocol.brokers()
    settings = _settings(protocol, "broker", str(ids[0])) if ids else {}
    found = [_transaction_log(protocol, settings)]
    for name, use in topics.items():
        if partitions := _partitions(protocol, name):
            own = _settings(protocol, "topic", name)
            found.append(
                topic_findings(
                    f"{use} {name}",
                    single=use == CONFIG_TOPIC,
                    replicas=[(len(p.replica_nodes), len(p.isr_nodes)) for p in partitions],
                    policy=own.get("cleanup.policy") or "compact",
                    least_in_sync=int(own.get("min.insync.replicas") or 1),
                )
            )
    most = settings.get("transaction.max.timeout.ms")
    return Brokers(
        transactions=protocol.broker_version >= _WITH_TRANSACTIONS,
        max_transaction_timeout_ms=int(most) if most else None,
        problems=tuple(text for problems, _ in found for text in problems),
        warnings=tuple(text for _, warnings in found for text in warnings),
    )


def _transaction_log(
    protocol: KafkaProtocol, settings: Mapping[str, str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    least = int(settings.get("transaction.state.log.min.isr") or 1)
    partitions = _partitions(protocol, TRANSACTION_LOG)
    if not partitions:
        wanted = int(settings.get("transaction.state.log.replication.factor") or 1)
        there = len(protocol.brokers())
        if wanted > there:
            text = (
                f"the transaction log needs {wanted} replicas, but there are {there} brokers"
                " (transaction.state.log.replication.factor)"
            )
            return (text,), ()
        return (), ()
    leaderless = sum(partition.leader_id < 0 for partition in partitions)
    behind = sum(len(partition.isr_nodes) < least for partition in partitions)
    problems = []
    if leaderless:
        problems.append(f"{counted(leaderless, 'partition')} of {TRANSACTION_LOG} without a leader")
    elif behind:
        part = counted(behind, "partition")
        problems.append(f"{part} of {TRANSACTION_LOG} with fewer than {least} replicas in sync")
    fewest = min(len(partition.replica_nodes) for partition in partitions)
    warnings = []
    if fewest < RECOMMENDED_REPLICAS:
        warnings.append(
            f"{TRANSACTION_LOG} has {fewest} replica{'' if fewest == 1 else 's'};"
            f" {RECOMMENDED_REPLICAS} are recommended"
        )
    return tuple(problems), tuple(warnings)


def topic_findings(
    title: str,
    *,
    single: bool,
    replicas: Sequence[tuple[int, int]],
    policy: str,
    least_in_sync: int,
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return problems and warnings of a topic that holds state of Connect.

    `replicas`: for each partition the number of replicas, and of those in sync.
    """
    problems = []
    if single and len(replicas) > 1:
        problems.append(f"{title} has {len(replicas)} partitions; it must have one")
    if policy != "compact":
        problems.append(f"{title} has cleanup.policy={policy}; it must be compact")
    if behind := sum(in_sync < least_in_sync for _, in_sync in replicas):
        problems.append(
            f"{counted(behind, 'partition')} of {title} with fewer than {least_in_sync} replicas in"
            " sync (min.insync.replicas): nothing can be written"
        )
    fewest = min(count for count, _ in replicas)
    # A topic with one replica cannot lose one.
    if not problems and 1 < fewest <= least_in_sync:
        warning = (
            f"{title} has min.insync.replicas={least_in_sync} and {fewest} replicas:"
            " without one of the brokers nothing can be written"
        )
        return (), (warning,)
    return tuple(problems), ()


# The library's answers have no types.
def _partitions(protocol: KafkaProtocol, name: str) -> list[Any]:
    from pyconnect_clients.brokers.protocol import metadata_request

    answer = protocol.send("describe topics", metadata_request([name]))
    return [part for found in answer.topics if not found.error_code for part in found.partitions]


def _settings(protocol: KafkaProtocol, kind: str, name: str) -> Mapping[str, str]:
    from kafka.admin import ConfigFilterType, ConfigResource, ConfigResourceType

    resource = ConfigResource(ConfigResourceType[kind.upper()], name)
    try:
        with protocol_errors("describe configurations"):
            found = protocol.admin.describe_configs([resource], config_filter=ConfigFilterType.ALL)
    except PyconnectError:
        return {}
    entries = found.get(kind, {}).get(name, {})
    return {key: str(entry.get("value") or "") for key, entry in entries.items()}


Newest = dict[tuple[int, bytes], int]

OPEN_S = 60.0
"""Time to wait for open transactions: the default of their timeout."""
PAUSE_S = 0.2
CALL_S = 10.0


def aborted_offsets(settings: Mapping[str, str], topic: str) -> tuple[str, ...]:
    """Return the keys whose newest record belongs to no committed transaction, sorted.

    A transaction that stays open counts too: it may be aborted yet.
    """
    everything = _newest(settings, topic, "read_uncommitted")
    last: dict[TopicPartition, int] = {}
    for (number, _), offset in everything.items():
        partition = TopicPartition(topic, number)
        last[partition] = max(offset, last.get(partition, -1))
    admin = KafkaAdmin(settings, lambda: CALL_S)
    until = time.monotonic() + OPEN_S
    while any(end <= last[where] for where, end in admin.decided_ends(last).items()):
        if time.monotonic() > until:
            break
        time.sleep(PAUSE_S)
    committed = _newest(settings, topic, "read_committed")
    return tuple(
        sorted(
            f"partition {number}, key {key.decode(errors='replace')}"
            for (number, key), offset in everything.items()
            if committed.get((number, key), -1) < offset
        )
    )


def _newest(settings: Mapping[str, str], topic: str, isolation: str) -> Newest:
    return {
        (int(record.partition() or 0), bytes(record.key() or b"")): int(record.offset() or 0)
        for record in records(settings, topic, isolation)
    }
