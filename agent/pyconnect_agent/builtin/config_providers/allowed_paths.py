"""The paths that a provider may read (``allowed.paths``).

Layer: builtin. Corresponds to ``AllowedPaths`` of Kafka, except that symbolic links are resolved
before the check: a link out of an allowed directory does not get around it.
"""

from __future__ import annotations

from pathlib import Path

from pyconnect_api.errors import ConfigException

ALLOWED_PATHS = "allowed.paths"
NOT_ALLOWED = "add it to config.providers.<name>.param.allowed.paths of the worker to allow it"


class AllowedPaths:
    """The list of one provider; without one everything is allowed."""

    def __init__(self, setting: str | None) -> None:
        """Take the comma list; ConfigException for a path that is not absolute or not there."""
        self._roots: tuple[Path, ...] | None = None
        if setting is not None and setting.strip():
            self._roots = tuple(_root(item.strip()) for item in setting.split(","))

    def allowed(self, path: str) -> Path | None:
        """Return the resolved path, None when it lies outside."""
        resolved = Path(path).resolve()
        if self._roots is None or any(resolved.is_relative_to(root) for root in self._roots):
            return resolved
        return None


def _root(text: str) -> Path:
    path = Path(text)
    if not path.is_absolute():
        raise ConfigException(f"Path {text} is not absolute")
    if not path.exists():
        raise ConfigException(f"Path {text} does not exist")
    return path.resolve()
