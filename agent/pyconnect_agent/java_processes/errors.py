"""Exceptions of Java code, as exceptions of the Python API with the same meaning.

Layer: java_processes.

    JavaFailure            base of all: the Java class and Java's trace
      JavaConnectError       ConnectException and its subclasses
        JavaRetriableError, JavaConfigError, JavaNotFoundError, JavaAlreadyExistsError
      JavaUnsupportedError   UnsupportedOperationException
      JavaPluginError        any other
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyconnect_api import (
    AlreadyExistsException,
    ConfigException,
    ConnectException,
    NotFoundException,
    RetriableException,
)


class JavaFailure(Exception):
    """`java_trace`: the exception as Java prints it; `java_class`: its class."""

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


def java_error(described: Mapping[str, Any]) -> JavaFailure:
    """Return the exception that a frame describes; the message may be None."""
    error = _KINDS.get(described["kind"], JavaPluginError)(described["message"] or "")
    error.java_class = described["class"]
    error.java_trace = described["trace"]
    # A logger of the error prints it.
    error.add_note(described["trace"])
    return error
