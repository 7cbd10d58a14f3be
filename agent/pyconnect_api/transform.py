"""Single message transformations, and predicates on which they depend.

Corresponds to Kafka Connect's ``Transformation`` (KIP-66). Each task has its own instances, used by
that task's thread only. Predicates are Kafka's ``Predicate`` (KIP-585).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from pyconnect_api.configdef import ConfigDef
    from pyconnect_api.record import ConnectRecord


R = TypeVar("R", bound="ConnectRecord")


class Transformation(ABC, Generic[R]):
    """Changes or drops one record at a time, between connector and converters.

    Life cycle: constructed without arguments, `configure`, any number of `apply`,
    `close`. `config` may be called on an instance that was never configured.
    """

    def configure(self, configs: Mapping[str, object]) -> None:
        """Take the settings below ``transforms.<alias>.``, prefix removed."""

    @abstractmethod
    def apply(self, record: R) -> R | None:
        """Return the record to pass on (``record`` itself if unchanged), or None to drop it.

        Must not modify ``record``: build another one with ``record.new_record(...)``.
        """

    @abstractmethod
    def config(self) -> ConfigDef:
        """Return the definition of the settings `configure` takes."""

    def version(self) -> str | None:
        """Return the version shown by the REST API, or None when undefined."""
        return None

    def close(self) -> None:
        """Release all resources; no further calls follow."""


class Predicate(ABC, Generic[R]):
    """Tests records; used through ``transforms.<alias>.predicate``."""

    def configure(self, configs: Mapping[str, object]) -> None:
        """Take the settings below ``predicates.<alias>.``, prefix removed."""

    @abstractmethod
    def test(self, record: R) -> bool:
        """Return whether ``record`` satisfies the predicate; must not modify it."""

    @abstractmethod
    def config(self) -> ConfigDef:
        """Return the definition of the settings `configure` takes."""

    def version(self) -> str | None:
        """Return the version shown by the REST API, or None when undefined."""
        return None

    def close(self) -> None:
        """Release all resources; no further calls follow."""
