"""ranges: offsets and topic ids against the last saved run; nothing is read from the topics."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from pyconnect_reconcile.capture import load_snapshot, require_cluster
from pyconnect_reconcile.errors import ReconcileError
from pyconnect_reconcile.findings import CheckOutcome, Finding, Severity
from pyconnect_reconcile.spec import Spec
from pyconnect_reconcile.topics.range_findings import (
    against_previous,
    hanging,
    open_tails,
    without_previous,
)
from pyconnect_reconcile.topics.snapshot import TopicsSnapshot, read_snapshot

# transaction.max.timeout.ms of brokers, 15 minutes: the coordinator aborts what is older.
HANGING_MS = 15 * 60 * 1000


def check(spec: Spec, snapshot: TopicsSnapshot) -> CheckOutcome:
    """Compare a snapshot with the one of `spec.previous`, when there is one."""
    before = previous_snapshot(spec, snapshot)
    # No record is audited here, and producers of open transactions show their age.
    named = {(part.topic, part.partition) for part in snapshot.partitions if part.open_producers}
    findings: list[Finding] = [
        *(
            replace(finding, severity=Severity.NOTE)
            if finding.kind == "open-transaction" and (finding.topic, finding.partition) in named
            else finding
            for finding in open_tails(snapshot)
        ),
        *hanging(snapshot, older_than_ms=HANGING_MS),
        *without_previous(snapshot, before),
    ]
    if before is not None:
        findings += against_previous(snapshot, before)
    return CheckOutcome(
        findings=tuple(findings),
        counts={
            "offsets": snapshot.length,
            "partitions": len(snapshot.partitions),
            "open_offsets": sum(part.open_tail for part in snapshot.partitions),
        },
    )


def previous_snapshot(spec: Spec, now: TopicsSnapshot) -> TopicsSnapshot | None:
    """Return the snapshot to compare with: `spec.previous`, else the last of the same question.

    Names of files are no proof: a report of another cluster or target may have a like name.
    """
    if spec.previous is not None:
        before = load_snapshot(spec.previous)
        require_cluster(spec.previous, before, now)
        return before
    for path in spec.earlier:
        with suppress(OSError, ValueError, ReconcileError):
            document = json.loads(Path(path).read_text("utf-8"))
            before = read_snapshot(document)
            if (document["target"], before.cluster_id) == (spec.target, now.cluster_id):
                return before
    return None
