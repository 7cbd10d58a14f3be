"""Errors that connectors, converters and transformations may raise or get.

    KafkaException
    ├── ConfigException              a configuration value is wrong
    └── ConnectException             the operation failed; the task or connector fails
        ├── RetriableException       the same call may succeed later; the worker repeats it
        ├── DataException            a value, schema or encoding is wrong
        │   ├── SchemaBuilderException
        │   └── SchemaProjectorException
        ├── IllegalWorkerStateException   a context was used at the wrong time
        ├── NotFoundException
        └── AlreadyExistsException

Layer: `pyconnect_api`, importable by plugins. Names and order are those of
`org.apache.kafka.connect.errors` and `org.apache.kafka.common.config`.
Callers check `retriable`, never the text.
"""

from typing import ClassVar


class KafkaException(Exception):
    """Root of every error this API defines; raise a subclass."""

    java_name: ClassVar[str] = "org.apache.kafka.common.KafkaException"
    """Class name an Apache worker prints for this error in traces and responses."""
    retriable: bool = False
    """Whether repeating the same call may succeed."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if cls.__module__ == __name__ and "java_name" not in vars(cls):
            cls.java_name = f"org.apache.kafka.connect.errors.{cls.__name__}"


class ConfigException(KafkaException):
    """A configuration value is missing, malformed or refused by its validator."""

    java_name = "org.apache.kafka.common.config.ConfigException"


class ConnectException(KafkaException):
    """The operation failed permanently; if a plugin raises it, its task or connector fails."""


class RetriableException(ConnectException):
    """The operation failed now; the worker waits and repeats the same call."""

    retriable = True


class DataException(ConnectException):
    """A value does not fit its schema, or bytes could not be converted."""


class SchemaBuilderException(DataException):
    """The parts of a schema under construction contradict each other or are incomplete."""


class SchemaProjectorException(DataException):
    """A value of one schema cannot be projected to another."""


class IllegalWorkerStateException(ConnectException):
    """A method of a task's or connector's context was called at a time when it is not allowed."""


class NotFoundException(ConnectException):
    """A named connector, task or resource does not exist."""


class AlreadyExistsException(ConnectException):
    """A named connector or resource exists already."""
