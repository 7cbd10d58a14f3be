"""The journal of changes: which user changed what, and the answer.

No Kafka counterpart. A record is a JSON object without secrets; its key in the topic is the
connector. Numbers of records grow within a topic or file.

| member | meaning |
|---|---|
| id, time_ms, worker | of the record; the worker that has carried the change out |
| user, address | of the client; no user if the worker does not ask for users |
| method, path, body | the request; a large body, or one that `after` shows, is left out |
| connector | null for changes of a worker |
| before, after | configs with secrets hidden; null: no such connector |
| before_state, after_state | target states |
| status, error | the answer, and its message if it is an error |
"""

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pyconnect_agent.core.config.effective import literal_secrets, shown_config, shown_document
from pyconnect_agent.core.ids import TargetState
from pyconnect_agent.core.java_text import json_text

LARGEST_BODY_BYTES = 65_536

Settings = Mapping[str, str | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorThen:
    """A connector at one moment; `config` None: it does not exist.

    `passwords`: keys that are secrets whatever their names are.
    """

    config: Settings | None = None
    passwords: frozenset[str] = frozenset()
    target_state: TargetState | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalQuestion:
    """A selection of records; None and 0 select all. `limit`: the number of newest records."""

    connector: str | None = None
    user: str | None = None
    since_ms: int = 0
    limit: int = 1_000

    def selects(self, record: Mapping[str, Any]) -> bool:
        return (
            self.connector in (None, record.get("connector"))
            and self.user in (None, record.get("user"))
            and record.get("time_ms", 0) >= self.since_ms
        )


def change_record(
    about: Mapping[str, Any],
    *,
    body: bytes,
    before: ConnectorThen,
    after: ConnectorThen,
    status: int,
    error: str | None,
) -> dict[str, Any]:
    """Return a record; `about` has the members that cannot hold secrets."""
    passwords = before.passwords | after.passwords
    secrets = literal_secrets(before.config or {}, passwords)
    secrets |= literal_secrets(after.config or {}, passwords)
    request: object = None
    if body and before.config == after.config and len(body) <= LARGEST_BODY_BYTES:
        try:
            request = json_text.loads(body)
        except ValueError:
            request = None
        given = request.get("config", request) if isinstance(request, dict) else {}
        texts = {k: v for k, v in given.items() if isinstance(v, str)} if given else {}
        secrets |= literal_secrets(texts, passwords)
    return {
        **about,
        "body": shown_document(request, secrets),
        "before": None if before.config is None else shown_config(before.config, passwords),
        "after": None if after.config is None else shown_config(after.config, passwords),
        "before_state": before.target_state and before.target_state.name,
        "after_state": after.target_state and after.target_state.name,
        "status": status,
        "error": shown_document(error, secrets),
    }


def selected(
    records: Iterable[tuple[int, bytes]],
    question: JournalQuestion,
    may_see: Callable[[Mapping[str, Any]], bool],
) -> list[dict[str, Any]]:
    """Return the newest of the selected records with their numbers, without unreadable ones."""
    kept: deque[dict[str, Any]] = deque(maxlen=question.limit)
    for number, text in records:
        try:
            record = json_text.loads(text)
        except ValueError:
            continue
        if isinstance(record, dict) and question.selects(record) and may_see(record):
            kept.append({"number": number, **record})
    return list(kept)
