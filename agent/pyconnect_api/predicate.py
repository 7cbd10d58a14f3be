"""Conditions under which a transformation applies.

Layer: api. Corresponds to Kafka Connect's ``Predicate`` (KIP-585).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from pyconnect_api.configdef import ConfigDef
    from pyconnect_api.record import ConnectRecord

R = TypeVar("R", bound="ConnectRecord")


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
        """Release what was acquired; no further calls follow."""
