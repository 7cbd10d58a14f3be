"""The facts for a plan of an upgrade that a look at the workers does not show.

Facts of brokers are transactions, their log and limits, and Connect's topics. Facts that the
ACLs hide (DescribeConfigs, Describe) stay unknown; they never refuse an upgrade.

Aborted offsets: Java workers that are not `enabled` read their offsets topic `read_uncommitted`: if
the newest record of a source partition belongs to an aborted transaction, they continue from there
and skip records that were never delivered. `aborted_offsets` reads the topic in both ways and
compares key by key. Sources may write meanwhile: the comparison waits for open transactions and
counts later commits.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyconnect_cli.acls.gather import file_workers, gather
from pyconnect_cli.acls.options import AclOptions
from pyconnect_cli.acls.plan.check import AclReport
from pyconnect_cli.errors import PyconnectError, UsageError
from pyconnect_cli.kafka.admin import KafkaAdmin, kafka_cluster, protocol_errors
from pyconnect_cli.kafka.model import TopicPartition
from pyconnect_cli.kafka.reader import records
from pyconnect_cli.render.styles import counted
from pyconnect_cli.session import Session
from pyconnect_cli.upgrade import observe
from pyconnect_cli.upgrade.observe import (
    NOT_ENABLED,
    SUPPORT,
    Observer,
    has_fencing_endpoint,
    support_errors,
)
from pyconnect_cli.upgrade.perform import Performer
from pyconnect_cli.upgrade.plan.checks import PhaseWish
from pyconnect_cli.upgrade.plan.model import (
    Brokers,
    Kind,
    KnownSettings,
    Means,
    PhaseSource,
    SourceFacts,
    UpgradedWorker,
    View,
    boundary_interval_ms,
    breaking_of_leader,
    breaking_settings,
    client_clusters,
    replaced_of_leader,
    replaced_settings,
    transaction_timeout_ms,
)
from pyconnect_clients.acls.model import GrantFinding, GrantVerdict
from pyconnect_clients.acls.needs import server_set
from pyconnect_clients.connect_names import Phase, tasks_max
from pyconnect_clients.plugin_findings import check_locations, plugin_path_of
from pyconnect_clients.plugin_jars.kafka_links import kafka_api, minor_release

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


OFFSETS_TOPIC = "offset.storage.topic"
INTERNAL_TOPICS = {
    "config.storage.topic": CONFIG_TOPIC,
    OFFSETS_TOPIC: "offsets topic",
    "status.storage.topic": "status topic",
}
NOT_LISTED = "brokers do not report super users: name them with --super-user, or test with --probe"
Properties = Mapping[str, str | None]
DEFAULT_TRANSACTION_TIMEOUT_MS = 60_000


def planning_view(
    session: Session, observer: Observer, wish: PhaseWish, acls: AclOptions, show: Performer
) -> View:
    """Return a view with brokers, connectors, ACLs and the output of the `show` commands."""
    view = observer.look()
    view = replace(view, workers=tuple(_asked(observer, worker, show) for worker in view.workers))
    if not any(worker.reachable for worker in view.workers):
        return view
    files = {worker.name: worker.properties for worker in file_workers(acls)}
    agents = {
        worker.url: observer.workers.admin(worker.url).config()
        for worker in view.workers
        if worker.kind is Kind.AGENT and worker.reachable
    }
    workers = {**agents, **files}
    # The workers of a group are configured alike, as far as it matters for connectors.
    first = next(iter(workers.values()), {})
    sources = _sources(observer, view, wish, first)
    topic = (
        observer.workers.inventory.offsets_topic
        or first.get(OFFSETS_TOPIC)
        or session.settings.offsets_topic
    )
    blockers, unknown = _acls(session, view, wish.target, acls)
    found = {}
    enabled = wish.target is Phase.ENABLED
    if enabled:
        found = {
            source.offsets_topic: f"{source.name}'s offsets topic"
            for source in sources
            if source.offsets_topic and not source.own_cluster
        }
    for key, use in INTERNAL_TOPICS.items():
        if name := first.get(key):
            found[name] = use
    groups = observe.connect_groups(observer.protocol) if enabled else []
    return replace(
        view,
        brokers=brokers(observer.protocol, found),
        offsets_topic=topic,
        aborted_offsets=_aborted(session, view, topic),
        sources=sources,
        worker_settings=KnownSettings(
            replaced=tuple(
                f"{name}: {setting}"
                for name, properties in workers.items()
                for setting in replaced_of_leader(properties, enabled=enabled)
            ),
            breaking=tuple(
                f"{name}: {setting}"
                for name, properties in workers.items()
                for setting in breaking_of_leader(properties)
            ),
        ),
        other_groups=tuple(group.id for group in groups if group.id != observer.group_id),
        unusable_plugins=unusable_plugins(view.workers, files.values()),
        acl_blockers=blockers,
        acl_unknown=unknown,
    )


def _asked(observer: Observer, worker: UpgradedWorker, show: Performer) -> UpgradedWorker:
    """Look for a Java worker's fencing endpoint and its file's phase, and for an agent's rights.

    The phase in the file counts unless the worker's behaviour contradicts it.
    """
    if not worker.reachable:
        return worker
    if worker.kind is Kind.JAVA:
        fences = has_fencing_endpoint(observer.workers.rest(worker.url))
        worker = replace(worker, fences=fences)
        phase = show.show(worker.url)
        if phase is not None and phase in worker.phases:
            worker = replace(worker, phases=frozenset({phase}), source=PhaseSource.SHOWN)
    if worker.means is Means.AGENT:
        try:
            admin = observer.workers.admin(worker.url)
            allowed = admin.config().get("agent.allow.phase.change") == "true"
            if not allowed or admin.info().raw.get("restart") == "none":
                worker = replace(worker, means=Means.OPERATOR)
        except PyconnectError:
            pass
    return worker


def unusable_plugins(
    workers: Iterable[UpgradedWorker], files: Iterable[Properties]
) -> tuple[str, ...]:
    """Return findings about plugins on this machine that a Java worker's Kafka release cannot run.

    An agent gives each plugin a release that it can run with.
    """
    known = kafka_api().releases
    releases = {
        minor_release(worker.version)
        for worker in workers
        if worker.kind is Kind.JAVA and worker.version
    }
    properties = [{key: value or "" for key, value in file.items()} for file in files]
    entries = [entry for file in properties for entry in plugin_path_of(file) if entry.exists()]
    return tuple(
        f"{finding.location}: {finding.detail}"
        for release in sorted(releases.intersection(known))
        for finding in check_locations(entries, release)
        if finding.status == "failed"
    )


def _aborted(session: Session, view: View, topic: str | None) -> tuple[str, ...]:
    """Return aborted offsets if a Java worker may leave `enabled`; others do not read them."""
    java_enabled = any(w.kind is Kind.JAVA and Phase.ENABLED in w.phases for w in view.workers)
    if topic is None or not java_enabled:
        return ()
    cluster = kafka_cluster(session, "offsets topics are read from Kafka")
    return aborted_offsets(cluster.librdkafka(), topic)


def _sources(
    observer: Observer, seen: View, wish: PhaseWish, properties: Properties
) -> tuple[SourceFacts, ...]:
    worker = next(w for w in (seen.leader, *seen.workers) if w is not None and w.reachable)
    client = observer.workers.rest(worker.url)
    found = []
    for name, view in client.connector_views().items():
        if view.type != "source" or view.info is None:
            continue
        config = view.config
        errors: Collection[str] = ()
        if wish.target is Phase.ENABLED:
            wanted = {**config, "name": name, SUPPORT: "required"}
            errors = support_errors(client.validate(view.class_name, wanted))
        timeout_ms = transaction_timeout_ms(properties, config)
        addresses = client_clusters(properties, config)
        found.append(
            SourceFacts(
                name=name,
                state=view.state,
                tasks=len(view.info.tasks),
                tasks_max=tasks_max(config),
                offsets_topic=config.get("offsets.storage.topic"),
                requires_exactly_once=(config.get(SUPPORT) or "").lower() == "required",
                boundary=(config.get("transaction.boundary") or "poll").lower(),
                boundary_interval_ms=boundary_interval_ms(properties, config),
                transaction_timeout_ms=timeout_ms or DEFAULT_TRANSACTION_TIMEOUT_MS,
                preflight=tuple(error for error in errors if error != NOT_ENABLED),
                replaced=replaced_settings(properties, config),
                breaking=breaking_settings(properties, config),
                own_cluster=bool(addresses - {server_set(properties.get("bootstrap.servers"))}),
                several_clusters=len(addresses) > 1,
            )
        )
    return tuple(found)


def _acls(
    session: Session, view: View, target: Phase, options: AclOptions
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the missing grants of a phase, and the unknown ones."""
    java_urls = [worker.url for worker in view.workers if worker.kind is Kind.JAVA]
    unseen: tuple[str, ...] = ()
    try:
        report = gather(session, replace(options, phase=target)).report()
    except UsageError as error:
        # There are only Java workers, which do not report their configuration.
        return (), (error.message,)
    if java_urls and not (options.worker_configs or options.worker_properties):
        text = f"{', '.join(java_urls)}: Java workers do not report their configuration"
        unseen = (f"{text}; give --worker-config",)
    only_java = len(java_urls) == len(view.workers)
    exceptions_told = bool(options.super_users or options.allow_everyone or options.probe)
    blockers, unknown = acl_doubts(report, only_listed=only_java and not exceptions_told)
    return blockers, (*unseen, *unknown)


def acl_doubts(report: AclReport, *, only_listed: bool) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the missing grants, and the unknown ones.

    `only_listed`: no client was tried and no super user was named. A list of ACLs does not show
    super users: a principal without a binding may be one. Without the worker's file the principal
    is unknown too.
    """
    doubtful = [f for f in report.blockers if only_listed and f.verdict is GrantVerdict.MISSING]
    certain = [finding for finding in report.blockers if finding not in doubtful]
    unknown = [f"{_missing(finding)}; {NOT_LISTED}" for finding in doubtful]
    return tuple(map(_missing, certain)), (*unknown, *map(_missing, report.undecided))


def _missing(finding: GrantFinding) -> str:
    need = finding.need
    return f"{need.text} for {need.principal or 'a client'} of {need.owner} ({finding.evidence})"
