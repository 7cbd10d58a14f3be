"""The user's trust in project files: the digest of each is kept in the user's state directory.

A directory may belong to another user. Its `pyconnect.toml` may therefore only choose a context and
the format of results; it sets addresses, credentials and confirmations only after
`pyconnect config trust`. A file that has changed since then is not trusted.
"""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from pyconnect_cli.errors import ContextError, OutputLost
from pyconnect_cli.render.whole_files import write_whole
from pyconnect_cli.settings.state_directory import state_directory


def require_trust(
    path: Path, content: bytes, decided: Sequence[str], environ: Mapping[str, str]
) -> None:
    """Raise ContextError unless the user trusts exactly this content.

    `decided` names the keys that need the trust, for the message.
    """
    recorded = _recorded_digest(path, environ)
    if recorded == _digest(content):
        return
    reason = "is not trusted" if recorded is None else "has changed since it was trusted"
    raise ContextError(
        f"{path}: {reason}, so it may not set {', '.join(decided)}",
        hint="without trust a project file may only set `current` and the format of"
        " results; read the file, then trust it: pyconnect config trust"
        f" {shlex.quote(str(path))}",
    )


def trust(path: Path, content: bytes, environ: Mapping[str, str]) -> None:
    """Record the digest of a file's content, for its user only (0600)."""
    record = _record(path, environ)
    try:
        record.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_whole(record, f"{_digest(content)}  {path.resolve()}\n")
    except OSError as exc:
        raise OutputLost(f"{record}: cannot be written: {exc.strerror}") from exc


def withdraw_trust(path: Path, environ: Mapping[str, str]) -> bool:
    """Remove the record of a file; return whether there was one."""
    record = _record(path, environ)
    try:
        record.unlink()
    except FileNotFoundError:
        return False
    except OSError as exc:
        raise ContextError(f"{record}: cannot be removed: {exc.strerror}") from exc
    return True


def _recorded_digest(path: Path, environ: Mapping[str, str]) -> str | None:
    try:
        recorded = _record(path, environ).read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as exc:
        raise ContextError(f"{_record(path, environ)}: cannot be read: {exc}") from exc
    return recorded.partition(" ")[0]


def _record(path: Path, environ: Mapping[str, str]) -> Path:
    """Return the record of one file: one for each place, so that no two runs write the same."""
    place = hashlib.sha256(str(path.resolve()).encode("utf-8", "surrogateescape")).hexdigest()
    return state_directory(environ) / "trusted" / place


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
