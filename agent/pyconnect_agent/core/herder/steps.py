"""The herder's asynchronous steps: each is one frozen class with its data and its continuation.

A `Request` begins, and goes on when its effect is answered; a `Waiter` is the continuation that an
effect names; a `Timer` is the continuation of `WakeAt`. `decide` calls them and knows none of them
by name, so a new step is declared in one place. After every wait a step checks its conditions
again. The texts below name stages that several steps share, for clients whose time is over.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from pyconnect_agent.core.herder.state import Operation
    from pyconnect_agent.core.herder.turn import Turn


@dataclass(frozen=True, slots=True, kw_only=True)
class Request(ABC):
    """A request with its steps; the docstring of each class has the type of its result.

    Failures are `core.errors.RequestError`s. `leaders_write`: only a leader that may write the
    config topic can serve it. `served_drained`: a worker without a group serves it too. `restarts`:
    the request is refused while the config topic asks for a rebalance.
    """

    leaders_write: ClassVar[bool] = False
    served_drained: ClassVar[bool] = False
    restarts: ClassVar[bool] = False

    @property
    def lane(self) -> str | None:
        """The queue whose requests run one after another; None does not queue."""
        return None

    @abstractmethod
    def begin(self, turn: Turn, operation: Operation) -> None:
        """Take the first step."""

    def resumed(self, turn: Turn, operation: Operation, result: Any) -> None:
        """Go on: the effect of the operation's step has succeeded."""
        turn.succeed(operation)

    def failed(self, turn: Turn, operation: Operation, error: Exception) -> None:
        """Answer, or go on: the effect of the operation's step has failed."""
        turn.fail(operation, error)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorRequest(Request):
    """A request that waits for earlier ones about the same connector."""

    connector: str

    @property
    def lane(self) -> str | None:
        return self.connector


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiter(ABC):
    """The continuation of one effect, for its answer."""

    @abstractmethod
    def done(self, turn: Turn, result: Any) -> None:
        """Go on. The docstring of the effect describes `result`."""

    @abstractmethod
    def failed(self, turn: Turn, error: Exception) -> None:
        """Go on without the effect."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resume(Waiter):
    """The continuation of a request's operation, unless it has ended meanwhile."""

    request_id: int

    def done(self, turn: Turn, result: Any) -> None:
        operation = turn.operations.get(self.request_id)
        if operation is not None and not turn.refused_in_dispute(operation):
            operation.request.resumed(turn, operation, result)

    def failed(self, turn: Turn, error: Exception) -> None:
        operation = turn.operations.get(self.request_id)
        if operation is not None:
            operation.request.failed(turn, operation, error)


@dataclass(frozen=True, slots=True, kw_only=True)
class Timer(ABC):
    """The continuation at a time. Timers are never cancelled: a stale one finds a changed state."""

    @abstractmethod
    def due(self, turn: Turn) -> None:
        """Go on: the time has come."""


INITIALIZING = "initializing and reading to the end of internal topics"
ENSURING_MEMBERSHIP = "ensuring membership in the cluster"
READING_CONFIG = "reading to the end of the config topic"
FLUSHING_STATUSES = "flushing updates to the status topic"
SHUTTING_DOWN = "shutting down"


def writing_task_configs(connector: str, count: int) -> str:
    return f"writing {count} task configs for connector {connector} to the config topic"


def fencing(connector: str) -> str:
    return f"performing a round of zombie fencing for connector {connector}"


STARTING_CONNECTOR = "starting the connector"
