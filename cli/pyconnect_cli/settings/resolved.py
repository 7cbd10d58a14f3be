"""Every setting of one command with its origin: flag, variable, project, context, user, system.

Precedence, first wins: flags; `PYCONNECT_*`; `./pyconnect.toml`'s defaults; the context; the
user's defaults; the system's. A project's file that the user does not trust sets only the format of
results. A secret stays a reference until a request needs it.
"""

import os
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from signal import SIGKILL
from typing import Literal

from pyconnect_cli.errors import ContextError, UsageError
from pyconnect_cli.parsing.options import COLOURS, GLOBAL_OPTIONS, OUTPUT_FORMATS
from pyconnect_cli.parsing.values import parse_duration
from pyconnect_cli.rest.endpoint import DEFAULT_REQUEST_S, DEFAULT_RUN_S, Limits
from pyconnect_cli.settings.contexts import LITERAL_SECRETS, ConfigFiles, Setting, load_config_files

DEFAULT_URL = "http://localhost:8083"
SECRET_COMMAND_TIMEOUT_S = 30.0
NO_ORIGIN = "default"

SecretKind = Literal["value", "file", "command", "env"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Secret:
    """A reference to a secret; `reveal` fetches it. Its text never has the secret itself."""

    kind: SecretKind
    reference: str = field(repr=False)
    origin: str

    def describe(self) -> str:
        """Return the reference; for a literal secret a text without it."""
        return "(a value)" if self.kind == "value" else f"{self.kind}: {self.reference}"

    def reveal(self, environ: Mapping[str, str], within_s: float) -> str:
        """Return the secret; ContextError names the reference that failed, never its output.

        A command has `within_s`, at most 30 s; then it is killed with its children.
        """
        match self.kind:
            case "value":
                return self.reference
            case "env":
                if self.reference not in environ:
                    raise ContextError(f"variable {self.reference} is not set ({self.origin})")
                return environ[self.reference]
            case "file":
                try:
                    lines = Path(self.reference).expanduser().read_text("utf-8").splitlines()
                except OSError as exc:
                    raise ContextError(
                        f"{self.reference}: cannot be read: {exc.strerror} ({self.origin})"
                    ) from exc
                if not lines:
                    raise ContextError(f"{self.reference}: is empty ({self.origin})")
                return lines[0]
            case "command":
                return self._run_command(min(within_s, SECRET_COMMAND_TIMEOUT_S))

    def _run_command(self, within_s: float) -> str:
        import atexit
        import shlex
        import subprocess  # not for the Tab key

        try:
            process = subprocess.Popen(
                shlex.split(self.reference),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                start_new_session=True,
            )
        except (OSError, ValueError) as exc:
            raise ContextError(f"`{self.reference}` failed: {exc} ({self.origin})") from exc

        def end() -> None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, SIGKILL)

        # `fleet` and `top` may end while this thread waits; the command must not outlive them.
        atexit.register(end)
        try:
            output, _ = process.communicate(timeout=within_s)
        except subprocess.TimeoutExpired:
            raise ContextError(
                f"`{self.reference}` has not ended within {within_s:g}s ({self.origin})",
                hint="run the command by hand: it must print the secret and end, without a question"
                " on the terminal",
            ) from None
        except ValueError as exc:
            raise ContextError(f"`{self.reference}` failed: {exc} ({self.origin})") from exc
        finally:
            if process.returncode is None:
                end()
                process.wait()
            atexit.unregister(end)
        if process.returncode != 0 or not output:
            raise ContextError(
                f"`{self.reference}` ended with code {process.returncode} and"
                f" {'output' if output else 'no output'} ({self.origin})",
                hint="run the command by hand to see why",
            )
        return output.splitlines()[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of a command; `origins` names the origin of each value."""

    files: ConfigFiles
    context: str | None
    urls: tuple[str, ...]
    output: str
    columns: tuple[str, ...]
    no_headers: bool
    timeout_s: float
    request_timeout_s: float
    yes: bool
    quiet: bool
    verbose: int
    debug: bool
    color: str
    no_color: bool
    jq: str | None
    username: str | None
    password: Secret | None
    token: Secret | None
    ca_file: str | None
    cert: str | None
    key: str | None
    insecure: bool
    kafka_bootstrap: str | None
    kafka_properties: str | None
    group: str | None
    offsets_topic: str | None
    inventory: str | None
    origins: Mapping[str, str]

    @property
    def cluster(self) -> str | None:
        """The context whose addresses are in force; None if they were given in another way."""
        return self.context if self.origins["url"] == f"context {self.context}" else None

    @property
    def limits(self) -> Limits:
        """Time limits of the run and its requests; a given limit holds for all requests."""
        limits = Limits(run_s=self.timeout_s, request_s=self.request_timeout_s)
        if self.origins["request_timeout"] == NO_ORIGIN:
            return limits
        return replace(limits, long_request_s=self.request_timeout_s)


@dataclass(frozen=True, slots=True)
class Layer:
    origin: str
    values: Mapping[str, Setting]


def working_directory() -> Path:
    """Return the command's directory, `.` if it was removed."""
    try:
        return Path.cwd()
    except FileNotFoundError:
        return Path()


def resolve_settings(
    given: Mapping[str, object],
    environ: Mapping[str, str],
    directory: Path,
    files: ConfigFiles | None = None,
) -> Settings:
    """Combine flags, variables and files; UsageError or ContextError names the fault.

    `files` None: they are read.
    """
    values: dict[str, Setting] = {}
    for option in GLOBAL_OPTIONS:
        value = given.get(option.name)
        if value is None or value == ():
            continue
        values[option.name] = value if isinstance(value, bool | int | tuple) else str(value)
    flags = Layer("flag", values)
    variables = Layer("environment", _variable_values(environ))
    config = flags.values.get("config") or variables.values.get("config")
    user_path = Path(str(config)).expanduser() if config else None
    if user_path and flags.values.get("config") and not user_path.exists():
        raise ContextError(f"{user_path}: no such file (--config)")
    files = files or load_config_files(environ, directory, user_path)
    context, context_layers = _context_layers(files, flags, variables)
    by_origin = {file.origin: Layer(file.origin, file.defaults) for file in files.files}
    layers = [
        flags,
        variables,
        *(by_origin[name] for name in ("project file",) if name in by_origin),
        *context_layers,
        *(by_origin[name] for name in ("user file", "system file") if name in by_origin),
    ]
    return _Resolver(files, context, layers).settings()


class _Resolver:
    """Looks each setting up through the layers and remembers where it was found."""

    def __init__(
        self, files: ConfigFiles, context: tuple[str, str] | None, layers: list[Layer]
    ) -> None:
        self._files = files
        self._context = context
        self._layers = layers
        self._origins: dict[str, str] = {}

    def settings(self) -> Settings:
        context_name = None
        if self._context:
            context_name, self._origins["context"] = self._context
        output = self._choice("output", OUTPUT_FORMATS, "table")
        jq = self._text("jq")
        if jq is not None and output != "json":
            if self._origins["output"] == "flag":
                raise UsageError("--jq selects from JSON", hint="leave -o out, or give -o json")
            output = "json"
        # If one layer has a secret, other layers' secrets do not count: username and token exclude
        # it.
        found: dict[str, Secret | None] = dict.fromkeys(LITERAL_SECRETS)
        for layer in self._layers:
            for name in LITERAL_SECRETS:
                if secret := _secret_of(layer, name):
                    found[name] = secret
                    self._origins[name] = layer.origin
            if any(found.values()):
                break
        password, token = found["password"], found["token"]
        value = self._get("url")
        return Settings(
            files=self._files,
            context=context_name,
            urls=value if isinstance(value, tuple) and value else (DEFAULT_URL,),
            output=output,
            columns=tuple(
                column.strip() for column in (self._text("columns") or "").split(",") if column
            ),
            no_headers=bool(self._get("no_headers")),
            timeout_s=self._seconds("timeout", DEFAULT_RUN_S),
            request_timeout_s=self._seconds("request_timeout", DEFAULT_REQUEST_S),
            yes=bool(self._get("yes")),
            quiet=bool(self._get("quiet")),
            verbose=int(str(self._get("verbose") or 0)),
            debug=bool(self._get("debug")),
            color=self._choice("color", COLOURS, "auto"),
            no_color=bool(self._get("no_color")),
            jq=jq,
            username=self._text("username"),
            password=password,
            token=token,
            ca_file=self._text("ca_file"),
            cert=self._text("cert"),
            key=self._text("key"),
            insecure=bool(self._get("insecure")),
            kafka_bootstrap=self._text("kafka_bootstrap"),
            kafka_properties=self._text("kafka_properties"),
            group=self._text("group"),
            offsets_topic=self._text("offsets_topic"),
            inventory=self._text("inventory"),
            origins=self._origins,
        )

    def _get(self, name: str) -> Setting | None:
        for layer in self._layers:
            if name in layer.values:
                self._origins[name] = layer.origin
                return layer.values[name]
        self._origins[name] = NO_ORIGIN
        return None

    def _choice(self, name: str, known: tuple[str, ...], default: str) -> str:
        text = self._text(name) or default
        # The parser has checked the flag: some commands accept more formats.
        if self._origins[name] != "flag" and text not in known:
            raise UsageError(
                f"{name} `{text}` ({self._origins[name]}) is not one of {', '.join(known)}"
            )
        return text

    def _seconds(self, name: str, default_s: float) -> float:
        text = self._text(name)
        if not text:
            return default_s
        return parse_duration(text, what=f"{name.replace('_', '-')} ({self._origins[name]})")

    def _text(self, name: str) -> str | None:
        value = self._get(name)
        return None if value is None else str(value)


def _secret_of(layer: Layer, name: str) -> Secret | None:
    kinds: tuple[tuple[str, SecretKind], ...] = (
        (name, "value"),
        (f"{name}_file", "file"),
        (f"{name}_command", "command"),
        (f"{name}_env", "env"),
    )
    for key, kind in kinds:
        if key in layer.values:
            return Secret(kind=kind, reference=str(layer.values[key]), origin=layer.origin)
    return None


def _context_layers(
    files: ConfigFiles, flags: Layer, variables: Layer
) -> tuple[tuple[str, str] | None, list[Layer]]:
    """Return the context with the origin of its choice, and the layer of its settings."""
    for layer in (flags, variables):
        if name := layer.values.get("context"):
            chosen, origin = str(name), layer.origin
            break
    else:
        current = files.current()
        if current is None:
            return None, []
        file, chosen = current
        origin = file.origin
    _, values = files.find_context(chosen)
    return (chosen, origin), [Layer(f"context {chosen}", values)]


def _variable_values(environ: Mapping[str, str]) -> dict[str, Setting]:
    values: dict[str, Setting] = {}
    for option in GLOBAL_OPTIONS:
        text = environ.get(option.env)
        if not text:
            continue
        if option.repeatable:
            values[option.name] = tuple(text.replace(",", " ").split())
        elif option.counted:
            if re.fullmatch("[0-9]{1,9}", text.strip()):
                values[option.name] = int(text)
            else:
                values[option.name] = int(_switch(text, option.env))
        elif option.metavar:
            values[option.name] = text
        else:
            values[option.name] = _switch(text, option.env)
    for secret in LITERAL_SECRETS:
        name = f"PYCONNECT_{secret.upper()}_ENV"
        if text := environ.get(name):
            values[f"{secret}_env"] = text
    return values


def _switch(text: str, variable: str) -> bool:
    lowered = text.strip().lower()
    if lowered in {"1", "true", "yes", "on"}:
        return True
    if lowered in {"0", "false", "no", "off"}:
        return False
    raise UsageError(f"{variable}: `{text}` is neither true nor false")


def colour_wanted(settings: Settings, environ: Mapping[str, str], *, terminal: bool) -> bool:
    """Return whether to use colours: a setting, else NO_COLOR, FORCE_COLOR, then the terminal.

    Among settings `--no-color` on the command line comes first, then `color`.
    """
    if settings.no_color and settings.origins.get("no_color") == "flag":
        return False
    if settings.color != "auto":
        return settings.color == "always"
    if settings.no_color or environ.get("NO_COLOR"):
        return False
    if environ.get("FORCE_COLOR"):
        return True
    return terminal and os.name == "posix" and environ.get("TERM") != "dumb"


def needs_credentials(settings: Settings) -> bool:
    """Return whether a request would need a password, a token or a private key."""
    given = (settings.username, settings.password, settings.token, settings.cert, settings.key)
    return any(value is not None for value in given)
