"""Connectors and tasks that behave as their config says, mostly badly.

`BlockingConverter` delays a task before its producer exists: while `hold` is in its `directory`,
configuring waits; `held` then appears in it.

A source that writes the level of the logger `tests.levels` in its process to `file`.
"""

import logging
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Collection, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pyconnect_agent.builtin.converters.base import StringConverter
from pyconnect_api import (
    ConfigData,
    ConfigDef,
    ConfigException,
    ConfigProvider,
    ConfigType,
    ConnectException,
    Importance,
    SinkRecord,
    SinkTask,
    SourceRecord,
    SourceTask,
)
from tests.support.plugins.plain_connectors import (
    PlainSink,
    PlainSinkTask,
    PlainSource,
    PlainSourceTask,
)

LOG = logging.getLogger(__name__)


def misbehave(how: str | None) -> None:
    """Do the fault called `how`; None and unknown words do nothing."""
    match how:
        case "raise":
            raise ValueError("no good")
        case "raise-much":
            raise ValueError("begin" + "x" * 5_000_000 + "end")
        case "connect-exception":
            raise ConnectException("bad config") from OSError("disk on fire")
        case "config-exception":
            raise ConfigException("wrong on purpose")
        case "exit":
            os._exit(7)
        case "log-and-abort":
            LOG.warning("the last line before the end")
            os.abort()
        case "sys-exit":
            sys.exit(9)
        case "abort":
            os.abort()
        case "hang":
            threading.Event().wait()
        case "log-in-thread":
            threading.Thread(target=LOG.warning, args=("from a thread",)).start()
        case "hold-the-interpreter":
            # The expression backtracks for ages, and no other thread can run meanwhile.
            re.match(r"(a+)+$", "a" * 64 + "b")


class BadSourceTask(PlainSourceTask):
    def start(self, props: Mapping[str, str]) -> None:
        self.props = props
        if text := props.get("log"):
            LOG.warning("as the config says", extra={"said": text})
        if props.get("task.start") == "quote":
            raise ConnectException(f"no entry for {props['login'].partition(':')[2]}")
        misbehave(props.get("task.start"))

    def poll(self) -> Sequence[SourceRecord] | None:
        misbehave(self.props.get("poll"))
        self.context.stop_requested.wait(0.1)
        return None

    def stop(self) -> None:
        misbehave(self.props.get("task.stop"))


class Mode(StrEnum):
    FAST = "fast"


ODD_CONFIGS: Mapping[str, Any] = {
    "enum": (MappingProxyType({Mode.FAST: Mode.FAST, "none": None}),),
    "number": [{"port": 5432}],
    "key": [{1: "x"}],
    "none": None,
}


class BadSource(PlainSource):
    """Settings for `misbehave`: start, stop, validate, configs, task.start, poll, task.stop.

    `task.start=quote` raises an error with the text after the colon in `login`. `odd` names the
    task configs of `ODD_CONFIGS`. `validate=odd` adds an error message that is not a text.
    """

    def version(self) -> str:
        return "0.9"

    def start(self, props: Mapping[str, str]) -> None:
        self.props = props
        misbehave(props.get("start"))
        if props.get("report"):
            self.context.raise_error(ConnectException(props["report"]))
        if props.get("reconfigure"):
            self.context.request_task_reconfiguration()

    def task_class(self) -> type[SourceTask]:
        return BadSourceTask

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        misbehave(self.props.get("configs"))
        if odd := self.props.get("odd"):
            return ODD_CONFIGS[odd]
        return [{**self.props, "number": str(n)} for n in range(int(self.props.get("made", "1")))]

    def stop(self) -> None:
        misbehave(self.props.get("stop"))

    def config(self) -> ConfigDef:
        return ConfigDef().define("start", ConfigType.STRING, default="", importance=Importance.LOW)

    def validate(self, connector_configs: Mapping[str, str | None]):  # type: ignore[no-untyped-def]
        misbehave(connector_configs.get("validate"))
        found = super().validate(connector_configs)
        if connector_configs.get("validate") == "odd":
            found.config_values[0].error_messages.append(OSError("not a text"))  # type: ignore[arg-type]
        return found


class BadSinkTask(PlainSinkTask):
    def start(self, props: Mapping[str, str]) -> None:
        self.props = props

    def put(self, records: Sequence[SinkRecord]) -> None:
        if records:
            misbehave(self.props.get("put"))

    def stop(self) -> None:
        misbehave(self.props.get("task.stop"))


class BadSink(PlainSink):
    """A sink with settings `put` and `task.stop`: see `misbehave`."""

    def task_class(self) -> type[SinkTask]:
        return BadSinkTask


class ConnectorForTaskSource(BadSource):
    """A source that names a class of the wrong kind for its tasks."""

    def task_class(self) -> type[SourceTask]:
        return BadSource  # type: ignore[return-value]


class AbstractTask(SourceTask):
    """A task that lacks abstract methods, so it cannot be constructed."""


class AbstractTaskSource(BadSource):
    def task_class(self) -> type[SourceTask]:
        return AbstractTask


class ChoosingSource(BadSource):
    """A source that names the class of its tasks by its config, which it has after its start."""

    def task_class(self) -> type[SourceTask]:
        return super().task_class() if self.props["chosen"] == "plain" else AbstractTask


class NumberedSource(BadSource):
    """A source whose version is not a text."""

    def version(self) -> str:
        return (1, 2)  # type: ignore[return-value]


class OddKeySource(BadSource):
    """A source with a key whose order in its group is too large for any message."""

    def config(self) -> ConfigDef:
        return ConfigDef().define(
            "odd", ConfigType.STRING, importance=Importance.LOW, group="g", order_in_group=2**80
        )


class UnconstructibleSource(BadSource):
    def __init__(self) -> None:
        raise OSError("no licence")


BAD_SOURCE = f"{__name__}.BadSource"


def bad_source(**settings: str) -> dict[str, str]:
    """Return the config of a connector `c` that behaves as `settings` say, with `_` for `.`."""
    config = {"name": "c", "connector.class": BAD_SOURCE, "tasks.max": "1"}
    return config | {name.replace("_", "."): value for name, value in settings.items()}


HOLD = "hold"
HELD = "held"
POLL_S = 0.05


class BlockingConverter(StringConverter):
    def configure(self, configs: Mapping[str, object], is_key: bool) -> None:
        super().configure(configs, is_key)
        directory = Path(str(configs["directory"]))
        while (directory / HOLD).exists():
            (directory / HELD).touch()
            time.sleep(POLL_S)


BLOCKING_CONVERTER = f"{__name__}.{BlockingConverter.__name__}"


class IdleSource(PlainSource):
    """A connector that may sleep. `journal`: the file of calls. `made`: number of tasks.

    `own`: work of its own, a `thread` or a `process`. The thread asks for new task configs when the
    file `ask` appears. `refuse`: a file with which `start` fails. `stop=raise`: `stop` fails.
    """

    def start(self, props: Mapping[str, str]) -> None:
        super().start(props)
        self._note("start")
        if Path(props.get("refuse", "/no such file")).exists():
            raise ConnectException("refused this time")
        match props.get("own"):
            case "thread":
                threading.Thread(target=self._monitor, daemon=True).start()
            case "process":
                subprocess.Popen(["sleep", "600"])

    def task_class(self) -> type[SourceTask]:
        return BadSourceTask

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        self._note("configs")
        return super().task_configs(int(self.props.get("made", max_tasks)))

    def stop(self) -> None:
        self._note("stop")
        if self.props.get("stop") == "raise":
            raise ConnectException("does not stop")

    def _note(self, call: str) -> None:
        with Path(self.props["journal"]).open("a") as journal:
            journal.write(f"{call}\n")

    def _monitor(self) -> None:
        while not Path(self.props["ask"]).exists():
            time.sleep(0.05)
        self.context.request_task_reconfiguration()
        threading.Event().wait()


class ExpiringProvider(ConfigProvider):
    """A provider whose every value is `x`, for an hour."""

    def get(self, path: str, keys: Collection[str] | None = None) -> ConfigData:
        return ConfigData(data=dict.fromkeys(keys or (), "x"), ttl_ms=3_600_000)


def idle_source(name: str, directory: Path, **settings: str) -> dict[str, str]:
    """Return a config whose journal is the file `name` in `directory`."""
    return {
        "name": name,
        "connector.class": f"{__name__}.IdleSource",
        "tasks.max": "1",
        "journal": str(directory / name),
        "ask": str(directory / f"{name}-ask"),
        **{key.replace("_", "."): value for key, value in settings.items()},
    }


LEVEL_SOURCE = f"{__name__}.LevelSource"
LOGGER = "tests.levels"


class LevelTask(PlainSourceTask):
    def start(self, props: Mapping[str, str]) -> None:
        self._file = Path(props["file"])

    def poll(self) -> Sequence[SourceRecord] | None:
        level = logging.getLogger(LOGGER).getEffectiveLevel()
        self._file.write_text(logging.getLevelName(level))
        self.context.stop_requested.wait(0.05)
        return None


class LevelSource(PlainSource):
    def task_class(self) -> type[SourceTask]:
        return LevelTask
