"""Facts of brokers about authorization: listed ACLs, topics, and their age."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyconnect_cli.kafka.admin import translated
from pyconnect_cli.kafka.protocol import error_of
from pyconnect_clients.acls.model import OPERATIONS, RESOURCE_TYPES, Binding, Pattern

if TYPE_CHECKING:
    from pyconnect_clients.brokers.protocol import KafkaProtocol

_ANY = 1
_NONE, _UNKNOWN_TOPIC, _NOT_AUTHORIZED, _NO_AUTHORIZER = 0, 3, 31, 54
_BEFORE_IDEMPOTENCE_FOR_ALL = (2, 8)
_ALLOW = 3
_PATTERNS = {3: Pattern.LITERAL, 4: Pattern.PREFIXED}


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedAcls:
    """`bindings` None: listing them is denied; `open`: there is no authorizer."""

    bindings: tuple[Binding, ...] | None = None
    open: bool = False


def list_acls(protocol: KafkaProtocol) -> ListedAcls:
    """Return all ACLs of the cluster; raises the errors of `translated_errors`."""
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
            raise translated(error_of(code), "list ACLs")
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
    """Return whether idempotent producers need a right of their own, as before 2.8."""
    return protocol.broker_version < _BEFORE_IDEMPOTENCE_FOR_ALL
