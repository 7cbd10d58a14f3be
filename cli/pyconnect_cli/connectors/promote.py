"""`connectors diff promote`: comparison with files or another cluster, and copies to it.

No secret in plain text leaves its cluster. References such as `${file:/run/db.properties:password}`
go as they are, or remapped. Where the other cluster has a value of a secret's key already, it keeps
that value.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Annotated

import typer

from pyconnect_cli.acting.selection import read_views, select, selected_views, selection_from
from pyconnect_cli.connectors.files import read_connector_files, show_plan
from pyconnect_cli.connectors.from_files import (
    SetOption,
    UnsetOption,
    carry_out,
    initial_state_of,
    key_changes,
    plan_files,
    required_files,
)
from pyconnect_cli.connectors.plan import Change, Config, ConnectorFile, PlannedChange, plan_apply
from pyconnect_cli.errors import ExitCode, PyconnectError, UsageError
from pyconnect_cli.rest.masking import MASK, REFERENCES_ONLY, mask_url, mask_value
from pyconnect_cli.rest.model import ConnectorView
from pyconnect_cli.session import Session, session_of, session_of_context
from pyconnect_cli.verbs import ActingVerb, FilesOption, NamesArgument, option
from pyconnect_clients.config_values import is_secret_key

REFERENCE = re.compile(r"\$\{([^}]*)\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Remapping:
    """The intended differences of the other cluster's configurations.

    `references`: beginnings of references with their replacements, without `${`. `values`: keys
    with their value on the other cluster; None removes the key.
    """

    references: tuple[tuple[str, str], ...] = ()
    values: Config = field(default_factory=dict)

    def reference(self, value: str) -> str:
        """Return a value with its references remapped; the first pair that fits counts."""

        def remapped(found: re.Match[str]) -> str:
            for old, new in self.references:
                if found[1] == old or found[1].startswith((f"{old}:", f"{old}/")):
                    return f"${{{new}{found[1].removeprefix(old)}}}"
            return found[0]

        return REFERENCE.sub(remapped, value)


def remapping(pairs: Sequence[str], values: Config) -> Remapping:
    """Read `FROM=TO` pairs and keys; UsageError for a secret in plain text."""
    references = []
    for pair in pairs:
        old, equals, new = (part.strip() for part in pair.partition("="))
        if not (old and equals and new) or "$" in pair:
            raise UsageError(
                f"`{pair}` does not map a reference",
                hint="write its beginning on both sides: --map file:/run/dev=file:/run/prod",
            )
        references.append((old, new))
    for key, value in values.items():
        if value and is_secret_key(key) and not re.fullmatch(REFERENCES_ONLY, value):
            raise UsageError(
                f"--set {key}: a secret cannot be given in plain text here",
                hint=f"give a reference: --set '{key}=${{provider:path:key}}'",
            )
    return Remapping(references=tuple(references), values=values)


def promoted(
    files: Sequence[ConnectorFile],
    there: Mapping[str, Config],
    rules: Remapping,
    *,
    context: str,
    strict: bool = True,
) -> list[ConnectorFile]:
    """Return the connectors as they are to be on the cluster of `context`.

    `there`: the configurations it has, by name. UsageError names every secret that would have to
    be copied. Without `strict` the secret stays in the result, for a comparison that masks it.
    """
    refused: list[str] = []
    result = []
    for file in files:
        held = there.get(file.name, {})
        config: dict[str, str | None] = {}
        secrets = []
        for key, value in file.config.items():
            if key in rules.values or key == "name":
                continue
            if not value or (MASK not in value and mask_value(key, value) == value):
                config[key] = rules.reference(value) if value else value
                continue
            kept = held.get(key)
            if kept and MASK not in kept:
                config[key] = kept
            else:
                config[key] = value
                secrets.append(key)
        config |= {key: value for key, value in rules.values.items() if value is not None}
        refused += [f"{file.name}: {key}" for key in sorted(secrets)]
        result.append(replace(file, config=config))
    if refused and strict:
        key = refused[0].partition(": ")[2]
        raise UsageError(
            f"secrets in plain text, or their masks ({MASK}), are not copied to {context}: "
            + "; ".join(refused),
            hint=f"keep them in a config provider of the workers of {context}:"
            f" --set '{key}=${{provider:path:key}}'; or set them there once:"
            f" pyconnect --context {context} connectors patch NAME --set …",
        )
    return result


MapOption = Annotated[
    list[str] | None,
    option(
        "--map FROM=TO",
        "beginning of a reference and its replacement on the other cluster, as"
        " file:/run/dev=file:/run/prod; repeatable",
    ),
]


@contextmanager
def other_cluster(session: Session, context: str) -> Iterator[Session]:
    """Yield a session with the cluster of a context; UsageError when it is the same cluster."""
    other = session_of_context(session, context)
    try:
        if set(other.settings.urls) & set(session.settings.urls):
            raise UsageError(
                f"context {context} is the source cluster itself: {', '.join(other.settings.urls)}",
                hint="choose the cluster to read with --context or --url",
            )
        yield other
    finally:
        session.record = other.record
        other.close()


def plan_for(
    session: Session,
    other: Session,
    views: Sequence[ConnectorView],
    there: Mapping[str, ConnectorView],
    rules: Remapping,
    *,
    initial_state: str | None = None,
    strict: bool = True,
) -> list[PlannedChange]:
    """Plan the changes that make connectors of `session` the same on `other`; see `promoted`.

    `there`: the configurations that `other` has.
    """
    here = session.settings.cluster or mask_url(session.settings.urls[0])
    files = [
        ConnectorFile(
            name=view.name,
            config=view.info.config,
            initial_state=initial_state,
            place=f"{view.name} of {here}",
        )
        for view in views
        if view.info
    ]
    configs = {name: view.info.config for name, view in there.items() if view.info}
    context = other.settings.context or ""
    wanted = promoted(files, configs, rules, context=context, strict=strict)
    # The output of a comparison masks the secrets of both sides.
    return plan_apply(wanted, configs, masked=not strict)


app = typer.Typer()


@app.command()
def diff(
    context: typer.Context,
    names: NamesArgument = None,
    *,
    files: FilesOption = None,
    to_context: Annotated[
        str | None,
        option(
            "--to-context CONTEXT", "context of another cluster to compare with, instead of files"
        ),
    ] = None,
    maps: MapOption = None,
    keys: SetOption = None,
    unset: UnsetOption = None,
) -> None:
    """Show the changes that `apply` or `promote` would make; exit 1 if there are any.

    With --to-context the command compares all connectors, or those that are named, with their
    namesakes on another cluster.
    """
    session = session_of(context)
    if to_context is not None:
        if files:
            raise UsageError("-f and --to-context exclude each other")
        rules = remapping(maps or (), key_changes(keys, unset))
        selection = selection_from({} if names else {"all": True}, names or ())
        chosen_views = select(read_views(session, selection), selection)
        with other_cluster(session, to_context) as other:
            there = other.client.connector_views(selection.names)
            plan = plan_for(session, other, chosen_views, there, rules, strict=False)
            show_plan(other, plan, as_data=True)
            if not names:
                here = {view.name for view in chosen_views}
                for name in there:
                    if name not in here:
                        session.output.message(f"{name}: only in {to_context}")
    elif names or maps or keys or unset:
        raise UsageError(
            "names, --map, --set and --unset are for --to-context",
            hint="a file follows -f: pyconnect connectors diff -f FILE",
        )
    else:
        documents = read_connector_files(required_files(files))
        views = session.client.connector_views([file.name for file in documents])
        plan = plan_files(session, documents, views, prune=False)
        show_plan(session, plan, as_data=True)
    if any(planned.change is not Change.UNCHANGED for planned in plan):
        raise PyconnectError("", exit_code=ExitCode.NEGATIVE)


@app.command(cls=ActingVerb)
def promote(
    context: typer.Context,
    names: NamesArgument = None,
    *,
    to_context: Annotated[str, option("--to-context CONTEXT", "context of the other cluster")],
    maps: MapOption = None,
    keys: SetOption = None,
    unset: UnsetOption = None,
    initial_state: Annotated[
        str | None,
        option(
            "--initial-state STATE",
            "initial state of connectors that are new there: RUNNING, PAUSED or STOPPED (KIP-980)",
        ),
    ] = None,
    no_validate: Annotated[
        bool, option("--no-validate", "no validation before the first change")
    ] = False,
) -> None:
    """Create or change connectors on another cluster to match those of this one.

    References to config providers go as they are, or as --map changes them. A secret in plain text
    is not copied: the other cluster keeps its own value. If it has none, the command refuses
    (exit 2); give a reference with --set.
    """
    session = session_of(context)
    rules = remapping(maps or (), key_changes(keys, unset))
    state = None if initial_state is None else initial_state_of(initial_state)
    views = selected_views(session, names or ())
    with other_cluster(session, to_context) as other:
        there = other.client.connector_views([view.name for view in views])
        plan = plan_for(session, other, views, there, rules, initial_state=state)
        carry_out(other, plan, "promote", there, validated=not no_validate, ask_all=True)
