"""Names that look like the one that does not exist. Pure."""

from __future__ import annotations

from collections.abc import Iterable

CONSENT = frozenset(
    {"--yes", "--force", "--prune", "--insecure", "--no-backup", "--accept-unknown"}
)


def near_names(name: str, known: Iterable[str], limit: int = 3) -> list[str]:
    """Return up to `limit` known names that resemble `name`, the nearest first."""
    from difflib import get_close_matches

    by_lower = {candidate.lower(): candidate for candidate in known}
    close = get_close_matches(name.lower(), by_lower, n=limit, cutoff=0.6)
    prefixed = sorted(lower for lower in by_lower if lower.startswith(name.lower()))
    ordered = dict.fromkeys([*close, *prefixed])
    return [by_lower[lower] for lower in ordered][:limit]


def slip_of(option: str, known: Iterable[str]) -> str | None:
    """Return the option that was meant; None when none is near enough, or it grants consent.

    An option changes what a command does, so one that only resembles it is not proposed.
    """
    from difflib import get_close_matches

    candidates = [name for name in known if name.startswith("--") and name not in CONSENT]
    return next(iter(get_close_matches(option.lower(), candidates, n=1, cutoff=0.88)), None)


def did_you_mean(name: str, known: Iterable[str]) -> str | None:
    """Return `did you mean …?`, or None when nothing resembles the name."""
    near = near_names(name, known)
    if not near:
        return None
    return f"did you mean {' or '.join(f'`{candidate}`' for candidate in near)}?"
