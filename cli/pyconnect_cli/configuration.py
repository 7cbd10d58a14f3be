"""`pyconnect context` and `config`: clusters by name, settings in force, trust in project files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from pyconnect_cli.errors import NotFound, UsageError
from pyconnect_cli.parsing.options import GLOBAL_OPTIONS
from pyconnect_cli.parsing.values import parse_duration
from pyconnect_cli.render.output import key_value_lines
from pyconnect_cli.render.streams import tell
from pyconnect_cli.render.tables import Column
from pyconnect_cli.rest.endpoint import base_url
from pyconnect_cli.rest.masking import mask_text, mask_url
from pyconnect_cli.session import Session, session_of
from pyconnect_cli.settings.contexts import (
    CLUSTER_KEYS,
    LITERAL_SECRETS,
    PATH_KEYS,
    PROJECT_FILE,
    ConfigChange,
    ConfigFiles,
    Setting,
    load_config_files,
    parse_config_file,
    read_config_file,
    read_content,
    shown_setting,
    trust,
    update_user_file,
    withdraw_trust,
)
from pyconnect_cli.settings.resolved import NO_ORIGIN, Secret, working_directory
from pyconnect_cli.verbs import ChangingVerb, argument, option

context_app = typer.Typer(help="Name clusters and choose between them.")

NameArgument = Annotated[str, argument("CONTEXT", "name of the context")]
OF_A_CONTEXT = frozenset(
    {
        "url", "username", "password", "password_file", "password_command", "token", "token_file",
        "token_command", "ca_file", "cert", "key", "insecure", "kafka_bootstrap",
        "kafka_properties", "output", "timeout",
    }
)  # fmt: skip

OF_THIS_COMMAND = frozenset(
    {"config", "context", "quiet", "yes", "verbose", "debug", "color", "no_color"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextRow:
    name: str
    current: bool
    urls: str
    origin: str


CONTEXT_COLUMNS: Sequence[Column[ContextRow]] = (
    Column("CURRENT", lambda row: "*" if row.current else ""),
    Column("CONTEXT", lambda row: row.name, whole=True),
    Column("URLS", lambda row: row.urls, prose=True),
    Column("FILE", lambda row: row.origin, wide=True),
)


@context_app.command("list")
def list_contexts(context: typer.Context) -> None:
    """List the contexts; the current one is marked."""
    session = session_of(context)
    files = session.settings.files
    rows = []
    for name in files.context_names():
        file, values = files.find_context(name)
        rows.append(
            ContextRow(
                name=name,
                current=name == session.settings.context,
                urls=shown_setting("url", values.get("url", ())),
                origin=str(file.path),
            )
        )
    session.output.listing(
        CONTEXT_COLUMNS,
        rows,
        document=[
            {"name": row.name, "current": row.current, "urls": row.urls.split(", ")} for row in rows
        ],
        names=[row.name for row in rows],
        empty="no context is defined; make one: pyconnect context set NAME --url URL",
    )


@context_app.command()
def current(context: typer.Context) -> None:
    """Print the name of the context in force; exit 3 when there is none."""
    session = session_of(context)
    name = _current(session)
    session.output.document({"name": name}, text=name, name=name)


@context_app.command(cls=ChangingVerb)
def use(context: typer.Context, name: NameArgument) -> None:
    """Make a context the current one."""
    session = session_of(context)
    files = _files(session)
    files.find_context(name)
    update_user_file(files.user_path, ConfigChange(current=name))
    session.output.message(f"current context: {name}")


@context_app.command("set", cls=ChangingVerb)
def set_context(
    context: typer.Context,
    name: NameArgument,
    *,
    make_current: Annotated[bool, option("--use", "also make it the current context")] = False,
    description: Annotated[
        str | None, option("--description TEXT", "description of the context")
    ] = None,
    group: Annotated[str | None, option("--group ID", "group.id of the workers")] = None,
    offsets_topic: Annotated[
        str | None, option("--offsets-topic TOPIC", "offset.storage.topic of the workers")
    ] = None,
    inventory: Annotated[
        str | None,
        option(
            "--inventory FILE",
            "inventory of the workers: admin interfaces, and commands for upgrade",
        ),
    ] = None,
) -> None:
    """Create a context or change keys of it; the given options are stored.

    Global ones are --url, --username, --password-command and other credentials, --ca-file, --cert,
    --key, --kafka-bootstrap, --kafka-properties, --output and --timeout. An empty value removes a
    key.
    """
    session = session_of(context)
    values = _given_settings(session)
    own = dict(zip(CLUSTER_KEYS, (group, offsets_topic, inventory), strict=True))
    own["description"] = description
    values |= {key: value for key, value in own.items() if value is not None}
    for key in PATH_KEYS & values.keys():
        # A relative path in the file starts at the file's own directory.
        if values[key]:
            values[key] = str(working_directory() / Path(str(values[key])).expanduser())
    if not values and not make_current:
        raise UsageError("nothing to set", hint="for example --url http://host:8083")
    files = _files(session)
    exists = name in files.context_names()
    if not exists and not values.get("url"):
        raise UsageError(
            f"context `{name}` does not exist yet and has no address",
            hint=f"pyconnect context set {name} --url http://host:8083",
        )
    literal = [key for key in LITERAL_SECRETS if key in values]
    if literal:
        session.output.warning(
            f"{', '.join(literal)} is written into {files.user_path} (readable by you only);"
            " prefer --password-command or --password-file"
        )
    change = ConfigChange(contexts={name: values}, current=name if make_current else None)
    update_user_file(files.user_path, change)
    done = "changed" if exists else "created"
    session.output.message(f"context {name}: {done}{', current' if make_current else ''}")
    # On the command line these options are usually meant for the command itself.
    for key in ("output", "timeout"):
        if values.get(key):
            session.output.message(
                f"--{key} {values[key]} is stored: it holds for every command in this context;"
                f' remove it: pyconnect context set {name} --{key} ""'
            )


@context_app.command()
def show(
    context: typer.Context,
    name: Annotated[
        str, argument("[CONTEXT]", "name of the context (default: the context in force)")
    ] = "",
) -> None:
    """Show the keys of a context; secrets are not shown."""
    session = session_of(context)
    name = name or _current(session)
    file, values = _files(session).find_context(name)
    shown = {key: shown_setting(key, value) for key, value in sorted(values.items())}
    text = "\n".join(key_value_lines({**shown, "file": str(file.path)}))
    session.output.document({"name": name, **shown}, text=text, name=name)


@context_app.command(cls=ChangingVerb)
def delete(context: typer.Context, name: NameArgument) -> None:
    """Remove a context from the user's file."""
    session = session_of(context)
    files = _files(session)
    _own_context(files, name)
    session.confirm(f"delete context {name}?")
    update_user_file(files.user_path, ConfigChange(remove=(name,)))
    session.output.message(f"context {name}: deleted")


@context_app.command(cls=ChangingVerb)
def rename(
    context: typer.Context,
    name: NameArgument,
    new: Annotated[str, argument("NEW", "new name of the context")],
) -> None:
    """Give a context of the user's file another name; it stays the current one."""
    session = session_of(context)
    files = _files(session)
    values = _own_context(files, name)
    if new in files.context_names():
        raise UsageError(f"context `{new}` exists already")
    is_current = files.find_context(name)[0].current == name
    change = ConfigChange(
        contexts={new: values}, remove=(name,), current=new if is_current else None
    )
    update_user_file(files.user_path, change)
    session.output.message(f"context {name}: renamed to {new}")


@context_app.command("import", cls=ChangingVerb)
def import_contexts(
    context: typer.Context,
    file: Annotated[Path, argument("FILE", "pyconnect configuration file")],
    *,
    force: Annotated[bool, option("--force", "replacement of contexts of the same name")] = False,
) -> None:
    """Import the contexts of another configuration file."""
    session = session_of(context)
    if not file.is_file():
        raise UsageError(f"{file}: no such file")
    imported = read_config_file(file, "import")
    files = _files(session)
    taken = sorted(set(imported.contexts) & set(files.context_names()))
    if taken and not force:
        raise UsageError(f"already defined: {', '.join(taken)}", hint="replace them with --force")
    if not imported.contexts:
        raise NotFound(f"{file}: defines no context")
    change = ConfigChange(contexts=imported.contexts, remove=tuple(taken))
    update_user_file(files.user_path, change)
    session.output.message(f"imported: {', '.join(sorted(imported.contexts))}")


def _files(session: Session) -> ConfigFiles:
    """Read the files without resolving the current context: the command may have to repair it."""
    config = session.given.get("config")
    path = Path(str(config)).expanduser() if config else None
    return load_config_files(session.environ, working_directory(), path)


def _own_context(files: ConfigFiles, name: str) -> Mapping[str, Setting]:
    """Return the settings of a context of the user's file; UsageError for another file's."""
    file, values = files.find_context(name)
    if file.path != files.user_path:
        raise UsageError(
            f"context `{name}` is defined in {file.path}, which this command does not change"
        )
    return values


def _given_settings(session: Session) -> dict[str, Setting]:
    """Return the options to store; UsageError for those that no command could use."""
    known = {option.name for option in GLOBAL_OPTIONS}
    unusable = sorted(set(session.given) & known - OF_A_CONTEXT - OF_THIS_COMMAND)
    if unusable:
        flags = ", ".join(f"--{name.replace('_', '-')}" for name in unusable)
        raise UsageError(f"{flags} cannot be stored in a context")
    values: dict[str, Setting] = {}
    for name in sorted(OF_A_CONTEXT & set(session.given)):
        value = session.given[name]
        if isinstance(value, tuple):
            # Empty ones stand for the removal of the key.
            value = tuple(text for text in value if text)
        values[name] = value if isinstance(value, bool | int | tuple) else str(value)
    urls = values.get("url", ())
    for url in urls if isinstance(urls, tuple) else ():
        base_url(url)
    if timeout := values.get("timeout"):
        parse_duration(str(timeout), what="--timeout")
    return values


def _current(session: Session) -> str:
    name = session.settings.context
    if name is None:
        raise NotFound("no context is chosen", hint="choose one: pyconnect context use NAME")
    return name


config_app = typer.Typer(help="Show the settings in force and their origin; trust a project file.")

FileArgument = Annotated[
    Path | None, argument("[FILE]", "pyconnect.toml file (default: the one in this directory)")
]

UNSET = "-"
NAMES_OF_ATTRIBUTES = {
    "url": "urls",
    "timeout": "timeout_s",
    "request_timeout": "request_timeout_s",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingRow:
    """One setting as shown: a secret's origin, never its value."""

    name: str
    value: str
    origin: str


SETTING_COLUMNS: Sequence[Column[SettingRow]] = (
    Column("SETTING", lambda row: row.name, whole=True),
    Column("VALUE", lambda row: row.value, prose=True),
    Column("ORIGIN", lambda row: row.origin),
)


@config_app.callback()
def config() -> None:
    """Show the settings in force and their origin; trust a project file."""


@config_app.command()
def view(context: typer.Context) -> None:
    """Show every setting, its value and where it comes from."""
    session = session_of(context)
    settings = session.settings
    rows = []
    for known in GLOBAL_OPTIONS:
        attribute = NAMES_OF_ATTRIBUTES.get(known.name, known.name)
        if hasattr(settings, attribute):
            value = getattr(settings, attribute)
            if isinstance(value, Secret):
                shown = value.describe()
            elif value is None or value == ():
                shown = UNSET
            elif isinstance(value, tuple):
                shown = ", ".join(mask_url(str(item)) for item in value)
            elif isinstance(value, bool):
                shown = "true" if value else "false"
            else:
                shown = mask_text(f"{value:g}s" if isinstance(value, float) else str(value))
            origin = settings.origins.get(known.name, NO_ORIGIN)
            rows.append(SettingRow(name=known.name, value=shown, origin=origin))
    user_path = str(settings.files.user_path)
    rows.append(SettingRow(name="config", value=user_path, origin="user file"))
    document = {
        row.name: {"value": None if row.value == UNSET else row.value, "origin": row.origin}
        for row in rows
    }
    session.output.listing(
        SETTING_COLUMNS, rows, document=document, names=[row.name for row in rows]
    )


@config_app.command("trust", cls=ChangingVerb)
def trust_file(context: typer.Context, file: FileArgument = None) -> None:
    """Allow a project file, with its present content, to set addresses and credentials.

    Read the file first: commands in its directory will connect to the addresses that it names,
    with the secrets that it names. The file is refused again as soon as it changes.
    """
    session = session_of(context)
    path = _project_file(file)
    if not path.is_file():
        raise NotFound(f"{path}: no such file")
    content = read_content(path)
    parsed = parse_config_file(path, "project file", content)
    trust(path, content, session.environ)
    if session.given.get("quiet"):
        return
    if parsed.current:
        tell(f"  current = {parsed.current}")
    tables = {"defaults": parsed.defaults}
    tables |= {f"contexts.{name}": table for name, table in parsed.contexts.items()}
    for where, table in tables.items():
        for key, value in sorted(table.items()):
            tell(f"  {where}.{key} = {shown_setting(key, value)}")
    tell(f"{path}: trusted until it changes")


@config_app.command("untrust", cls=ChangingVerb)
def untrust_file(context: typer.Context, file: FileArgument = None) -> None:
    """Withdraw the trust in a project's file; the file need not exist any more."""
    session = session_of(context)
    path = _project_file(file)
    recorded = withdraw_trust(path, session.environ)
    # `session.output` needs settings, which may be refused now that the file is not trusted.
    if not session.given.get("quiet"):
        tell(f"{path}: {'no longer trusted' if recorded else 'was not trusted'}")


def _project_file(file: Path | None) -> Path:
    path = working_directory() / (file or PROJECT_FILE)
    if path.is_dir():
        path = path / PROJECT_FILE
    if path.name != PROJECT_FILE:
        raise UsageError(f"{path}: a project file must be named {PROJECT_FILE}")
    return path
