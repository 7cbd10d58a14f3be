"""The journal of replays: a file per Kafka cluster and dead letter topic."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pyconnect_cli.acting.journal import JournalFile, entries_of
from pyconnect_cli.directories import state_directory
from pyconnect_cli.dlq.plan.replays import Replay, ReplayEntry, read_replays
from pyconnect_cli.errors import Conflict, NotFound, UsageError

HISTORY = "list the replays: pyconnect dlq history"


class ReplayJournal(JournalFile):
    """The replays of one dead letter topic."""

    def __init__(self, directory: Path, cluster_id: str, topic: str) -> None:
        busy = Conflict(f"another replay of {topic} is running on this host", hint=HISTORY)
        super().__init__(directory, cluster_id, topic, busy=busy)

    def replays(self) -> dict[str, Replay]:
        """Return the replays by their ids, oldest first."""
        return replays_in(self.path)


def replays_in(path: Path) -> dict[str, Replay]:
    """Return the replays of a journal; UsageError names a file that cannot be read."""
    try:
        return read_replays(entries_of(path, ReplayEntry))
    except (UsageError, KeyError) as exc:
        reason = exc.message if isinstance(exc, UsageError) else f"replay {exc} has no plan"
        raise UsageError(
            f"{path}: {reason}",
            hint="a newer version of this command may have written the file; without it the letters"
            " that were replayed are not known",
        ) from exc


def all_replays(directory: Path) -> list[Replay]:
    """Return the replays of all journals of this user, newest first."""
    found = [
        replay for path in sorted(directory.glob("*.jsonl")) for replay in replays_in(path).values()
    ]
    return sorted(found, key=lambda replay: replay.planned.at_ms, reverse=True)


def known_replay(directory: Path, identity: str) -> Replay:
    """Return a replay by its id; NotFound without it."""
    for replay in all_replays(directory):
        if replay.planned.replay == identity:
            return replay
    raise NotFound(f"{directory} has no replay {identity}", hint=HISTORY)


def replay_directory(environ: Mapping[str, str]) -> Path:
    """Return the directory of this user's journals. Raises PreconditionFailed."""
    return state_directory(environ) / "replays"
