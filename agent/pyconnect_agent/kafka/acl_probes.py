"""Ask a broker for a client's permissions without a change.

No Kafka counterpart. Uses kafka-python because librdkafka offers no raw requests. For topics and
groups a broker lists the authorized operations. For a transactional id the probe is an
InitProducerId whose producer id and epoch contradict each other. Brokers check the right to write
first (TRANSACTIONAL_ID_AUTHORIZATION_FAILED) and then refuse the arguments (INVALID_REQUEST),
before any change. The request must have version 3 or later: earlier ones lack both fields, and
would fence the producer that uses the id. Threading: one thread; calls block.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any, Self

from kafka.errors import KafkaError as ClientError
from kafka.errors import for_code
from kafka.protocol.admin import DescribeGroupsRequest
from kafka.protocol.metadata import CoordinatorType, MetadataRequest
from kafka.protocol.producer import InitProducerIdRequest

from pyconnect_agent.core.clients.configs import KafkaPythonConfig
from pyconnect_agent.core.errors import KafkaError
from pyconnect_agent.kafka.clients import client_arguments
from pyconnect_clients.acls.model import (
    OPERATIONS,
    Access,
    GrantOperation,
    GrantVerdict,
    ResourceType,
)
from pyconnect_clients.brokers.protocol import KafkaProtocol, admin_client

Answer = tuple[GrantVerdict, str]

ABSENT_TOPIC = "the topic does not exist yet"
"""The evidence of UNKNOWN for a topic that does not exist yet."""

_INVALID_REQUEST = 42
_NOT_AUTHORIZED = {29: "topic", 30: "group", 31: "cluster", 53: "transactional id"}
_UNKNOWN_TOPIC = 3
_CODES = {operation: code for code, operation in OPERATIONS.items()}


class AclProbes:
    """A connection as one principal; use as a context manager."""

    def __init__(self, config: KafkaPythonConfig, timeout_ms: int) -> None:
        """Connect; raise KafkaError if no broker accepts the client within `timeout_ms`."""
        arguments = client_arguments(config) | {"request_timeout_ms": timeout_ms}
        self._client = ExitStack()
        try:
            admin = self._client.enter_context(admin_client(arguments, timeout_ms / 1000))
        except (ClientError, OSError) as exc:
            raise KafkaError(f"Cannot connect to probe ACLs: {exc}") from exc
        self._protocol = KafkaProtocol(admin, lambda: timeout_ms / 1000)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def ask(self, accesses: Sequence[Access]) -> dict[Access, Answer]:
        """Return an answer to each, UNKNOWN with the reason for a failed request. Never raises."""
        answers: dict[Access, Answer] = {}
        for kind, question in (
            (ResourceType.TOPIC, self._topics),
            (ResourceType.GROUP, self._groups),
            (ResourceType.TRANSACTIONAL_ID, self._ids),
        ):
            chosen = [access for access in accesses if access.resource.type is kind]
            names = list(dict.fromkeys(access.resource.name for access in chosen))
            if not names:
                continue
            try:
                found = question(names)
            except (ClientError, OSError, ValueError) as exc:
                reason = f"the probe failed: {type(exc).__name__}: {exc}"
                answers |= dict.fromkeys(chosen, (GrantVerdict.UNKNOWN, reason))
            else:
                answers |= {access: _answer(access, found) for access in chosen}
        return answers

    def _topics(self, names: Sequence[str]) -> dict[str, _Seen]:
        request = MetadataRequest(
            topics=[MetadataRequest.MetadataRequestTopic(name=name) for name in names],
            allow_auto_topic_creation=False,
            include_topic_authorized_operations=True,
            min_version=8,
        )
        response = self._protocol.send("describe topics", request)
        return {
            topic.name: (topic.error_code, topic.authorized_operations) for topic in response.topics
        }

    def _groups(self, names: Sequence[str]) -> dict[str, _Seen]:
        found = {}
        for name in names:
            try:
                coordinator = self._protocol.coordinators([name], CoordinatorType.GROUP)[name]
            except ClientError as exc:
                if exc.errno not in _NOT_AUTHORIZED:
                    raise
                found[name] = (exc.errno, None)
                continue
            # From version 6 on, brokers report groups without members as not found.
            request = DescribeGroupsRequest(
                groups=[name], include_authorized_operations=True, min_version=3, max_version=5
            )
            (group,) = self._protocol.send("describe groups", request, coordinator).groups
            found[name] = (group.error_code, group.authorized_operations)
        return found

    def _ids(self, names: Sequence[str]) -> dict[str, _Seen]:
        requests = [
            InitProducerIdRequest(
                transactional_id=name,
                transaction_timeout_ms=60_000,
                producer_id=-1,
                producer_epoch=0,
                min_version=3,
            )
            for name in names
        ]
        answers = self._protocol.send_all("probe ids", [(each, None) for each in requests])
        return {name: (each.error_code, None) for name, each in zip(names, answers, strict=True)}


_Seen = tuple[int, Any]
"""A broker's error code, and the numbers of the operations that it lists, or None."""


def _answer(access: Access, found: Mapping[str, _Seen]) -> Answer:
    code, operations = found.get(access.resource.name, (None, None))
    if code is None:
        return GrantVerdict.UNKNOWN, "the broker did not answer"
    if code in _NOT_AUTHORIZED:
        if access.operation is GrantOperation.CREATE:
            return GrantVerdict.UNKNOWN, "the broker does not show the topic"
        what = _NOT_AUTHORIZED[code]
        return GrantVerdict.DENIED, f"the broker answered: {what} authorization failed ({code})"
    if access.resource.type is ResourceType.TRANSACTIONAL_ID:
        if code == _INVALID_REQUEST:
            return GrantVerdict.PROVEN, "the broker authorized it, then refused our arguments"
        return GrantVerdict.UNKNOWN, f"the broker answered {for_code(code).__name__}"
    if code == _UNKNOWN_TOPIC:
        return GrantVerdict.UNKNOWN, ABSENT_TOPIC
    if code != 0 or operations is None:
        return GrantVerdict.UNKNOWN, f"the broker answered {for_code(code).__name__}"
    if _CODES[access.operation] in operations:
        return GrantVerdict.PROVEN, "the broker lists it as authorized"
    return GrantVerdict.DENIED, "the broker does not list it as authorized"
