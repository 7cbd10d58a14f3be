"""Known names that resemble an unknown one. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

ALMOST = 0.75  # the likeness of a word of four letters with two of them exchanged
CLEARLY = 0.15  # the lead that it needs over every reading verb

CONSENT = frozenset(
    {"--yes", "--force", "--prune", "--insecure", "--no-backup", "--accept-unknown"}
)


# As Apache's own commands spell them.
_APACHES = {
    "--bootstrap": "--kafka-bootstrap",
    "--bootstrap-server": "--kafka-bootstrap",
    "--bootstrap-servers": "--kafka-bootstrap",
    "--command-config": "--kafka-properties",
}


def near_names(name: str, known: Iterable[str], limit: int = 3, likeness: float = 0.6) -> list[str]:
    """Return up to `limit` known names that resemble `name`, the nearest first."""
    from difflib import get_close_matches

    by_lower = {candidate.lower(): candidate for candidate in known}
    close = get_close_matches(name.lower(), by_lower, n=limit, cutoff=likeness)
    prefixed = sorted(lower for lower in by_lower if lower.startswith(name.lower()))
    ordered = dict.fromkeys([*close, *prefixed])
    return [by_lower[lower] for lower in ordered][:limit]


def slip_of(option: str, known: Iterable[str]) -> str | None:
    """Return the option that a misspelt one stands for; None if unclear, or if it grants consent.

    An option changes the effect of a command, so a remotely similar one is not proposed.
    """
    from difflib import get_close_matches

    candidates = [name for name in known if name.startswith("--") and name not in CONSENT]
    if _APACHES.get(option) in candidates:
        return _APACHES[option]
    return next(iter(get_close_matches(option.lower(), candidates, n=1, cutoff=0.88)), None)


def did_you_mean(name: str, known: Iterable[str]) -> str | None:
    """Return `did you mean …?`, or None when nothing resembles the name."""
    near = near_names(name, known)
    if not near:
        return None
    return f"did you mean {' or '.join(f'`{candidate}`' for candidate in near)}?"


def near_verbs(word: str, reading: Sequence[str], changing: Sequence[str]) -> list[str]:
    """Return verbs that resemble an unknown one, with care for verbs that change something.

    A changing verb counts only if the word is very similar, and more similar to it than to every
    reading verb. A word without similar verbs gets the verbs that show one object.
    """
    from difflib import SequenceMatcher

    def likeness(name: str) -> float:
        begun = len(word) > 2 and name.startswith(word.lower())
        return 1.0 if begun else SequenceMatcher(None, word.lower(), name).ratio()

    wanted = max(changing, key=likeness, default="")
    rival = max(map(likeness, reading), default=0.0)
    if likeness(wanted) >= max(ALMOST, rival + CLEARLY):
        return [wanted]
    shown = [name for name in ("get", "describe", "list") if changing and name in reading]
    return near_names(word, reading) or shown[:2]
