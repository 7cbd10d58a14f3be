"""The facts of an audited connector, and its side of a comparison. Pure values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from pyconnect_cli.rest.offset_entries import OffsetEntry

Config: TypeAlias = Mapping[str, str | None]
Document: TypeAlias = dict[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Audited:
    """A connector as its worker reports it; `topics` are those that are compared."""

    name: str
    config: Config
    topics: Sequence[str]
    offsets: Sequence[OffsetEntry]


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    """The connector's side of a compare, as members of a spec.

    `side` is the member `left` of a source and `right` of a sink. `topic` has other members of
    the topic's side, `members` other ones of the spec; options of the command line replace both.
    `secrets` are properties of the side, such as a password. They go to a file that only its owner
    may read, which the side names as `properties`. They are never in `side`, `topic` or `members`.
    """

    side: Document
    topic: Document = field(default_factory=dict)
    members: Document = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict)
