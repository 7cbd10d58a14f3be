"""The history of each source partition and its last commit, from an offsets topic. Pure.

Compaction may have removed a part of the history, but never the newest record of a key. A task that
starts again continues from the last commit, so one writer never goes back unless its source does.
The evidence of other topics about the time of a commit is its `Circumstances`.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import combinations, pairwise

from pyconnect_reconcile.findings import Finding, Place, Severity, error, note
from pyconnect_reconcile.task_records import Statuses, TaskConfigSet, equal_tasks, overlap, sharing


@dataclass(frozen=True, slots=True)
class Circumstances:
    """The evidence of the status and config topics; empty where they were not read."""

    statuses: Statuses = field(default_factory=Statuses)
    configs: TaskConfigSet = field(default_factory=TaskConfigSet)

    def of_writers(self, connector: str, source: str, time_ms: int) -> str:
        """Return the possible writers of an offset, as sentences."""
        texts = []
        tasks = self.configs.in_force(connector, time_ms) or self.configs.in_force(connector)
        if tasks is not None and (shared := sharing(tasks, source)) is not None:
            texts.append(f"{shared}: give it to one of them")
        takeovers = self.statuses.takeovers(connector)
        if before := [each for each in takeovers if each.after.time_ms <= time_ms]:
            lost, holder = before[-1]
            texts.append(
                f"task {holder.task} was taken over by {holder.worker} at"
                f" {time_text(holder.place)}, and {lost.worker} had not reported its end:"
                f" check whether {lost.worker} still runs it"
            )
        if holders := self.statuses.holders_at(connector, time_ms):
            told = ", ".join(f"task {each.task} by {each.worker}" for each in holders[:8])
            more = f" and {len(holders) - 8} more" if len(holders) > 8 else ""
            texts.append(f"Tasks held at that time, as reported: {told}{more}")
        return "".join(f". {text[:1].upper()}{text[1:]}" for text in texts)


def time_text(place: Place) -> str:
    """Return a record's time as a text for people, in UTC."""
    moment = datetime.fromtimestamp((place.timestamp_ms or 0) / 1000, UTC)
    return moment.strftime("%Y-%m-%d %H:%M:%SZ")


# Maximum number of runs of positions in one history; the oldest are dropped first.
MOST_RUNS = 16
COPIES_KEPT = 20
RESET_BY = {
    None: "by a reset or by the connector itself",
    True: "while the connector was stopped: a reset over REST, or by other tools",
    False: "while the connector was not stopped: by the connector itself, or by other tools",
}
"""Causes by whether the connector was stopped; None: it is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetCommit:
    """One record of an offsets topic; `value` None is a reset."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    connector: str
    source: str
    """The source partition as canonical JSON."""
    raw_key: bytes
    value: Mapping[str, object] | None

    @property
    def place(self) -> Place:
        return Place(
            topic=self.topic,
            partition=self.partition,
            offset=self.offset,
            timestamp_ms=self.timestamp_ms,
            key=f"{self.connector} {self.source}",
        )


History = Sequence[OffsetCommit]
"""The commits of one key in one partition, in order."""


def canonical(value: object) -> str:
    """Return the canonical JSON of a value, with sorted members."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def read_commit(
    place: tuple[str, int, int, int], key: bytes | None, value: bytes | None
) -> OffsetCommit | None:
    """Return the commit at (topic, partition, offset, timestamp_ms); None for other records."""
    try:
        connector, source = json.loads(key or b"")
        offset = None if value is None else json.loads(value)
    except (ValueError, TypeError):
        return None
    if not isinstance(connector, str) or not isinstance(offset, Mapping | None):
        return None
    topic, partition, at, timestamp_ms = place
    return OffsetCommit(
        topic=topic,
        partition=partition,
        offset=at,
        timestamp_ms=timestamp_ms,
        connector=connector,
        source=canonical(source),
        raw_key=key or b"",
        value=offset,
    )


def histories(commits: Iterable[OffsetCommit]) -> list[History]:
    """Return the commits by topic, partition and key: only these have an order."""
    found: dict[tuple[str, int, bytes], list[OffsetCommit]] = {}
    for commit in sorted(commits, key=lambda each: (each.topic, each.partition, each.offset)):
        found.setdefault((commit.topic, commit.partition, commit.raw_key), []).append(commit)
    return list(found.values())


def went_back(before: Mapping[str, object], after: Mapping[str, object]) -> bool:
    """Return whether `after` is behind `before`: some number shrank, and no number grew."""
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


def findings_of(history: History, circumstances: Circumstances | None = None) -> list[Finding]:
    """Return the resets, changes while stopped, regressions and second writers of one history."""
    known = circumstances or Circumstances()
    found: list[Finding] = []

    def noted(kind: str, commit: OffsetCommit, done: str) -> None:
        found.append(
            note(
                kind=kind,
                message=f"offset of {commit.source} was {done}",
                topic=commit.topic,
                group=commit.connector,
                copies=(commit.place,),
            )
        )

    # Resets and changes by hand divide the history: any offset may follow them.
    parts: list[list[OffsetCommit]] = [[]]
    for commit in history:
        stopped = known.statuses.stopped_at(commit.connector, commit.timestamp_ms)
        when = time_text(commit.place)
        if commit.value is None:
            noted("reset", commit, f"deleted at {when}, {RESET_BY[stopped]}")
            parts.append([])
        elif stopped:
            by = "over REST, or by other tools"
            noted("altered", commit, f"set at {when}, while the connector was stopped: {by}")
            parts.append([commit])
        else:
            parts[-1].append(commit)
    for part in parts:
        back = [
            (before, after)
            for before, after in pairwise(part)
            if went_back(before.value or {}, after.value or {})
        ]
        if back and _interleaves(part):
            found.append(_gone_back(back, known, in_turns=True))
        else:
            found += [_gone_back([pair], known, in_turns=False) for pair in back]
    return found


def _interleaves(part: History) -> bool:
    """Return whether two rising runs of offsets alternate, each resumed after the other.

    Each commit belongs to the run that is least behind it. A source that repeatedly starts from the
    beginning (a file that is truncated) makes runs that follow each other and are never resumed.
    """
    runs: list[tuple[int, OffsetCommit]] = []
    turns: list[int] = []
    for number, commit in enumerate(part):
        value = commit.value or {}
        best: int | None = None
        for index, (_, last) in enumerate(runs):
            if went_back(last.value or {}, value):
                continue
            # The nearest run is the one that is ahead of the best so far.
            if best is None or went_back(last.value or {}, runs[best][1].value or {}):
                best = index
        name = number if best is None else runs.pop(best)[0]
        runs.append((name, commit))
        del runs[:-MOST_RUNS]
        turns.append(name)
    # Each of two runs is resumed after the other: at least a, b, a, b.
    for pair in combinations(dict.fromkeys(turns), 2):
        shown = [turn for turn in turns if turn in pair]
        if sum(one != other for one, other in pairwise(shown)) >= 3:
            return True
    return False


def _gone_back(
    back: Sequence[tuple[OffsetCommit, OffsetCommit]], known: Circumstances, *, in_turns: bool
) -> Finding:
    first, last = back[0][1], back[-1][1]
    said = (
        f"went back at {time_text(last.place)}: a task that starts from there reads later records"
        " again. The source started from the beginning, or another writer was late"
    )
    if in_turns:
        said = (
            f"alternates between two rising runs, from {time_text(first.place)} to"
            f" {time_text(last.place)}: two tasks read one source partition, or a source starts"
            " from the beginning repeatedly"
        )
    writers = known.of_writers(last.connector, last.source, last.timestamp_ms)
    return error(
        kind="two-writers" if in_turns else "regression",
        message=f"offset of {last.source} {said}{writers}",
        topic=last.topic,
        group=last.connector,
        count=len(back),
        copies=tuple(dict.fromkeys(each.place for pair in back for each in pair))[:COPIES_KEPT],
    )


Source = tuple[str, str, str]
"""Topic, connector, source partition."""


class LastCommits:
    """The last commit of each source partition; the newest one of several keys."""

    def __init__(self, commits: Iterable[OffsetCommit]) -> None:
        self._all: dict[Source, list[OffsetCommit]] = {}
        for history in histories(commits):
            last = history[-1]
            self._all.setdefault((last.topic, last.connector, last.source), []).append(last)
        for each in self._all.values():
            each.sort(key=lambda commit: commit.timestamp_ms)
        self.newest: Mapping[Source, OffsetCommit] = {
            source: commits[-1] for source, commits in self._all.items()
        }

    def orphans(self, known: frozenset[str]) -> list[Finding]:
        """Return a note for each connector with stored offsets that is not configured any more."""
        alive: dict[str, list[OffsetCommit]] = {}
        for commit in self.newest.values():
            if commit.value is not None and commit.connector not in known:
                alive.setdefault(commit.connector, []).append(commit)
        return [
            note(
                kind="orphan",
                message=f"offsets of {len(left)} source partitions of a connector that is not"
                " configured; pyconnect offsets orphans purge removes them",
                group=connector,
                count=len(left),
                copies=tuple(commit.place for commit in left[:COPIES_KEPT]),
            )
            for connector, left in sorted(alive.items())
        ]

    def disagreements(self, worker: str, own: Mapping[str, str]) -> list[Finding]:
        """Return source partitions whose offset in a connector's own topic differs from the copy.

        The worker writes the copy in its topic after the commit, so a copy that is behind is only a
        note. If a reset did not reach the copy, the finding is an error: the connector starts from
        the copy.
        """
        found = []
        for (topic, connector, source), commit in self.newest.items():
            copy = self.newest.get((worker, connector, source))
            if own.get(connector) != topic or topic == worker or copy is None:
                continue
            if copy.value == commit.value:
                continue
            words, severity = "different from the one", Severity.NOTE
            if commit.value is None:
                words, severity = (
                    "still stored, and a task would start from it; the one",
                    Severity.ERROR,
                )
            elif copy.value is not None and went_back(copy.value, commit.value):
                words, severity = "ahead of the one", Severity.ERROR
            deleted = " was deleted" if commit.value is None else ""
            found.append(
                Finding(
                    kind="topics-disagree",
                    severity=severity,
                    message=f"offset of {commit.source}: the one in the worker's topic is {words}"
                    f" in the connector's own topic{deleted}",
                    topic=commit.topic,
                    group=commit.connector,
                    copies=(commit.place, copy.place),
                )
            )
        return found

    def splits(self) -> list[Finding]:
        """Return source partitions that have an offset under two keys, or in two partitions."""
        found = []
        for commits in self._all.values():
            alive = [commit for commit in commits if commit.value is not None]
            if len(alive) < 2:
                continue
            newest = alive[-1]
            one_key = len({commit.raw_key for commit in alive}) == 1
            same = all(commit.value == newest.value for commit in alive)
            message = (
                f"offset of {newest.source} is stored under {len(alive)} spellings of its key: a"
                " task finds the spelling that it writes itself, but resets over REST may miss it"
            )
            if one_key:
                message = (
                    f"offset of {newest.source} is stored in {len(alive)} partitions of the topic:"
                    " it is not defined which of them a task starts from. Partitions were added to"
                    " the topic, or writers with different partitioners use it"
                )
            finding = Finding(
                kind="split-offset",
                severity=Severity.ERROR if one_key and not same else Severity.NOTE,
                message=message,
                topic=newest.topic,
                group=newest.connector,
                count=len(alive),
                copies=tuple(commit.place for commit in alive[:COPIES_KEPT]),
            )
            found.append(finding)
        return found

    def overlaps(self, circumstances: Circumstances) -> list[Finding]:
        """Return source partitions that several tasks share according to their configurations."""
        found: list[Finding] = []
        equal: set[str] = set()
        for _, connector, source in self.newest:
            tasks = circumstances.configs.in_force(connector)
            if tasks is None or connector in equal:
                continue
            if (shared := equal_tasks(tasks)) is not None:
                equal.add(connector)
                found.append(overlap(tasks, shared, None))
            elif (shared := sharing(tasks, source)) is not None:
                found.append(overlap(tasks, shared, source))
        return found
