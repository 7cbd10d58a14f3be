"""The client of a schema registry with Confluent's API: ids, subjects, schemas.

An adapter of `confluent_kafka.schema_registry`, which needs one of the extras `avro`, `json-schema`
and `protobuf`; the only place that translates its errors. A registry that cannot be reached, is
overloaded or fails gives a RetriableException, and a refusal a DataException. Threads: an instance
serves one thread.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from pyconnect_api.errors import (
    ConfigException,
    ConnectException,
    DataException,
    RetriableException,
)

if TYPE_CHECKING:
    from confluent_kafka.schema_registry import SchemaRegistryClient

T = TypeVar("T")

_OVERLOADED = 429
_UNAUTHORIZED = (401, 403)
_DEFAULTS: Mapping[str, object] = {
    "timeout": 15,
    "max.retries": 2,
    "retries.wait.ms": 200,
    "retries.max.wait.ms": 2000,
}


@dataclass(frozen=True, slots=True)
class SchemaReference:
    """A schema that another schema imports under `name`."""

    name: str
    subject: str
    version: int


@dataclass(frozen=True, slots=True)
class RegistrySchema:
    """A schema as the registry holds it; `kind` is AVRO, JSON or PROTOBUF, `id` None if unknown."""

    id: int | None
    text: str
    kind: str
    references: tuple[SchemaReference, ...] = ()


class RegistryClient:
    """A client that looks schemas up and registers them; it caches the schemas that it has seen."""

    def __init__(self, settings: Mapping[str, object]) -> None:
        """Take the client's own settings: `url`, `basic.auth.user.info`, `ssl.ca.location`, ….

        The client does not connect yet. Raises ConfigException for wrong settings.
        """
        from confluent_kafka import schema_registry

        self._library: Any = schema_registry
        try:
            self._client: SchemaRegistryClient = schema_registry.SchemaRegistryClient(
                {**_DEFAULTS, **settings}
            )
        except (ValueError, TypeError, OSError) as error:
            raise ConfigException(f"The schema registry's settings are wrong: {error}") from error

    def register(self, subject: str, schema: RegistrySchema, *, normalize: bool) -> int:
        """Return the id of the schema in `subject`; register the schema there if it is new."""
        action, given = f"register a schema in subject {subject}", self._to_client(schema)
        register = self._client.register_schema
        return int(_call(action, lambda: register(subject, given, normalize_schemas=normalize)))

    def lookup(self, subject: str, schema: RegistrySchema, *, normalize: bool) -> int:
        """Return the id of a schema in `subject`; raise DataException if the subject lacks it."""
        action, given = f"find a schema in subject {subject}", self._to_client(schema)
        look_up = self._client.lookup_schema
        return _id(_call(action, lambda: look_up(subject, given, normalize_schemas=normalize)))

    def latest(self, subject: str) -> RegistrySchema:
        """Return the latest version in `subject`."""
        action = f"read the latest schema of subject {subject}"
        found = _call(action, lambda: self._client.get_latest_version(subject))
        return _from_client(_id(found), found.schema)

    def by_id(self, schema_id: int) -> RegistrySchema:
        """Return the schema of an id found in a message."""
        action = f"read the schema with id {schema_id}"
        found = _call(action, lambda: self._client.get_schema(schema_id))
        return _from_client(schema_id, found)

    def by_guid(self, guid: str) -> RegistrySchema:
        """Return the schema of a GUID found in a message's header."""
        action = f"read the schema with GUID {guid}"
        found = _call(action, lambda: self._client.get_schema_by_guid(guid))
        return _from_client(None, found)

    def by_version(self, subject: str, version: int) -> RegistrySchema:
        """Return one version of a subject, to which a reference refers."""
        action = f"read version {version} of subject {subject}"
        found = _call(action, lambda: self._client.get_version(subject, version))
        return _from_client(_id(found), found.schema)

    def close(self) -> None:
        self._client.close()

    def _to_client(self, schema: RegistrySchema) -> Any:  # the library is not typed
        return self._library.Schema(
            schema.text,
            schema.kind,
            [
                self._library.SchemaReference(item.name, item.subject, item.version)
                for item in schema.references
            ],
        )


def _id(found: Any) -> int:  # the library says it may be missing
    return int(found.schema_id)


def _from_client(schema_id: int | None, found: Any) -> RegistrySchema:
    references = [SchemaReference(i.name, i.subject, i.version) for i in found.references or ()]
    return RegistrySchema(
        schema_id, found.schema_str, found.schema_type or "AVRO", tuple(references)
    )


def _call(action: str, request: Callable[[], T]) -> T:
    import httpx2
    from confluent_kafka.schema_registry.error import OAuthTokenError, SchemaRegistryError

    try:
        return request()
    except SchemaRegistryError as error:
        code = error.http_status_code
        message = f"The schema registry did not {action}: {error.error_message} (HTTP {code})"
        if code >= 500 or code == _OVERLOADED:
            raise RetriableException(message) from error
        if code in _UNAUTHORIZED:
            raise ConnectException(message) from error
        raise DataException(message) from error
    except (httpx2.HTTPError, OAuthTokenError) as error:
        raise RetriableException(
            f"The schema registry could not be reached to {action}: {type(error).__name__}"
        ) from error


def confluent_meta() -> Any:
    """Return the module of Confluent's options `field_meta` and `message_meta`."""
    from confluent_kafka.schema_registry.confluent import meta_pb2

    return meta_pb2


def confluent_descriptors() -> tuple[Any, ...]:
    """Return the descriptors of the .proto files that Confluent's registries know."""
    from confluent_kafka.schema_registry.confluent.type import decimal_pb2

    return confluent_meta().DESCRIPTOR, decimal_pb2.DESCRIPTOR
