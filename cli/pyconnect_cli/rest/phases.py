"""The phases of an upgrade to exactly-once: values of `exactly.once.source.support`. Pure."""

from __future__ import annotations

from enum import StrEnum


class Phase(StrEnum):
    """A phase; `rank` gives the order of the phases, which comparison of the texts does not."""

    DISABLED = "disabled"
    PREPARING = "preparing"
    ENABLED = "enabled"

    @property
    def rank(self) -> int:
        """Neighbours differ by one."""
        return list(Phase).index(self)

    @property
    def following(self) -> Phase:
        """The next phase; enabled is the last."""
        return list(Phase)[min(self.rank + 1, Phase.ENABLED.rank)]
