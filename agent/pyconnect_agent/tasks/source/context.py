"""The context of a source task (Kafka: WorkerSourceTaskContext).

Layer: tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pyconnect_api import OffsetStorageReader, SourceTaskContext, StopSignal, TransactionContext


class WorkerSourceTaskContext(SourceTaskContext):
    """`configs` resolves variables again at each call."""

    def __init__(
        self,
        *,
        configs: Callable[[], Mapping[str, str]],
        reader: OffsetStorageReader,
        stop_requested: StopSignal,
        transaction_context: TransactionContext | None = None,
    ) -> None:
        self._configs = configs
        self._reader = reader
        self._transaction_context = transaction_context
        self.stop_requested = stop_requested

    def configs(self) -> Mapping[str, str]:
        return self._configs()

    @property
    def offset_storage_reader(self) -> OffsetStorageReader:
        return self._reader

    @property
    def transaction_context(self) -> TransactionContext | None:
        return self._transaction_context
