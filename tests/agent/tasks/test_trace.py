"""Failures that a restart cannot cure."""

from itertools import pairwise

from pyconnect_agent.core.errors import (
    AuthenticationError,
    AuthorizationError,
    KafkaError,
    ProducerFencedError,
    RetriableKafkaError,
    WorkerConfigError,
)
from pyconnect_agent.tasks.connector import TooManyTasksError
from pyconnect_agent.tasks.trace import is_permanent
from pyconnect_api import ConfigException, ConnectException, DataException, RetriableException
from tests.support.cases import cases


def caused(*errors: BaseException) -> BaseException:
    """Return the first error with the others as its causes."""
    for error, cause in pairwise(errors):
        error.__cause__ = cause
    return errors[0]


@cases(
    "error",
    ConfigException("x"),
    WorkerConfigError("x"),
    AuthorizationError("x"),
    TooManyTasksError("x"),
    caused(ConnectException("x"), AuthorizationError("y")),
    caused(ConnectException("x"), KafkaError("y"), ConfigException("z")),
)
def test_a_wrong_setting_and_a_missing_right_are_permanent(error: BaseException) -> None:
    """A permanent error counts anywhere in the chain of causes."""
    assert is_permanent(error)


@cases(
    "error",  # A broker's crash leaves these errors, also when it is found late.
    RetriableKafkaError("timed out"),
    KafkaError("fatal"),
    ProducerFencedError("x"),
    caused(ConnectException("Unrecoverable exception"), RetriableKafkaError("transport")),
    # An authorization server may be away for a minute.
    AuthenticationError("token"),
    caused(ConnectException("x"), AuthenticationError("token")),
    # An error that is marked retriable outweighs its causes.
    caused(RetriableException("later"), AuthorizationError("x")),
    DataException("x"),
    ValueError("x"),
    SystemExit(1),
)
def test_everything_else_may_pass(error: BaseException) -> None:
    """Any other failure may pass, so the restart policy applies."""
    assert not is_permanent(error)


def test_a_chain_that_bites_its_tail_ends() -> None:
    """A cyclic chain of causes, which plugin code may make, does not hang the check."""
    one, two = ValueError("one"), ValueError("two")
    one.__cause__, two.__cause__ = two, one
    assert not is_permanent(one)
