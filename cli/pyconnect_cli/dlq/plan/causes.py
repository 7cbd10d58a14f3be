"""The cause of a dead letter: the headers that a worker added, without all that varies. Pure.

A worker adds error and origin as headers if the sink has
errors.deadletterqueue.context.headers.enable (KIP-298). Java workers and agents write the same
headers as texts.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import TypeAlias

from pyconnect_cli.kafka.model import TopicRecord

PREFIX = "__connect.errors."
SHAPES = 1
"""The version of `message_shape`; a replay is resumed with the version that planned it."""
LONGEST_SHAPE = 300
LONGEST_MESSAGE = 4_000
_HEX = "[0-9a-fA-F]"
_QUOTED = re.compile(r"""(?<!\w)(["'`]).*?\1(?!\w)""", re.DOTALL)
_VARYING = re.compile(
    rf"\b{_HEX}{{8}}(?:-{_HEX}{{4}}){{3}}-{_HEX}{{12}}\b"  # a UUID
    rf"|@{_HEX}{{4,}}\b"  # an object of Java, as in [B@1f2e3d
    rf"|\b(?=[a-fA-F]*\d){_HEX}{{8,}}\b"
    r"|(?<!\w)-?\d\w*(?:[.,:+-]+\d\w*)*"
    r"|\d{3,}"
)
_ROOT = re.compile(r"^Caused by: ([\w.$]+)", re.MULTILINE)


LetterContext: TypeAlias = Mapping[str, str | None]
"""The headers that the worker added to a letter, by name without their prefix."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """The facts that dead letters of a group share; empty texts without headers.

    `root` is the class of the innermost exception, `processor` that of the converter, the
    transformation or the task that failed, `topic` the original one.
    """

    stage: str
    exception: str
    root: str
    message: str
    processor: str
    topic: str


def context_of(record: TopicRecord) -> LetterContext:
    """Decode the context of a letter: it may have a stack trace, so once for each letter."""
    return {
        name.removeprefix(PREFIX): None if data is None else data.decode(errors="replace")
        for name, data in record.headers
        if name.startswith(PREFIX)
    }


def cause_of(known: LetterContext) -> Cause:
    """Return the cause of a dead letter with this context."""
    return Cause(
        stage=known.get("stage") or "",
        exception=known.get("exception.class.name") or "",
        root=_root_of(known.get("exception.stacktrace") or ""),
        message=message_shape(known.get("exception.message") or ""),
        processor=known.get("class.name") or "",
        topic=known.get("topic") or "",
    )


@lru_cache(maxsize=1_000)
def _root_of(trace: str) -> str:
    return next(reversed(_ROOT.findall(trace)), "")


@lru_cache(maxsize=10_000)
def message_shape(message: str) -> str:
    """Return a message with `…` for each quoted part and N for each number or identifier."""
    text = _QUOTED.sub(lambda found: f"{found[1]}…{found[1]}", message[:LONGEST_MESSAGE])
    return " ".join(_VARYING.sub("N", text).split())[:LONGEST_SHAPE]


@lru_cache(maxsize=10_000)
def group_id(cause: Cause) -> str:
    """Return the id of a group, the same for each listing."""
    text = json.dumps(asdict(cause), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:8]
