"""A source that writes to `file` which level the logger `tests.levels` has in its process."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path

from pyconnect_api import ConfigDef, SourceConnector, SourceRecord, SourceTask

LEVEL_SOURCE = f"{__name__}.LevelSource"
LOGGER = "tests.levels"


class LevelTask(SourceTask):
    def version(self) -> str:
        return "1"

    def start(self, props: Mapping[str, str]) -> None:
        self._file = Path(props["file"])

    def poll(self) -> Sequence[SourceRecord] | None:
        level = logging.getLogger(LOGGER).getEffectiveLevel()
        self._file.write_text(logging.getLevelName(level))
        self.context.stop_requested.wait(0.05)
        return None

    def stop(self) -> None:
        """Nothing to stop."""


class LevelSource(SourceConnector):
    def version(self) -> str:
        return "1"

    def start(self, props: Mapping[str, str]) -> None:
        self._props = props

    def task_class(self) -> type[SourceTask]:
        return LevelTask

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        return [self._props]

    def stop(self) -> None:
        """Nothing to stop."""

    def config(self) -> ConfigDef:
        return ConfigDef()
