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

httpx is not imported: it alone would take 70 ms.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, NamedTuple

from pyconnect_cli.parsing.nouns import NOUNS, Noun, find_noun
from pyconnect_cli.parsing.options import GLOBAL_OPTIONS
from pyconnect_cli.rest.kept_names import cache_of, read_cache, write_cache
from pyconnect_cli.settings.contexts import load_config_files
from pyconnect_cli.settings.resolved import (
    Settings,
    needs_credentials,
    resolve_settings,
    working_directory,
)

if TYPE_CHECKING:
    from pyconnect_cli.rest.endpoint import Endpoint


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
"""By the metavar of a verb's first argument."""
NEW_NAMES = frozenset({"connectors create"})
NAMES_OF_OPTION = {"--context": "contexts", "--to-context": "contexts", "--connector": "connectors"}


class Offer(NamedTuple):
    """A word that can be typed here, and one line about it."""

    word: str
    help: str = ""


class Option(NamedTuple):
    """An option of a command; `names` is the kind of names that are its values."""

    flags: tuple[str, ...]
    help: str
    takes_value: bool
    choices: tuple[str, ...] = ()
    names: str = ""
    files: bool = False


GLOBAL = tuple(
    Option(
        flags=spec.flags,
        help=spec.help,
        takes_value=bool(spec.metavar),
        choices=spec.choices,
        names=NAMES_OF_OPTION.get(spec.flags[0], ""),
        files=spec.metavar == "FILE",
    )
    for spec in GLOBAL_OPTIONS
)


def print_offers(words: Sequence[str]) -> int:
    """Print the offers; always return 0, because a shell shows anything else."""
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


@dataclass(slots=True)
class TypedWords:
    """The words that have been typed, read from left to right."""

    noun: Noun | None = None
    path: str = ""
    command: Any = None
    settings: dict[str, object] = field(default_factory=dict)
    open_option: Option | None = None
    only_arguments: bool = False

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
            if option is not None and option.takes_value:
                if equals:
                    self._keep(option.flags[0], value)
                else:
                    self.open_option = option
        else:
            self._enter(word)

    def option(self, flag: str) -> Option | None:
        """Return the option that is known here by this flag."""
        return next((option for option in self.options if flag in option.flags), None)

    @property
    def options(self) -> tuple[Option, ...]:
        """Options of the command that has been typed so far, then the global ones."""
        own = () if self.command is None else _options(self.command)
        return (*own, *GLOBAL, Option(("--help",), "show the help page", takes_value=False))

    def words(self) -> Iterable[Offer]:
        """Return nouns, verbs, or names of the kind that the verb takes."""
        if self.noun is None:
            return [Offer(noun.name, noun.help) for noun in NOUNS]
        verbs = _verbs(self.command)
        if verbs and not self.only_arguments:
            return [
                Offer(name, _first_line(verb)) for name, verb in verbs.items() if not verb.hidden
            ]
        if self.noun.name == "help":
            from pyconnect_cli.about.help import SUMMARIES

            return [Offer(topic, text) for topic, text in SUMMARIES.items()]
        return self._named("" if self.path in NEW_NAMES else self.names)

    @property
    def names(self) -> str:
        """The kind of names that the command's first argument takes; empty: none."""
        params = self.command.params if self.command else ()
        metavars = [p.metavar or "" for p in params if p.param_type_name == "argument"]
        return NAMES_OF_ARGUMENT.get(metavars[0].strip("[]…"), "") if metavars else ""

    def values_of(self, option: Option) -> Iterable[Offer]:
        """Return the values of an option."""
        if option.files:
            return [Offer(FILES)]
        if option.names:
            return self._named(option.names)
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

    def _enter(self, word: str) -> None:
        """Go from the root to a noun, from a noun to a verb."""
        from pyconnect_cli.noun_groups import VERB_ALIASES, load_noun

        if self.noun is None:
            self.noun = find_noun(word)
            if self.noun is not None:
                self.command = load_noun(self.noun)
                self.path = self.noun.name
        elif verbs := _verbs(self.command):
            name = word if word in verbs else VERB_ALIASES.get(word, "")
            if name in verbs:
                self.command = verbs[name]
                self.path = f"{self.path} {name}"


def _verbs(command: Any) -> Mapping[str, Any]:
    verbs: Mapping[str, Any] = getattr(command, "commands", {})
    return verbs


def _options(command: Any) -> tuple[Option, ...]:
    """Return own and shared options of a command, without the global ones."""
    everywhere = {spec.flags[0] for spec in GLOBAL_OPTIONS}
    shared = command.shared_options() if hasattr(command, "shared_options") else []
    return tuple(
        Option(
            flags=tuple(sorted((*option.opts, *option.secondary_opts), key=len, reverse=True)),
            help=option.help or "",
            takes_value=not (option.is_flag or option.count),
            choices=tuple(getattr(option, "choices", ()) or getattr(option.type, "choices", ())),
            names=NAMES_OF_OPTION.get(max(option.opts, key=len), ""),
            files=option.metavar in {"FILE", "DIR"},
        )
        for option in [*command.params, *shared]
        if option.param_type_name == "option" and option.opts[0] not in everywhere
    )


def _first_line(command: Any) -> str:
    return (command.help or "").strip().partition("\n")[0].rstrip(".")


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
    if kind == "contexts":
        # Contexts come from the files: the settings do not have the context that is being typed.
        named = given.get("config")
        config = Path(str(named)).expanduser() if named else None
        return load_config_files(os.environ, working_directory(), config).context_names()
    settings = resolve_settings(given, os.environ, working_directory())
    cache = cache_of(kind, settings.urls, os.environ)
    kept, age_s = read_cache(cache)
    if age_s < CACHE_S or needs_credentials(settings):
        return kept
    try:
        with deadline(DEADLINE_S):
            names = ask(kind, settings)
    except Exception:  # noqa: BLE001 - whatever it was, the older names are what is left
        return kept
    write_cache(cache, names)
    return names


@contextlib.contextmanager
def deadline(seconds: float) -> Iterator[None]:
    """Raise TimeoutError in the block when the time is over."""

    def over(_signal: int, _frame: FrameType | None) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, over)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def ask(kind: str, settings: Settings) -> list[str]:
    """Return the names from the first worker that answers; OSError if no worker answers."""
    from pyconnect_cli.rest.endpoint import Endpoint, base_url

    endpoint = Endpoint(urls=settings.urls, ca_file=settings.ca_file, insecure=settings.insecure)
    failure: OSError | None = None
    for url in endpoint.urls:
        address, credentials = base_url(url)
        try:
            body = get_json(address + PATHS[kind], authorization(credentials), endpoint)
        except OSError as exc:
            failure = exc
            continue
        return sorted(NAMES[kind](body))
    raise failure or OSError("no address")


def authorization(credentials: tuple[str, str] | None) -> Mapping[str, str]:
    """Return the header for credentials that are part of an address."""
    import base64

    if credentials is None:
        return {}
    return {"Authorization": f"Basic {base64.b64encode(':'.join(credentials).encode()).decode()}"}


def get_json(url: str, headers: Mapping[str, str], endpoint: Endpoint) -> object:
    """Return the body of a 200; OSError otherwise."""
    from http.client import HTTPConnection, HTTPSConnection
    from urllib.parse import urlsplit

    from pyconnect_cli.rest.endpoint import tls_context

    parts = urlsplit(url)
    connection: HTTPConnection
    if parts.scheme == "https":
        connection = HTTPSConnection(
            parts.netloc, timeout=DEADLINE_S, context=tls_context(endpoint)
        )
    else:
        connection = HTTPConnection(parts.netloc, timeout=DEADLINE_S)
    with contextlib.closing(connection):
        target = f"{parts.path}?{parts.query}" if parts.query else parts.path
        connection.request("GET", target, headers={"Accept": "application/json", **headers})
        response = connection.getresponse()
        if response.status != 200:
            raise OSError(f"HTTP {response.status}")
        return json.loads(response.read())


def _task_names(body: object) -> list[str]:
    assert isinstance(body, dict)
    return [
        f"{name}/{task['id']}"
        for name, view in body.items()
        for task in view.get("status", {}).get("tasks", ())
    ]


def _class_names(body: object) -> list[str]:
    assert isinstance(body, list)
    return list(dict.fromkeys(str(plugin["class"]) for plugin in body))


def _members(body: object) -> list[str]:
    assert isinstance(body, dict | list)
    return [str(name) for name in body]


NAMES: Mapping[str, Callable[[object], list[str]]] = {
    "connectors": _members,
    "tasks": _task_names,
    "plugins": _class_names,
    "loggers": _members,
}
