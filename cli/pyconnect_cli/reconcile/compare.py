"""Jobs that compare: source-topic, topic-topic, topic-sink, completeness."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from pyconnect_cli.acting.selection import texts
from pyconnect_cli.errors import UsageError
from pyconnect_cli.kafka.admin import kafka_admin
from pyconnect_cli.reconcile import connectors
from pyconnect_cli.reconcile.connectors import SINK, SOURCE, Audited, Document
from pyconnect_cli.reconcile.resolution import SINKS, SOURCES, resolver
from pyconnect_cli.reconcile.run import Audit, reconcile, reconcile_each
from pyconnect_cli.reconcile.spec import (
    MAIN,
    CompareVerb,
    DataVerb,
    ReconcileVerb,
    absolute,
    cluster_of,
)
from pyconnect_cli.rest.offset_entries import OffsetEntry
from pyconnect_cli.session import Session, session_of
from pyconnect_cli.verbs import argument, option

app = typer.Typer()

ConnectorNames = Annotated[
    list[str] | None,
    argument(
        "[CONNECTOR]…",
        "connectors whose topics and data are compared, one after the other in one session of"
        " Spark; not needed with --topic or --spec",
        show_default=False,
    ),
]
OF_ONE = ("topic", "files", "table", "spec", "ranges")
"""Options that replace a fact of one connector, so that they fail for several."""
Key = Annotated[
    str | None, option("--key WHERE", "with --upsert, the key of a row: key, json:PATH or a column")
]
RightBootstrap = Annotated[
    str | None, option("--right-bootstrap HOST:PORT,…", "brokers of the cluster that has RIGHT")
]
RightProperties = Annotated[
    str | None, option("--right-properties FILE", "Kafka client properties file of that cluster")
]


class AuditAccess(NamedTuple):
    """The options of an audit beside those of the report, of rows and of Spark."""

    key: str | None
    right_bootstrap: str | None
    right_properties: str | None


DEAD_LETTER_CONTEXT = "errors.deadletterqueue.context.headers.enable"
NAMELESS_LETTERS = (
    "dead letters without headers do not name their connector: equal ones of another connector that"
    f" shares the queue count as arrived ({DEAD_LETTER_CONTEXT}=true names it)"
)
FILE_SUFFIXES = {
    **{f".{name}": name for name in ("avro", "csv", "json", "orc", "parquet")},
    ".jsonl": "json",
    ".ndjson": "json",
}


@app.command("source-topic", cls=DataVerb)
def source_topic(context: typer.Context, names: ConnectorNames = None, *, key: Key = None) -> None:
    """Compare sources, up to the connectors' committed offsets, with their topics."""
    _audit_each(session_of(context), SOURCE, names, key)


def _audit_each(session: Session, job: str, names: list[str] | None, key: str | None) -> None:
    """Audit each connector once, or the data that options name."""
    found: list[str | None] = list(dict.fromkeys(names or ())) or [None]
    for name in OF_ONE:
        if len(found) > 1 and session.given.get(name):
            raise UsageError(
                f"--{name} applies to a single connector, and {len(found)} are given",
                hint="run the command for each of them",
            )
    audits = [data_audit(session, job, connector, key) for connector in found]
    reconcile_each(session, job, audits)


def data_audit(session: Session, job: str, connector: str | None, key: str | None) -> Audit:
    """Resolve the audit of a source or sink, or of the topic and the data that options name."""
    sink = job != SOURCE
    data, named = _data(session.given), list(texts(session.given, "topic"))
    topic: Document = {"kind": "topic", "topics": named}
    document: Document = {}
    secrets: Mapping[str, str] = {}
    if connector is not None:
        info = session.client.connector(connector)
        config, wanted, other = info.config, "source", SINK
        if sink:
            wanted, other = "sink", SOURCE
        if info.type not in {wanted, "unknown"}:
            raise UsageError(
                f"{connector} is a {info.type}, not a {wanted}",
                hint=f"try: pyconnect reconcile {other} {connector}",
            )
        resolve = resolver(config, SINKS if sink else SOURCES) if data is None else None
        offsets: Sequence[OffsetEntry] = ()
        if not sink and not named:
            named = connectors.source_topics(config, session.client.connector_topics(connector))
        if sink or resolve:
            offsets = session.client.connector_offsets(connector).entries
        if sink:
            bounds = connectors.sink_bounds(offsets)
            # A topic of the pattern counts without an offset, too: the sink has written none of its
            # records.
            named = named or connectors.sink_topics(
                config, bounds, lambda: kafka_admin(session, "an audit").names()
            )
        topic["topics"] = named
        document |= connectors.value_registry(config)
        if sink:
            # Records after the committed offsets may arrive later.
            document["until"] = {name: bounds.get(name, {}) for name in named}
        topic["value"] = connectors.value_form(config)
        if resolve is not None:
            found = resolve(Audited(name=connector, config=config, topics=named, offsets=offsets))
            data, secrets = found.side, found.secrets
            properties = session.given.get("jdbc_properties")
            if data["kind"] == "table" and properties is not None:
                # The user's file replaces the connector's secrets.
                data = {**data, "properties": absolute(properties)}
            document |= found.members
            topic |= found.topic
    topic["value"] = session.given.get("value") or topic.get("value") or "bytes"
    if connector is not None and sink and (letters := connectors.dead_letters(config)):
        document["arrived"] = {**topic, "topics": letters, "connector": connector}
        if (config.get(DEAD_LETTER_CONTEXT) or "").strip().lower() != "true":
            notes = document.get("notes")
            document["notes"] = [*(notes if isinstance(notes, list) else []), NAMELESS_LETTERS]
    left, right = (topic, data) if sink else (data, topic)
    document |= _common(session.given, key) | _known_sides(session, left, right)
    side = "right" if sink else "left"
    return Audit(
        target=connector or "", resolved=document, secrets={side: secrets} if secrets else {}
    )


@app.command("topic-topic", cls=CompareVerb)
def topic_topic(
    context: typer.Context,
    left: Annotated[str, argument("LEFT", "topic with the expected records")],
    right: Annotated[str, argument("RIGHT", "topic to compare with LEFT")],
    *,
    right_bootstrap: RightBootstrap = None,
    right_properties: RightProperties = None,
    key: Key = None,
    ordered: Annotated[
        bool, option("--ordered", "check that the records of each key are in the same order")
    ] = False,
) -> None:
    """Compare two topics, also of two clusters: records, or the last version of each key."""
    session = session_of(context)
    access = AuditAccess(key, right_bootstrap, right_properties)
    audit = topics_audit(session, f"{left},{right}", access)
    if ordered:
        audit.resolved["ordered"] = True
    reconcile_each(session, "topic-topic", [audit])


def topics_audit(session: Session, target: str, access: AuditAccess) -> Audit:
    """Resolve the audit of two topics; `target`: LEFT,RIGHT."""
    document = _common(session.given, access.key)
    sides: list[Document] = [
        {"kind": "topic", "topics": [name], "value": session.given.get("value") or "bytes"}
        for name in target.split(",")
    ]
    if access.right_bootstrap is not None:
        other: Document = {"bootstrap": access.right_bootstrap}
        if access.right_properties is not None:
            other["properties"] = absolute(access.right_properties)
        document["clusters"] = {MAIN: cluster_of(session), "right": other}
        sides[1]["cluster"] = "right"
    document |= {"left": sides[0], "right": sides[1]}
    return Audit(target=target, resolved=document)


@app.command("topic-sink", cls=DataVerb)
def topic_sink(context: typer.Context, names: ConnectorNames = None, *, key: Key = None) -> None:
    """Compare topics, up to the sinks' committed offsets, with the data that the sinks wrote."""
    _audit_each(session_of(context), SINK, names, key)


@app.command("completeness", cls=ReconcileVerb)
def completeness(
    context: typer.Context,
    *,
    tiers: Annotated[
        list[str] | None,
        option(
            "--tier NAME=WHERE",
            "tier NAME=topic:TOPIC or NAME=files:PATH, with ;TIME for the place of the"
            " event time; repeatable",
        ),
    ] = None,
    minutes: Annotated[int, option("--bucket-minutes N", "length of a time bucket", least=1)] = 10,
) -> None:
    """Count records of two or more tiers by event time, with their latency and differences."""
    session = session_of(context)
    document: Document = {"bucket_minutes": minutes}
    if tiers:
        document["tiers"] = found = []
        for text in tiers:
            name, equals, where = text.partition("=")
            place, _, event_time = where.partition(";")
            kind, _, target = place.partition(":")
            if not (equals and name and target) or kind not in {"topic", "files"}:
                raise UsageError(f"--tier: `{text}` is not NAME=topic:TOPIC or NAME=files:PATH")
            side: Document = {"kind": "topic", "topics": [target]}
            if kind == "files":
                side = {"kind": "files", "paths": [target], "format": _format_of([target])}
            time = {"event_time": event_time} if event_time else {}
            found.append({"name": name, "side": side, **time})
    reconcile(session, "completeness", "", document)


def _common(given: Mapping[str, object], key: str | None) -> Document:
    document: Document = {}
    if columns := texts(given, "column"):
        document["columns"] = list(columns)
    if key is not None:
        document["key"] = key
    if given.get("upsert"):
        document["mode"] = "upsert"
    if given.get("allow_duplicates"):
        document["duplicates_allowed"] = True
    return document


def _data(given: Mapping[str, object]) -> Document | None:
    """Return the side of the given files or table; None if neither is given."""
    files, table = texts(given, "files"), given.get("table")
    if files and table:
        raise UsageError("name files or a table, not both")
    if files:
        paths = [path if "://" in path else str(Path(path).absolute()) for path in files]
        return {"kind": "files", "paths": paths, "format": given.get("format") or _format_of(paths)}
    if table is None:
        return None
    if not given.get("jdbc_url"):
        raise UsageError("--table needs --jdbc-url")
    side: Document = {"kind": "table", "url": given["jdbc_url"], "table": table}
    if properties := given.get("jdbc_properties"):
        side["properties"] = absolute(properties)
    return side


def _format_of(paths: list[str]) -> str:
    return FILE_SUFFIXES.get(Path(paths[0]).suffix, "text")


def _known_sides(session: Session, left: Document | None, right: Document | None) -> Document:
    """Return the known sides; without a spec file both must be known."""
    spec = bool(session.given.get("spec"))
    for side in (left, right):
        if not spec and (side is None or (side["kind"] == "topic" and not side["topics"])):
            raise UsageError(
                "there is nothing to compare",
                hint="name a connector, or --topic with --files or --table, or a spec with --spec",
            )
    known = {"left": left, "right": right}
    return {
        name: side
        for name, side in known.items()
        if side is not None and (side["kind"] != "topic" or side["topics"])
    }
