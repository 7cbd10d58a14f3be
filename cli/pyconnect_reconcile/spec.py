"""The spec of a run, one document: the interface between the command line and the jobs. Pure.

Everything a job needs is in it, or in files that it names (properties with secrets, saved
ranges). docs/reference/reconciliation.md describes each member; an unknown member is an error that
suggests a similar name.
"""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace

from pyconnect_reconcile.data_sides import (
    BASE64,
    KAFKA,
    VALUE_FORMS,
    FileSide,
    RowRule,
    TablePosition,
    TableSide,
    read_file_side,
    read_row_rule,
    read_table_side,
)
from pyconnect_reconcile.document import Bounds, Members, check_extraction, one_of
from pyconnect_reconcile.errors import ReconcileError
from pyconnect_reconcile.properties import table_properties

VERSION = 1
MAIN = "main"
COMPARES = ("source-topic", "topic-topic", "topic-sink")
SCANS = ("ranges", "transactions", "sequence", "duplicates")
JOBS = (*SCANS, *COMPARES, "offsets", "completeness")
ISOLATION_LEVELS = ("read_committed", "read_uncommitted")
# Values in the wire format of a schema registry; Protobuf is always refused.
AVRO, JSON_SCHEMA, PROTOBUF = "avro", "json-schema", "protobuf"
FRAMED_FORMS = (AVRO, JSON_SCHEMA)
DEFAULT_FINDINGS = 1000
PROVENANCE = "provenance"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """A Kafka cluster; `properties` names a Kafka client properties file (0600)."""

    bootstrap: str
    properties: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Registry:
    """A schema registry: URLs separated by commas, and a properties file for access (0600)."""

    url: str
    properties: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkSettings:
    """The settings of the session; all None or empty under spark-submit."""

    master: str | None = None
    remote: str | None = None
    conf: Mapping[str, str] = field(default_factory=dict)
    jars: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    properties_file: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnRule:
    """One column that is compared; `path` is its place in a topic's JSON value.

    `type` is a type of Spark SQL, or `timestamp_ms`; without one, values are compared unchanged.
    `null` is a text that stands for null.
    """

    name: str
    path: str
    type: str | None = None
    null: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicSide:
    """Records of topics; `row` is the rule by which they become rows of a table.

    With `connector`, dead letters that name another connector do not count.
    """

    topics: tuple[str, ...]
    cluster: str = MAIN
    isolation: str = one_of(ISOLATION_LEVELS, "read_committed")
    value: str = one_of((*VALUE_FORMS, *FRAMED_FORMS, PROTOBUF), "bytes")
    row: RowRule | None = None
    connector: str | None = None


Side = TopicSide | FileSide | TableSide


@dataclass(frozen=True, slots=True, kw_only=True)
class Tier:
    """One stage that completeness counts; `event_time` as an extraction (`timestamp`, `json:…`)."""

    name: str
    side: Side
    event_time: str = "timestamp"


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditedTopics:
    """The internal topics that `offsets` reads, and the connectors that are configured now."""

    worker: str
    connectors: Mapping[str, str] = field(default_factory=dict)
    config: str | None = None
    status: str | None = None
    known: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """One run; rows of `arrived` count as rows of the right: dead letters of a sink.

    `registries` are by cluster; a cluster without one uses that of the main cluster.
    """

    job: str = one_of(JOBS)
    target: str = ""
    clusters: Mapping[str, Cluster]
    registries: Mapping[str, Registry] = field(default_factory=dict)
    topics: tuple[str, ...] = ()
    isolation: str = one_of(ISOLATION_LEVELS, "read_committed")
    since: Bounds = field(default_factory=dict)
    since_ms: int | None = None
    until: Bounds = field(default_factory=dict)
    stable_only: bool = False
    ranges: str | None = None
    previous: str | None = None
    earlier: tuple[str, ...] = ()  # reports to choose `previous` from, the newest first
    since_last: bool = False  # continue at the ends of the last of `earlier` that agreed
    sequence: str | None = None
    group: str | None = None
    ordered: bool = False
    identity: str = "record"
    left: Side | None = None
    right: Side | None = None
    arrived: Side | None = None
    mode: str = one_of(("append", "upsert"), "append")
    key: str = "key"
    columns: tuple[ColumnRule, ...] = ()
    duplicates_allowed: bool = False
    tiers: tuple[Tier, ...] = ()
    bucket_minutes: int = 10
    offsets: AuditedTopics | None = None
    findings: int = DEFAULT_FINDINGS
    hide_keys: bool = False
    fail_unparsable: bool = False
    notes: tuple[str, ...] = ()
    spark: SparkSettings = field(default_factory=SparkSettings)


_PASSING = frozenset(
    {"spark", "findings", "hide_keys", "notes", "ranges", "previous", "earlier", "stable_only"}
    | {"since", "since_ms", "until", "properties", "limit_bytes", "timestamp", "number"}
)
"""Members that differ between runs of the same question, or may hold credentials."""
_ACCESS = re.compile(
    "driver|fetchsize|permitMysqlScheme|timeout|ssl|tls|user|pass|pwd|secret|token|key|credential",
    re.IGNORECASE,
)
"""Options and parameters of an address that say how data is reached; others may select the data."""


def question_of(spec: Spec) -> str:
    """Return a hash of the question: sides, columns and rules, without offsets and access.

    The hash covers the user of a database: one name may be another table for another user.
    """

    def kept(value: object) -> object:
        if isinstance(value, Mapping):
            with suppress(ReconcileError):
                properties = value.get("properties")
                if properties and (user := table_properties(str(properties)).get("user")):
                    value = {**value, "of_user": user}
            # Unset members are left out: earlier versions lack members of later ones.
            members = {str(k): kept(v) for k, v in value.items() if str(k) not in _PASSING}
            if isinstance(options := members.get("options"), Mapping):
                members["options"] = {k: v for k, v in options.items() if not _ACCESS.search(k)}
            return {k: each for k, each in members.items() if each not in (None, False, "", [], {})}
        if isinstance(value, list | tuple):
            return [kept(each) for each in value]
        if not isinstance(value, str) or "://" not in value:
            return value
        # Parameters of an address may be a user and a password.
        address, _, given = value.partition("?")
        named = [part for part in given.split("&") if not _ACCESS.search(part.partition("=")[0])]
        return "?".join([address, *filter(None, ["&".join(sorted(named))])])

    question = kept(asdict(replace(spec, clusters={}, registries={})))
    return hashlib.sha256(json.dumps(question, sort_keys=True).encode()).hexdigest()[:32]


def source_position(spec: Spec) -> tuple[object, ...]:
    """Return the committed position of the left side's source; empty without one."""
    match spec.left:
        case TableSide(position=TablePosition() as position):
            return (position.timestamp, position.number)
        case FileSide(limit_bytes=int() as end):
            return (end,)
    return ()


def read_spec(document: object) -> Spec:
    """Read a spec; ReconcileError names the place of an error."""
    members = Members(document, "spec")
    version = members.number("version", VERSION)
    if version != VERSION:
        raise ReconcileError(
            f"spec: version {version} is not supported; this command supports version {VERSION}"
        )
    job = members.choice("job", JOBS)
    spec = members.fill(
        Spec,
        job=job,
        ordered=members.switch("ordered", default=job == "sequence"),
        **{
            name: None if (side := members.take(name)) is None else _side(side, f"spec.{name}")
            for name in ("left", "right", "arrived")
        },
        columns=tuple(
            _column(item, f"spec.columns[{index}]")
            for index, item in enumerate(members.items("columns"))
        ),
        tiers=tuple(
            tier.fill(Tier, side=_side(tier.take("side"), f"{tier.where}.side"))
            for index, item in enumerate(members.items("tiers"))
            if (tier := Members(item, f"spec.tiers[{index}]"))
        ),
    )
    if spec.spark.master and spec.spark.remote:
        raise ReconcileError("spec.spark: `master` and `remote` exclude each other")
    _require(spec)
    return spec


def _require(spec: Spec) -> None:
    missing: list[str] = []
    if spec.job in SCANS and not spec.topics:
        missing.append("topics")
    if spec.job == "sequence" and spec.sequence is None:
        missing.append("sequence")
    if spec.job in COMPARES:
        missing += [name for name in ("left", "right") if getattr(spec, name) is None]
    if spec.job == "completeness" and len(spec.tiers) < 2:
        missing.append("tiers (two or more)")
    if spec.job == "offsets" and spec.offsets is None:
        missing.append("offsets")
    if missing:
        raise ReconcileError(f"spec: {spec.job} needs {', '.join(missing)}")
    if spec.bucket_minutes == 0:
        raise ReconcileError("spec: `bucket_minutes` is not a number of minutes")
    if spec.findings == 0:
        raise ReconcileError("spec: `findings` is 0: a difference would not be named, nor counted")
    if spec.arrived is not None and spec.mode == "upsert":
        raise ReconcileError("spec: `arrived` (dead letters) needs append mode")
    _require_forms(spec)
    _require_bounds(spec)
    _require_continuable(spec)
    sides = [spec.left, spec.right, spec.arrived, *(tier.side for tier in spec.tiers)]
    used = {side.cluster for side in sides if isinstance(side, TopicSide)}
    if spec.job in SCANS or spec.job == "offsets":
        used.add(MAIN)
    for name in sorted(used - spec.clusters.keys()):
        raise ReconcileError(f"spec: `clusters` has no cluster `{name}`")


def _require_forms(spec: Spec) -> None:
    """Raise ReconcileError for sides that the job cannot compare, and for invalid extractions."""
    identity = None if spec.identity == "record" else spec.identity
    for text in (spec.sequence, spec.group, identity):
        if text is not None and text != PROVENANCE:
            check_extraction(text)
    # Keys and event times may be columns, too.
    for text in (spec.key, *(tier.event_time for tier in spec.tiers)):
        if text.startswith("regex:"):
            check_extraction(text)
    if spec.ordered and spec.job != "sequence":
        if spec.job != "topic-topic" or spec.mode == "upsert":
            raise ReconcileError("spec: `ordered` needs sequence, or topic-topic in append mode")
        if not (isinstance(spec.left, TopicSide) and isinstance(spec.right, TopicSide)):
            raise ReconcileError("spec: `ordered` compares two topics, but a side is not a topic")
    # Lines of a sink are compared with a topic, lines in Base64 with its bytes.
    for side in (spec.left, spec.right, *(tier.side for tier in spec.tiers)):
        if not isinstance(side, FileSide) or not side.lines:
            continue
        if spec.job != "topic-sink" or side is not spec.right:
            raise ReconcileError(f"spec: `lines` ({side.lines}) needs the right of topic-sink")
        form = spec.left.value if isinstance(spec.left, TopicSide) else ""
        if side.lines == BASE64 and (spec.columns or form not in {"bytes", "text"}):
            raise ReconcileError(
                "spec: lines in Base64 are compared as bytes: without columns, and with values that"
                " are bytes or text"
            )


def _require_bounds(spec: Spec) -> None:
    """Raise ReconcileError for bounds of topics that are not read, or are read in two clusters."""
    sides = [spec.left, spec.right, spec.arrived, *(tier.side for tier in spec.tiers)]
    read = {(t, side.cluster) for side in sides if isinstance(side, TopicSide) for t in side.topics}
    read |= {(topic, MAIN) for topic in spec.topics if spec.job in SCANS}
    if spec.ranges is not None and (spec.since or spec.since_ms is not None):
        raise ReconcileError(
            "spec: `ranges` excludes `since` and `since_ms`: it has its own starts"
        )
    if spec.ranges is not None and len({cluster for _, cluster in read}) > 1:
        raise ReconcileError("spec: `ranges` are those of one cluster, and two are read")
    clusters = Counter(topic for topic, _ in read)
    named = {*spec.since, *spec.until} if spec.job != "offsets" else set()
    if unread := named - clusters.keys():
        raise ReconcileError(
            f"spec: `since` or `until` names a topic that is not read: {', '.join(sorted(unread))}"
        )
    for topic in sorted(named):
        if clusters[topic] > 1:
            raise ReconcileError(
                f"spec: `since` or `until` names {topic}, which is read in {clusters[topic]}"
                " clusters, where its offsets differ",
                hint="begin at a time: `since_ms`",
            )


def _require_continuable(spec: Spec) -> None:
    """Raise ReconcileError if `since_last` cannot tell one night's records from earlier ones."""
    if not spec.since_last:
        return
    if spec.since or spec.since_ms is not None or spec.ranges is not None:
        raise ReconcileError("spec: `since_last` excludes `since`, `since_ms` and `ranges`")
    refused = {
        "ranges": "it compares with the last run already",
        "sequence": "numbers that are missing between two nights would not be noticed",
        "source-topic": (
            "rows of a source do not say in which night they were read, and one that was committed"
            " late is behind the position of the night before"
        ),
        "offsets": "it needs the whole history",
        "completeness": "records of one time may come in two nights",
    }
    reason = refused.get(spec.job)
    if reason is None and spec.mode == "upsert":
        reason = "the last version of a key may come from any night"
    if reason is None and spec.ordered:
        reason = "the order of a key's records goes on between two nights"
    if reason is None and spec.arrived is not None:
        reason = "dead letters do not say to which night they belong"
    rule = spec.left.row if isinstance(spec.left, TopicSide) else None
    # The key of each right row is the place of its record.
    placed = isinstance(spec.right, TableSide) and rule is not None and rule.of == KAFKA
    if reason is None and spec.job == "topic-sink" and not placed:
        reason = (
            "rows of the sink do not say from which records they are; those of a SqlSink with"
            " pk.mode=kafka do"
        )
    if reason is not None:
        raise ReconcileError(
            f"spec: `since_last` is not possible with {spec.job}: {reason}",
            hint="run it without --since-last",
        )


def _side(document: object, where: str) -> Side:
    members = Members(document, where)
    kind = members.choice("kind", ("topic", "files", "table"))
    match kind:
        case "files":
            return read_file_side(members, where)
        case "table":
            return read_table_side(members, where)
    side = members.fill(TopicSide, row=read_row_rule(members.take("row"), f"{where}.row"))
    if not side.topics:
        raise ReconcileError(f"{where}: `topics` is missing")
    if side.value == PROTOBUF:
        raise ReconcileError(
            f"{where}: values in Protobuf cannot be decoded",
            hint="compare the bytes (--value bytes), or check keys, headers and provenance",
        )
    return side


def _column(document: object, where: str) -> ColumnRule:
    if isinstance(document, str):
        # The short form: `name:type`.
        name, _, type_ = document.partition(":")
        document = {"name": name, "type": type_ or None}
    members = Members(document, where)
    name = members.text("name")
    return members.fill(ColumnRule, name=name, path=members.text("path", name))
