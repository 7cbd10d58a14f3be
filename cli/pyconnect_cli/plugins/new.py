"""`plugins new`: a project of a source and a sink that passes its tests.

The texts below are whole files; only the names in them change.
"""

import re
from importlib.util import find_spec
from keyword import iskeyword
from pathlib import Path
from typing import Annotated

import typer

from pyconnect_cli.errors import UsageError
from pyconnect_cli.session import session_of
from pyconnect_cli.verbs import ChangingVerb, argument

app = typer.Typer()

_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")

_PROJECT = """\
[build-system]
requires = ["setuptools>=77"]
build-backend = "setuptools.build_meta"

[project]
name = "@name@"
version = "0.1.0"
requires-python = ">=3.11"

[project.entry-points."pyconnect.connectors"]
@Class@Source = "@module@:@Class@SourceConnector"
@Class@Sink = "@module@:@Class@SinkConnector"

[tool.setuptools]
py-modules = ["@module@"]
"""

_MODULE = '''\
"""@Class@Source makes numbered records; @Class@Sink appends batches of values to a file."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pyconnect_api import (
    STRING_SCHEMA,
    BackOff,
    BatchingSinkTask,
    ExactlyOnceSupport,
    SinkConnector,
    SinkRecord,
    SourceConnector,
    SourceRecord,
    SourceTask,
    setting,
)


@dataclass(frozen=True)
class SourceConfig:
    topic: str = setting("Topic to write to.")
    records_per_poll: int = setting("Records of a poll.", default=10, at_least=1)
    records: int = setting("Records until the source has nothing to read.", default=100, at_least=0)


class @Class@SourceTask(SourceTask):
    config_class = SourceConfig
    config: SourceConfig

    def start(self, props: Mapping[str, str]) -> None:
        super().start(props)
        stored = self.context.offset_storage_reader.offset({"source": "numbers"})
        self.next = int(str(stored["next"])) if stored else 0
        self.idle = BackOff(max_ms=1000)

    def poll(self) -> Sequence[SourceRecord] | None:
        end = min(self.next + self.config.records_per_poll, self.config.records)
        if self.next >= end:
            self.idle.wait(self.context.stop_requested)
            return None
        self.idle.reset()
        numbers, self.next = range(self.next, end), end
        self.context.metrics.counter("numbers").increment(len(numbers))
        return [self.record(number) for number in numbers]

    def record(self, number: int) -> SourceRecord:
        return SourceRecord(
            source_partition={"source": "numbers"},
            source_offset={"next": number + 1},
            topic=self.config.topic,
            value_schema=STRING_SCHEMA,
            value=f"record {number}",
        )


class @Class@SourceConnector(SourceConnector):
    task_type = @Class@SourceTask
    config_class = SourceConfig

    def exactly_once_support(
        self, connector_configs: Mapping[str, str | None]
    ) -> ExactlyOnceSupport:
        # The stored offset is enough to continue without loss and without repetition.
        return ExactlyOnceSupport.SUPPORTED


@dataclass(frozen=True)
class SinkConfig:
    file: str = setting("File to append values to.")
    batch_records: int = setting("Most records of a batch.", default=500, at_least=1)


class @Class@SinkTask(BatchingSinkTask):
    config_class = SinkConfig
    config: SinkConfig

    def start(self, props: Mapping[str, str]) -> None:
        super().start(props)
        self.batch_records = self.config.batch_records

    def write(self, records: Sequence[SinkRecord]) -> None:
        with Path(self.config.file).open("a", encoding="utf-8") as file:
            file.write("".join(f"{record.value}\\n" for record in records))


class @Class@SinkConnector(SinkConnector):
    task_type = @Class@SinkTask
    config_class = SinkConfig
'''

_TEST = '''\
"""The connectors without Kafka."""

from pathlib import Path

from @module@ import @Class@SinkConnector, @Class@SourceConnector

from pyconnect_api.testing import ConnectorHarness


def test_the_source_continues_after_a_restart() -> None:
    connector = ConnectorHarness(@Class@SourceConnector, {"topic": "t", "records.per.poll": "2"})
    connector.start()
    source = connector.source()
    source.start()
    assert [record.value for record in source.poll()] == ["record 0", "record 1"]
    source.acknowledge()
    source.commit()
    source.restart()
    assert source.poll()[0].value == "record 2"


def test_the_sink_commits_only_what_it_has_written(tmp_path: Path) -> None:
    file = tmp_path / "values"
    props = {"file": str(file), "batch.records": "2"}
    connector = ConnectorHarness(@Class@SinkConnector, props)
    connector.start()
    sink = connector.sink()
    sink.start()
    for value in ("a", "b", "c"):
        sink.send(value)
    sink.deliver()
    assert file.read_text() == "a\\nb\\n"
    sink.stop()
    assert file.read_text() == "a\\nb\\nc\\n"


def test_a_wrong_config_is_refused() -> None:
    wrong = ConnectorHarness(@Class@SourceConnector, {"records.per.poll": "0"}).errors()
    assert wrong.keys() == {"topic", "records.per.poll"}
'''

_CONFIG = """\
{
  "name": "@name@-source",
  "connector.class": "@Class@Source",
  "topic": "@name@",
  "value.converter": "org.apache.kafka.connect.storage.StringConverter"
}
"""


@app.command("new", cls=ChangingVerb)
def new(
    context: typer.Context,
    name: Annotated[str, argument("NAME", "name of the project: lower-case words with dashes")],
) -> None:
    """Write a project with a source, a sink and their tests into a new directory NAME."""
    if not _NAME.fullmatch(name):
        raise UsageError(f"`{name}` is not lower-case words with dashes, such as `order-events`")
    directory, module = Path(name), name.replace("-", "_")
    if iskeyword(module) or (not directory.exists() and find_spec(module)):
        raise UsageError(
            f"`{module}` cannot be the project's module: Python has this name already",
            hint=f"choose another name, such as `{name}-connector`",
        )
    try:
        directory.mkdir()
    except FileExistsError as error:
        raise UsageError(f"{directory} exists", hint="choose another name") from error
    # `name` is words with dashes.
    module = name.replace("-", "_")
    class_name = "".join(word.capitalize() for word in name.split("-"))
    texts = {
        "pyproject.toml": _PROJECT,
        f"{module}.py": _MODULE,
        f"test_{module}.py": _TEST,
        f"{name}-source.json": _CONFIG,
    }
    files = {
        path: text.replace("@name@", name)
        .replace("@module@", module)
        .replace("@Class@", class_name)
        for path, text in texts.items()
    }
    for path, text in files.items():
        (directory / path).write_text(text, encoding="utf-8")
    output = session_of(context).output
    steps = (
        f"cd {name} && pip install -e . && pytest",
        f"pyconnect connectors try {name}-source.json",
    )
    output.document(
        {"directory": str(directory), "files": list(files)},
        text="\n".join(
            [*(str(directory / path) for path in files), "next:", *(f"  {step}" for step in steps)]
        ),
    )
