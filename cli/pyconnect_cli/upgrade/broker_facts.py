"""What brokers say before an upgrade: transactions, their log, their limits, the config topic.

What may not be read (DescribeConfigs, Describe) stays unknown; nothing is refused for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyconnect_cli.errors import PyconnectError
from pyconnect_cli.kafka_protocol import KafkaProtocol, translated_errors
from pyconnect_cli.upgrade.kafka_group import has_transactions
from pyconnect_cli.upgrade.model import Brokers

TRANSACTION_LOG = "__transaction_state"
RECOMMENDED_REPLICAS = 3


def brokers(protocol: KafkaProtocol, config_topic: str | None) -> Brokers:
    """Return what is known; `config_topic` None: nobody told its name."""
    settings = _broker_settings(protocol)
    problems, warnings = _transaction_log(protocol, settings)
    most = settings.get("transaction.max.timeout.ms")
    return Brokers(
        transactions=has_transactions(protocol),
        max_transaction_timeout_ms=int(most) if most else None,
        log_problems=problems,
        log_warnings=warnings,
        config_topic_problems=_config_topic(protocol, config_topic) if config_topic else (),
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
                f"the transaction log is to be created with {wanted} replicas and there are {there}"
                " brokers (transaction.state.log.replication.factor)"
            )
            return (text,), ()
        return (), ()
    leaderless = sum(partition.leader_id < 0 for partition in partitions)
    behind = sum(len(partition.isr_nodes) < least for partition in partitions)
    problems = []
    if leaderless:
        problems.append(f"{leaderless} partitions of {TRANSACTION_LOG} have no leader")
    elif behind:
        problems.append(f"{behind} partitions of {TRANSACTION_LOG} have fewer than {least} in sync")
    fewest = min(len(partition.replica_nodes) for partition in partitions)
    warnings = []
    if fewest < RECOMMENDED_REPLICAS:
        warnings.append(
            f"{TRANSACTION_LOG} has {fewest} replica{'' if fewest == 1 else 's'};"
            f" {RECOMMENDED_REPLICAS} are recommended"
        )
    return tuple(problems), tuple(warnings)


def _config_topic(protocol: KafkaProtocol, name: str) -> tuple[str, ...]:
    problems = []
    partitions = _partitions(protocol, name)
    if len(partitions) > 1:
        problems.append(f"config topic {name} has {len(partitions)} partitions; it must have one")
    policy = _settings(protocol, "topic", name).get("cleanup.policy", "compact")
    if policy != "compact":
        problems.append(f"config topic {name} has cleanup.policy={policy}; it must be compact")
    return tuple(problems)


# The library's answers have no types.
def _partitions(protocol: KafkaProtocol, name: str) -> list[Any]:
    from kafka.protocol.metadata import MetadataRequest

    topic = MetadataRequest.MetadataRequestTopic(name=name)
    request = MetadataRequest(topics=[topic], allow_auto_topic_creation=False, min_version=4)
    answer = protocol.send("describe topics", request)
    return [part for found in answer.topics if not found.error_code for part in found.partitions]


def _broker_settings(protocol: KafkaProtocol) -> Mapping[str, str]:
    ids = protocol.brokers()
    return _settings(protocol, "broker", str(ids[0])) if ids else {}


def _settings(protocol: KafkaProtocol, kind: str, name: str) -> Mapping[str, str]:
    from kafka.admin import ConfigFilterType, ConfigResource, ConfigResourceType

    resource = ConfigResource(ConfigResourceType[kind.upper()], name)
    try:
        with translated_errors("describe configurations"):
            found = protocol.admin.describe_configs([resource], config_filter=ConfigFilterType.ALL)
    except PyconnectError:
        return {}
    entries = found.get(kind, {}).get(name, {})
    return {key: str(entry.get("value") or "") for key, entry in entries.items()}
