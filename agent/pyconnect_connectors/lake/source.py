"""LakeSource: files to a topic."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from pyconnect_api import (
    ConnectException,
    ExactlyOnceSupport,
    SourceConnector,
    SourceOffset,
    SourcePartition,
    SourceTask,
)
from pyconnect_connectors.connectors import ConfiguredConnector
from pyconnect_connectors.lake.definitions import source_config_def
from pyconnect_connectors.lake.names import TASK_COUNT, TASK_NUMBER, URL
from pyconnect_connectors.lake.settings import SourceSettings
from pyconnect_connectors.lake.source_task import DONE_FIELD, FILE_FIELD, ROW_FIELD, LakeSourceTask
from pyconnect_connectors.lake.storage import Storage


class LakeSourceConnector(ConfiguredConnector[SourceSettings], SourceConnector):
    """Gives each task a number; a file's path says which task reads it."""

    def __init__(self) -> None:
        super().__init__(source_config_def, SourceSettings, URL)

    def problems(self, settings: SourceSettings) -> Iterable[tuple[str, str]]:
        Storage.open(settings.location, writes=False).check()
        return ()

    def task_class(self) -> type[SourceTask]:
        return LakeSourceTask

    def exactly_once_support(
        self, connector_configs: Mapping[str, str | None]
    ) -> ExactlyOnceSupport:
        """Each row has a position of its own."""
        return ExactlyOnceSupport.SUPPORTED

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        return [
            {**self._props, TASK_NUMBER: str(number), TASK_COUNT: str(max_tasks)}
            for number in range(max_tasks)
        ]

    def alter_offsets(
        self,
        connector_config: Mapping[str, str],
        offsets: Sequence[tuple[SourcePartition | None, SourceOffset | None]],
    ) -> bool:
        for partition, offset in offsets:
            if partition is None or set(partition) != {FILE_FIELD}:
                raise ConnectException(f"A partition must have the key '{FILE_FIELD}' and no other")
            if offset is None:
                continue
            row, done = offset.get(ROW_FIELD), offset.get(DONE_FIELD, False)
            is_row = isinstance(row, int) and not isinstance(row, bool) and row >= 0
            is_whole = isinstance(done, bool) and set(offset) <= {ROW_FIELD, DONE_FIELD}
            if not is_row or not is_whole:
                raise ConnectException(
                    f"An offset must have the key '{ROW_FIELD}', a number that is not negative, "
                    f"and may have the key '{DONE_FIELD}', true or false"
                )
        return True
