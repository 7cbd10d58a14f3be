"""The only translation of confluent-kafka's errors into the agent's.

Layer: kafka. Callers catch `CLIENT_ERRORS` around client calls and raise `translate(…) from exc`;
above this layer there are only `core.errors`, and callers check `retriable`, never the text.
Errors that are a RetriableException of Java's clients are retriable here too, and librdkafka's own
codes for the same facts (transport, timeouts, queue full).
"""
# ruff: noqa: SLF001 - the names of librdkafka's own codes start with an underscore

from __future__ import annotations

from typing import Any

from confluent_kafka import KafkaError as ClientError
from confluent_kafka import KafkaException as ClientException

from pyconnect_agent.core import errors

CLIENT_ERRORS = (ClientException, BufferError)
"""The exceptions of confluent-kafka's calls at run time; BufferError: a full producer queue."""

PARTITION_EOF: int = ClientError._PARTITION_EOF
FATAL: int = ClientError._FATAL
"""A refusal by a client that another error has ended; that error is not in it."""
UNDELIVERED: int = ClientError._INCONSISTENT
"""The code of a commit whose transaction has records that were not delivered."""

_FENCED = frozenset(
    {
        ClientError._FENCED,
        ClientError.PRODUCER_FENCED,
        ClientError.INVALID_PRODUCER_EPOCH,
    }
)

_AUTHORIZATION = frozenset(
    {
        ClientError.CLUSTER_AUTHORIZATION_FAILED,
        ClientError.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
        ClientError.GROUP_AUTHORIZATION_FAILED,
        ClientError.TOPIC_AUTHORIZATION_FAILED,
        ClientError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    }
)

_AUTHENTICATION = frozenset({ClientError.SASL_AUTHENTICATION_FAILED, ClientError._AUTHENTICATION})

_RETRIABLE = frozenset(
    {
        ClientError.BROKER_NOT_AVAILABLE,
        ClientError.CONCURRENT_TRANSACTIONS,
        ClientError.COORDINATOR_LOAD_IN_PROGRESS,
        ClientError.COORDINATOR_NOT_AVAILABLE,
        ClientError.ELIGIBLE_LEADERS_NOT_AVAILABLE,
        ClientError.FENCED_LEADER_EPOCH,
        ClientError.INVALID_MSG,  # a corrupt message: Java repeats it too
        ClientError.KAFKA_STORAGE_ERROR,
        ClientError.LEADER_NOT_AVAILABLE,
        ClientError.LISTENER_NOT_FOUND,
        ClientError.NETWORK_EXCEPTION,
        ClientError.NOT_CONTROLLER,
        ClientError.NOT_COORDINATOR,
        ClientError.NOT_ENOUGH_REPLICAS,
        ClientError.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ClientError.NOT_LEADER_FOR_PARTITION,
        ClientError.OFFSET_NOT_AVAILABLE,
        ClientError.PREFERRED_LEADER_NOT_AVAILABLE,
        ClientError.REBALANCE_IN_PROGRESS,
        ClientError.REPLICA_NOT_AVAILABLE,
        ClientError.REQUEST_TIMED_OUT,
        ClientError.THROTTLING_QUOTA_EXCEEDED,
        ClientError.UNKNOWN_LEADER_EPOCH,
        ClientError.UNKNOWN_TOPIC_ID,
        ClientError.UNKNOWN_TOPIC_OR_PART,
        ClientError.UNSTABLE_OFFSET_COMMIT,
        ClientError._ALL_BROKERS_DOWN,
        ClientError._DESTROY_BROKER,  # a broker that left the cluster with requests under way
        ClientError._MSG_TIMED_OUT,
        ClientError._QUEUE_FULL,
        ClientError._RESOLVE,
        ClientError._RETRY,
        ClientError._TIMED_OUT,
        ClientError._TIMED_OUT_QUEUE,
        ClientError._TRANSPORT,
        ClientError._UNKNOWN_PARTITION,
        ClientError._UNKNOWN_TOPIC,
        ClientError._WAIT_CACHE,
        ClientError._WAIT_COORD,
    }
)

TOPIC_ALREADY_EXISTS: int = ClientError.TOPIC_ALREADY_EXISTS
INVALID_CONFIG: int = ClientError.INVALID_CONFIG
INVALID_REPLICATION_FACTOR: int = ClientError.INVALID_REPLICATION_FACTOR
NO_LEADERS: int = ClientError._NOENT
"""The errors of a request for offsets while the topic's partitions have no leaders."""
UNSUPPORTED_VERSION: int = ClientError.UNSUPPORTED_VERSION
GROUP_ID_NOT_FOUND: int = ClientError.GROUP_ID_NOT_FOUND
UNKNOWN_TOPIC: frozenset[int] = frozenset(
    {ClientError.UNKNOWN_TOPIC_OR_PART, ClientError._UNKNOWN_TOPIC}
)
TOPIC_NOT_AUTHORIZED: frozenset[int] = frozenset(
    {ClientError.CLUSTER_AUTHORIZATION_FAILED, ClientError.TOPIC_AUTHORIZATION_FAILED}
)
TRANSACTIONAL_ID_NOT_AUTHORIZED: int = ClientError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
GROUP_NOT_AUTHORIZED: int = ClientError.GROUP_AUTHORIZATION_FAILED
TIMEOUTS: frozenset[int] = frozenset(
    {
        ClientError.REQUEST_TIMED_OUT,
        ClientError._MSG_TIMED_OUT,
        ClientError._TIMED_OUT,
        ClientError._TIMED_OUT_QUEUE,
    }
)


def error_of(failure: BaseException | Any) -> Any:
    """Return the client's KafkaError in an exception or a delivery report; None without one."""
    if isinstance(failure, ClientException):
        failure = failure.args[0] if failure.args else None
    return failure if isinstance(failure, ClientError) else None


def code_of(failure: BaseException | Any) -> int | None:
    """Return the error code in an exception or a delivery report; None without one."""
    error = error_of(failure)
    return None if error is None else int(error.code())


def translate(
    failure: BaseException | Any, action: str, *, grant: str | None = None
) -> errors.KafkaError:
    """Turn a client's exception or delivery error into ours.

    `action` starts the message: the failed operation and its object. `grant` ends that of a denial:
    the right that lacks, and which client lacks it.
    """
    error = error_of(failure)
    if error is None:
        if isinstance(failure, (BufferError, TimeoutError)):
            return errors.RetriableKafkaError(f"{action}: {failure or 'timed out'}")
        return errors.KafkaError(f"{action}: {failure}")
    message = f"{action}: {error.str()} ({error.name()})"
    code = error.code()
    if code == ClientError.MSG_SIZE_TOO_LARGE:
        return errors.RecordTooLargeError(message)
    if code in _FENCED:
        return errors.ProducerFencedError(message)
    if code in _AUTHORIZATION:
        return errors.AuthorizationError(f"{message}. Grant {grant}." if grant else message)
    if code in _AUTHENTICATION:
        return errors.AuthenticationError(message)
    if not error.fatal() and (error.retriable() or code in _RETRIABLE):
        return errors.RetriableKafkaError(message)
    return errors.KafkaError(message)
