"""One invocation: the given options, and the settings, client and output made from them.

Commands in messages are completed with the options of this command (`proposer`).
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, TextIO, cast

import typer

from pyconnect_cli.errors import ExitCode, Interrupted, PreconditionFailed, PyconnectError
from pyconnect_cli.parsing.options import GLOBAL_OPTIONS
from pyconnect_cli.render.outcomes import BatchRecord
from pyconnect_cli.render.output import Output, OutputStyle, jq_filter, terminal_width
from pyconnect_cli.render.streams import tell
from pyconnect_cli.render.styles import printable
from pyconnect_cli.rest.endpoint import Budget, Limits
from pyconnect_cli.rest.masking import mask_command
from pyconnect_cli.settings.resolved import (
    NO_ORIGIN,
    Secret,
    Settings,
    colour_wanted,
    resolve_settings,
    working_directory,
)

if TYPE_CHECKING:
    from pyconnect_cli.rest.client import ConnectClient
    from pyconnect_cli.rest.endpoint import Endpoint
    from pyconnect_cli.rest.exchange import Exchange
    from pyconnect_cli.rest.model import ConnectorView, WorkerInfo
    from pyconnect_cli.settings.contexts import ConfigFiles
    from pyconnect_clients.security import Security

CLUSTER_NOUNS = "connectors tasks plugins loggers health info doctor agent"
BROKER_NOUNS = "dlq offsets topics acls transactions upgrade reconcile"
# Patterns as texts are compiled at their first use: few commands need them.
PROPOSED = rf"\bpyconnect (?P<noun>{'|'.join(f'{CLUSTER_NOUNS} {BROKER_NOUNS} context'.split())})\b"
ADDRESSING = (
    "config", "context", "url", "username", "password", "password_file", "password_command",
    "token", "token_file", "token_command", "ca_file", "cert", "key", "insecure",
)  # fmt: skip
BROKERS = ("kafka_bootstrap", "kafka_properties")
WORKER_FACTS = ("--worker-config", "--worker-property", "--super-user", "--principal", "--host")
FACTS_TAKEN = r"\bpyconnect (?:acls (?:check|generate|explain)|upgrade(?: plan| run)?(?= --phase))"
"""Commands that take facts of workers, which are options of these commands only."""

Given = Mapping[str, object]


def proposer(given: Given, arguments: Sequence[str]) -> Callable[[str], str]:
    """Return a function that completes the commands in a text; secrets are masked."""
    facts = []
    for at, word in enumerate(arguments):
        flag, equals, value = word.partition("=")
        if flag in WORKER_FACTS and (equals or at + 1 < len(arguments)):
            facts.append([flag, value if equals else arguments[at + 1]])

    def complete(text: str) -> str:
        if "pyconnect " not in text:
            return text
        text = re.sub(FACTS_TAKEN, lambda found: _joined(found[0], text, found.end(), facts), text)
        return re.sub(
            PROPOSED,
            lambda found: (
                _joined("pyconnect", text, found.end(), _flags(given, found["noun"]))
                + f" {found['noun']}"
            ),
            text,
        )

    return complete


def _joined(command: str, text: str, end: int, words: Sequence[Sequence[str]]) -> str:
    """Return a command with those of the words that it does not have already."""
    rest, _, _ = text[end:].partition(";")
    missing = [word for pair in words if f"{pair[0]} " not in rest for word in pair]
    return f"{command} {mask_command(missing)}" if missing else command


def _flags(given: Given, noun: str) -> list[list[str]]:
    if noun == "context":
        names: tuple[str, ...] = ("config",)
    else:
        names = (*ADDRESSING, *(BROKERS if noun in BROKER_NOUNS else ()))
    options = {option.name: option for option in GLOBAL_OPTIONS}
    found = []
    for name in names:
        value = given.get(name)
        flag = options[name].flags[0]
        if value is True:
            found.append([flag])
        elif value:
            found += [[flag, str(one)] for one in (value if isinstance(value, tuple) else (value,))]
    return found


if TYPE_CHECKING:
    kept = cached_property
else:

    class kept(cached_property):  # noqa: N801 - as the class that it is
        """A cached_property without the lock of Python 3.11, which all instances share.

        With it, one session that waits for a secret or worker would block those of other clusters.
        """

        def __get__(self, instance: object, owner: type | None = None) -> object:
            if instance is None:
                return self
            made = instance.__dict__[self.attrname] = self.func(instance)
            return made


LOOK_S = 2.0
DEAD_S = 60.0


class Session:
    """Settings, client and output of one command; each is made on first use."""

    def __init__(self, environ: Mapping[str, str] | None = None) -> None:
        self.given: dict[str, object] = {}
        self.environ = os.environ if environ is None else environ
        self.arguments: tuple[str, ...] = ()
        self.files: ConfigFiles | None = None
        """The files of contexts, if another session of this command has read them."""
        self.record = BatchRecord()
        self.heading = ""
        """The name of the context in the output of a command that runs on several."""
        self.changes = False
        """Whether the command changes its objects."""
        self.live = False
        """Whether the command owns the whole screen, where a message would destroy the picture."""
        self._clients: list[ConnectClient] = []
        self._further: tuple[str, ...] = ()

    @kept
    def settings(self) -> Settings:
        settings = resolve_settings(self.given, self.environ, working_directory(), self.files)
        for name, secret in (("password", settings.password), ("token", settings.token)):
            if secret and secret.kind == "value" and settings.origins[name] == "flag":
                # The settings are read before the output exists, because they configure it.
                tell(
                    f"warning: other users of this machine can see a {name} on the command line;"
                    f" prefer --{name}-file or --{name}-command"
                )
        return settings

    @kept
    def output(self) -> Output:
        settings = self.settings
        return Output(
            OutputStyle(
                format=settings.output,
                columns=settings.columns,
                headers=not settings.no_headers,
                quiet=settings.quiet,
                jq=None if settings.jq is None else jq_filter(settings.jq),
                colour=colour_wanted(settings, self.environ, terminal=sys.stdout.isatty()),
                error_colour=colour_wanted(settings, self.environ, terminal=sys.stderr.isatty()),
                width=terminal_width(),
                summary=bool(self.given.get("summary_json")),
            ),
            proposer(self.given, self.arguments),
            heading=self.heading,
        )

    @kept
    def client(self) -> ConnectClient:
        """The cluster of the settings, without addresses that did not answer in the last minute."""
        from pyconnect_cli.directories import cache_of, read_cache, write_cache
        from pyconnect_cli.rest.client import ConnectClient
        from pyconnect_cli.rest.exchange import DeadAddresses, Exchange

        dead = DeadAddresses()
        if len(urls := self.endpoint.urls) > 1:
            cache = cache_of("dead", urls, self.environ)
            addresses, age_s = read_cache(cache)
            dead = DeadAddresses(addresses if age_s < DEAD_S else (), partial(write_cache, cache))
        exchange = Exchange(
            self.endpoint,
            verbosity=self.settings.verbose,
            budget=self.budget,
            notice=self._notice,
            dead=dead,
        )
        client = ConnectClient(exchange, on_views=self._keep_names)
        self._clients.append(client)
        return client

    @kept
    def worker(self) -> WorkerInfo:
        """Version and Kafka cluster of the worker that answers first."""
        return self.client.worker_info()

    @kept
    def budget(self) -> Budget:
        """The time of the whole run, from the first use of this property."""
        return Budget(self.settings.timeout_s)

    @kept
    def kafka_security(self) -> Security:
        """Security of Kafka clients; settings of the file without effect are reported once."""
        from pyconnect_cli.settings.given_files import read_security
        from pyconnect_clients.security import Security

        path = self.settings.kafka_properties
        if not path:
            return Security()
        security = read_security(path)
        if unused := security.without_effect:
            self.output.warning(f"{path}: settings without effect here: {', '.join(unused)}")
        return security

    @kept
    def endpoint(self) -> Endpoint:
        """Addresses and credentials of the workers. Secrets are fetched here, once."""
        from pyconnect_cli.rest.endpoint import Endpoint

        settings = self.settings
        named = () if settings.origins["url"] == NO_ORIGIN and self._further else settings.urls
        admins: Mapping[str, str] = {}
        if settings.inventory:
            from pyconnect_cli.settings.given_files import read_inventory

            admins = read_inventory(Path(settings.inventory)).admin_interfaces()
        return Endpoint(
            urls=(*named, *(url for url in self._further if url not in named)),
            admins=admins,
            username=settings.username,
            password=self._revealed(settings.password),
            token=self._revealed(settings.token),
            ca_file=settings.ca_file,
            cert=settings.cert,
            key=settings.key,
            insecure=settings.insecure,
            limits=settings.limits,
        )

    def _revealed(self, secret: Secret | None) -> str | None:
        return secret.reveal(self.environ, self.settings.timeout_s) if secret else None

    def also_reach(self, urls: Sequence[str]) -> None:
        """Reach the cluster through these addresses too; before the first request."""
        self._further = tuple(urls)

    def allow_for(self, objects: int) -> None:
        """Add time for each object of a batch, unless the user has set the run's time."""
        settings = self.settings
        if settings.origins["timeout"] == NO_ORIGIN:
            self.budget.renew(settings.timeout_s + objects * settings.request_timeout_s)

    @contextmanager
    def second_look(self) -> Iterator[ConnectClient]:
        """Yield a client with a little time of its own, to read the state after a change."""
        from pyconnect_cli.rest.client import ConnectClient
        from pyconnect_cli.rest.exchange import Exchange

        endpoint = replace(self.endpoint, limits=Limits(run_s=LOOK_S, request_s=LOOK_S))
        with ConnectClient(Exchange(endpoint, verbosity=self.settings.verbose)) as client:
            yield client

    def _keep_names(self, views: Mapping[str, ConnectorView]) -> None:
        """Keep names for the Tab key, which does not ask clusters that require credentials."""
        from pyconnect_cli.directories import cache_of, write_cache
        from pyconnect_cli.settings.resolved import needs_credentials

        if not needs_credentials(self.settings):
            return
        tasks = [
            f"{name}/{task.id}"
            for name, view in views.items()
            for task in (view.status.tasks if view.status else ())
        ]
        for kind, names in (("connectors", list(views)), ("tasks", tasks)):
            write_cache(cache_of(kind, self.settings.urls, self.environ), names)

    def _notice(self, text: str) -> None:
        if not self.live:
            self.output.message(text)

    def exchange_with(self, url: str) -> Exchange:
        """Return an exchange with one worker only, which may be outside the addresses in force."""
        return self.client.exchange.only(url)

    def client_of(self, url: str) -> ConnectClient:
        """Return a client of one worker only; it is closed with the session."""
        from pyconnect_cli.rest.client import ConnectClient

        client = ConnectClient(self.exchange_with(url))
        self._clients.append(client)
        return client

    def unwritten(self) -> OSError | None:
        """Return why results could not be printed; None if they were, or if the reader has left."""
        output: Output | None = self.__dict__.get("output")
        fault = None if output is None else output.unwritten
        return None if isinstance(fault, BrokenPipeError) else fault

    def close(self) -> None:
        for client in self._clients:
            client.close()

    def ends_with_plan(self, *, changes: bool) -> bool:
        """Return whether --dry-run was given; with --exit-code, changes are then exit 1."""
        dry_run = bool(self.given.get("dry_run"))
        if dry_run and changes and self.given.get("exit_code"):
            raise PyconnectError("", exit_code=ExitCode.NEGATIVE)
        return dry_run

    @property
    def interactive(self) -> bool:
        return sys.stdin.isatty() and sys.stderr.isatty()

    def confirm(self, question: str) -> None:
        """Return when the user agrees; raise PreconditionFailed (exit 9) otherwise."""
        self.changes = True
        if self.settings.yes:
            return
        if not self.interactive:
            raise PreconditionFailed(
                "nothing was done: a confirmation is needed and there is no terminal",
                hint=f"to confirm, run: {self.command_line('--yes')}",
            )
        try:
            with redirect_stderr(cast("TextIO", _OwnWords(sys.stderr))):
                agreed = typer.confirm(printable(question), default=False, err=True)
        except typer.Abort:
            tell("")  # the cursor is still behind the question
            raise Interrupted("interrupted: nothing was done") from None
        if not agreed:
            raise PreconditionFailed("nothing was done")
        self.renew_time()

    def renew_time(self) -> None:
        """Give requests their whole `--timeout` again after a question or a planned wait."""
        self.budget.renew()

    def command_line(self, *more: str) -> str:
        """Return the command as typed with `more` options, secrets masked."""
        words = ["pyconnect", *self.arguments]
        end = words.index("--") if "--" in words else len(words)
        return mask_command([*words[:end], *more, *words[end:]])


class _OwnWords:
    """Standard error for a question of the parser's library, with our text for a wrong answer."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        return self._stream.write(text.replace("Error: invalid input", "error: answer y or n"))

    def __getattr__(self, name: str) -> object:
        return getattr(self._stream, name)


def session_of(context: typer.Context) -> Session:
    """Return the session of a command's context; contexts inherit it from the root's."""
    session = context.obj
    if not isinstance(session, Session):
        session = Session()
        context.find_root().obj = session
        context.obj = session
    return session


# Settings that all clusters of a command share. All others, such as credentials, belong to the
# first cluster and must not reach the second one.
OF_EVERY_CLUSTER = frozenset(
    {
        "output", "columns", "no_headers", "timeout", "request_timeout", "yes", "quiet",
        "verbose", "debug", "color", "no_color", "jq", "config",
    }
)  # fmt: skip
SECRET_VARIABLES = {"PYCONNECT_PASSWORD_ENV", "PYCONNECT_TOKEN_ENV"}


def session_of_context(session: Session, name: str) -> Session:
    """Return a session with another cluster: addresses, credentials and brokers are its own."""
    of_cluster = [option for option in GLOBAL_OPTIONS if option.name not in OF_EVERY_CLUSTER]
    variables = {option.env for option in of_cluster} | SECRET_VARIABLES
    other = Session({k: v for k, v in session.environ.items() if k not in variables})
    names = {option.name for option in of_cluster}
    other.given = {k: v for k, v in session.given.items() if k not in names} | {"context": name}
    other.arguments = session.arguments
    other.files = session.settings.files
    other.live = session.live
    other.budget = session.budget
    return other
