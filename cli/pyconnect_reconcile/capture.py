"""Fixes what a run reads, in an order that keeps its verdict true while connectors run.

Rows go from the left side to the right side. The right is fixed before the left, so every row on
the right was on the left by then. The committed offsets are older than both: the command line
reads them first. Between these moments only rows beyond the committed offsets can move, and the
compare treats those apart.

A run may continue at the end of the last one that agreed (`since_last`). Its report is a link: it
proves the records from its starts to its ends, and names the reports before it by file and hash.
Together they prove the whole. The first run of a chain reads from the beginning. A run that differs
or could not decide is no base, so the next one reads its records again.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from pyconnect_reconcile.data_sides import LINE_FORMATS, FileSide, TableSide
from pyconnect_reconcile.document import Bounds
from pyconnect_reconcile.errors import ReconcileError
from pyconnect_reconcile.files import (
    FixedFiles,
    are_plain,
    bounded_copies,
    complete_files,
    fingerprint,
    growing_copies,
    is_local,
    require_readable,
    with_marks_kept,
)
from pyconnect_reconcile.findings import CheckOutcome, Severity, Verdict
from pyconnect_reconcile.spec import COMPARES, MAIN, Side, Spec, TopicSide, question_of
from pyconnect_reconcile.stores.lakes import current_table, downloaded
from pyconnect_reconcile.topics.cluster_view import ClusterView
from pyconnect_reconcile.topics.range_findings import removed_beginnings
from pyconnect_reconcile.topics.snapshot import TopicsSnapshot, narrowed, read_snapshot, stable_only

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pyconnect_reconcile.stores.tables import CopiedTable


ANEW = "audit everything once without --since-last's reports: move them, or give another --report"


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A report of a chain: its file, the hash of its content, and when its run began."""

    report: str
    sha256: str
    started_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Base:
    """The last report that agreed, and the chain up to it, the oldest report first."""

    question: str
    snapshots: Mapping[str, TopicsSnapshot]
    links: tuple[Link, ...]

    def bounds(self, cluster: str, now: TopicsSnapshot) -> Bounds:
        """Return the offsets at which a run continues; ReconcileError for topics that changed."""
        before = self.snapshots.get(cluster)
        known = {topic.topic: topic for topic in before.topics} if before else {}
        found = {}
        for topic in now.topics:
            last = known.get(topic.topic)
            if before is None or last is None or before.cluster_id != now.cluster_id:
                raise _broken(f"{topic.topic} is not the topic of the last report that agreed")
            if last.topic_id != topic.topic_id:
                raise _broken(f"{topic.topic} was deleted and created again since the last report")
            if len(last.partitions) != len(topic.partitions):
                raise _broken(
                    f"{topic.topic} has {len(topic.partitions)} partitions, and had"
                    f" {len(last.partitions)} at the last report"
                )
            found[topic.topic] = {part.partition: part.end for part in last.partitions}
        return found


def base_of(spec: Spec) -> Base | None:
    """Return the base of a run among `spec.earlier`, or None for the first run of a chain.

    ReconcileError when the last report that agreed answers another question.
    """
    if not spec.since_last:
        return None
    found: list[Base] = []
    for path in spec.earlier:
        with suppress(OSError, ValueError, KeyError, TypeError, ReconcileError):
            content = Path(path).read_bytes()
            document = json.loads(content)
            if (document["job"], document["target"]) != (spec.job, spec.target):
                continue
            if document["verdict"] != Verdict.AGREE.word or "chain" not in document:
                continue
            link = Link(
                report=str(Path(path).parent),
                sha256=hashlib.sha256(content).hexdigest(),
                started_ms=int(document["started_ms"]),
            )
            snapshots = document["snapshots"].items()
            base = Base(
                question=str(document["question"]),
                snapshots={name: read_snapshot(each) for name, each in snapshots},
                links=(*(Link(**each) for each in document["chain"]), link),
            )
            found.append(base)
    if not found:
        return None
    base = max(found, key=lambda each: each.links[-1].started_ms)
    if base.question != question_of(spec):
        raise _broken(
            "the last report that agreed answers another question: the connector's configuration"
            " or the options have changed"
        )
    return base


def continued(
    outcome: CheckOutcome, base: Base | None, snapshots: Mapping[str, TopicsSnapshot]
) -> CheckOutcome:
    """Return the outcome of a continued run: gaps are unknown, an empty range is only a note."""
    if base is None:
        return outcome
    known = {
        (each.kind, each.topic, each.partition)
        for each in outcome.findings
        if each.severity is not Severity.NOTE
    }
    gaps = [
        gap
        for snapshot in snapshots.values()
        for gap in removed_beginnings(
            snapshot, Severity.UNKNOWN, "they came after the last report and were never audited"
        )
        if (gap.kind, gap.topic, gap.partition) not in known
    ]
    findings = [
        replace(
            each, severity=Severity.NOTE, message="the range has no record since the last report"
        )
        if each.kind == "empty-range"
        else each
        for each in outcome.findings
    ]
    earlier = "records before the last report, which earlier reports of the chain prove"
    return replace(
        outcome,
        findings=(*findings, *gaps),
        totals={**outcome.totals, **({"expired": len(gaps)} if gaps else {})},
        not_compared=(*outcome.not_compared, earlier),
    )


def _broken(reason: str) -> ReconcileError:
    return ReconcileError(f"--since-last cannot continue: {reason}", hint=ANEW)


@dataclass(frozen=True, slots=True, kw_only=True)
class Capture:
    """The input of a run.

    The keys of `snapshots` are names of clusters, those of `files` and `tables` the places of
    sides. `spec` has the committed offsets that a sink keeps in its own database. The run begins at
    the ends of `base`. `begun_ms` is the time at which the capture began.
    """

    spec: Spec
    snapshots: Mapping[str, TopicsSnapshot]
    files: Mapping[str, FixedFiles]
    tables: Mapping[str, CopiedTable]
    base: Base | None = None
    begun_ms: int = 0

    @property
    def iceberg(self) -> dict[str, Mapping[str, object]]:
        """The snapshots of Iceberg tables by the name of their side in the spec."""
        return {name: each.snapshot for name, each in self._of_sides() if each.snapshot}

    @property
    def digests(self) -> dict[str, str]:
        """The digests of a source's lines by the name of their side in the spec."""
        return {name: each.digest for name, each in self._of_sides() if each.digest}

    def _of_sides(self) -> list[tuple[str, FixedFiles]]:
        sides = (("left", self.spec.left), ("right", self.spec.right))
        files = [(n, self.files.get(s.place)) for n, s in sides if isinstance(s, FileSide)]
        return [(name, each) for name, each in files if each]


def capture(spec: Spec, work: Path, session: Callable[[], SparkSession]) -> Capture:
    """Fix topics, files and tables; copies go below `work`, where they must stay during the run.

    `session` starts Spark, which tables of databases and catalogs need.
    """
    begun_ms = int(time.time() * 1000)
    taken = _Taken(spec)
    files: dict[str, FixedFiles] = {}
    tables: dict[str, CopiedTable] = {}
    for number, side in enumerate(_last_first(spec)):
        if isinstance(side, TableSide):
            if side.place not in tables:
                # The import loads Spark, which a capture without tables does not need.
                from pyconnect_reconcile.stores.tables import copied

                copies = work / f"side-{number}"
                copies.mkdir()
                tables[side.place] = copied(session, side, copies)
            # These offsets replace those of Kafka's group, which the sink commits later.
            committed = tables[side.place].committed
            until = {topic: {**at, **committed.get(topic, {})} for topic, at in spec.until.items()}
            spec = taken.spec = replace(spec, until=until)
        elif isinstance(side, FileSide) and side.place not in files:
            copies = work / f"side-{number}"
            copies.mkdir()
            files[side.place] = fixed_files(spec, side, copies, session)
        elif isinstance(side, TopicSide):
            taken.add(side.cluster, side.topics)
    if spec.offsets is not None:
        internal = [spec.offsets.worker, *spec.offsets.connectors.values()]
        internal += [name for name in (spec.offsets.config, spec.offsets.status) if name]
        taken.add(MAIN, tuple(internal))
    elif spec.topics and not _last_first(spec):
        taken.add(MAIN, spec.topics)
    return Capture(
        spec=spec,
        snapshots=taken.snapshots(),
        files=files,
        tables=tables,
        base=taken.base,
        begun_ms=begun_ms,
    )


def copies_rows(spec: Spec) -> bool:
    """Return whether a capture copies a table or downloads files, which takes seconds."""
    return any(
        isinstance(side, TableSide) or (isinstance(side, FileSide) and side.store is not None)
        for side in _last_first(spec)
    )


def ends_moved(spec: Spec, side: TopicSide, before: TopicsSnapshot) -> bool:
    """Return whether the side's topics have received records since they were captured."""
    now = ClusterView(spec.clusters[side.cluster]).snapshot(side.topics)
    ends = {(part.topic, part.partition): part.high_watermark for part in before.partitions}
    return any(
        part.high_watermark != ends.get((part.topic, part.partition)) for part in now.partitions
    )


def is_bounded(spec: Spec, side: Side | None) -> bool:
    """Return whether a topic is compared up to the committed offsets of a sink that may run."""
    return isinstance(side, TopicSide) and any(topic in spec.until for topic in side.topics)


def _last_first(spec: Spec) -> list[Side]:
    """Return the sides, beginning with the one that rows reach last."""
    if spec.job in COMPARES:
        sides = [spec.arrived, spec.right, spec.left]
    else:
        sides = [tier.side for tier in reversed(spec.tiers)]
    return [side for side in sides if side is not None]


def fixed_files(
    spec: Spec, side: FileSide, copies: Path, session: Callable[[], SparkSession]
) -> FixedFiles:
    """Fix the files of a side; ReconcileError for files that do not exist."""
    of_lines = side.format in LINE_FORMATS
    grows = of_lines and side is spec.right and is_bounded(spec, spec.left)
    if side.catalog is not None:
        fixed = current_table(session, side, side.catalog, copies)
    elif side.store is not None:
        fixed = downloaded(side.paths[0], side.store, side.properties, side.read, copies)
    elif side.limit_bytes is not None:
        if len(side.paths) != 1 or side.format != "text" or not is_local(side.paths[0]):
            raise ReconcileError("limit_bytes applies only to a single local text file")
        fixed = bounded_copies(side.paths[0], side.limit_bytes, copies)
    elif side.complete:
        fixed = complete_files(side.paths, side.read)
    elif grows and are_plain(side.paths):
        fixed = growing_copies(side.paths, copies)
    else:
        require_readable(side.paths)
        fixed = FixedFiles(before=fingerprint(side.paths))
    return with_marks_kept(fixed, side.paths, copies) if of_lines else fixed


class _Taken:
    """The snapshots of a capture, taken topic by topic."""

    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        self.base = base_of(spec)
        self._views: dict[str, ClusterView] = {}
        self._snapshots: dict[str, TopicsSnapshot] = {}

    def add(self, cluster: str, topics: tuple[str, ...]) -> None:
        """Take topics of a cluster, except those that were taken before."""
        before = self._snapshots.get(cluster)
        known = {topic.topic for topic in before.topics} if before else set()
        wanted = tuple(topic for topic in dict.fromkeys(topics) if topic not in known)
        if before is not None and not wanted:
            return
        if cluster not in self._views:
            self._views[cluster] = ClusterView(self.spec.clusters[cluster])
        view = self._views[cluster]
        snapshot = view.snapshot(wanted)
        since = dict(self.spec.since)
        if self.base is not None:
            since |= self.base.bounds(cluster, snapshot)
        if self.spec.since_ms is not None:
            # Only where they are surely the first ones: a partition whose first record is younger
            # may have had other such records, which were removed.
            earliest = {(part.topic, part.partition): part.earliest for part in snapshot.partitions}
            since |= {
                topic: {n: at for n, at in offsets.items() if at > earliest[topic, n] or at == 0}
                for topic, offsets in view.offsets_at(snapshot, self.spec.since_ms).items()
            }
        snapshot = narrowed(snapshot, since=since, until=self.spec.until)
        if self.spec.stable_only:
            snapshot = stable_only(snapshot)
        if before is not None:
            # The time stays that of the first topics: everything later than that is under way.
            snapshot = replace(before, topics=(*snapshot.topics, *before.topics))
        self._snapshots[cluster] = snapshot

    def snapshots(self) -> dict[str, TopicsSnapshot]:
        """Return the snapshots; saved ranges replace those of the main cluster."""
        if self.spec.ranges is None:
            return self._snapshots
        saved = _replayed(self.spec.ranges, self._snapshots[MAIN])
        return self._snapshots | {MAIN: stable_only(saved) if self.spec.stable_only else saved}


def _replayed(path: str, now: TopicsSnapshot) -> TopicsSnapshot:
    """Return saved ranges; ReconcileError when they cannot be read any more."""
    saved = load_snapshot(path).of_topics([topic.topic for topic in now.topics])
    require_cluster(path, saved, now)
    ids = {topic.topic: topic.topic_id for topic in now.topics}
    for topic in saved.topics:
        if ids[topic.topic] != topic.topic_id:
            raise ReconcileError(
                f"{topic.topic} was deleted and created again since these ranges were saved",
                hint="run the command without --ranges",
            )
    if missing := sorted(ids.keys() - {topic.topic for topic in saved.topics}):
        raise ReconcileError(f"{path} has no ranges of {', '.join(missing)}")
    return saved


def require_cluster(path: str, saved: TopicsSnapshot, now: TopicsSnapshot) -> None:
    """Raise ReconcileError for a snapshot of another Kafka cluster."""
    if saved.cluster_id != now.cluster_id:
        raise ReconcileError(
            f"{path} is from Kafka cluster {saved.cluster_id}, but this cluster is"
            f" {now.cluster_id}: their topics cannot be compared",
            hint="choose the cluster with --context or --kafka-bootstrap",
        )


def load_snapshot(path: str) -> TopicsSnapshot:
    """Read the snapshot in a report or a file of ranges."""
    try:
        return read_snapshot(json.loads(Path(path).expanduser().read_text("utf-8")))
    except (OSError, ValueError) as exc:
        raise ReconcileError(f"{path}: cannot be read: {exc}") from exc
