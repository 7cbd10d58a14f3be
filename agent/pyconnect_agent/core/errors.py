"""The agent's error tree. HTTP statuses are decided in `rest/errors.py`, nowhere else.

Messages say what happened, to what, and what to do next; `retriable` says whether the same call may
succeed later, `permanent` that it cannot before a setting or a right is corrected.
"""

from __future__ import annotations


class AgentError(Exception):
    """Base of all errors the agent raises on purpose."""

    retriable: bool = False
    permanent: bool = False

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class WorkerConfigError(AgentError):
    """The worker cannot run with this configuration; nothing was started."""

    permanent = True


class WorkerStartError(AgentError):
    """The worker could not be started; running it again may succeed."""

    retriable = True


class KafkaError(AgentError):
    """A Kafka client reported a failure that repeating does not cure."""


class RetriableKafkaError(KafkaError):
    """A Kafka client reported a failure that the same call may survive later."""

    retriable = True


class RecordTooLargeError(KafkaError):
    """A broker refused a record because of its size."""


class ProducerFencedError(KafkaError):
    """A newer producer initialised the same transactional id."""


class AuthorizationError(KafkaError):
    """The broker denied an operation; the message names operation and resource when known."""

    permanent = True


class AuthenticationError(AuthorizationError):
    """The broker, or an authorization server, did not accept the client's identity.

    Not permanent: an authorization server may be away, a password may be changed just now.
    """

    permanent = False


class PrivilegedWriteError(AgentError):
    """A write that only the leader may do was refused or lost (KIP-618)."""

    retriable = True


class PrivilegedRecordTooLargeError(PrivilegedWriteError):
    """A broker refused the leader's write because of its size; the right to write is lost too."""

    retriable = False


class RequestError(AgentError):
    """A request to the worker cannot be served."""


class BadRequestError(RequestError):
    """The request itself is wrong."""


class ForbiddenError(RequestError):
    """The worker's configuration or the request's signature forbids it."""


class NotFoundError(RequestError):
    """The named connector, task, plugin, logger or status does not exist."""


class AlreadyExistsError(RequestError):
    """A connector of that name exists."""


class ConflictError(RequestError):
    """Not now: a rebalance or a concurrent change is under way."""

    retriable = True


class ForwardableError(RequestError):
    """Another worker may do this. `target_url` is its advertised URL, None when unknown."""

    def __init__(self, message: str, *, target_url: str | None) -> None:
        super().__init__(message)
        self.target_url = target_url


class NotLeaderError(ForwardableError):
    """Only the leader may do this."""


class NotAssignedError(ForwardableError):
    """Only the owner may do this."""


class RequestTimedOutError(RequestError):
    """The request's time is over; it may still take effect."""

    retriable = True


class ServiceUnavailableError(RequestError):
    """The worker is still starting up."""

    retriable = True


class InternalError(RequestError):
    """Served with status 500; the text is Apache's.

    `cause_class`: Java's class of the cause, where an answer names it besides the text.
    """

    def __init__(
        self, message: str, *, cause_class: str | None = None, permanent: bool = False
    ) -> None:
        super().__init__(message)
        self.cause_class = cause_class
        self.permanent = permanent


class NoAnswerError(InternalError):
    """Another worker could not be reached, or ended before it answered."""

    retriable = True
