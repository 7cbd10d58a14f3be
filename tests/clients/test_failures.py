"""The kinds of failures, from both client libraries."""

import kafka.errors
from confluent_kafka import KafkaError, KafkaException

from pyconnect_clients.brokers.failures import FailureKind, failure_of
from tests.support.cases import cases


@cases(
    "code, kind",
    (KafkaError._TRANSPORT, FailureKind.UNREACHABLE),
    (KafkaError._AUTHENTICATION, FailureKind.NOT_AUTHENTICATED),
    (KafkaError.GROUP_AUTHORIZATION_FAILED, FailureKind.DENIED),
    (KafkaError.NOT_COORDINATOR, FailureKind.COORDINATOR_MOVES),
    (KafkaError.NOT_LEADER_FOR_PARTITION, FailureKind.RETRIABLE),
    (KafkaError.MSG_SIZE_TOO_LARGE, FailureKind.RECORD_TOO_LARGE),
    (KafkaError.PRODUCER_FENCED, FailureKind.FENCED),
    (KafkaError.INVALID_CONFIG, FailureKind.OTHER),
)
def test_a_code_of_librdkafka_has_a_kind(code: int, kind: FailureKind) -> None:
    """A code has the same kind in an exception and in the error of a delivery."""
    error = KafkaError(code)
    assert failure_of(KafkaException(error)).kind is kind
    assert failure_of(error).code == code


def test_the_libraries_agree_about_retriable_errors() -> None:
    """kafka-python's classes and our table for librdkafka agree; a fatal error is not retriable."""
    fatal = KafkaError(KafkaError._TIMED_OUT, "x", True)
    assert failure_of(fatal).kind is FailureKind.OTHER
    for name, found in vars(kafka.errors).items():
        code = getattr(found, "errno", None)
        if isinstance(code, int) and code > 0:
            assert failure_of(found()).kind.retriable is bool(found.retriable), name


@cases(
    "error, kind",
    (kafka.errors.KafkaConnectionError("refused"), FailureKind.UNREACHABLE),
    (kafka.errors.RequestTimedOutError(), FailureKind.UNREACHABLE),
    (kafka.errors.SaslAuthenticationFailedError(), FailureKind.NOT_AUTHENTICATED),
    (kafka.errors.TransactionalIdAuthorizationFailedError(), FailureKind.DENIED),
    (kafka.errors.CoordinatorLoadInProgressError(), FailureKind.COORDINATOR_MOVES),
    (kafka.errors.NotLeaderForPartitionError(), FailureKind.RETRIABLE),
    (kafka.errors.RebalanceInProgressError(), FailureKind.OTHER),
    (ConnectionRefusedError(3, "an errno that is also a code of Kafka"), FailureKind.UNREACHABLE),
    (BufferError("queue full"), FailureKind.RETRIABLE),
    (TimeoutError(), FailureKind.UNREACHABLE),
)
def test_other_errors_have_a_kind(error: Exception, kind: FailureKind) -> None:
    """Errors of kafka-python, and of Python that both libraries raise, have a kind."""
    assert failure_of(error).kind is kind
