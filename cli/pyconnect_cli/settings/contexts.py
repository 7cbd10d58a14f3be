"""Context files: named clusters, their addresses and references to their secrets.

Read in order `./pyconnect.toml`, the user's `$XDG_CONFIG_HOME/pyconnect/config.toml`, the
system's. A context is taken whole from the first file that defines it.

    current = "prod"
    [defaults]                      # any option: output, timeout, ...
    [contexts.prod]
    urls = ["https://connect-1:8083", "https://connect-2:8083"]   # tried in order
    username = "ops"
    password_command = "pass connect/prod"     # or password_file, password_env, password
    ca_file = "/etc/ssl/company.pem"           # cert, key, insecure
    kafka = { bootstrap = "broker-1:9092", properties = "/etc/kafka/client.properties" }
    group = "connect-cluster"                  # group.id, which Java workers do not report
    offsets_topic = "connect-offsets"          # offset.storage.topic of Java workers
    inventory = "inventory.toml"               # admin interfaces; for `upgrade`

A directory may belong to another user. Its `pyconnect.toml` may therefore only choose a context and
the format of results. It sets addresses, credentials and confirmations only after `pyconnect config
trust`, which keeps its digest in the user's state directory; until then, and after a change of the
file, a file that sets anything else is refused.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from pyconnect_cli.directories import state_directory, user_directory
from pyconnect_cli.errors import ContextError, NotFound, OutputLost
from pyconnect_cli.parsing.nouns import did_you_mean
from pyconnect_cli.render.streams import write_whole
from pyconnect_cli.rest.masking import mask_text, mask_url

if TYPE_CHECKING:
    from tomlkit import TOMLDocument

Setting = str | int | bool | tuple[str, ...]

PROJECT_FILE = "pyconnect.toml"
LITERAL_SECRETS = ("password", "token")
SECRET_KINDS = ("", "_file", "_command", "_env")
CLUSTER_KEYS = ("group", "offsets_topic", "inventory")
"""Settings of a context about the cluster itself; they are not global options."""
TEXT_KEYS = frozenset(
    {
        "username", "ca_file", "cert", "key", "description", "context",
        "output", "color", "timeout", "request_timeout", "columns", "config",
        "kafka_bootstrap", "kafka_properties", *CLUSTER_KEYS,
        *(secret + kind for secret in LITERAL_SECRETS for kind in SECRET_KINDS),
    }
)  # fmt: skip
PRESENTATION_KEYS = frozenset(
    {"output", "columns", "no_headers", "color", "no_color", "quiet", "verbose"}
)
SWITCH_KEYS = frozenset({"insecure", "no_headers", "yes", "quiet", "debug", "no_color"})
PATH_KEYS = frozenset(
    {"ca_file", "cert", "key", "password_file", "token_file", "kafka_properties", "inventory"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigFile:
    """A parsed file; `contexts` and `defaults` hold settings by option name."""

    path: Path
    origin: str
    current: str | None = None
    defaults: Mapping[str, Setting] = field(default_factory=dict)
    contexts: Mapping[str, Mapping[str, Setting]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigFiles:
    """The files of one command in their order of precedence."""

    user_path: Path
    files: tuple[ConfigFile, ...]

    def context_names(self) -> list[str]:
        return sorted({name for file in self.files for name in file.contexts})

    def find_context(self, name: str) -> tuple[ConfigFile, Mapping[str, Setting]]:
        """Return the file that defines a context, and its settings; NotFound otherwise."""
        for file in self.files:
            if name in file.contexts:
                return file, file.contexts[name]
        raise NotFound(
            f"context `{name}` is not defined",
            hint=did_you_mean(name, self.context_names())
            or f"define it: pyconnect context set {name} --url http://host:8083",
        )

    def current(self) -> tuple[ConfigFile, str] | None:
        """Return the first file that names a current context, and the name."""
        for file in self.files:
            if file.current:
                return file, file.current
        return None


def user_config_path(environ: Mapping[str, str]) -> Path:
    """Return the user's file: `PYCONNECT_CONFIG`, XDG_CONFIG_HOME, or the platform's directory."""
    if override := environ.get("PYCONNECT_CONFIG"):
        return Path(override).expanduser()
    return user_directory("config", environ) / "config.toml"


def load_config_files(
    environ: Mapping[str, str], directory: Path, user_path: Path | None = None
) -> ConfigFiles:
    """Read the files that exist; ContextError names the file and the fault."""
    user = user_path or user_config_path(environ)
    files = []
    project = directory / PROJECT_FILE
    if project.is_file() and not (user.is_file() and project.samefile(user)):
        content = read_content(project)
        file = parse_config_file(project, "project file", content)
        # All keys but `current` and the format of results need trust.
        defaults = sorted(file.defaults.keys() - PRESENTATION_KEYS)
        if decided := [
            *(f"defaults.{key}" for key in defaults),
            *(f"contexts.{name}" for name in sorted(file.contexts)),
        ]:
            require_trust(project, content, decided, environ)
        files.append(file)
    directories = environ.get("XDG_CONFIG_DIRS") or "/etc/xdg"
    system = Path(directories.split(":", maxsplit=1)[0]) / "pyconnect" / "config.toml"
    places = ((user, "user file"), (system, "system file"))
    files += [read_config_file(path, origin) for path, origin in places if path.is_file()]
    return ConfigFiles(user_path=user, files=tuple(files))


def read_config_file(path: Path, origin: str) -> ConfigFile:
    """Read one file; refuse secrets that others can read."""
    return parse_config_file(path, origin, read_content(path))


def read_content(path: Path) -> bytes:
    """Return a file's bytes; they are read once, so that the trusted bytes are the parsed ones."""
    try:
        return path.read_bytes()
    except OSError as exc:
        raise ContextError(f"{path}: cannot be read: {exc.strerror}") from exc


def parse_config_file(path: Path, origin: str, content: bytes) -> ConfigFile:
    """Parse the bytes of a file; refuse secrets that others can read."""
    import tomllib

    try:
        document = tomllib.loads(content.decode("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as exc:
        raise ContextError(f"{path}: is not valid TOML: {exc}") from exc
    contexts = document.get("contexts", {})
    if not isinstance(contexts, dict):
        raise ContextError(f"{path}: `contexts` must be a table of tables")
    for name in contexts:
        _require_printable(name, path)
    value = document.get("current")
    if value is not None and not isinstance(value, str):
        raise ContextError(f"{path}: `current` must be a text")
    if value is not None:
        _require_printable(value, path)
    file = ConfigFile(
        path=path,
        origin=origin,
        current=value,
        defaults=_settings(document.get("defaults", {}), path, "defaults"),
        contexts={
            name: _settings(table, path, f"contexts.{name}") for name, table in contexts.items()
        },
    )
    tables = (file.defaults, *file.contexts.values())
    holds_secret = any(key in table for table in tables for key in LITERAL_SECRETS)
    mode = stat.S_IMODE(file.path.stat().st_mode)
    if holds_secret and os.name == "posix" and mode & stat.S_IROTH:
        raise ContextError(
            f"{file.path}: contains a secret, and every user of this machine can read it",
            hint=f"chmod 600 {file.path}, or use password_file or password_command",
        )
    return file


def _settings(table: object, path: Path, where: str) -> dict[str, Setting]:
    if not isinstance(table, dict):
        raise ContextError(f"{path}: `{where}` must be a table")
    settings: dict[str, Setting] = {}
    for key, value in table.items():
        _require_printable(key, path)
        if key == "kafka" and isinstance(value, dict):
            for inner, inner_value in value.items():
                name = f"kafka_{inner}"
                settings[name] = _setting(name, inner_value, path, f"{where}.kafka.{inner}")
        else:
            name = "url" if key == "urls" else key
            settings[name] = _setting(name, value, path, f"{where}.{key}")
    return settings


def _require_printable(text: str, path: Path) -> None:
    """Refuse texts with control sequences, which a terminal would interpret."""
    if not text.isprintable():
        raise ContextError(f"{path}: {text!a} contains characters that do not print")


def _setting(key: str, value: object, path: Path, where: str) -> Setting:
    if key == "url":
        urls = [value] if isinstance(value, str) else value
        if isinstance(urls, list) and urls and all(isinstance(url, str) for url in urls):
            for url in urls:
                _require_printable(url, path)
            return tuple(urls)
        raise ContextError(f"{path}: `{where}` must be a text or a list of texts")
    if key in SWITCH_KEYS:
        if isinstance(value, bool):
            return value
        raise ContextError(f"{path}: `{where}` must be true or false")
    if key == "verbose":
        if isinstance(value, int):
            return value
        raise ContextError(f"{path}: `{where}` must be a number")
    if key not in TEXT_KEYS:
        known = sorted({*TEXT_KEYS, *SWITCH_KEYS, "urls", "kafka", "verbose"})
        hint = did_you_mean(key, known) or f"known: {', '.join(known)}"
        raise ContextError(f"{path}: `{where}` is not a known setting", hint=hint)
    if not isinstance(value, str):
        raise ContextError(f"{path}: `{where}` must be a text")
    if key not in LITERAL_SECRETS:
        _require_printable(value, path)
    if key in PATH_KEYS:
        return str(path.parent / Path(value).expanduser())
    return value


def shown_setting(key: str, value: Setting) -> str:
    """Return a setting as a text without secrets."""
    if key in LITERAL_SECRETS:
        return "(a value)"
    if isinstance(value, tuple):
        return ", ".join(map(mask_url, value))
    return mask_text(str(value))


def update_user_file(path: Path, change: ConfigChange) -> None:
    """Apply a change to the user's file (mode 0600) and keep its comments."""
    import tomlkit
    from tomlkit.exceptions import ParseError

    try:
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        document = tomlkit.parse(text)
    except ParseError as exc:
        raise ContextError(f"{path}: is not valid TOML: {exc}") from exc
    change.apply(document)
    _write_private(path, tomlkit.dumps(document))


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigChange:
    """A change of a user's file: contexts to merge in or remove, and the current one."""

    contexts: Mapping[str, Mapping[str, Setting]] = field(default_factory=dict)
    remove: tuple[str, ...] = ()
    current: str | None = None

    def apply(self, document: TOMLDocument) -> None:
        """Change the document in place."""
        import tomlkit

        if self.current is not None:
            document["current"] = self.current
        if "contexts" not in document:
            document["contexts"] = tomlkit.table(is_super_table=True)
        tables = document["contexts"]
        if not isinstance(tables, dict):
            raise ContextError("`contexts` must be a table of tables")
        for name in self.remove:
            tables.pop(name, None)
            if document.get("current") == name:
                document.pop("current")
        for name, settings in self.contexts.items():
            if name not in tables:
                tables[name] = tomlkit.table()
            merge_settings(tables[name], settings)
        if not tables:
            document.pop("contexts")


def merge_settings(table: dict[str, object], settings: Mapping[str, Setting]) -> None:
    """Write settings into a context's table; an empty value removes its key."""
    for name, value in settings.items():
        target, key = table, name
        if name.startswith("kafka_"):
            key = name.removeprefix("kafka_")
            kafka = table.setdefault("kafka", {})
            if not isinstance(kafka, dict):
                raise ContextError("`kafka` must be a table")
            target = kafka
        elif name == "url":
            key = "urls"
            table.pop("url", None)
        secret = name.partition("_")[0]
        if secret in LITERAL_SECRETS:
            for kind in SECRET_KINDS:
                target.pop(secret + kind, None)
        if value in {"", ()}:
            target.pop(key, None)
        else:
            target[key] = list(value) if isinstance(value, tuple) else value


def require_trust(
    path: Path, content: bytes, decided: Sequence[str], environ: Mapping[str, str]
) -> None:
    """Raise ContextError unless the user trusts exactly this content.

    `decided` names the keys that need the trust, for the message.
    """
    record = _record(path, environ)
    try:
        recorded: str | None = record.read_text(encoding="utf-8").partition(" ")[0]
    except FileNotFoundError:
        recorded = None
    except (OSError, UnicodeDecodeError) as exc:
        raise ContextError(f"{record}: cannot be read: {exc}") from exc
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
    """Record the digest of a file's content; only its user can read the record (0600)."""
    _write_private(_record(path, environ), f"{_digest(content)}  {path.resolve()}\n")


def _write_private(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_whole(path, text)
    except OSError as exc:
        raise OutputLost(f"{path}: cannot be written: {exc.strerror}") from exc


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


def _record(path: Path, environ: Mapping[str, str]) -> Path:
    """Return the record of one file: each has its own, so that no two runs write the same one."""
    place = hashlib.sha256(str(path.resolve()).encode("utf-8", "surrogateescape")).hexdigest()
    return state_directory(environ) / "trusted" / place


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
