"""Transactional ids with several owners, which would fence each other. Pure.

An id joins names with `-` and escapes nothing, so two pairs of names may give the same id.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from pyconnect_cli.upgrade.plan.model import SourceFacts

LEADER = "the leader"


def ids_of(group_id: str, source: SourceFacts) -> tuple[str, ...]:
    """Return the ids of a connector: of changes of its offsets (KIP-875), then of its tasks."""
    count = max(source.tasks, source.tasks_max)
    own = f"{group_id}-{source.name}"
    return (own, *(f"{own}-{task}" for task in range(count)))


def collisions(group_id: str, leader: str, sources: Iterable[SourceFacts]) -> Iterator[str]:
    """Yield a sentence for each id that has several owners in this group; `leader`: its id."""
    owners: dict[str, list[str]] = defaultdict(list)
    owners[leader].append(LEADER)
    for source in sources:
        for transactional_id in ids_of(group_id, source):
            owners[transactional_id].append(source.name)
    for transactional_id, names in owners.items():
        if len(names) > 1:
            yield f"the transactional id {transactional_id} belongs to {' and '.join(names)}"


def shared_with(
    group_id: str, sources: Iterable[SourceFacts], groups: Iterable[str]
) -> Iterator[str]:
    """Yield a sentence for each connector whose ids may be those of another Connect group."""
    named = list(sources)
    for other in groups:
        for source in named:
            own = f"{group_id}-{source.name}"
            # A group with a shorter name matches every connector; only ids in use show a collision.
            if len(other) > len(group_id) and own.startswith(f"{other}-"):
                theirs = own.removeprefix(f"{other}-")
                yield (
                    f"the transactional ids of {source.name} would be those of a connector"
                    f" {theirs} in group {other}"
                )
