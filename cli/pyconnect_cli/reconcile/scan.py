"""Jobs over topics alone: ranges, transactions, sequence, duplicates; and over internal topics."""

from __future__ import annotations

from typing import Annotated

import typer

from pyconnect_cli.errors import UsageError
from pyconnect_cli.reconcile.connectors import Document, sink_bounds, sink_topics, source_topics
from pyconnect_cli.reconcile.run import reconcile
from pyconnect_cli.reconcile.spec import ReconcileVerb, earlier_reports
from pyconnect_cli.session import Session, session_of
from pyconnect_cli.verbs import argument, option

app = typer.Typer()

Topics = Annotated[
    list[str] | None,
    argument("[TOPIC]…", "topic to check; or give --connector NAME", show_default=False),
]
Connector = Annotated[str | None, option("--connector NAME", "connector whose topics are checked")]
Isolation = Annotated[
    bool, option("--uncommitted", "check of the records that consumers without read_committed see")
]


@app.command(cls=ReconcileVerb)
def ranges(
    context: typer.Context,
    topics: Topics = None,
    *,
    connector: Connector = None,
    against: Annotated[
        str | None,
        option("--against FILE", "report.json of an earlier run (default: the last of its kind)"),
    ] = None,
) -> None:
    """Compare offsets and topic ids with the last run: retention, re-created topics. No Spark."""
    session = session_of(context)
    target, resolved = _target(session, topics, connector)
    if against is not None:
        resolved["previous"] = against
    else:
        resolved["earlier"] = [str(path) for path in earlier_reports(session, "ranges", target)]
    reconcile(session, "ranges", target, resolved)


@app.command(cls=ReconcileVerb)
def transactions(
    context: typer.Context, topics: Topics = None, *, connector: Connector = None
) -> None:
    """Count records, aborted records and markers of each partition; name aborted offsets."""
    session = session_of(context)
    reconcile(session, "transactions", *_target(session, topics, connector))


@app.command(cls=ReconcileVerb)
def sequence(
    context: typer.Context,
    topics: Topics = None,
    *,
    connector: Connector = None,
    number: Annotated[
        str | None,
        option(
            "--sequence WHERE",
            "place of the sequence number: header:NAME, json:PATH, regex:PATTERN, key or"
            " provenance",
        ),
    ] = None,
    group: Annotated[
        str | None,
        option(
            "--per WHERE",
            "place of the id of the source that counts, in the same forms (default: one source)",
        ),
    ] = None,
    unordered: Annotated[
        bool, option("--unordered", "no check of the order within partitions")
    ] = False,
    uncommitted: Isolation = False,
) -> None:
    """Find missing, repeated and disordered numbers of each source."""
    session = session_of(context)
    target, resolved = _target(session, topics, connector)
    if number is None and not session.given.get("spec"):
        raise UsageError(
            "the place of the sequence number is not given",
            hint="--sequence json:PATH, header:NAME, regex:PATTERN, or provenance for the headers"
            " that pyconnect.provenance.headers=true stamps",
        )
    if number is not None:
        resolved["sequence"] = number
    if group is not None:
        resolved["group"] = group
    if unordered:
        resolved["ordered"] = False
    if uncommitted:
        resolved["isolation"] = "read_uncommitted"
    reconcile(session, "sequence", target, resolved)


@app.command(cls=ReconcileVerb)
def duplicates(
    context: typer.Context,
    topics: Topics = None,
    *,
    connector: Connector = None,
    identity: Annotated[
        str,
        option(
            "--identity WHERE",
            "identity of a record: record (key and value), provenance, header:NAME,"
            " json:PATH or key",
        ),
    ] = "record",
) -> None:
    """Find repeated records: harmless in uncommitted reads, a violation in committed ones."""
    session = session_of(context)
    target, resolved = _target(session, topics, connector)
    if identity != "record":
        resolved["identity"] = identity
    reconcile(session, "duplicates", target, resolved)


@app.command(cls=ReconcileVerb)
def offsets(
    context: typer.Context,
    *,
    offsets_topic: Annotated[
        str | None,
        option(
            "--offsets-topic TOPIC",
            "offset.storage.topic (default: that of the context, or connect-offsets)",
        ),
    ] = None,
    config_topic: Annotated[
        str | None,
        option(
            "--config-topic TOPIC", "config.storage.topic, for task configs that share a source"
        ),
    ] = None,
    status_topic: Annotated[
        str | None,
        option(
            "--status-topic TOPIC",
            "status.storage.topic, for the times at which workers held a task",
        ),
    ] = None,
) -> None:
    """Report the history of source offsets: regressions, orphans, resets, concurrent tasks."""
    session = session_of(context)
    views = session.client.connector_views()
    own = {
        name: str(topic)
        for name, view in views.items()
        if view.info and (topic := view.info.config.get("offsets.storage.topic"))
    }
    worker_topic = offsets_topic or session.settings.offsets_topic or "connect-offsets"
    topics: Document = {"worker": worker_topic, "connectors": own, "known": sorted(views)}
    if config_topic is not None:
        topics["config"] = config_topic
    if status_topic is not None:
        topics["status"] = status_topic
    reconcile(session, "offsets", worker_topic, {"offsets": topics})


def _target(
    session: Session, topics: list[str] | None, connector: str | None
) -> tuple[str, Document]:
    if topics and connector:
        raise UsageError("name topics or a connector, not both")
    if topics:
        return ",".join(topics), {"topics": topics}
    if connector is None:
        if session.given.get("spec"):
            return "", {}
        raise UsageError("name a topic, or a connector with --connector")
    info = session.client.connector(connector)
    if info.type == "sink":
        bounds = sink_bounds(session.client.connector_offsets(connector).entries)
        return connector, {"topics": sink_topics(info.config, bounds)}
    found = source_topics(info.config, session.client.connector_topics(connector))
    if not found:
        raise UsageError(f"{connector} has not used a topic yet", hint="name the topics")
    return connector, {"topics": found}
