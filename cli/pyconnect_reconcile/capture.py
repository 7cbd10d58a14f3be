"""Fixes what a run reads, in the order that makes its verdict true while connectors run.

Rows go from the left to the right. The right is fixed before the left, so whatever is on the right
was on the left by then. Committed offsets are older than both: the command line has asked for them.
Between these moments only rows beyond the committed offsets can move, and the compare knows those.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from pyconnect_reconcile.errors import ReconcileError
from pyconnect_reconcile.files import (
    FixedFiles,
    bounded_copies,
    fingerprint,
    growing_copies,
    is_local,
    local_files,
)
from pyconnect_reconcile.spec import COMPARES, MAIN, FileSide, Side, Spec, TopicSide
from pyconnect_reconcile.topics.cluster_view import ClusterView
from pyconnect_reconcile.topics.snapshot import TopicsSnapshot, narrowed, read_snapshot

LINE_FORMATS = frozenset({"text", "json"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Capture:
    """What a run reads: snapshots by the name of the cluster, files by the paths of their side."""

    snapshots: Mapping[str, TopicsSnapshot]
    files: Mapping[tuple[str, ...], FixedFiles]


def capture(spec: Spec, work: Path) -> Capture:
    """Fix topics and files; copies go below `work`, and live as long as the run."""
    taken = _Taken(spec)
    files: dict[tuple[str, ...], FixedFiles] = {}
    for number, side in enumerate(_last_first(spec)):
        if isinstance(side, FileSide) and side.paths not in files:
            copies = work / f"side-{number}"
            copies.mkdir()
            files[side.paths] = _fixed(spec, side, copies)
        elif isinstance(side, TopicSide):
            taken.add(side.cluster, side.topics)
    for cluster, topics in _own_topics(spec):
        taken.add(cluster, topics)
    return Capture(snapshots=taken.snapshots(), files=files)


def ends_moved(spec: Spec, side: TopicSide, before: TopicsSnapshot) -> bool:
    """Tell whether the side's topics have got records since they were captured."""
    now = ClusterView(spec.clusters[side.cluster]).snapshot(side.topics)
    ends = {(part.topic, part.partition): part.high_watermark for part in before.partitions}
    return any(
        part.high_watermark != ends.get((part.topic, part.partition)) for part in now.partitions
    )


def is_bounded(spec: Spec, side: Side | None) -> bool:
    """Tell whether a topic is compared up to the committed offsets of a sink that may run."""
    return isinstance(side, TopicSide) and any(topic in spec.until for topic in side.topics)


def _last_first(spec: Spec) -> list[Side]:
    """Return the sides, the one that rows reach last first."""
    if spec.job in COMPARES:
        sides = [spec.arrived, spec.right, spec.left]
    else:
        sides = [tier.side for tier in reversed(spec.tiers)]
    return [side for side in sides if side is not None]


def _own_topics(spec: Spec) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the topics of jobs without sides."""
    if spec.offsets is not None:
        internal = [spec.offsets.worker, *spec.offsets.connectors.values()]
        internal += [name for name in (spec.offsets.config, spec.offsets.status) if name]
        yield MAIN, tuple(internal)
    elif spec.topics and not _last_first(spec):
        yield MAIN, spec.topics


def _fixed(spec: Spec, side: FileSide, copies: Path) -> FixedFiles:
    if side.limit_bytes is not None:
        if len(side.paths) != 1 or side.format != "text" or not is_local(side.paths[0]):
            raise ReconcileError("limit_bytes applies only to a single local text file")
        return bounded_copies(side.paths[0], side.limit_bytes, copies)
    grows = side is spec.right and is_bounded(spec, spec.left)
    if grows and side.format in LINE_FORMATS and all(map(is_local, side.paths)):
        return growing_copies(side.paths, copies)
    local_files(side.paths)
    return FixedFiles(before=fingerprint(side.paths))


class _Taken:
    """Snapshots as they are taken, topic by topic."""

    def __init__(self, spec: Spec) -> None:
        self._spec = spec
        self._views: dict[str, ClusterView] = {}
        self._snapshots: dict[str, TopicsSnapshot] = {}

    def add(self, cluster: str, topics: tuple[str, ...]) -> None:
        """Take topics of a cluster, unless they are taken already."""
        before = self._snapshots.get(cluster)
        known = {topic.topic for topic in before.topics} if before else set()
        wanted = tuple(topic for topic in dict.fromkeys(topics) if topic not in known)
        if before is not None and not wanted:
            return
        if cluster not in self._views:
            self._views[cluster] = ClusterView(self._spec.clusters[cluster])
        view = self._views[cluster]
        snapshot = view.snapshot(wanted)
        since = dict(self._spec.since)
        if self._spec.since_ms is not None:
            since |= view.offsets_at(snapshot, self._spec.since_ms)
        snapshot = narrowed(snapshot, since=since, until=self._spec.until)
        if before is not None:
            # The time is that of the first ones: what had not happened by then is under way.
            snapshot = replace(before, topics=(*snapshot.topics, *before.topics))
        self._snapshots[cluster] = snapshot

    def snapshots(self) -> dict[str, TopicsSnapshot]:
        """Return what was taken; saved ranges replace those of the main cluster."""
        if self._spec.ranges is None:
            return self._snapshots
        return self._snapshots | {MAIN: _replayed(self._spec.ranges, self._snapshots[MAIN])}


def _replayed(path: str, now: TopicsSnapshot) -> TopicsSnapshot:
    """Return saved ranges, after a look whether they can still be read."""
    saved = load_snapshot(path).of_topics([topic.topic for topic in now.topics])
    ids = {topic.topic: topic.topic_id for topic in now.topics}
    for topic in saved.topics:
        if ids[topic.topic] != topic.topic_id:
            raise ReconcileError(
                f"{topic.topic} was deleted and created again since these ranges were saved",
                hint="run the command without --ranges",
            )
    known = {topic.topic for topic in saved.topics}
    if missing := sorted(ids.keys() - known):
        raise ReconcileError(f"{path} has no ranges of {', '.join(missing)}")
    return saved


def load_snapshot(path: str) -> TopicsSnapshot:
    """Read the snapshot in a report or a file of ranges."""
    try:
        return read_snapshot(json.loads(Path(path).expanduser().read_text("utf-8")))
    except (OSError, ValueError) as exc:
        raise ReconcileError(f"{path}: cannot be read: {exc}") from exc
