"""Runs that continue at the end of the last one that agreed (`since_last`), and their chain.

A report of such a run is a link: it proves the records from its starts to its ends, and names the
reports before it by file and hash. Together they prove the whole. The first run of a chain reads
from the beginning. A run that differs or could not decide is no base, so the next one reads its
records again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from pyconnect_reconcile.document import Bounds
from pyconnect_reconcile.errors import ReconcileError
from pyconnect_reconcile.findings import CheckOutcome, Severity, Verdict
from pyconnect_reconcile.spec import Spec, question_of
from pyconnect_reconcile.topics.range_findings import removed_beginnings
from pyconnect_reconcile.topics.snapshot import TopicsSnapshot, read_snapshot

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
    """Return the base of a run among `spec.earlier`; None: the run is the first of its chain.

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
    """Return the outcome of a run that continues: gaps are unknown, a night may have no records."""
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
