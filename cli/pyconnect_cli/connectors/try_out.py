"""`pyconnect connectors try`: a connector's first records, before the connector is created.

The command needs no worker: the agent's trial runs the connector in processes of this machine, as a
worker does; a question and an answer in JSON are the interface. `record_lines` is pure.
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from signal import SIGKILL
from typing import Annotated, Any

import typer

from pyconnect_cli.connectors.files import read_connector_files
from pyconnect_cli.connectors.plan import refuse_masked
from pyconnect_cli.errors import ExitCode, PyconnectError, UsageError
from pyconnect_cli.kafka.admin import kafka_cluster
from pyconnect_cli.kafka.reader import some_records
from pyconnect_cli.parsing.values import parse_duration, parse_json
from pyconnect_cli.rest.request import LIST_PLUGINS, told
from pyconnect_cli.session import Session, session_of
from pyconnect_cli.settings.given_files import read_given, worker_properties
from pyconnect_cli.topics import PURPOSE, record_json
from pyconnect_cli.verbs import argument, option
from pyconnect_clients.installation import install_command

app = typer.Typer()

TRIAL = "pyconnect_agent.worker.trial"
SPARE_S = 120.0
"""The time to search for plugins, added to the time for records; the trial has its own limits."""
PLUGIN_PATH = (
    "install the plugin beside this command, or name the directory that has its directory:"
    " --plugin-path DIR"
)
INDENT = 12
FRAME_BYTES = 5
MOST_CHARACTERS = 2_000


@app.command("try")
def try_connector(
    context: typer.Context,
    file: Annotated[str, argument("FILE", "connector as JSON, YAML or .properties; `-`: stdin")],
    *,
    most: Annotated[int, option("--max/-n N", "maximum number of records", least=1)] = 10,
    topic: Annotated[
        str | None, option("--topic TOPIC", "topic whose newest records a sink would get")
    ] = None,
    records: Annotated[
        str | None,
        option(
            "--records FILE", "records that a sink would get, as `topics read -o json` prints them"
        ),
    ] = None,
    worker_config: Annotated[
        str | None, option("--worker-config FILE", "worker.properties: plugins and converters")
    ] = None,
    plugin_path: Annotated[
        list[str] | None, option("--plugin-path DIR", "directory of plugin directories; repeatable")
    ] = None,
    duration: Annotated[str, option("--for TIME", "time for a source to return records")] = "15s",
) -> None:
    """Show what a connector makes of its first records, on this machine and without a worker.

    Each record is shown before and after each transformation, and as the converters write it. The
    connector has no stored offsets; nothing is produced or committed. A sink's records come from
    --topic or --records, and put is not called.
    """
    session = session_of(context)
    found = read_connector_files([file])
    if len(found) != 1:
        raise UsageError(f"{file}: try one connector at a time, not {len(found)}")
    connector = found[0]
    refuse_masked(connector)
    properties = {} if worker_config is None else worker_properties(worker_config)
    if plugin_path:
        properties = {**properties, "plugin.path": ",".join(map(str, map(Path, plugin_path)))}
    question = {
        "config": {"name": connector.name, **connector.config},
        "properties": properties,
        "given": _given(session, topic, records, most),
        "most": most,
        "time_s": parse_duration(duration, what="--for"),
    }
    answer = _ask(session, connector.name, question)
    shown: Sequence[Mapping[str, Any]] = answer["records"]
    text = [line for number, each in enumerate(shown, 1) for line in record_lines(number, each)]
    document = {"records": shown, "notes": answer["notes"]}
    if session.output.machine or text:
        session.output.document(document, text="\n".join(text), name=connector.name)
    for note in answer["notes"]:
        session.output.message(f"note: {note}")
    if answer["failure"]:
        reason, hint = told(answer["failure"])
        if hint and hint.startswith("did you mean"):
            hint = f"{hint} If not: {PLUGIN_PATH}"
        raise PyconnectError(
            f"{connector.name} failed: {reason}",
            hint=PLUGIN_PATH if hint == LIST_PLUGINS else hint,
            exit_code=ExitCode.NEGATIVE,
        )
    failing = sum(any("error" in step for step in each["steps"]) for each in shown)
    if failing:
        raise PyconnectError(
            f"{failing} of {len(shown)} records fail; a task with errors.tolerance=none would"
            " become FAILED",
            exit_code=ExitCode.NEGATIVE,
        )
    if not shown:
        session.output.message(f"no record within {duration}")


def record_lines(number: int, shown: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of a record; those of a step show only the parts that the step changed."""
    yield f"record {number}"
    before: Mapping[str, Any] = {}
    for step in shown["steps"]:
        record = step.get("record")
        if "error" in step:
            yield from _step_lines(step["step"], [f"failed: {step['error']}"])
        elif record is None:
            yield from _step_lines(step["step"], ["dropped"])
        else:
            lines = [
                f"{name}: {_shown(record[name])}"
                for name in ("topic", "partition", "timestamp")
                if record[name] != before.get(name)
            ]
            for name in ("key", "value"):
                schema = record[f"{name}_schema"]
                if (record[name], schema) != (before.get(name), before.get(f"{name}_schema")):
                    shape = f"  ({schema})" if schema else ""
                    lines.append(f"{name}: {_shown(record[name])}{shape}")
            if record["headers"] != before.get("headers", []):
                headers = [f"header {name}: {_shown(value)}" for name, value in record["headers"]]
                lines += headers or ["no headers"]
            yield from _step_lines(step["step"], lines or ["unchanged"])
            before = record
    if (kafka := shown.get("kafka")) is not None:
        lines = [f"{part}: {_shown(kafka[part])}" for part in ("key", "value")]
        lines += [f"header {each['key']}: {_shown(each['value'])}" for each in kafka["headers"]]
        yield from _step_lines("written", lines)


def _step_lines(step: str, lines: Sequence[str]) -> Iterator[str]:
    indent = max(INDENT, len(step) + 2)
    for place, line in enumerate(lines):
        yield f"  {step if not place else '':{indent}}{line}"


def _shown(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, Mapping):
        data = base64.b64decode(str(value["base64"]))
        # Converters with a schema registry begin with a zero and the schema's number.
        framed = data[0] == 0 and len(data) > FRAME_BYTES
        number = int.from_bytes(data[1:FRAME_BYTES])
        remark = f"  (schema {number} of the registry)" if framed else ""
        return _short(f"0x{data.hex()}") + remark
    return _short(str(value))


def _short(text: str) -> str:
    """Return a text for people; programs get all of it."""
    return text if len(text) <= MOST_CHARACTERS else f"{text[:MOST_CHARACTERS]}…"


def _given(
    session: Session, topic: str | None, place: str | None, most: int
) -> list[dict[str, object]] | None:
    """Return records in the form of the trial's question; None for a source."""
    if topic is not None and place is not None:
        raise UsageError("give --topic or --records, not both")
    if topic is not None:
        settings = kafka_cluster(session, PURPOSE).librdkafka()
        documents = [record_json(each) for each in some_records(settings, topic, most, newest=True)]
        return [_row(each, topic) for each in documents]
    if place is None:
        return None
    text, shown = read_given(place)
    found = parse_json(text, shown)
    if not isinstance(found, list) or not all(isinstance(each, Mapping) for each in found):
        raise UsageError(f"{shown}: must be a list of records, as `topics read -o json` prints it")
    return [_row(each, shown) for each in found[:most]]


def _row(document: Mapping[str, Any], place: str) -> dict[str, object]:
    stamp = document.get("timestamp_ms")
    try:
        return {
            "topic": str(document["topic"]),
            "partition": int(document.get("partition") or 0),
            "offset": int(document.get("offset") or 0),
            "timestamp_ms": None if stamp is None else int(stamp),
            "key": _data(document.get("key")),
            "value": _data(document["value"]),
            "headers": [
                (str(each["key"]), _data(each["value"])) for each in document.get("headers", ())
            ],
        }
    except (KeyError, TypeError, ValueError) as error:
        raise UsageError(
            f"{place}: is not a record of `topics read -o json`, with at least topic and value:"
            f" {error!r}"
        ) from error


def _data(value: object) -> str | None:
    """Return data in base64: of a text, of {"base64": TEXT}, or of other JSON as its text."""
    if value is None or (isinstance(value, Mapping) and value.keys() == {"base64"}):
        return None if value is None else str(value["base64"])
    text = value if isinstance(value, str) else json.dumps(value)
    return base64.b64encode(text.encode()).decode()


def _ask(session: Session, name: str, question: Mapping[str, Any]) -> Mapping[str, Any]:
    from pyconnect_cli.render.step_line import StepLine

    with StepLine(session.output) as progress:
        progress(f"try {name}", passing=True)
        process = subprocess.Popen(
            [sys.executable, "-m", TRIAL],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            text=True,
            errors="replace",
        )
        try:
            # The config goes over stdin, because it may hold secrets and other users can see
            # arguments.
            out, err = process.communicate(json.dumps(question), question["time_s"] + SPARE_S)
        except subprocess.TimeoutExpired:
            raise PyconnectError(f"{name}: the trial did not end in time") from None
        finally:
            # Processes that the connector has started end with the trial.
            with suppress(ProcessLookupError):
                os.killpg(process.pid, SIGKILL)
            process.wait()
    try:
        answer: Mapping[str, Any] = json.loads(out.strip().rpartition("\n")[2])
    except ValueError:
        raise PyconnectError(
            f"the trial of `{name}` ended with exit code {process.returncode}:\n{err.strip()}",
            hint=f"the agent must be installed beside this command: {install_command('agent')}",
            exit_code=ExitCode.NEGATIVE,
        ) from None
    return answer
