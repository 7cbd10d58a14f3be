"""ranges: offsets and topic ids against the last saved run; nothing is read from the topics."""

from __future__ import annotations

from pyconnect_reconcile.capture import load_snapshot
from pyconnect_reconcile.findings import Finding, Outcome
from pyconnect_reconcile.spec import Spec
from pyconnect_reconcile.topics.range_findings import against_previous, hanging, open_tails
from pyconnect_reconcile.topics.snapshot import Snapshot

# transaction.max.timeout.ms of brokers, 15 minutes: the coordinator aborts what is older.
HANGING_MS = 15 * 60 * 1000


def check(spec: Spec, snapshot: Snapshot) -> Outcome:
    """Compare a snapshot with the one of `spec.previous`, when there is one."""
    findings: list[Finding] = [*open_tails(snapshot), *hanging(snapshot, older_than_ms=HANGING_MS)]
    if spec.previous is not None:
        findings += against_previous(snapshot, load_snapshot(spec.previous))
    return Outcome(
        findings=tuple(findings),
        counts={
            "offsets": snapshot.length,
            "partitions": len(snapshot.partitions),
            "open_offsets": sum(part.open_tail for part in snapshot.partitions),
        },
    )
