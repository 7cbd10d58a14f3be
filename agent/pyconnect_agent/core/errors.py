"""The agent's error tree. Only `rest/errors.py` decides about HTTP statuses.

Messages say what happened, to what, and what to do next. `retriable`: the same call may succeed
later. `permanent`: it cannot succeed before a setting or a right is corrected.
"""


class AgentError(Exception):
    """Base of all errors that the agent raises on purpose."""

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
    """A failure of a Kafka client that a repeated call does not cure."""


class RetriableKafkaError(KafkaError):
    """A failure of a Kafka client after which the same call may succeed later."""

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

    Not permanent: an authorization server may be out of reach, a password may just be changing.
    """

    permanent = False


class PrivilegedWriteError(AgentError):
    """The broker refused or lost a write that only the leader may do (KIP-618)."""

    retriable = True


class PrivilegedRecordTooLargeError(PrivilegedWriteError):
    """A broker refused the leader's write because of its size; the right to write is lost too."""

    retriable = False


class RequestError(AgentError):
    """A request to the worker cannot be served."""


class BadRequestError(RequestError):
    """The request is wrong."""


class ForbiddenError(RequestError):
    """The worker's configuration or the request's signature forbids it."""


class NotFoundError(RequestError):
    """The named connector, task, plugin, logger or status does not exist."""


class AlreadyExistsError(RequestError):
    """A connector of that name exists."""


class ConflictError(RequestError):
    """A rebalance or a concurrent change is under way; the request may succeed later."""

    retriable = True


class ForwardableError(RequestError):
    """Another worker can serve the request. `target_url`: its advertised URL, None if unknown."""

    def __init__(self, message: str, *, target_url: str | None) -> None:
        super().__init__(message)
        self.target_url = target_url


class NotLeaderError(ForwardableError):
    """Only the leader can serve the request."""


class NotAssignedError(ForwardableError):
    """Only the owner can serve the request."""


class RequestTimedOutError(RequestError):
    """The request's time is over; the request may still take effect."""

    retriable = True


class ServiceUnavailableError(RequestError):
    """The worker cannot serve the request now, for example before it has started."""

    retriable = True


class InternalError(RequestError):
    """The request ends with status 500; the text is Apache's.

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
