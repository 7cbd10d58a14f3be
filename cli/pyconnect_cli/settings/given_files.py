"""Files that a user names; UsageError names a file that cannot be read, and the reason.

The inventory file has the workers, and the commands that stop, change and start them:

group = "connect-cluster"
offsets_topic = "connect-offsets" # of Java workers; searched on their way down
worker_configs = ["worker.properties"]  # copies of Java workers' files, as --worker-config
[commands]                    # argv, no shell; {host} {port} {url} {phase} {run_id} are filled in
configure = ["ssh", "{host}", "set-connect-phase", "{phase}"]
restart = ["ssh", "{host}", "sudo", "systemctl", "restart", "connect"]
show = ["ssh", "{host}", "sed -n s/^exactly.once.source.support=//p /etc/connect.properties"]
stop, start                   # for --full-stop; and instead of restart
replace                       # for --hard: other software, started
timeout = "3m"                # of each command
[[workers]]
url = "http://connect-1:8083"     # as the worker advertises it
address = "http://10.0.0.5:8083"  # where to reach it from here, if it is elsewhere
admin = "http://10.0.0.5:8084"    # an agent's admin.listeners
commands.restart = ["…"]          # of this worker alone
"""

from __future__ import annotations

import string
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from pyconnect_cli.errors import UsageError
from pyconnect_cli.parsing.values import parse_duration
from pyconnect_cli.render.streams import read_stdin
from pyconnect_clients.errors import ClientPropertyError

if TYPE_CHECKING:
    from pyconnect_clients.security import Security

COMMANDS = ("configure", "restart", "stop", "start", "show", "replace")
PLACES = ("host", "port", "url", "phase", "run_id")
DEFAULT_TIMEOUT_S = 180.0

Argv = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Commands:
    """Templates by name, for one worker."""

    templates: Mapping[str, Argv] = field(default_factory=dict)
    timeout_s: float = DEFAULT_TIMEOUT_S

    @property
    def can_change(self) -> bool:
        """Whether these commands suffice to change a worker's phase."""
        return bool(self.restart_names) and "configure" in self.templates

    @property
    def restart_names(self) -> tuple[str, ...]:
        """The commands that make a restart, in order; empty if the worker cannot be restarted."""
        if "restart" in self.templates:
            return ("restart",)
        both = ("stop", "start")
        return both if all(name in self.templates for name in both) else ()

    def argv(self, name: str, url: str, *, phase: str, run_id: str) -> list[str]:
        """Fill in a template; other braces stay as they are."""
        parts = urlsplit(url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
        values = {
            "host": parts.hostname or "",
            "port": str(port),
            "url": url,
            "phase": phase,
            "run_id": run_id,
        }
        filled = []
        for word in self.templates[name]:
            text = word
            for place, value in values.items():
                text = text.replace(f"{{{place}}}", value)
            filled.append(text)
        return filled


@dataclass(frozen=True, slots=True, kw_only=True)
class Inventory:
    """An inventory; `workers`: their advertised URLs, empty when the file names none."""

    group: str | None = None
    offsets_topic: str | None = None
    worker_configs: tuple[str, ...] = ()
    workers: tuple[str, ...] = ()
    addresses: Mapping[str, str] = field(default_factory=dict)
    admins: Mapping[str, str] = field(default_factory=dict)
    common: Commands = Commands()
    own: Mapping[str, Commands] = field(default_factory=dict)

    def commands(self, url: str) -> Commands:
        return self.own.get(url, self.common)

    def address(self, url: str) -> str:
        return self.addresses.get(url, url)

    def admin(self, url: str) -> str:
        return self.admins.get(url, self.address(url))

    def admin_interfaces(self) -> dict[str, str]:
        """Return the admin addresses by REST address, both the advertised and the reachable one."""
        found = dict(self.admins)
        return found | {self.address(url): admin for url, admin in found.items()}


def read_inventory(path: Path) -> Inventory:
    """Read an inventory file; UsageError names a fault in it."""
    try:
        document = tomllib.loads(path.read_text("utf-8"))
    except OSError as exc:
        raise UsageError(f"{path}: cannot be read: {exc.strerror}") from exc
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as exc:
        raise UsageError(f"{path}: is not TOML: {exc}") from exc
    try:
        known = ("group", "offsets_topic", "worker_configs", "commands", "workers")
        _only(document, known, "the file")
        files = document.get("worker_configs", [])
        if not isinstance(files, list):
            raise TypeError('worker_configs: write a list, as ["worker.properties"]')
        common = _commands(document.get("commands", {}), Commands(), "commands")
        urls: list[str] = []
        addresses: dict[str, str] = {}
        admins: dict[str, str] = {}
        own: dict[str, Commands] = {}
        workers = document.get("workers", [])
        if not isinstance(workers, list):
            raise TypeError("workers: write [[workers]]")
        for worker in workers:
            _only(worker, ("url", "address", "admin", "commands"), "a worker")
            url = str(worker["url"]).rstrip("/")
            urls.append(url)
            for name, into in (("address", addresses), ("admin", admins)):
                if name in worker:
                    into[url] = str(worker[name]).rstrip("/")
            if "commands" in worker:
                own[url] = _commands(worker["commands"], common, f"{url}: commands")
        return Inventory(
            group=_text(document, "group"),
            offsets_topic=_text(document, "offsets_topic"),
            worker_configs=tuple(str(path.parent / str(file)) for file in files),
            workers=tuple(urls),
            addresses=addresses,
            admins=admins,
            common=common,
            own=own,
        )
    except (ValueError, TypeError, KeyError) as exc:
        detail = f"`{exc.args[0]}` is missing" if isinstance(exc, KeyError) else str(exc)
        raise UsageError(f"{path}: {detail}") from exc


def _text(document: Mapping[str, object], name: str) -> str | None:
    return str(document[name]) if name in document else None


def _commands(value: object, base: Commands, what: str) -> Commands:
    _only(value, (*COMMANDS, "timeout"), what)
    assert isinstance(value, dict)
    templates = dict(base.templates)
    timeout_s = base.timeout_s
    for name, argv in value.items():
        if name == "timeout":
            timeout_s = parse_duration(str(argv), what=f"{what}: timeout")
            continue
        if not isinstance(argv, list) or not argv or not all(isinstance(a, str) for a in argv):
            raise TypeError(f'{what}: {name} must be a list of words, as ["ssh", "{{host}}", "…"]')
        for word in argv:
            _check_places(word, f"{what}: {name}")
        templates[name] = tuple(argv)
    return Commands(templates=templates, timeout_s=timeout_s)


def _check_places(word: str, what: str) -> None:
    """Raise ValueError for a misspelt name in braces, which would be passed on unchanged.

    Braces of a shell, with spaces or after a $, are allowed.
    """
    for start in range(len(word)):
        if word[start] != "{":
            continue
        name, closed, _ = word[start + 1 :].partition("}")
        plain = bool(name) and set(name) <= {*string.ascii_lowercase, "_"}
        if closed and plain and name not in PLACES and word[max(start - 1, 0)] != "$":
            raise ValueError(f"{what}: {{{name}}} is unknown; use {', '.join(PLACES)}")


def _only(value: object, names: tuple[str, ...], what: str) -> None:
    if not isinstance(value, dict):
        raise TypeError(f"{what}: must be a table")
    if unknown := sorted(set(value) - set(names)):
        raise ValueError(f"{what}: `{unknown[0]}` is unknown; use {', '.join(names)}")


def read_given(place: str) -> tuple[str, str]:
    """Return a file's text and its name for messages; `-` is stdin."""
    shown = "stdin" if place == "-" else place
    try:
        if place == "-":
            return read_stdin(), shown
        return Path(place).expanduser().read_text("utf-8-sig"), shown
    except OSError as exc:
        raise UsageError(f"{shown}: cannot be read: {exc.strerror}") from exc
    except UnicodeDecodeError as exc:
        raise UsageError(f"{shown}: is not UTF-8 text: {exc.reason}") from exc


def yaml_documents(text: str, place: str) -> list[object]:
    """Return the documents of a YAML text, empty ones left out."""
    import yaml

    try:
        return [document for document in yaml.safe_load_all(text) if document is not None]
    except (yaml.YAMLError, ValueError, RecursionError) as exc:
        raise UsageError(f"{place}: is not YAML: {' '.join(str(exc).split())}") from exc


def parse_properties(text: str, place: str) -> dict[str, str]:
    import javaproperties

    try:
        return dict(javaproperties.loads(text))
    except ValueError as exc:
        raise UsageError(f"{place}: is not a properties file: {exc}") from exc


def worker_properties(path: str) -> dict[str, str]:
    text, shown = read_given(path)
    return parse_properties(text, shown)


def read_security(path: str) -> Security:
    """Return the security settings of a file, with key stores read; UsageError names a fault."""
    # Not with the module: they take long to import, and an inventory does not need them.
    from pyconnect_clients.key_stores import with_stores_read
    from pyconnect_clients.properties_file import read_client_properties
    from pyconnect_clients.security import parse_security, refuse_other_names

    with property_errors_translated():
        properties = read_client_properties(path)
        refuse_other_names(properties)
        return with_stores_read(parse_security(properties))


@contextmanager
def property_errors_translated() -> Iterator[None]:
    """Raise an error of a property as UsageError."""
    try:
        yield
    except ClientPropertyError as exc:
        raise UsageError(f"Kafka client properties: {exc.statement}", hint=exc.way_out) from exc
