"""A source that writes to `file` which level the logger `tests.levels` has in its process."""

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path

from pyconnect_api import SourceRecord, SourceTask
from tests.support.plugins.plain_connectors import PlainSource, PlainSourceTask

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
