"""Exceptions of Java code, as exceptions of the API whose meaning they have.

Layer: java.

    JavaFailure            what all have: the Java class and Java's trace
      JavaConnectError       ConnectException, and what derives from it
        JavaRetriableError, JavaConfigError, JavaNotFoundError, JavaAlreadyExistsError
      JavaUnsupportedError   UnsupportedOperationException
      JavaPluginError        any other
"""

from __future__ import annotations

from collections.abc import Mapping

from pyconnect_api import (
    AlreadyExistsException,
    ConfigException,
    ConnectException,
    NotFoundException,
    RetriableException,
)


class JavaFailure(Exception):
    """`java_trace` is what Java prints of the exception, `java_class` its class."""

    java_class = "java.lang.Exception"
    java_trace = ""


class JavaConnectError(JavaFailure, ConnectException):
    """A ConnectException."""


class JavaRetriableError(JavaFailure, RetriableException):
    """The call may be repeated."""


class JavaConfigError(JavaFailure, ConfigException):
    """A ConfigException."""


class JavaNotFoundError(JavaFailure, NotFoundException):
    """A NotFoundException."""


class JavaAlreadyExistsError(JavaFailure, AlreadyExistsException):
    """An AlreadyExistsException."""


class JavaUnsupportedError(JavaFailure, NotImplementedError):
    """An UnsupportedOperationException."""


class JavaPluginError(JavaFailure):
    """An exception that Kafka Connect does not know."""


_KINDS: Mapping[str, type[JavaFailure]] = {
    "retriable": JavaRetriableError,
    "config": JavaConfigError,
    "notFound": JavaNotFoundError,
    "alreadyExists": JavaAlreadyExistsError,
    "unsupported": JavaUnsupportedError,
    "connect": JavaConnectError,
}


def java_error(described: Mapping[str, str]) -> JavaFailure:
    """Return the exception that a frame describes."""
    error = _KINDS.get(described["kind"], JavaPluginError)(described["message"])
    error.java_class = described["class"]
    error.java_trace = described["trace"]
    # What logs the error prints it.
    error.add_note(described["trace"])
    return error
