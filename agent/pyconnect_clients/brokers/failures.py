"""The failures of both client libraries as one value.

librdkafka and kafka-python use the same codes for answers of brokers. A package maps `FailureKind`
to its own error classes; no other module interprets codes. Retriable codes are those of a
RetriableException of Java's clients, and librdkafka's own codes for the same facts.
"""
# ruff: noqa: SLF001 - the names of librdkafka's own codes start with an underscore

from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from confluent_kafka import KafkaError, KafkaException

CLIENT_ERRORS = (KafkaException, BufferError)
"""The exceptions of confluent-kafka's calls at run time; BufferError for a full producer queue."""
REQUEST_ERRORS = (*CLIENT_ERRORS, TimeoutError)
"""The exceptions of admin requests; TimeoutError if the client itself hangs."""

PARTITION_EOF: int = KafkaError._PARTITION_EOF
FATAL: int = KafkaError._FATAL
"""The code of a client that an earlier error has ended, without that error."""
UNDELIVERED: int = KafkaError._INCONSISTENT
"""The code of a commit whose transaction has records that were not delivered."""
NO_LEADERS: int = KafkaError._NOENT
"""The code of a request for offsets while the topic's partitions have no leaders."""
TOPIC_ALREADY_EXISTS: int = KafkaError.TOPIC_ALREADY_EXISTS
INVALID_CONFIG: int = KafkaError.INVALID_CONFIG
INVALID_REPLICATION_FACTOR: int = KafkaError.INVALID_REPLICATION_FACTOR
UNSUPPORTED_VERSION: int = KafkaError.UNSUPPORTED_VERSION
GROUP_ID_NOT_FOUND: int = KafkaError.GROUP_ID_NOT_FOUND
GROUP_NOT_AUTHORIZED: int = KafkaError.GROUP_AUTHORIZATION_FAILED
TRANSACTIONAL_ID_NOT_AUTHORIZED: int = KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
UNKNOWN_TOPIC: frozenset[int] = frozenset(
    {KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC}
)
TOPIC_NOT_AUTHORIZED: frozenset[int] = frozenset(
    {KafkaError.CLUSTER_AUTHORIZATION_FAILED, KafkaError.TOPIC_AUTHORIZATION_FAILED}
)
WITHOUT_LEADER: frozenset[int] = frozenset(
    {KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.LEADER_NOT_AVAILABLE}
)
IN_USE: frozenset[int] = frozenset({KafkaError.UNKNOWN_MEMBER_ID, KafkaError.NON_EMPTY_GROUP})
"""The codes of a change to a group that has members."""
TIMEOUTS: frozenset[int] = frozenset(
    {
        KafkaError.REQUEST_TIMED_OUT,
        KafkaError._MSG_TIMED_OUT,
        KafkaError._TIMED_OUT,
        KafkaError._TIMED_OUT_QUEUE,
    }
)


class FailureKind(Enum):
    """The kinds of failures that callers treat differently; the last one is for all others."""

    RECORD_TOO_LARGE = auto()
    FENCED = auto()
    DENIED = auto()
    NOT_AUTHENTICATED = auto()
    UNREACHABLE = auto()
    COORDINATOR_MOVES = auto()
    RETRIABLE = auto()
    OTHER = auto()

    @property
    def retriable(self) -> bool:
        """Whether the same call may succeed later."""
        return self in _RETRIABLE_KINDS


_RETRIABLE_KINDS = frozenset(
    {FailureKind.UNREACHABLE, FailureKind.COORDINATOR_MOVES, FailureKind.RETRIABLE}
)

_CODES = {
    FailureKind.RECORD_TOO_LARGE: [KafkaError.MSG_SIZE_TOO_LARGE],
    FailureKind.FENCED: [
        KafkaError._FENCED,
        KafkaError.PRODUCER_FENCED,
        KafkaError.INVALID_PRODUCER_EPOCH,
    ],
    FailureKind.DENIED: [
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        KafkaError.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
        KafkaError.GROUP_AUTHORIZATION_FAILED,
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ],
    FailureKind.NOT_AUTHENTICATED: [
        KafkaError.SASL_AUTHENTICATION_FAILED,
        KafkaError._AUTHENTICATION,
    ],
    FailureKind.UNREACHABLE: [
        KafkaError.REQUEST_TIMED_OUT,
        KafkaError._ALL_BROKERS_DOWN,
        KafkaError._RESOLVE,
        KafkaError._TIMED_OUT,
        KafkaError._TRANSPORT,
    ],
    FailureKind.COORDINATOR_MOVES: [
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.NOT_COORDINATOR,
    ],
    FailureKind.RETRIABLE: [
        KafkaError.BROKER_NOT_AVAILABLE,
        KafkaError.CONCURRENT_TRANSACTIONS,
        KafkaError.ELIGIBLE_LEADERS_NOT_AVAILABLE,
        KafkaError.FENCED_LEADER_EPOCH,
        KafkaError.INVALID_MSG,  # a corrupt message: Java repeats it too
        KafkaError.KAFKA_STORAGE_ERROR,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.LISTENER_NOT_FOUND,
        KafkaError.NETWORK_EXCEPTION,
        KafkaError.NOT_CONTROLLER,
        KafkaError.NOT_ENOUGH_REPLICAS,
        KafkaError.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.OFFSET_NOT_AVAILABLE,
        KafkaError.PREFERRED_LEADER_NOT_AVAILABLE,
        KafkaError.REBALANCE_IN_PROGRESS,
        KafkaError.REPLICA_NOT_AVAILABLE,
        KafkaError.THROTTLING_QUOTA_EXCEEDED,
        KafkaError.UNKNOWN_LEADER_EPOCH,
        KafkaError.UNKNOWN_TOPIC_ID,
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError.UNSTABLE_OFFSET_COMMIT,
        KafkaError._DESTROY_BROKER,  # a broker that left the cluster with requests under way
        KafkaError._MSG_TIMED_OUT,
        KafkaError._QUEUE_FULL,
        KafkaError._RETRY,
        KafkaError._TIMED_OUT_QUEUE,
        KafkaError._UNKNOWN_PARTITION,
        KafkaError._UNKNOWN_TOPIC,
        KafkaError._WAIT_CACHE,
        KafkaError._WAIT_COORD,
    ],
}
_KINDS: dict[int, FailureKind] = {code: kind for kind, codes in _CODES.items() for code in codes}


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientFailure:
    """A failure of a client; `code` is None unless a broker or librdkafka answered."""

    kind: FailureKind
    text: str
    code: int | None = None


def failure_of(failure: BaseException | Any) -> ClientFailure:
    """Return the failure of a client's exception, or of a delivery, a message or a partition.

    The texts of librdkafka's errors end with the name of their code in brackets.
    """
    error = error_of(failure)
    if error is not None:
        kind = _KINDS.get(error.code(), FailureKind.OTHER)
        if kind is FailureKind.OTHER and error.retriable():
            kind = FailureKind.RETRIABLE
        if kind.retriable and error.fatal():
            kind = FailureKind.OTHER
        return ClientFailure(kind=kind, text=error.str(), code=int(error.code()))
    text = str(failure) or type(failure).__name__
    if isinstance(failure, BufferError):
        return ClientFailure(kind=FailureKind.RETRIABLE, text=text)
    if isinstance(failure, TimeoutError):
        return ClientFailure(kind=FailureKind.UNREACHABLE, text=str(failure) or "timed out")
    if isinstance(failure, (OSError, ValueError)):
        return ClientFailure(kind=FailureKind.UNREACHABLE, text=text)
    # An answer of a broker to kafka-python has a code; the library's own errors have none.
    code = getattr(failure, "errno", None)
    kind = _KINDS.get(code or 0, FailureKind.OTHER)
    again = getattr(failure, "retriable", False)
    if again and not kind.retriable:
        kind = FailureKind.UNREACHABLE if code is None else FailureKind.RETRIABLE
    elif kind.retriable and not again:
        kind = FailureKind.OTHER
    return ClientFailure(kind=kind, text=text, code=code)


def error_of(failure: BaseException | Any) -> Any:
    """Return librdkafka's KafkaError of an exception or a delivery report, None without one."""
    if isinstance(failure, KafkaException):
        failure = failure.args[0] if failure.args else None
    return failure if isinstance(failure, KafkaError) else None


def code_of(failure: BaseException | Any) -> int | None:
    """Return librdkafka's error code of an exception or a delivery report, None without one."""
    error = error_of(failure)
    return None if error is None else int(error.code())
