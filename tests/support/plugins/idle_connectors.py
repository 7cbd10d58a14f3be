"""A connector that may be put to sleep, and writes down what is called."""

import subprocess
import threading
import time
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from pyconnect_api import ConfigData, ConfigProvider, ConnectException, SourceTask
from tests.support.plugins.bad_plugins import BadSourceTask
from tests.support.plugins.plain_connectors import PlainSource


class IdleSource(PlainSource):
    """`journal`: the file of calls. `made`: number of tasks.

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
    """Every value is `x`, for an hour."""

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
