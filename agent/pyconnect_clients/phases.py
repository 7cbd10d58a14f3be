"""The phases of an upgrade to exactly-once (KIP-618). Pure."""

from __future__ import annotations

from enum import StrEnum


class Phase(StrEnum):
    """A value of `exactly.once.source.support`.

    `rank` gives the order of the phases, which comparison of the texts does not.
    """

    DISABLED = "disabled"
    PREPARING = "preparing"
    ENABLED = "enabled"

    @property
    def rank(self) -> int:
        """Neighbours differ by one."""
        return list(Phase).index(self)

    @property
    def uses_transactional_leader(self) -> bool:
        """Whether the leader writes to the config topic through a transactional producer."""
        return self is not Phase.DISABLED

    @property
    def following(self) -> Phase:
        """The next phase; enabled is the last."""
        return list(Phase)[min(self.rank + 1, Phase.ENABLED.rank)]
