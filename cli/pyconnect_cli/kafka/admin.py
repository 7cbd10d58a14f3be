"""Requests to the brokers of the settings in force: ends of partitions, ACLs, raw requests.

Both clients of Kafka are imported when a command needs them (`pyconnect_clients.brokers`). Their
errors become the command line's errors here.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyconnect_cli.errors import (
    Forbidden,
    NotAuthenticated,
    PreconditionFailed,
    PyconnectError,
    ServerError,
    Unreachable,
    UsageError,
)
from pyconnect_cli.kafka.model import OffsetRange, TopicPartition
from pyconnect_clients.acls.model import OPERATIONS, RESOURCE_TYPES, Binding, Pattern

if TYPE_CHECKING:
    from confluent_kafka.admin import AdminClient

    from pyconnect_cli.session import Session
    from pyconnect_clients.brokers.protocol import KafkaProtocol
    from pyconnect_clients.brokers.requests import AdminRequests
    from pyconnect_clients.security import Security


def _no_security() -> Security:
    from pyconnect_clients.security import Security

    return Security()


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaAccess:
    """Addresses of brokers (`host:port,…`) and credentials; key stores have been read."""

    bootstrap: str
    security: Security = field(default_factory=_no_security)

    @property
    def username(self) -> str | None:
        """The user name of this command; None if it does not log in with a password."""
        return None if self.security.sasl is None else self.security.sasl.username

    def librdkafka(self) -> dict[str, Any]:
        """Return librdkafka's settings: texts, and the callback of a login by token.

        UsageError when the authorization server refuses.
        """
        from pyconnect_cli.settings.given_files import property_errors_translated
        from pyconnect_clients.connections import with_token_callback
        from pyconnect_clients.security import librdkafka_settings

        settings = {**librdkafka_settings(self.security), "bootstrap.servers": self.bootstrap}
        with property_errors_translated():
            return with_token_callback(settings)

    def kafka_python(self) -> dict[str, Any]:
        """Return arguments of kafka-python's clients; UsageError for unsupported settings."""
        from pyconnect_cli.settings.given_files import property_errors_translated
        from pyconnect_clients.connections import secured_arguments

        with property_errors_translated():
            arguments = secured_arguments(self.security, self.bootstrap)
        servers = [part.strip() for part in self.bootstrap.split(",") if part.strip()]
        return {**arguments, "bootstrap_servers": servers, "client_id": "pyconnect"}


def kafka_cluster(session: Session, reason: str) -> KafkaAccess:
    """Return the brokers of the settings; PreconditionFailed with `reason` without any."""
    bootstrap = session.settings.kafka_bootstrap
    if not bootstrap:
        raise PreconditionFailed(
            reason,
            hint="give --kafka-bootstrap HOST:PORT, PYCONNECT_KAFKA_BOOTSTRAP, or"
            " kafka.bootstrap in the context",
        )
    return KafkaAccess(bootstrap=bootstrap, security=session.kafka_security)


CONTACT_S = 8.0
INTERNAL_TOPICS = frozenset({"__consumer_offsets", "__transaction_state"})


class AdminConnection:
    """An admin client that is made when it is first used; calls end within `remaining_s()`."""

    def __init__(self, settings: Mapping[str, str], remaining_s: Callable[[], float]) -> None:
        self._settings = settings
        self._remaining_s = remaining_s
        self._made: AdminClient | None = None

    def require_contact(self) -> None:
        """Raise Unreachable, with the addresses and the reason, unless a broker answers soon."""
        self._client()

    def _client(self) -> AdminClient:
        if self._made is None:
            self._made = contacted(self._settings, self._timeout_s())
        return self._made

    def _requests(self) -> AdminRequests:
        from pyconnect_clients.brokers.requests import AdminRequests

        return AdminRequests(self._client())

    def _timeout_s(self) -> float:
        return max(self._remaining_s(), 0.1)


class KafkaAdmin(AdminConnection):
    """Topics of one cluster and their offsets."""

    def partitions(self, topics: Iterable[str]) -> set[TopicPartition]:
        """Return the partitions of those topics that exist."""
        from pyconnect_clients.brokers.failures import TOPIC_NOT_AUTHORIZED, UNKNOWN_TOPIC, code_of

        found: set[TopicPartition] = set()
        with translated_errors("describe topics"):
            for name, answer in self._requests().topics(sorted(set(topics)), self._timeout_s()):
                if not isinstance(answer, BaseException):
                    found |= {TopicPartition(name, one.id) for one in answer.partitions}
                elif code_of(answer) not in UNKNOWN_TOPIC | TOPIC_NOT_AUTHORIZED:
                    raise answer
        return found

    def names(self) -> list[str]:
        """Return the topics that this command may see, without those of Kafka itself."""
        with translated_errors("list topics"):
            found = self._client().list_topics(timeout=self._timeout_s()).topics
        return sorted(name for name in found if name not in INTERNAL_TOPICS)

    def cluster_id(self) -> str:
        """Return the id of the cluster, empty from a broker that has none."""
        with translated_errors("describe the cluster"):
            return self._requests().cluster_id(self._timeout_s()) or ""

    def ends(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the end offsets of partitions; all of them must exist."""
        from pyconnect_clients.brokers.requests import LATEST

        return self._offsets(partitions, LATEST)

    def ranges(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, OffsetRange]:
        """Return the first and end offsets of partitions; all of them must exist."""
        from pyconnect_clients.brokers.requests import EARLIEST

        chosen = list(partitions)
        earliest = self._offsets(chosen, EARLIEST)
        latest = self.ends(chosen)
        return {
            partition: OffsetRange(earliest=earliest[partition], latest=latest[partition])
            for partition in chosen
        }

    def offsets_at(
        self, partitions: Iterable[TopicPartition], timestamp_ms: int
    ) -> dict[TopicPartition, int | None]:
        """Return the first offset of each partition at or after a time; None if all are older."""
        from pyconnect_clients.brokers.requests import offset_at

        found = self._offsets(partitions, offset_at(timestamp_ms))
        return {partition: None if at < 0 else at for partition, at in found.items()}

    def decided_ends(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Return each partition's last stable offset: transactions before it have ended."""
        from pyconnect_clients.brokers.requests import LATEST

        return self._offsets(partitions, LATEST, committed=True)

    def _offsets(
        self, partitions: Iterable[TopicPartition], at: Any, *, committed: bool = False
    ) -> dict[TopicPartition, int]:
        if not (chosen := list(partitions)):
            return {}
        with translated_errors("list offsets"):
            found = self._requests().offsets(chosen, at, self._timeout_s(), committed=committed)
        return {TopicPartition(*partition): offset for partition, offset in found.items()}


def contacted(settings: Mapping[str, str], timeout_s: float) -> AdminClient:
    """Return a client that has reached a broker, within CONTACT_S.

    librdkafka repeats its attempts for the whole time of a call: a wrong address would look like
    a slow cluster.
    """
    from confluent_kafka import KafkaError, KafkaException
    from confluent_kafka.admin import AdminClient

    errors: list[KafkaError] = []
    try:
        # The client's types do not include callbacks.
        client = AdminClient({**settings, "log_level": "0", "error_cb": errors.append})  # type: ignore[dict-item]
    except KafkaException as exc:
        raise UsageError(f"Kafka client properties: {exc.args[0].str()}") from exc
    limit_s = min(CONTACT_S, timeout_s)
    try:
        client.describe_cluster(request_timeout=limit_s).result()
    except KafkaException as exc:
        client.poll(0)  # `error_cb` gets the reason; the call's own error does not have it
        down = KafkaError._ALL_BROKERS_DOWN  # noqa: SLF001 - librdkafka's own codes
        reasons = [error for error in errors if error.code() != down]
        what = f"no broker answers at {settings['bootstrap.servers']} within {limit_s:.2g}s"
        raise translated(reasons[-1] if reasons else exc, what) from exc
    return client


def kafka_admin(session: Session, purpose: str) -> KafkaAdmin:
    """Return the brokers of the settings in force; PreconditionFailed when there are none."""
    cluster = kafka_cluster(
        session, f"{purpose} needs Kafka itself: REST does not report where topics begin and end"
    )
    return KafkaAdmin(cluster.librdkafka(), session.budget.remaining_s)


@contextmanager
def translated_errors(what: str) -> Iterator[None]:
    """Raise an error of librdkafka as an error of the command line."""
    from pyconnect_clients.brokers.failures import REQUEST_ERRORS

    try:
        yield
    except REQUEST_ERRORS as exc:
        raise translated(exc, what) from exc


def translated(error: object, what: str) -> PyconnectError:
    """Return an error of either client library as one of ours; `what` starts its message."""
    from pyconnect_clients.brokers.failures import FailureKind, failure_of

    failure = failure_of(error)
    text = f"Kafka: {what}: {failure.text}"
    match failure.kind:
        case FailureKind.DENIED:
            return Forbidden(text, hint="show the grant that is missing: pyconnect acls explain")
        case FailureKind.NOT_AUTHENTICATED:
            return NotAuthenticated(text, hint="see --kafka-properties")
        case FailureKind.UNREACHABLE:
            return Unreachable(text, hint="are --kafka-bootstrap and the credentials right?")
        case FailureKind.COORDINATOR_MOVES:
            hint = "its coordinator is starting or moving: run the command again"
            return Unreachable(text, hint=hint)
        case FailureKind.RETRIABLE:
            return Unreachable(text, hint="the answer is temporary: run the command again")
        case _:
            return ServerError(text)


@contextmanager
def kafka_protocol(session: Session, reason: str) -> Iterator[KafkaProtocol]:
    """Connect with the settings in force; PreconditionFailed with `reason` without brokers."""
    cluster = kafka_cluster(session, reason)
    with connected(cluster, session.budget.remaining_s) as protocol:
        yield protocol


@contextmanager
def connected(cluster: KafkaAccess, remaining_s: Callable[[], float]) -> Iterator[KafkaProtocol]:
    """Connect with one cluster; UsageError for credentials that this client cannot use."""
    from pyconnect_clients.brokers.protocol import KafkaProtocol, admin_client

    # Errors are reported once, by the call that fails.
    logging.getLogger("kafka").setLevel(logging.CRITICAL + 1)
    arguments = cluster.kafka_python()
    with ExitStack() as stack:
        with protocol_errors(f"connect with {cluster.bootstrap}"):
            contact_s = min(CONTACT_S, max(remaining_s(), 0.1))
            admin = stack.enter_context(admin_client(arguments, contact_s))
        yield KafkaProtocol(admin, remaining_s, protocol_errors)


@contextmanager
def protocol_errors(what: str) -> Iterator[None]:
    """Raise an error of kafka-python as an error of the command line."""
    from kafka.errors import KafkaError

    try:
        yield
    except (KafkaError, OSError, ValueError) as exc:
        raise translated(exc, what) from exc


def refused(code: int, what: str) -> PyconnectError:
    """Return the error for a broker's error code; `what` starts its message."""
    from kafka.errors import for_code

    return translated(for_code(code)(), what)


_ANY = 1
_NONE, _UNKNOWN_TOPIC, _NOT_AUTHORIZED, _NO_AUTHORIZER = 0, 3, 31, 54
_BEFORE_IDEMPOTENCE_FOR_ALL = (2, 8)
_ALLOW = 3
_PATTERNS = {3: Pattern.LITERAL, 4: Pattern.PREFIXED}


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedAcls:
    """The ACLs of a cluster; `bindings` None: listing is denied; `open`: there is no authorizer."""

    bindings: tuple[Binding, ...] | None = None
    open: bool = False


def list_acls(protocol: KafkaProtocol) -> ListedAcls:
    """Return all ACLs of the cluster; raises the errors of `protocol_errors`."""
    from kafka.protocol.admin import DescribeAclsRequest

    request = DescribeAclsRequest(
        resource_type_filter=_ANY,
        resource_name_filter=None,
        pattern_type_filter=_ANY,
        principal_filter=None,
        host_filter=None,
        operation=_ANY,
        permission_type=_ANY,
        min_version=1,
    )
    response = protocol.send("list ACLs", request)
    match response.error_code:
        case code if code == _NO_AUTHORIZER:
            return ListedAcls(open=True)
        case code if code == _NOT_AUTHORIZED:
            return ListedAcls()
        case code if code != _NONE:
            raise refused(code, "list ACLs")
    return ListedAcls(
        bindings=tuple(
            Binding(
                RESOURCE_TYPES[resource.resource_type],
                resource.resource_name,
                _PATTERNS[resource.pattern_type],
                acl.principal,
                acl.host,
                OPERATIONS[acl.operation],
                acl.permission_type == _ALLOW,
            )
            for resource in response.resources
            # Types of later brokers do not concern clients of a Connect cluster.
            if resource.resource_type in RESOURCE_TYPES and resource.pattern_type in _PATTERNS
            for acl in resource.acls
            if acl.operation in OPERATIONS
        )
    )


def existing_topics(protocol: KafkaProtocol, candidates: Iterable[str]) -> frozenset[str]:
    """Return the topics that this command may see, and those of `candidates` that may exist.

    A topic without the Describe grant is not listed and may exist.
    """
    from pyconnect_clients.brokers.protocol import metadata_request

    requests = [(metadata_request(None), None), (metadata_request(candidates), None)]
    listed, answered = protocol.send_all("list topics", requests)
    found = {topic.name for topic in listed.topics if topic.error_code == _NONE}
    return frozenset(
        found | {topic.name for topic in answered.topics if topic.error_code != _UNKNOWN_TOPIC}
    )


def has_old_brokers(protocol: KafkaProtocol) -> bool:
    """Return whether idempotent producers need an ACL of their own, as before Kafka 2.8."""
    return protocol.broker_version < _BEFORE_IDEMPOTENCE_FOR_ALL
