"""A source of pages: its methods are coroutines, its settings a dataclass, and it counts pages."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyconnect_api import STRING_SCHEMA, SourceConnector, SourceRecord, SourceTask, setting

ASYNC_SOURCE = f"{__name__}.AsyncSource"
PAUSE_S = 0.02


@dataclass(frozen=True)
class AsyncConfig:
    topic: str = setting("The topic to write to.")


class AsyncTask(SourceTask):
    config_class = AsyncConfig
    config: AsyncConfig

    async def start(self, props: Mapping[str, str]) -> None:  # type: ignore[override]
        super().start(props)
        self.loop = asyncio.get_running_loop()
        self.page = 0

    async def poll(self) -> Sequence[SourceRecord]:  # type: ignore[override]
        await asyncio.sleep(PAUSE_S)
        assert asyncio.get_running_loop() is self.loop
        self.page += 1
        self.context.metrics.counter("pages", {"kind": "even"}).increment()
        self.context.metrics.gauge("last-page", {"kind": "even"}).set(self.page)
        offset = {"page": self.page}
        return [SourceRecord({}, offset, self.config.topic, 0, None, None, STRING_SCHEMA, "a page")]


class AsyncSource(SourceConnector):
    task_type = AsyncTask
    config_class = AsyncConfig
