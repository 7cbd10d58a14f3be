"""Findings about last commits: orphans, topics that disagree, offsets in two places. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pyconnect_reconcile.findings import Finding, Severity
from pyconnect_reconcile.internal_topics.offset_history import (
    Circumstances,
    OffsetCommit,
    histories,
    went_back,
)
from pyconnect_reconcile.internal_topics.task_configs import equal_tasks, overlap, sharing

COPIES_KEPT = 20
Source = tuple[str, str, str]
"""Topic, connector, source partition."""


class LastCommits:
    """The last commit of each source partition; where there are several keys, the newest."""

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
        """Return the connectors with stored offsets that are not configured any more."""
        alive: dict[str, list[OffsetCommit]] = {}
        for commit in self.newest.values():
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
                copies=tuple(commit.place for commit in left[:COPIES_KEPT]),
            )
            for connector, left in sorted(alive.items())
        ]

    def disagreements(self, worker: str, own: Mapping[str, str]) -> list[Finding]:
        """Return source partitions whose offset in a connector's own topic is not the copy's.

        The copy in the worker's topic is written after the commit, so being behind is no more than
        a note. A reset that did not reach the copy is none: the connector starts from the copy.
        """
        found = []
        for (topic, connector, source), commit in self.newest.items():
            if own.get(connector) != topic or topic == worker:
                continue
            copy = self.newest.get((worker, connector, source))
            if copy is None or copy.value == commit.value:
                continue
            found.append(_disagreement(commit, copy))
        return found

    def splits(self) -> list[Finding]:
        """Return source partitions that have an offset under two keys, or in two partitions."""
        found = []
        for commits in self._all.values():
            alive = [commit for commit in commits if commit.value is not None]
            if len(alive) > 1:
                found.append(_split(alive))
        return found

    def overlaps(self, circumstances: Circumstances) -> list[Finding]:
        """Return source partitions that several tasks share by their configurations."""
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


def _disagreement(commit: OffsetCommit, copy: OffsetCommit) -> Finding:
    words, severity = "different from the one in the connector's own topic", Severity.NOTE
    if commit.value is None:
        words = (
            "still stored, and a task would start from it; the one in the connector's"
            " own topic was deleted"
        )
        severity = Severity.ERROR
    elif copy.value is not None and went_back(copy.value, commit.value):
        words, severity = "ahead of the one in the connector's own topic", Severity.ERROR
    return Finding(
        kind="topics-disagree",
        severity=severity,
        message=f"offset of {commit.source}: the one in the worker's topic is {words}",
        topic=commit.topic,
        group=commit.connector,
        copies=(commit.place, copy.place),
    )


def _split(alive: list[OffsetCommit]) -> Finding:
    newest = alive[-1]
    one_key = len({commit.raw_key for commit in alive}) == 1
    same = all(commit.value == newest.value for commit in alive)
    message = f"offset of {newest.source} is stored under {len(alive)} spellings of its key: a task"
    message += " finds the spelling that it writes itself, but resets over REST may miss it"
    if one_key:
        message = (
            f"offset of {newest.source} is stored in {len(alive)} partitions of the"
            " topic: it is not defined which of them a task starts from. Partitions were"
            " added to the topic, or writers with different partitioners use it"
        )
    return Finding(
        kind="split-offset",
        severity=Severity.ERROR if one_key and not same else Severity.NOTE,
        message=message,
        topic=newest.topic,
        group=newest.connector,
        count=len(alive),
        copies=tuple(commit.place for commit in alive[:COPIES_KEPT]),
    )
