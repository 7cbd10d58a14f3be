"""Everything that a plan of an upgrade rests on beside the look at the workers."""

from __future__ import annotations

from dataclasses import replace

from pyconnect_cli.acls.model import Finding
from pyconnect_cli.acls.model import Phase as AclPhase
from pyconnect_cli.commands._acls_run import acl_report
from pyconnect_cli.errors import PyconnectError, UsageError
from pyconnect_cli.kafka_admin import kafka_settings
from pyconnect_cli.model import ConnectorView
from pyconnect_cli.session import Session
from pyconnect_cli.upgrade import java
from pyconnect_cli.upgrade.aborted_offsets import aborted_offsets
from pyconnect_cli.upgrade.broker_facts import brokers
from pyconnect_cli.upgrade.checks import Wish
from pyconnect_cli.upgrade.model import (
    Kind,
    Means,
    Phase,
    PhaseSource,
    SourceConnector,
    View,
    Worker,
)
from pyconnect_cli.upgrade.observe import Observer
from pyconnect_cli.upgrade.perform import Performer

CONFIG_TOPIC = "config.storage.topic"
OFFSETS_TOPIC = "offset.storage.topic"
DEFAULT_TRANSACTION_TIMEOUT_MS = 60_000


def planning_view(session: Session, observer: Observer, wish: Wish, show: Performer) -> View:
    """Return a look with brokers, connectors, ACLs and what the `show` commands print."""
    view = observer.look()
    view = replace(view, workers=tuple(_probed(observer, worker, show) for worker in view.workers))
    view = _with_permissions(observer, view)
    if not any(worker.reachable for worker in view.workers):
        return view
    blockers, unknown = _acls(session, wish.target)
    topic = observer.workers.inventory.offsets_topic or _agents_value(observer, view, OFFSETS_TOPIC)
    return replace(
        view,
        brokers=brokers(observer.protocol, _agents_value(observer, view, CONFIG_TOPIC)),
        offsets_topic=topic,
        aborted_offsets=_aborted(session, view, topic),
        sources=_sources(observer, view, wish),
        acl_blockers=blockers,
        acl_unknown=unknown,
    )


def _probed(observer: Observer, worker: Worker, show: Performer) -> Worker:
    """Ask a Java worker for its fencing endpoint, and its file for its phase.

    What a file says counts unless the worker's behaviour contradicts.
    """
    if not worker.reachable or worker.kind is not Kind.JAVA:
        return worker
    worker = replace(worker, fences=java.has_fencing_endpoint(observer.workers.rest(worker.url)))
    phase = show.show(worker.url)
    if phase is None or phase not in worker.phases:
        return worker
    return replace(worker, phases=frozenset({phase}), source=PhaseSource.SHOWN)


def _with_permissions(observer: Observer, view: View) -> View:
    """Agents that may not change themselves, or that nobody restarts, are changed by hand."""
    return replace(view, workers=tuple(_permitted(observer, worker) for worker in view.workers))


def _permitted(observer: Observer, worker: Worker) -> Worker:
    if worker.means is not Means.AGENT or not worker.reachable:
        return worker
    try:
        admin = observer.workers.admin(worker.url)
        allowed = admin.config().get("agent.allow.phase.change") == "true"
        restarts = admin.info().raw.get("restart") != "none"
    except PyconnectError:
        return worker
    return worker if allowed and restarts else replace(worker, means=Means.OPERATOR)


def _agents_value(observer: Observer, view: View, key: str) -> str | None:
    """Return a worker property as the first agent has it; None among Java workers only."""
    for worker in view.workers:
        if worker.kind is Kind.AGENT and worker.reachable:
            return observer.workers.admin(worker.url).config().get(key)
    return None


def _aborted(session: Session, view: View, topic: str | None) -> tuple[str, ...]:
    """Search only where it matters: Java workers that come down from `enabled`."""
    java_enabled = any(w.kind is Kind.JAVA and Phase.ENABLED in w.phases for w in view.workers)
    if topic is None or not java_enabled:
        return ()
    return aborted_offsets(kafka_settings(session, "offsets topics are read from Kafka"), topic)


def _sources(observer: Observer, view: View, wish: Wish) -> tuple[SourceConnector, ...]:
    worker = next(w for w in (view.leader, *view.workers) if w is not None and w.reachable)
    client = observer.workers.rest(worker.url)
    found = []
    for name, connector in client.connector_views().items():
        if connector.type == "source" and connector.info is not None:
            source = _source(connector)
            if wish.target is Phase.ENABLED:
                config = {**connector.info.config, "name": name, java.SUPPORT: "required"}
                errors = java.support_errors(client.validate(connector.info.class_name, config))
                against = tuple(error for error in errors if error != java.NOT_ENABLED)
                source = replace(source, preflight=against)
            found.append(source)
    return tuple(found)


def _source(view: ConnectorView) -> SourceConnector:
    assert view.info is not None
    config = view.info.config
    interval = config.get("transaction.boundary.interval.ms")
    timeout = config.get("producer.override.transaction.timeout.ms")
    return SourceConnector(
        name=view.name,
        state=view.state,
        tasks=len(view.info.tasks),
        offsets_topic=config.get("offsets.storage.topic"),
        requires_exactly_once=(config.get(java.SUPPORT) or "").lower() == "required",
        boundary=(config.get("transaction.boundary") or "poll").lower(),
        boundary_interval_ms=int(interval) if interval else None,
        transaction_timeout_ms=int(timeout) if timeout else DEFAULT_TRANSACTION_TIMEOUT_MS,
    )


def _acls(session: Session, target: Phase) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return what is missing for a phase, and what nobody could tell."""
    try:
        report = acl_report(session, AclPhase[target.name])
    except UsageError as error:
        # No worker's configuration is known: there are only Java workers.
        return (), (error.message,)
    return (
        tuple(map(_missing, report.blockers)),
        tuple(map(_missing, report.undecided)),
    )


def _missing(finding: Finding) -> str:
    need = finding.need
    return f"{need.text} for {need.principal or 'a client'} of {need.owner} ({finding.evidence})"
