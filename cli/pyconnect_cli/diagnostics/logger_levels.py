"""The logger levels that the command has to set back after a temporary change. Pure.

A request with a name sets the level of every known logger whose name begins with it, and `root`
sets all of them (KIP-495). A level cannot be removed: a logger without its own level gets the level
that it inherited before.
"""

from __future__ import annotations

from collections.abc import Mapping

ROOT = "root"


def levels_to_restore(
    before: Mapping[str, str], logger: str, level: str
) -> tuple[tuple[str, str], ...]:
    """Return the loggers to set, with their levels, in the order in which they have to be set.

    `before`: the levels of all known loggers before `logger` was set to `level`. The result is
    empty if no level changed.
    """
    name = ROOT if logger.lower() == ROOT else logger
    wanted = {known: before[known] for known in before if _affects(name, known)}
    wanted.setdefault(name, _inherited(before, name))
    now = dict.fromkeys(wanted, level)
    steps = []
    # A level applies to all names that begin with the logger's name: set those after it.
    for known in sorted(wanted, key=lambda known: (known != ROOT, len(known), known)):
        if now[known] != wanted[known]:
            steps.append((known, wanted[known]))
            now.update({other: wanted[known] for other in now if _affects(known, other)})
    return tuple(steps)


def _affects(name: str, other: str) -> bool:
    return name == ROOT or other.startswith(name)


def _inherited(levels: Mapping[str, str], name: str) -> str:
    while name not in levels and name:
        name = name.rpartition(".")[0]
    return levels.get(name) or levels.get(ROOT, "INFO")
