"""Connector descriptions: read from files, validated on the worker, and their plan as text.

A document is a flat map of configuration keys with its `name`, the body of `POST /connectors`
(`{"name", "config", "initial_state"}`), or a KafkaConnector of Strimzi. Files are JSON, YAML and
.properties, with one or several documents.
"""

import json
import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from pyconnect_cli.acting.wait import NOTICED_S
from pyconnect_cli.connectors.plan import Change, Config, ConnectorFile, PlannedChange
from pyconnect_cli.errors import OutputLost, PyconnectError, UsageError
from pyconnect_cli.parsing.nouns import near_names
from pyconnect_cli.parsing.values import parse_json
from pyconnect_cli.render.step_line import StepLine
from pyconnect_cli.render.streams import file_name, write_whole
from pyconnect_cli.render.styles import json_text
from pyconnect_cli.render.tables import Column
from pyconnect_cli.rest.answers import Validation
from pyconnect_cli.rest.masking import mask_config
from pyconnect_cli.session import Session
from pyconnect_cli.settings.given_files import parse_properties, read_given, yaml_documents

KIND = "KafkaConnector"
SPEC = frozenset({"class", "tasksMax", "version", "config", "state", "pause"})
OF_THE_OPERATOR = frozenset({"autoRestart", "listOffsets", "alterOffsets"})
SETTINGS = {
    "class": "connector.class",
    "tasksMax": "tasks.max",
    "version": "connector.plugin.version",
}


def is_resource(document: object) -> bool:
    return isinstance(document, Mapping) and {"apiVersion", "kind"} <= set(document)


def resources(document: object) -> Iterator[object]:
    """Yield a document, or the documents in a list of kubectl."""
    if is_resource(document) and isinstance(document, Mapping):
        items = document.get("items")
        if str(document["kind"]).endswith("List") and isinstance(items, list):
            yield from items
            return
    yield document


def connector_body(document: Mapping[object, object], place: str) -> dict[str, object]:
    """Return Strimzi's KafkaConnector as a body of `POST /connectors`; UsageError for another kind.

    Labels and the settings of Strimzi's operator have no meaning here.
    """
    kind = document["kind"]
    if kind != KIND:
        raise UsageError(
            f"{place}: is a {kind}, not a {KIND}", hint=f"leave only {KIND} documents in the file"
        )
    metadata, spec = document.get("metadata"), document.get("spec")
    if not (isinstance(metadata, Mapping) and metadata.get("name") and isinstance(spec, Mapping)):
        raise UsageError(f"{place}: a {KIND} needs metadata.name and spec")
    if unknown := sorted({*map(str, spec)} - SPEC - OF_THE_OPERATOR):
        raise UsageError(f"{place}: unknown member spec.{', spec.'.join(unknown)}")
    config = spec.get("config") or {}
    if not isinstance(config, Mapping):
        raise UsageError(f"{place}: spec.config must be a map")
    named = {key: spec[member] for member, key in SETTINGS.items() if member in spec}
    if twice := sorted({*map(str, config)} & {*named}):
        raise UsageError(f"{place}: {', '.join(twice)} is set in spec and in spec.config")
    state = spec.get("state") or ("paused" if spec.get("pause") is True else None)
    return {
        "name": metadata["name"],
        "config": {**named, **config},
        **({} if state is None else {"initial_state": state}),
    }


SUFFIXES = frozenset({".json", ".yaml", ".yml", ".properties"})
ENVELOPE = frozenset({"name", "config", "initial_state"})


def read_connector_files(places: Iterable[str], *, name: str | None = None) -> list[ConnectorFile]:
    """Read files, directories (one level, sorted) and `-` for stdin.

    `name` is for a document without a name. UsageError names file and document.
    """
    files: list[ConnectorFile] = []
    for place in places:
        path = Path(place)
        if place != "-" and path.is_dir():
            inside = sorted(p for p in path.iterdir() if p.suffix.lower() in SUFFIXES)
            if not inside:
                raise UsageError(
                    f"{path}: contains no {', '.join(sorted(SUFFIXES))} file",
                    hint="subdirectories are not searched",
                )
            for entry in inside:
                files += _read(str(entry), name)
        else:
            files += _read(place, name)
    return files


def _read(place: str, name: str | None) -> list[ConnectorFile]:
    text, shown = read_given(place)
    suffix = Path(place).suffix.lower()
    if not text.strip():
        raise UsageError(f"{shown}: is empty")
    if suffix == ".properties":
        loaded: list[object] = [parse_properties(text, shown)]
    elif suffix == ".json" or (not suffix and text.lstrip()[:1] in {"{", "["}):
        document = parse_json(text, shown)
        loaded = document if isinstance(document, list) else [document]
    else:
        found = yaml_documents(text, shown)
        loaded = [entry for d in found for entry in (d if isinstance(d, list) else [d])]
    documents = [entry for one in loaded for entry in resources(one)]
    if not documents:
        raise UsageError(f"{shown}: is empty")
    many = len(documents) > 1
    return [
        _connector(document, f"{shown} (document {number})" if many else shown, name)
        for number, document in enumerate(documents, 1)
    ]


def _connector(document: object, place: str, name: str | None) -> ConnectorFile:
    if not isinstance(document, Mapping):
        raise UsageError(f"{place}: a map of configuration keys was expected")
    if is_resource(document):
        return _connector(connector_body(document, place), place, name)
    initial_state: object = None
    config: object = document
    named: object = document.get("name")
    if isinstance(document.get("config"), Mapping):
        if unknown := sorted(set(map(str, document)) - ENVELOPE):
            raise UsageError(
                f"{place}: unknown member {', '.join(unknown)}",
                hint="the members are `config`, `name` and `initial_state`",
            )
        config, initial_state = document["config"], document.get("initial_state")
        named = named or document["config"].get("name")
    assert isinstance(config, Mapping)
    flat: dict[str, str | None] = {}
    for key, value in config.items():
        if value is None or isinstance(value, str):
            flat[str(key)] = value
        elif isinstance(value, bool | int | float):
            flat[str(key)] = json.dumps(value)
        else:
            kind = type(value).__name__
            raise UsageError(f"{place}: {key}: a text or number was expected, not {kind}")
    chosen = str(named or name or "")
    if not chosen:
        raise UsageError(
            f"{place}: `name` is missing",
            hint='add "name": "my-connector"; `create` and `validate` take it as an argument, too',
        )
    if name and named and named != name:
        raise UsageError(
            f"{place}: is named `{named}`, not `{name}`",
            hint="leave the name out of the file to use it under another one",
        )
    if flat.get("name") not in {None, chosen}:
        raise UsageError(f"{place}: `name` in its config is `{flat['name']}`, not `{chosen}`")
    return ConnectorFile(
        name=chosen,
        config=flat,
        initial_state=None if initial_state is None else str(initial_state).upper(),
        place=place,
    )


def write_connector_files(
    session: Session,
    directory: Path,
    documents: Sequence[Mapping[str, object]],
    *,
    mode: int | None,
    prune: bool,
) -> None:
    """Write `NAME.json` for each document and print its path; `mode` as of `write_whole`.

    Files of earlier exports whose connector does not exist are removed with `prune`, and otherwise
    named. Raises OutputLost when a file cannot be written, UsageError when
    it is the file of an earlier connector as well: some file systems do not distinguish `Orders`
    and `orders`.
    """
    written: dict[tuple[int, int], str] = {}
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for document in documents:
            name = str(document["name"])
            file = directory / file_name(name)
            if file.exists() and (other := written.get(_identity(file))):
                raise UsageError(
                    f"{file}: holds `{other}` and would be overwritten with `{name}`",
                    hint="export them into two directories",
                )
            text = json_text(document, indent=2) + "\n"
            write_whole(file, text, mode=mode)
            written[_identity(file)] = name
            if not session.settings.quiet:
                session.output.line(str(file))
        exported = ((file, _exported(file)) for file in sorted(directory.glob("*.json")))
        kept = {file: other for file, other in exported if other is not None}
        others = [other for other in kept.values() if other not in written.values()]
        existing = session.client.connector_views(others) if others else {}
        stale = [file for file in kept if kept[file] in others and kept[file] not in existing]
        for file in stale if prune else ():
            file.unlink()
            session.output.message(f"removed {file}: its connector does not exist")
        if stale and not prune:
            session.output.warning(
                f"files of connectors that do not exist: {', '.join(map(str, stale))}; `apply`"
                " would create them again; remove them with --prune"
            )
    except OSError as exc:
        raise OutputLost(f"{directory}: cannot be written: {exc.strerror}") from exc


def _exported(file: Path) -> str | None:
    """Return the connector that an export wrote a file for; None for other files."""
    try:
        document = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(document, dict) or set(document) != {"name", "config"}:
        return None
    name = document["name"]
    return name if isinstance(name, str) and file.name == file_name(name) else None


def _identity(file: Path) -> tuple[int, int]:
    status = file.stat()
    return status.st_dev, status.st_ino


def validate_all(session: Session, files: Sequence[ConnectorFile]) -> None:
    """Raise an error for the first wrong file; call it before the first change."""
    began_s = time.monotonic()
    with StepLine(session.output) as progress:
        for number, file in enumerate(files):
            if time.monotonic() - began_s >= NOTICED_S:
                progress.count("configurations validated", number, len(files))
            answer = validation(session, file)
            if answer.error_count:
                lines = "\n".join(validation_lines(file, answer))
                raise UsageError(
                    f"{file.place}: the worker finds {answer.error_count} error(s);"
                    " nothing was changed"
                    f"\n{lines}"
                )


def validation(session: Session, file: ConnectorFile) -> Validation:
    plugin = file.config.get("connector.class")
    if not plugin:
        raise UsageError(f"{file.place}: `connector.class` is missing")
    answer = session.client.validate(plugin, {"name": file.name, **file.config})
    warn_of_unknown(session, file.name, answer, file.config)
    return answer


def validation_lines(file: ConnectorFile, answer: Validation) -> list[str]:
    if not answer.error_count:
        return [f"{file.name}: valid"]
    return [
        f"{file.name}: {found.name}: {error}" for found in answer.fields for error in found.errors
    ]


PASSED_ON = (
    "key.converter.",
    "value.converter.",
    "header.converter.",
    "producer.override.",
    "consumer.override.",
    "admin.override.",
    "label.",
)
"""Settings of other classes, which a validation lists only in part, and labels of users."""
UNLISTED = frozenset({"agent.java.heap", "agent.java.options", "team"})
"""Settings of an agent for Java connectors, and the label of `pyconnect help selectors`."""


def unknown_settings(keys: Iterable[str], defined: Collection[str]) -> dict[str, str | None]:
    """Return the keys that are not defined, each with the most similar defined key, or None."""
    if not defined:
        return {}
    unknown = sorted({*keys} - {*defined, "name"} - UNLISTED)
    return {
        key: next(iter(near_names(key, defined, limit=1)), None)
        for key in unknown
        if not key.startswith(PASSED_ON)
    }


def warn_of_unknown(session: Session, name: str, answer: Validation, keys: Iterable[str]) -> None:
    """Warn of those of the `keys` that a validation did not know."""
    shown = [
        f"{key} (did you mean {meant}?)" if meant else key
        for key, meant in unknown_settings(keys, answer.defined).items()
    ]
    if shown:
        session.output.warning(f"{name}: its connector does not define {', '.join(shown)}")


def check_settings(
    session: Session,
    name: str,
    config: Config,
    keys: Iterable[str] | None = None,
    *,
    refuses: bool = False,
) -> None:
    """Ask a worker for the settings of the config's class, and warn; the change reports errors.

    With `refuses` errors are a UsageError already.
    """
    plugin = config.get("connector.class")
    if not plugin:
        return
    try:
        answer = session.client.validate(plugin, {"name": name, **config})
    except PyconnectError:
        return
    warn_of_unknown(session, name, answer, config if keys is None else keys)
    if refuses and answer.error_count:
        file = ConnectorFile(name=name, config=config, place=name)
        raise UsageError("\n".join(validation_lines(file, answer)))


SIGNS = {Change.CREATE: ("+", "good"), Change.UPDATE: ("~", "warning"), Change.DELETE: ("-", "bad")}


def total(plan: Sequence[PlannedChange]) -> str:
    """Return how many connectors of a plan are created, updated and so on."""
    counts = Counter(planned.change for planned in plan)
    return ", ".join(f"{counts[change]} {change.value}" for change in Change if counts[change])


def show_plan(session: Session, plan: Sequence[PlannedChange], *, as_data: bool) -> None:
    """Print the changes of a plan: on stdout if `as_data`, else as a message on stderr."""
    output = session.output
    changes = [planned for planned in plan if planned.change is not Change.UNCHANGED]
    if output.machine:
        if as_data:
            output.listing(
                (Column("NAME", lambda planned: planned.name),),
                changes,
                document=[
                    {
                        "name": planned.name,
                        "change": planned.change.value,
                        "before": mask_config({d.key: d.before for d in planned.differences}),
                        "after": mask_config({d.key: d.after for d in planned.differences}),
                    }
                    for planned in plan
                ],
            )
        return
    for planned in changes:
        sign, style = SIGNS[planned.change]
        lines = [(f"{sign} {planned.change.value} {planned.name}", style)]
        if planned.change is Change.UPDATE:
            for difference in planned.differences:
                lines += [(line, "") for line in difference.lines(show_secrets=False)]
        for line, line_style in lines:
            if as_data:
                output.line(output.paint(line, line_style))
            else:
                output.message(line, style=line_style)
    if len(plan) > 1 or not changes:
        output.message(f"total: {total(plan)}")
