"""The facts for a plan of an upgrade, beside the look at the workers."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from pyconnect_cli.acls.gather import file_workers, gather
from pyconnect_cli.acls.options import AclOptions
from pyconnect_cli.acls.plan.check import AclReport
from pyconnect_cli.errors import PyconnectError, UsageError
from pyconnect_cli.kafka.admin import kafka_cluster
from pyconnect_cli.session import Session
from pyconnect_cli.upgrade.cluster import kafka_group
from pyconnect_cli.upgrade.cluster.broker_facts import CONFIG_TOPIC, aborted_offsets, brokers
from pyconnect_cli.upgrade.cluster.observe import (
    NOT_ENABLED,
    SUPPORT,
    Observer,
    has_fencing_endpoint,
    support_errors,
)
from pyconnect_cli.upgrade.perform import Performer
from pyconnect_cli.upgrade.plan.checks import PhaseWish
from pyconnect_cli.upgrade.plan.model import (
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
    groups = kafka_group.connect_groups(observer.protocol) if enabled else []
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
    """Return what the releases of Java workers lack for the plugins of files on this machine.

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
    """Search only for Java workers that leave `enabled`; others do not read such offsets."""
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
