"""One command's output in the format the user chose.

The library of `--jq` is an extra with the jq program's own code; it is imported only for it.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from pyconnect_cli.errors import PreconditionFailed, PyconnectError, UsageError
from pyconnect_cli.render.streams import tell, write_data
from pyconnect_cli.render.styles import CONTROL, json_text, paint, printable, unicode_escape
from pyconnect_cli.render.tables import Column, choose_columns, table_lines

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputStyle:
    """The style of output; `colour` for stdout, `error_colour` for stderr."""

    format: str = "table"
    columns: tuple[str, ...] = ()
    headers: bool = True
    quiet: bool = False
    jq: JqFilter | None = None  # selects the printed part of a document
    colour: bool = False
    error_colour: bool = False
    width: int | None = None  # None: no limit
    summary: bool = False  # the summary of the run replaces the results


class Output:
    """Writes results to stdout and messages to stderr.

    A stream that cannot be written does not stop a command: `unwritten` keeps the reason until the
    command ends, and loops that only print check it. `propose` completes the commands in messages;
    `heading` comes before the first text.
    """

    def __init__(
        self, style: OutputStyle, propose: Callable[[str], str] = str, *, heading: str = ""
    ) -> None:
        self.style = style
        self.propose = propose
        self._heading = heading
        self.unwritten: OSError | None = None

    @property
    def machine(self) -> bool:
        """Whether a program reads stdout: json, yaml, ndjson or name."""
        return self.style.format not in {"table", "wide"}

    def line(self, text: str = "") -> None:
        if self.style.summary:
            return
        self._head(data=True)
        if self.unwritten is None:
            self.unwritten = self._write(text)

    def message(self, text: str, *, style: str | None = None) -> None:
        """Print a message on stderr, unless the user asked for quiet."""
        if not self.style.quiet:
            self._head()
            self._tell(paint(self.propose(text), style, colour=self.style.error_colour))

    def warning(self, text: str) -> None:
        """Print a warning on stderr, even if the user asked for quiet."""
        self._head()
        head = paint("warning:", "warning", colour=self.style.error_colour)
        self._tell(f"{head} {self.propose(text)}")

    def error(self, error: PyconnectError) -> None:
        if error.message:
            self._head()
        for line in error_lines(error, colour=self.style.error_colour):
            self._tell(self.propose(line))

    def paint(self, text: str, style: str | None) -> str:
        return paint(text, style, colour=self.style.colour)

    def silent(self, *, success: bool) -> bool:
        """Whether a check prints nothing: it found nothing wrong, and the user asked for quiet."""
        return success and self.style.quiet

    def listing(
        self,
        columns: Sequence[Column[Item]],
        items: Sequence[Item],
        *,
        document: object,
        entries: Iterable[object] | None = None,
        names: Iterable[str] | None = None,
        empty: str = "nothing found",
    ) -> None:
        """Print a list: a table, `document` as json or yaml, `entries` as ndjson, or names."""
        match self.style.format:
            case "json" | "yaml":
                if self.style.jq is not None:
                    # With names as members, `.[].name` works on every list.
                    shown = names if names is not None else map(columns[0].value, items)
                    document = _with_names(document, list(shown))
                self.document(document)
            case "ndjson":
                for entry in _entries(document) if entries is None else entries:
                    self.line(json_text(entry))
            case "name":
                first = columns[0].value
                for name in names if names is not None else map(first, items):
                    self.line(name)
            case _:
                style, wide = self.style, self.style.format == "wide"
                chosen = choose_columns(columns, style.columns, wide=wide)
                if not items:
                    self.message(empty)
                    return
                for line in table_lines(
                    chosen,
                    items,
                    headers=style.headers,
                    width=None if wide else style.width,
                    colour=style.colour,
                ):
                    self.line(line)

    def document(
        self, document: object, *, text: str | None = None, name: str | None = None
    ) -> None:
        """Print one document: `text` for people, or JSON, YAML, ndjson or its `name`."""
        if self.style.jq is not None:
            for line in self.style.jq(document):
                self.line(line)
            return
        match self.style.format:
            case "yaml":
                self.line(to_yaml(document).rstrip("\n"))
            case "ndjson":
                self.line(json_text(document))
            case "table" | "wide" if text is not None:
                self.line(text)
            case "name" if name is not None:
                self.line(name)
            case _:
                self.line(json_text(document, indent=2))

    def _write(self, text: str) -> OSError | None:
        return write_data(text, colour=self.style.colour)

    def _tell(self, line: str) -> None:
        tell(line, colour=self.style.error_colour)

    def _head(self, *, data: bool = False) -> None:
        """Print the heading once: on stdout, or on stderr if a program reads stdout."""
        heading, self._heading = self._heading, ""
        if not heading:
            return
        if data and not self.machine:
            write_data(heading)
            return
        tell(heading)
        if self.style.format == "yaml":
            write_data("---")


def _with_names(document: object, names: Sequence[str]) -> object:
    """Add a `name` to the objects of a list, from `names`, or of an object, from its keys."""
    match document:
        case Mapping():
            return {
                key: {"name": key, **value} if isinstance(value, Mapping) else value
                for key, value in document.items()
            }
        case list() if len(document) == len(names):
            return [
                {"name": name, **value} if isinstance(value, Mapping) else value
                for name, value in zip(names, document, strict=True)
            ]
        case _:
            return document


def _entries(document: object) -> Iterable[object]:
    """Return the entries for ndjson; an object of objects has an entry for each, with its key."""
    if isinstance(document, Mapping):
        return [
            {"name": key, **value} if isinstance(value, Mapping) else {"name": key, "value": value}
            for key, value in document.items()
        ]
    return document if isinstance(document, Iterable) else [document]


def error_lines(error: PyconnectError, *, colour: bool) -> list[str]:
    """Return the lines that report an error to a user: `error: …`, then `hint: …`."""
    lines = [f"{paint('error:', 'bad', colour=colour)} {printable(error.message)}"]
    if error.hint:
        lines.append(f"{paint('hint:', 'accent', colour=colour)} {printable(error.hint)}")
    return lines


def to_yaml(document: object) -> str:
    """Return YAML; keys keep their order."""
    import yaml

    # The round trip through JSON leaves only plain maps, lists and scalars.
    plain = json.loads(json.dumps(document))

    class Dumper(yaml.SafeDumper):
        """Writes texts with control characters in double quotes, where they can be escaped."""

    def text_node(dumper: Dumper, text: str) -> yaml.ScalarNode:
        style = '"' if CONTROL.search(text) else None
        return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)

    Dumper.add_representer(str, text_node)
    text: str = yaml.dump(plain, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=1000)
    return CONTROL.sub(unicode_escape, text)


def key_value_lines(
    pairs: Mapping[str, str], *, indent: str = "", painted: Mapping[str, str] | None = None
) -> list[str]:
    """Return `key  value` lines with the values aligned; `painted` replaces values by key."""
    longest = max((len(key) for key in pairs), default=0)
    return [
        f"{indent}{printable(key).ljust(longest)}  {(painted or {}).get(key, printable(value))}"
        for key, value in pairs.items()
    ]


def terminal_width() -> int | None:
    """Return the width of the terminal; None if stdout is not a terminal and COLUMNS is not set."""
    import os

    if sys.stdout.isatty() or os.environ.get("COLUMNS"):
        return shutil.get_terminal_size().columns
    return None


JqFilter = Callable[[object], Iterator[str]]


def jq_program(expression: str, option: str) -> Callable[[str], Iterator[Any]]:
    """Return a function from JSON text to the results of a jq program.

    UsageError names the option for an invalid program, and for a text that it fails on.
    """
    try:
        import jq
    except ImportError as missing:
        from pyconnect_clients.installation import install_command

        other = "; or, with the jq program: -o json | jq …" if option == "--jq" else ""
        raise PreconditionFailed(
            f"{option} needs the library jq, which is not installed",
            hint=f"install the extra [jq]: {install_command('jq')}{other}",
        ) from missing
    try:
        program = jq.compile(expression)
    except ValueError as fault:
        raise UsageError(f"{option}: {_first_line(fault)}", hint="see: man jq") from fault

    def results(text: str) -> Iterator[Any]:
        try:
            # The library publishes no types.
            yield from program.input_text(text)
        except ValueError as fault:
            raise UsageError(f"{option}: {_first_line(fault)}") from fault

    return results


def jq_filter(expression: str) -> JqFilter:
    """Return a function from a document to lines; UsageError for an invalid expression.

    A text becomes a line unchanged, any other value compact JSON.
    """
    program = jq_program(expression, "--jq")

    def lines(document: object) -> Iterator[str]:
        for result in program(json.dumps(document)):
            yield (result if isinstance(result, str) else json_text(result))

    return lines


def _first_line(fault: ValueError) -> str:
    return str(fault).strip().splitlines()[0].removeprefix("jq: error: ")
