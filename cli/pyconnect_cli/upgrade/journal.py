"""The journal of upgrades: a file per Connect cluster."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from pyconnect_cli.acting.journal import JournalFile, entries_of
from pyconnect_cli.directories import state_directory
from pyconnect_cli.errors import Conflict, UsageError
from pyconnect_cli.upgrade.plan.run import Entry, Run, replay


class Journal(JournalFile):
    """The journal of one Connect cluster."""

    def __init__(self, directory: Path, cluster_id: str, group_id: str) -> None:
        busy = Conflict(
            "another upgrade of this cluster is running on this host",
            hint="show it: pyconnect upgrade status",
        )
        super().__init__(directory, cluster_id, group_id, busy=busy)

    def run(self) -> Run | None:
        """Return the last run; None when there was none."""
        return read_run(self.path)


def read_run(path: Path) -> Run | None:
    """Return the last run of a journal; UsageError names a file that cannot be read."""
    try:
        return replay(entries_of(path, Entry))
    except (UsageError, KeyError) as exc:
        reason = exc.message if isinstance(exc, UsageError) else f"an entry of {exc} has no step"
        raise UsageError(
            f"{path}: {reason}",
            hint="move the file away: the next run reads the state from the cluster; a newer"
            " version of this command may have written the file",
        ) from exc


def last_runs(directory: Path) -> tuple[list[Run], list[str]]:
    """Return the last run of each journal in a directory, and the faults of unreadable ones."""
    found, broken = [], []
    for path in sorted(directory.glob("*.jsonl")):
        try:
            run = read_run(path)
        except UsageError as error:
            broken.append(error.message)
            continue
        if run is not None:
            found.append(run)
    return found, broken


def unfinished_group(directory: Path, cluster_id: str, urls: Iterable[str]) -> str | None:
    """Return the group of an unfinished run on this Kafka with one of these workers, if any.

    The worker may be down during the run; then only the journal knows the group.
    """
    wanted = set(urls)
    found, _ = last_runs(directory)
    for run in found:
        same = run.started.cluster_id == cluster_id and wanted & set(run.urls)
        if same and not run.finished:
            return run.started.group_id
    return None


def journal_directory(environ: Mapping[str, str]) -> Path:
    """Return the directory of this user's journals. Raises PreconditionFailed."""
    return state_directory(environ) / "upgrades"
