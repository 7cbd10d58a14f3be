"""What the records of an offsets topic say about each source partition. Pure.

The topic is compacted: history is what compaction has left, newest record of each key at least.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pyconnect_reconcile.findings import Finding, Place, Severity


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """One record of an offsets topic; `offset` None is a reset."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    connector: str
    source: str
    """The source partition as canonical JSON."""
    value: Mapping[str, object] | None

    @property
    def place(self) -> Place:
        """Where the record is."""
        return Place(
            topic=self.topic,
            partition=self.partition,
            offset=self.offset,
            timestamp_ms=self.timestamp_ms,
            key=f"{self.connector} {self.source}",
        )


def canonical(value: object) -> str:
    """Return the same text for the same value, whatever the order of its members."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def read_commit(
    place: tuple[str, int, int, int], key: bytes | None, value: bytes | None
) -> Commit | None:
    """Read a record at (topic, partition, offset, timestamp_ms); None when it is no commit."""
    try:
        connector, source = json.loads(key or b"")
        offset = None if value is None else json.loads(value)
    except (ValueError, TypeError):
        return None
    if not isinstance(connector, str) or not isinstance(offset, Mapping | None):
        return None
    topic, partition, at, timestamp_ms = place
    return Commit(
        topic=topic,
        partition=partition,
        offset=at,
        timestamp_ms=timestamp_ms,
        connector=connector,
        source=canonical(source),
        value=offset,
    )


def histories(commits: Iterable[Commit]) -> dict[tuple[str, str, str], list[Commit]]:
    """Return the commits of each topic, connector and source partition, in order."""
    found: dict[tuple[str, str, str], list[Commit]] = {}
    for commit in sorted(commits, key=lambda each: (each.topic, each.partition, each.offset)):
        found.setdefault((commit.topic, commit.connector, commit.source), []).append(commit)
    return found


def went_back(before: Mapping[str, object], after: Mapping[str, object]) -> bool:
    """Tell whether a later offset is behind an earlier one: no number grew, one shrank."""
    pairs = [
        (before[name], after[name])
        for name in before.keys() & after.keys()
        if _is_number(before[name]) and _is_number(after[name])
    ]
    shrank = any(new < old for old, new in pairs)  # type: ignore[operator] # both are numbers
    grew = any(new > old for old, new in pairs)  # type: ignore[operator]
    return shrank and not grew


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def findings_of(history: Sequence[Commit]) -> list[Finding]:
    """Return the regressions and resets of one source partition.

    Offsets that go back and forth again and again have two writers: two tasks at one partition.
    """
    found: list[Finding] = []
    regressions: list[tuple[Commit, Commit]] = []
    advances_after_regression = 0
    last: Commit | None = None
    for commit in history:
        if commit.value is None:
            found.append(_reset(commit))
            last = None
            continue
        if last is not None and last.value is not None:
            if went_back(last.value, commit.value):
                regressions.append((last, commit))
            elif regressions and went_back(commit.value, last.value):
                advances_after_regression += 1
        last = commit
    found += [_regression(before, after) for before, after in regressions]
    if len(regressions) > 1 and advances_after_regression > 0:
        found.append(_two_writers(regressions))
    return found


def _reset(commit: Commit) -> Finding:
    return Finding(
        kind="reset",
        severity=Severity.NOTE,
        message=f"offset of {commit.source} was forgotten (a reset, or the connector's own doing)",
        topic=commit.topic,
        group=commit.connector,
        copies=(commit.place,),
    )


def _regression(before: Commit, after: Commit) -> Finding:
    return Finding(
        kind="regression",
        severity=Severity.ERROR,
        message=f"offset of {after.source} went back: records since were read again",
        topic=after.topic,
        group=after.connector,
        copies=(before.place, after.place),
    )


def _two_writers(regressions: Sequence[tuple[Commit, Commit]]) -> Finding:
    after = regressions[-1][1]
    return Finding(
        kind="two-writers",
        severity=Severity.ERROR,
        message=f"offset of {after.source} goes back and forth: two tasks at one source partition",
        topic=after.topic,
        group=after.connector,
        count=len(regressions),
        copies=tuple(commit.place for _, commit in regressions),
    )


def orphans(commits: Iterable[Commit], known: frozenset[str]) -> list[Finding]:
    """Return the connectors with stored offsets that are not configured any more."""
    last = {(each.topic, each.connector, each.source): each for each in _in_order(commits)}
    alive: dict[str, list[Commit]] = {}
    for commit in last.values():
        if commit.value is not None and commit.connector not in known:
            alive.setdefault(commit.connector, []).append(commit)
    return [
        Finding(
            kind="orphan",
            severity=Severity.NOTE,
            message=f"offsets of {len(left)} source partitions of a connector that is not"
            " configured; pyconnect offsets orphans purge removes them",
            group=connector,
            count=len(left),
            copies=tuple(commit.place for commit in left[:20]),
        )
        for connector, left in sorted(alive.items())
    ]


def disagreements(commits: Iterable[Commit], worker: str, own: Mapping[str, str]) -> list[Finding]:
    """Return source partitions whose offset in a connector's own topic is not the worker's copy.

    The copy is written after the commit, so being behind is no more than a note.
    """
    last = {(each.topic, each.connector, each.source): each for each in _in_order(commits)}
    found = []
    for (topic, connector, source), commit in last.items():
        if own.get(connector) != topic or topic == worker:
            continue
        copy = last.get((worker, connector, source))
        if copy is None or copy.value == commit.value:
            continue
        ahead = (
            commit.value is not None
            and copy.value is not None
            and went_back(copy.value, commit.value)
        )
        found.append(
            Finding(
                kind="topics-disagree",
                severity=Severity.ERROR if ahead else Severity.NOTE,
                message=f"offset of {source}: the worker's topic is"
                f" {'ahead of' if ahead else 'not the same as'} the connector's own",
                topic=topic,
                group=connector,
                copies=(commit.place, copy.place),
            )
        )
    return found


def _in_order(commits: Iterable[Commit]) -> list[Commit]:
    return sorted(commits, key=lambda each: (each.topic, each.partition, each.offset))
