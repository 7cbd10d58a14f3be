"""Transactions as brokers report them: KIP-664, over kafka-python.

Listing asks every broker for the ids that it coordinates; describing asks each id's coordinator;
partitions' leaders report producers. Two calls change something: `abort` makes the leader of one
partition write an abort marker, and `terminate` makes a coordinator abort an id's open transaction.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyconnect_cli.errors import NotFound, Unreachable, WaitTimedOut
from pyconnect_cli.kafka.admin import protocol_errors, refused
from pyconnect_cli.kafka.model import OpenProducer, TopicPartition, Transaction
from pyconnect_cli.render.styles import counted

if TYPE_CHECKING:
    from pyconnect_clients.brokers.protocol import KafkaProtocol

_NONE, _NO_SUCH_ID, _UNKNOWN_PARTITION, _TOPIC_DENIED = 0, 105, 3, 29
# Retriable: the coordinator is loading, not available, not this broker, or still aborting.
_NOT_YET = frozenset({14, 15, 16, 51})
_RETRY_S = 0.1
_LOG = "__transaction_state"
_LOG_PARTITIONS = 50
"""The brokers' default of transaction.state.log.num.partitions."""
COORDINATORS_S = 15.0
"""The longest wait for coordinators that read their log."""
_FIRST_ID = 0x100


def list_transactional_ids(
    protocol: KafkaProtocol, producer_ids: Iterable[int] = (), states: Sequence[str] = ()
) -> list[str]:
    """Return the ids that brokers know and that this command may describe, sorted.

    `producer_ids`: those of these producers only; `states`: those in these states only.
    WaitTimedOut if a coordinator does not become ready: an id that is missing from the answer is
    not known to any coordinator.
    """
    # Coordinators that have not read their log yet leave transactions out of their lists without an
    # error. Denied ids are not waited for.
    from pyconnect_clients.brokers.protocol import metadata_request

    until = time.monotonic() + min(COORDINATORS_S, protocol.remaining_s())
    question = metadata_request([_LOG])
    (topic,) = protocol.send(f"find the partitions of {_LOG}", question).topics
    denied = topic.error_code == _TOPIC_DENIED
    # The topic has no partitions before the first transaction.
    partitions = _LOG_PARTITIONS if denied else len(topic.partitions)
    # The hash of an id of one character is the character's code: one id for each partition.
    ids = [chr(_FIRST_ID + number) for number in range(partitions)]
    while ids := _not_ready(protocol, ids):
        if time.monotonic() + _RETRY_S > until:
            raise WaitTimedOut(
                f"the transaction coordinators of {counted(len(ids), 'partition')} of {_LOG} are"
                " not ready",
                hint="run the command again when all brokers run and have read their logs",
            )
        time.sleep(_RETRY_S)
    with protocol_errors("list transactions"):
        listed = protocol.admin.list_transactions(
            producer_id_filters=sorted(set(producer_ids)), state_filters=states
        )
    return sorted({item.transactional_id for items in listed.values() for item in items})


def _not_ready(protocol: KafkaProtocol, ids: Sequence[str]) -> list[str]:
    """Return the ids whose coordinators cannot answer yet."""
    from kafka.protocol.metadata import CoordinatorType, FindCoordinatorRequest

    if not ids:
        return []
    # Not `protocol.coordinators`, which remembers a coordinator after it has moved.
    request = FindCoordinatorRequest(
        key_type=CoordinatorType.TRANSACTION.value, coordinator_keys=list(ids), min_version=4
    )
    coordinators = protocol.send("find coordinators", request).coordinators
    found = [each.key for each in coordinators if each.error_code in _NOT_YET]
    nodes = {each.key: each.node_id for each in coordinators if each.error_code == _NONE}
    states = _described(protocol, nodes)
    return found + [each.transactional_id for each in states if each.error_code in _NOT_YET]


def _described(protocol: KafkaProtocol, nodes: Mapping[str, int]) -> Iterator[Any]:
    """Yield what the coordinators of ids report about them; `nodes`: by id."""
    from kafka.protocol.admin import DescribeTransactionsRequest

    by_node: dict[int, list[str]] = defaultdict(list)
    for name, node in nodes.items():
        by_node[node].append(name)
    requests = [
        (DescribeTransactionsRequest(transactional_ids=names), node)
        for node, names in by_node.items()
    ]
    for response in protocol.send_all("describe transactions", requests):
        yield from response.transaction_states


def describe_transactions(protocol: KafkaProtocol, ids: Sequence[str]) -> list[Transaction]:
    """Return the coordinators' state of ids, in their order; forgotten ids are left out."""
    found: dict[str, Transaction] = {}
    for state in _described(protocol, protocol.coordinators(ids)):
        if state.error_code == _NO_SUCH_ID:
            continue
        _require(state.error_code, f"describe {state.transactional_id}")
        found[state.transactional_id] = Transaction(
            transactional_id=state.transactional_id,
            state=state.transaction_state,
            producer_id=state.producer_id,
            epoch=state.producer_epoch,
            timeout_ms=state.transaction_timeout_ms,
            started_ms=max(state.transaction_start_time_ms, 0) or None,
            partitions=tuple(
                sorted(TopicPartition(it.topic, at) for it in state.topics for at in it.partitions)
            ),
        )
    return [found[name] for name in ids if name in found]


def existing_partitions(protocol: KafkaProtocol, topics: Sequence[str]) -> set[TopicPartition]:
    """Return the partitions of named topics; NotFound for topics without any."""
    found = set(partition_leaders(protocol, topics))
    if missing := sorted(set(topics) - {partition.topic for partition in found}):
        raise NotFound(f"topic {', '.join(missing)} does not exist, or describing it is denied")
    return found


def open_producers(protocol: KafkaProtocol, topics: Iterable[str]) -> list[OpenProducer]:
    """Return the producers that have a transaction open in any partition of these topics.

    Topics that do not exist have none.
    """
    from pyconnect_clients.brokers.protocol import open_producers as described

    with protocol_errors("describe producers"):
        found = [
            OpenProducer(
                partition=TopicPartition(*at),
                producer_id=producer.producer_id,
                epoch=producer.producer_epoch,
                coordinator_epoch=producer.coordinator_epoch,
                last_ms=producer.last_timestamp,
                first_offset=producer.current_transaction_start_offset,
            )
            for at, producer in described(protocol.admin, partition_leaders(protocol, topics))
        ]
    return sorted(found, key=lambda producer: (producer.partition, producer.producer_id))


def abort(protocol: KafkaProtocol, producer: OpenProducer) -> None:
    """Have a partition's leader end the transaction; needs Alter on the cluster.

    The marker carries the coordinator's epoch as the leader knows it, so that a coordinator that
    is alive can still write its own.
    """
    from kafka import TopicPartition as KafkaTopicPartition
    from kafka.admin import AbortTransactionSpec

    spec = AbortTransactionSpec(
        topic_partition=KafkaTopicPartition(*producer.partition),
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        coordinator_epoch=max(producer.coordinator_epoch, 0),
    )
    with protocol_errors(f"abort the transaction in {producer.partition}"):
        protocol.admin.abort_transaction(spec)


def terminate(protocol: KafkaProtocol, transaction: Transaction) -> None:
    """Make an id's coordinator abort its open transaction; return when all markers are written.

    It is the request with which a producer of this id starts (as `kafka-transactions.sh
    forceTerminateTransaction` sends it): a producer that is alive is fenced. Needs Write on the id.
    """
    from kafka.protocol.producer import InitProducerIdRequest

    name = transaction.transactional_id
    what = f"terminate the transaction of {name}"
    request = InitProducerIdRequest(
        transactional_id=name, transaction_timeout_ms=max(transaction.timeout_ms, 1)
    )
    while True:
        coordinator = protocol.coordinators([name])[name]
        code = protocol.send(what, request, coordinator).error_code
        if code not in _NOT_YET:
            _require(code, what)
            return
        if protocol.remaining_s() <= _RETRY_S:
            raise WaitTimedOut(
                f"{name}: its coordinator has not aborted the transaction in time",
                hint=f"show its state: pyconnect transactions describe {name}",
            )
        time.sleep(_RETRY_S)


def partition_leaders(protocol: KafkaProtocol, topics: Iterable[str]) -> dict[TopicPartition, int]:
    """Return the leader of each partition; topics that do not exist have none.

    Unreachable for a partition without a leader.
    """
    from pyconnect_clients.brokers.protocol import metadata_request

    if not (names := list(topics)):
        return {}
    found = {}
    for topic in protocol.send("find partitions", metadata_request(names)).topics:
        if topic.error_code == _UNKNOWN_PARTITION:
            continue
        _require(topic.error_code, f"find the partitions of {topic.name}")
        for partition in topic.partitions:
            if partition.leader_id < 0:
                raise Unreachable(
                    f"Kafka: partition {topic.name}:{partition.partition_index} has no leader",
                    hint="run the command again when the brokers of its replicas run",
                )
            found[TopicPartition(topic.name, partition.partition_index)] = partition.leader_id
    return found


def _require(code: int, what: str) -> None:
    if code != _NONE:
        raise refused(code, what)
