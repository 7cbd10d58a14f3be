"""Arguments that verbs of several nouns take."""

from __future__ import annotations

from typing import Annotated

import typer

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="name of the connector")]


NamesArgument = Annotated[
    list[str] | None,
    typer.Argument(metavar="[NAME]…", help="names of connectors; a selection narrows them"),
]


FilesOption = Annotated[
    list[str] | None,
    typer.Option(
        "--file", "-f", metavar="FILE",
        help="JSON, YAML (Strimzi's too) or .properties; a directory; `-` for stdin; repeatable",
    ),
]  # fmt: skip


AllWorkersOption = Annotated[
    bool, typer.Option("--all-workers", help="also the workers that connectors' statuses name")
]
