"""`connectors init`: a template of a configuration, made from the settings that a plugin defines.

JSON has no comments, and a key in their place would become a setting. So a template in JSON has the
required and the important settings only; YAML and properties have all of them, with descriptions.
"""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated

import typer

from pyconnect_cli.connectors.from_files import SetOption, pairs
from pyconnect_cli.errors import PyconnectError, UsageError
from pyconnect_cli.parsing.nouns import did_you_mean
from pyconnect_cli.render.styles import json_text
from pyconnect_cli.rest.answers import ConfigKey, Plugin
from pyconnect_cli.session import Session, session_of
from pyconnect_cli.verbs import argument, option

app = typer.Typer()

FILE_SINK = "file-stream-sink"


def refused_without_value(
    session: Session, plugin: Plugin, name: str, values: Mapping[str, str | None]
) -> frozenset[str]:
    """Return the settings that the plugin's own validation refuses in a config without them.

    Many Java connectors require settings by code, and their definitions do not show it.
    """
    config = {"name": name, "connector.class": plugin.class_name, **values}
    if plugin.type == "sink" and "topics.regex" not in values:
        config.setdefault("topics", name)
    try:
        found = session.client.validate(plugin.class_name, config).fields
    except PyconnectError:
        return frozenset()
    return frozenset(field.name for field in found) - values.keys()


@app.command()
def init(
    context: typer.Context,
    plugin: Annotated[str, argument("CONNECTOR", "name such as sql-sink, simple name or class")],
    *,
    name: Annotated[str | None, option("--name NAME", "name of the new connector")] = None,
    keys: SetOption = None,
    form: Annotated[
        str,
        option(
            "--format FORMAT",
            "json without comments; yaml or properties with all settings, described",
        ),
    ] = "json",
) -> None:
    """Print a configuration with the required settings of a connector, for `create -f`."""
    session = session_of(context)
    if form not in FORMATS:
        raise UsageError(f"--format: `{form}` is not one of {', '.join(FORMATS)}")
    chosen = chosen_plugin(plugin, session.client.plugins())
    settings = session.client.plugin_config(chosen.class_name)
    name = name or template_name(chosen.class_name)
    values = pairs(keys or ())
    refused = refused_without_value(session, chosen, name, values)
    settings = [
        replace(key, required=True) if key.name in refused and not key.default_value else key
        for key in settings
    ]
    template = template_of(chosen, settings, name, values)
    session.output.line(FORMATS[form](template))
    if template_name(chosen.class_name) == FILE_SINK:
        session.output.message(
            "FileStreamSink delivers at-least-once: after a failure, lines are appended again."
            " LakeSink writes files exactly once: `pyconnect connectors init lake-sink`"
        )
    if template.empty:
        session.output.message(f"give a value to: {', '.join(template.empty)}")


WIDTH = 96
KINDS = ("source", "sink")
_KEY_MARKS = re.compile(r"[:=\s\\#!]")
_WORD_BEGINS = re.compile("(?<=[a-z0-9])(?=[A-Z])")


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplateSetting:
    """One setting of a template; `value` None leaves the setting at its default."""

    key: str
    value: str | None
    example: str = ""
    documentation: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """A configuration; `empty` are required settings without a value."""

    title: str
    lines: Sequence[TemplateSetting]

    @property
    def empty(self) -> list[str]:
        return [line.key for line in self.lines if line.value == ""]


def chosen_plugin(word: str, plugins: Sequence[Plugin]) -> Plugin:
    """Return the connector that a word names: `sql-sink`, `SqlSink`, or the name of its class."""
    connectors = {p.class_name: p for p in plugins if p.type in KINDS}
    if word in connectors:
        return connectors[word]
    found = [p for p in connectors.values() if _plain(p.class_name) == _plain(word)]
    if len(found) == 1:
        return found[0]
    words = sorted({template_name(name) for name in connectors})
    if found:
        listed = ", ".join(plugin.class_name for plugin in found)
        raise UsageError(
            f"`{word}` is the name of several classes: {listed}", hint="name the class"
        )
    raise UsageError(
        f"no connector on this worker has the name `{word}`",
        hint=did_you_mean(word, words) or f"the connectors are {', '.join(words)}",
    )


def template_name(class_name: str) -> str:
    """Return the word for a class: `sql-sink` for `….SqlSinkConnector`."""
    simple = class_name.rpartition(".")[2].removesuffix("Connector")
    return _WORD_BEGINS.sub("-", simple).lower()


def _plain(word: str) -> str:
    return re.sub(r"[^a-z0-9]", "", template_name(word))


def template_of(
    plugin: Plugin, keys: Sequence[ConfigKey], name: str, values: Mapping[str, str | None]
) -> Template:
    """Return a template with these values; settings that the plugin does not define come last."""
    lines = [
        TemplateSetting(key="name", value=name, documentation="Name of the connector."),
        TemplateSetting(key="connector.class", value=plugin.class_name),
        TemplateSetting(
            key="tasks.max",
            value=values.get("tasks.max") or "1",
            documentation="Maximum number of tasks.",
        ),
    ]
    if plugin.type == "sink":
        lines.append(
            TemplateSetting(
                key="topics",
                value=values.get("topics") or "",
                documentation="Topics to read, separated by commas; or topics.regex in its place.",
            )
        )
    named = {line.key for line in lines}
    # Required settings first, then those that matter most; each in the order of the connector.
    defined = sorted(
        (key for key in keys if key.name not in named), key=lambda key: not _is_written(key)
    )
    for key in defined:
        given = values.get(key.name)
        if given is None and _is_written(key):
            given = key.default_value or ""
        example = key.default_value or ""
        if key.type == "PASSWORD":
            example = "${file:/etc/connect/secrets.properties:" + key.name + "}"
        words = " ".join(key.documentation.split())
        lines.append(
            TemplateSetting(key=key.name, value=given, example=example, documentation=words)
        )
    known = named | {key.name for key in defined}
    lines += [
        TemplateSetting(key=name, value=value)
        for name, value in values.items()
        if name not in known and value is not None
    ]
    return Template(title=f"{plugin.class_name} {plugin.version or ''}".strip(), lines=lines)


def _is_written(key: ConfigKey) -> bool:
    return key.required or (key.importance == "HIGH" and bool(key.default_value))


def as_json(template: Template) -> str:
    """Return the settings that have a value."""
    config = {line.key: line.value for line in template.lines if line.value is not None}
    return json_text(config, indent=2)


def as_yaml(template: Template) -> str:
    """Return all settings with their descriptions; those without a value are comments."""
    # JSON texts are valid in YAML.
    return "\n".join(_described(template, lambda key, value: f"{key}: {json.dumps(value)}"))


def as_properties(template: Template) -> str:
    """Return all settings with their descriptions; those without a value are comments."""

    def written(key: str, value: str) -> str:
        # A value needs no escapes for `:` and `=`; without them it is easier to read.
        escaped = value.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")
        if escaped[:1].isspace():
            escaped = f"\\{escaped}"
        plain_key = _KEY_MARKS.sub(r"\\\g<0>", key)
        return f"{plain_key}={escaped}"

    return "\n".join(_described(template, written))


FORMATS = {"json": as_json, "yaml": as_yaml, "properties": as_properties}


def _described(template: Template, written: Callable[[str, str], str]) -> Iterator[str]:
    yield f"# {template.title}"
    for line in template.lines:
        if line.documentation:
            yield ""
            for part in textwrap.wrap(line.documentation, WIDTH, break_long_words=False):
                yield f"# {part}"
        if line.value is None:
            yield f"#{written(line.key, line.example)}"
        else:
            yield written(line.key, line.value)
