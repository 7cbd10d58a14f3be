"""A connection for raw requests of Kafka's protocol, for requests that librdkafka lacks.

kafka-python is imported when a command needs it, and by few modules (pyproject.toml lists them).
Client errors become the command line's errors here. Requests are sent unchanged, never repeated.
"""

# ruff: noqa: SLF001 - the library has no public way to send a request as it is

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pyconnect_cli.errors import (
    Forbidden,
    NotAuthenticated,
    PyconnectError,
    ServerError,
    Unreachable,
)
from pyconnect_cli.kafka.admin import CONTACT_S
from pyconnect_cli.kafka.cluster import KafkaAccess, kafka_cluster

if TYPE_CHECKING:
    from pyconnect_cli.session import Session

_AT_ONCE = 200
_AUTHENTICATION_FAILED = 58


class KafkaProtocol:
    """One cluster, connected; every request ends within `remaining_s()`."""

    # The library has no types, and no public way to send a request as it is.
    def __init__(self, admin: Any, remaining_s: Callable[[], float]) -> None:
        self.admin = admin
        self.remaining_s = remaining_s

    @property
    def broker_version(self) -> tuple[int, ...]:
        """The oldest release that has the brokers' protocol versions."""
        return tuple(self.admin._manager.broker_version)

    def brokers(self) -> list[int]:
        return [broker.node_id for broker in self.admin._manager.cluster.brokers()]

    def coordinators(self, names: Sequence[str]) -> dict[str, int]:
        """Return the broker that coordinates each transactional id."""
        from kafka.protocol.metadata import CoordinatorType

        if not names:
            return {}
        admin = self.admin
        with translated_errors("find coordinators"):
            found: dict[str, int] = admin._manager.run(
                admin._find_coordinator_ids,
                list(names),
                CoordinatorType.TRANSACTION,
            )
        return found

    def send(self, what: str, request: Any, node: int | None = None) -> Any:
        """Send to a broker, or to any; `what` starts the message of an error."""
        return self.send_all(what, [(request, node)])[0]

    def send_all(self, what: str, requests: Sequence[tuple[Any, int | None]]) -> list[Any]:
        """Send many requests, a few hundred at once; return the answers in the same order."""
        answers: list[Any] = []
        with translated_errors(what):
            for start in range(0, len(requests), _AT_ONCE):
                part = requests[start : start + _AT_ONCE]
                answers += self.admin._manager.run(self._each, part)
        return answers

    async def _each(self, requests: Sequence[tuple[Any, int | None]]) -> list[Any]:
        timeout_ms = max(1, round(self.remaining_s() * 1000))
        manager = self.admin._manager
        sent = [
            manager.send(request, node_id=node, request_timeout_ms=timeout_ms)
            for request, node in requests
        ]
        return [await future for future in sent]


@contextmanager
def kafka_protocol(session: Session, reason: str) -> Iterator[KafkaProtocol]:
    """Connect with the settings in force; PreconditionFailed with `reason` without brokers."""
    cluster = kafka_cluster(session, reason)
    with connected(cluster, session.budget.remaining_s) as protocol:
        yield protocol


@contextmanager
def connected(cluster: KafkaAccess, remaining_s: Callable[[], float]) -> Iterator[KafkaProtocol]:
    """Connect with one cluster; UsageError for credentials that this client cannot use."""
    from kafka.admin import KafkaAdminClient

    # Errors are reported once, by the call that fails.
    logging.getLogger("kafka").setLevel(logging.CRITICAL + 1)
    arguments = cluster.kafka_python()
    arguments["bootstrap_timeout_ms"] = round(min(CONTACT_S, max(remaining_s(), 0.1)) * 1000)
    # The library fails requests beyond this number, five by default.
    arguments["max_in_flight_requests_per_connection"] = _AT_ONCE + 1
    with translated_errors(f"connect with {cluster.bootstrap}"):
        admin = KafkaAdminClient(**arguments)
    try:
        yield KafkaProtocol(admin, remaining_s)
    finally:
        admin.close()


@contextmanager
def translated_errors(what: str) -> Iterator[None]:
    """Raise a client's error as ours."""
    from kafka.errors import KafkaError

    try:
        yield
    except KafkaError as exc:
        raise translated(exc, what) from exc
    except (OSError, ValueError) as exc:
        raise Unreachable(f"Kafka: {what}: {exc}", hint="is --kafka-bootstrap right?") from exc


def translated(error: Exception, what: str) -> PyconnectError:
    """Return a client's error as ours."""
    from kafka.errors import (
        AuthorizationError,
        CoordinatorLoadInProgressError,
        CoordinatorNotAvailableError,
        NotCoordinatorError,
        RetriableError,
    )

    moving = (CoordinatorLoadInProgressError, CoordinatorNotAvailableError, NotCoordinatorError)
    text = f"Kafka: {what}: {str(error) or type(error).__name__}"
    if isinstance(error, AuthorizationError):
        return Forbidden(text, hint="show the grant that is missing: pyconnect acls explain")
    if getattr(error, "errno", None) == _AUTHENTICATION_FAILED:
        return NotAuthenticated(text, hint="see --kafka-properties")
    if isinstance(error, moving):
        return Unreachable(
            text, hint="its coordinator is starting or moving: run the command again"
        )
    if isinstance(error, RetriableError):
        return Unreachable(text, hint="are --kafka-bootstrap and the credentials right?")
    return ServerError(text)


def error_of(code: int) -> Exception:
    """Return the client's error of a broker's code."""
    from kafka.errors import for_code

    error: Exception = for_code(code)()
    return error
