"""The leader keeps the group's session key fresh (KIP-507).

Only while the group runs the `sessioned` protocol. Kafka: the key part of DistributedHerder.tick.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pyconnect_agent.core.group_protocol import ProtocolVersion
from pyconnect_agent.core.herder.effects import WriteSessionKey
from pyconnect_agent.core.herder.state import WritePrivilege
from pyconnect_agent.core.herder.steps import Timer, Waiter
from pyconnect_agent.core.herder.turn import Turn
from pyconnect_agent.core.session_key import key_length_bytes, needs_new_key, next_rotation_ms

RETRY_MS = 1_000


def keep_fresh(turn: Turn) -> None:
    """Write a new key when there is none, or the key is too old or of another algorithm."""
    state, settings = turn.state, turn.state.settings.session_key
    if (
        settings is None
        or state.writing_session_key
        or not state.serving
        or not state.is_leader
        or state.privilege is not WritePrivilege.HELD
        or state.membership is None
        or state.membership.assignment.version != ProtocolVersion.SESSIONED
        or not needs_new_key(
            state.snapshot.session_key,
            algorithm=settings.algorithm,
            size_bits=settings.size_bits,
            ttl_ms=settings.ttl_ms,
            now_ms=turn.now_ms,
        )
    ):
        return
    turn.update(writing_session_key=True)
    length_bytes = key_length_bytes(settings.algorithm, settings.size_bits)
    turn.ask(WriteSessionKey(algorithm=settings.algorithm, length_bytes=length_bytes), KeyWritten())


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyWritten(Waiter):
    """The session key is being written; then it is on the topic and in the snapshot."""

    def done(self, turn: Turn, result: Any) -> None:
        turn.update(writing_session_key=False)
        watch(turn)

    def failed(self, turn: Turn, error: Exception) -> None:
        turn.wake_at(turn.now_ms + RETRY_MS, SessionKeyDue())


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionKeyDue(Timer):
    """Look whether the session key has to be renewed: `keep_fresh` does, in every turn."""

    def due(self, turn: Turn) -> None:
        """A failed write may be repeated from here on."""
        turn.update(writing_session_key=False)


def watch(turn: Turn) -> None:
    """Look again when the current key has become too old, even if nothing else happens."""
    settings, key = turn.state.settings.session_key, turn.state.snapshot.session_key
    if settings is not None and key is not None:
        turn.wake_at(next_rotation_ms(key, ttl_ms=settings.ttl_ms), SessionKeyDue())
