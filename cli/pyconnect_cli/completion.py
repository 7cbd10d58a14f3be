"""Answers of the hidden command `__complete`: the words that a shell may offer.

`pyconnect __complete WORD…` gets the words after `pyconnect`. The user is typing the last word,
which may be empty. The command prints one offer a line, `WORD<TAB>HELP`, or `:files` if the shell
is to complete names of files. The three shell scripts beside this module pass the words and choose
the offers that begin with the last word.
Completion never fails and never asks a question: after an error the shell has no offers.

Names of the cluster come within 250 ms. An answer is kept for 30 s, so that a second Tab costs no
request. Without an answer in time the shell gets the kept names of any age.

The Tab key reads no secret: it fetches no password, token or private key, and runs no command for
one. It does not ask a cluster that wants credentials; the names of such a cluster are those that
commands saw last.

Neither the parser nor httpx is imported: words come from a table (`parsing.nouns`), and settings
and a socket are only for names of the cluster.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from pyconnect_cli.parsing.nouns import NOUNS, KnownCommand, find_noun, known_commands
from pyconnect_cli.parsing.options import GLOBAL_OPTIONS, OptionSpec

if TYPE_CHECKING:
    from pyconnect_cli.rest.endpoint import Endpoint
    from pyconnect_cli.settings.resolved import Settings

FILES = ":files"
SETTINGS_OF_NAMES = frozenset({"--url", "--context", "--config"})
"""Options that decide which cluster is asked for names."""
NAMES_OF_ARGUMENT = {
    "NAME": "connectors",
    "CONNECTOR": "connectors",
    "SRC": "connectors",
    "CONNECTOR/TASK": "tasks",
    "PLUGIN": "plugins",
    "LOGGER": "loggers",
    "CONTEXT": "contexts",
}
"""The kind of names by the metavar of a verb's first argument."""
NEW_NAMES = frozenset({"connectors create"})
NAMES_OF_OPTION = {"--context": "contexts", "--to-context": "contexts", "--connector": "connectors"}


class Offer(NamedTuple):
    """A word that can be typed here, and one line about it."""

    word: str
    help: str = ""


HELP = OptionSpec(("--help",), "show the help page")


def print_offers(words: Sequence[str]) -> int:
    """Print the offers; always return 0, because a shell would show an error."""
    with contextlib.suppress(Exception):
        for offer in offers(words):
            if offer.word.isprintable():
                print(offer.word, offer.help, sep="\t")  # noqa: T201
    return 0


def offers(words: Sequence[str]) -> Iterator[Offer]:
    """Yield the words that can replace the last word."""
    *before, current = words or [""]
    line = TypedWords()
    for word in before:
        line.read(word)
    flag, equals, _ = current.partition("=")
    if line.open_option is not None:
        yield from line.values_of(line.open_option)
    elif current.startswith("--") and equals:
        option = line.option(flag)
        for value in line.values_of(option) if option else ():
            yield value if value.word == FILES else Offer(f"{flag}={value.word}", value.help)
    elif current.startswith("-") and not line.only_arguments:
        for option in line.options:
            yield from (Offer(known, option.help) for known in option.flags)
    else:
        yield from line.words()


class TypedWords:
    """The words that have been typed, read from left to right."""

    def __init__(self) -> None:
        self.path = ""
        self.command: KnownCommand | None = None
        self.settings: dict[str, object] = {}
        self.open_option: OptionSpec | None = None
        self.only_arguments = False

    def read(self, word: str) -> None:
        """Take one complete word."""
        if self.open_option is not None:
            self._keep(self.open_option.flags[0], word)
            self.open_option = None
        elif self.only_arguments:
            pass
        elif word == "--":
            self.only_arguments = True
        elif word.startswith("-"):
            flag, equals, value = word.partition("=")
            option = self.option(flag)
            if option is not None and option.metavar:
                if equals:
                    self._keep(option.flags[0], value)
                else:
                    self.open_option = option
        elif self.command is None:
            if noun := find_noun(word):
                self.command = known_commands()[noun.name]
                self.path = noun.name
        elif verb := self.command.verb(word):
            self.command = self.command.verbs[verb]
            self.path = f"{self.path} {verb}"

    def option(self, flag: str) -> OptionSpec | None:
        """Return the option of the typed command, or the global option, with this flag."""
        return next((option for option in self.options if flag in option.flags), None)

    @property
    def options(self) -> tuple[OptionSpec, ...]:
        """Options of the command that has been typed so far, then the global ones."""
        return (*(self.command.options if self.command else ()), *GLOBAL_OPTIONS, HELP)

    def words(self) -> Iterable[Offer]:
        """Return nouns, verbs, or names of the kind that the verb takes."""
        if self.command is None:
            return [Offer(noun.name, noun.help) for noun in NOUNS]
        if self.command.verbs and not self.only_arguments:
            return [Offer(name, verb.help.rstrip(".")) for name, verb in self.command.verbs.items()]
        return self._named("" if self.path in NEW_NAMES else self.names)

    @property
    def names(self) -> str:
        """The kind of names that the command's first argument takes; empty: none."""
        return NAMES_OF_ARGUMENT.get(self.command.argument, "") if self.command else ""

    def values_of(self, option: OptionSpec) -> Iterable[Offer]:
        if option.metavar in {"FILE", "DIR"}:
            return [Offer(FILES)]
        if kind := NAMES_OF_OPTION.get(option.flags[0]):
            return self._named(kind)
        return [Offer(choice) for choice in option.choices]

    def _named(self, kind: str) -> Iterable[Offer]:
        return [Offer(name) for name in candidates(kind, self.settings)] if kind else []

    def _keep(self, flag: str, value: str) -> None:
        if flag == "--url":
            urls = self.settings.get("url", ())
            assert isinstance(urls, tuple)
            self.settings["url"] = (*urls, value)
        elif flag in SETTINGS_OF_NAMES:
            self.settings[flag.lstrip("-")] = value


CACHE_S = 30.0
DEADLINE_S = 0.25
PATHS = {
    "connectors": "/connectors",
    "tasks": "/connectors?expand=status",
    "plugins": "/connector-plugins?connectorsOnly=false",
    "loggers": "/admin/loggers",
}


def candidates(kind: str, given: Mapping[str, object]) -> list[str]:
    """Return the names, from the cache when they are fresh; `given`: settings by option name."""
    from pathlib import Path

    from pyconnect_cli.settings.contexts import load_config_files
    from pyconnect_cli.settings.resolved import (
        needs_credentials,
        resolve_settings,
        working_directory,
    )

    if kind == "contexts":
        # Contexts come from the files: the settings do not have the context that is being typed.
        named = given.get("config")
        config = Path(str(named)).expanduser() if named else None
        return load_config_files(os.environ, working_directory(), config).context_names()
    from pyconnect_cli.directories import cache_of, read_cache, write_cache

    settings = resolve_settings(given, os.environ, working_directory())
    cache = cache_of(kind, settings.urls, os.environ)
    kept, age_s = read_cache(cache)
    if age_s < CACHE_S or needs_credentials(settings):
        return kept
    from pyconnect_cli.rest.endpoint import ended_after

    try:
        with ended_after(DEADLINE_S, TimeoutError()):
            names = ask(kind, settings)
    except Exception:  # noqa: BLE001 - whatever it was, the older names are what is left
        return kept
    write_cache(cache, names)
    return names


def ask(kind: str, settings: Settings) -> list[str]:
    """Return the names from the first worker that answers; OSError if no worker answers."""
    import base64

    from pyconnect_cli.rest.endpoint import Endpoint, base_url

    endpoint = Endpoint(urls=settings.urls, ca_file=settings.ca_file, insecure=settings.insecure)
    failure: OSError | None = None
    for url in endpoint.urls:
        address, credentials = base_url(url)
        headers = {}
        if credentials is not None:
            given = base64.b64encode(":".join(credentials).encode()).decode()
            headers["Authorization"] = f"Basic {given}"
        try:
            body = get_json(address + PATHS[kind], headers, endpoint)
        except OSError as exc:
            failure = exc
            continue
        return sorted(names_in(kind, body))
    raise failure or OSError("no address")


def get_json(url: str, headers: Mapping[str, str], endpoint: Endpoint) -> object:
    """Return the body of a 200; OSError otherwise.

    HTTP/1.0 has no chunks, and the answer ends with its connection: a library takes longer to
    import than the whole answer may take.
    """
    import socket
    from urllib.parse import urlsplit

    from pyconnect_cli.rest.endpoint import tls_context

    parts = urlsplit(url)
    host, secure = parts.hostname or "", parts.scheme == "https"
    connection = socket.create_connection((host, parts.port or (443 if secure else 80)), DEADLINE_S)
    if secure:
        connection = tls_context(endpoint).wrap_socket(connection, server_hostname=host)
    target = f"{parts.path}?{parts.query}" if parts.query else parts.path
    given = {"Host": parts.netloc, "Accept": "application/json", **headers}
    lines = [f"GET {target} HTTP/1.0", *(f"{name}: {value}" for name, value in given.items())]
    with connection, connection.makefile("rb") as answer:
        connection.sendall("\r\n".join([*lines, "", ""]).encode("latin-1"))
        status, _, _ = answer.readline().partition(b"\r")
        if status.split()[1:2] != [b"200"]:
            raise OSError(status.decode("latin-1"))
        while answer.readline().strip():
            pass
        return json.loads(answer.read())


def names_in(kind: str, body: Any) -> list[str]:
    """Return the names in an answer to the path of their kind."""
    match kind:
        case "tasks":
            tasks = {name: view.get("status", {}).get("tasks", ()) for name, view in body.items()}
            return [f"{name}/{task['id']}" for name, each in tasks.items() for task in each]
        case "plugins":
            return list(dict.fromkeys(str(plugin["class"]) for plugin in body))
        case _:
            return list(map(str, body))
