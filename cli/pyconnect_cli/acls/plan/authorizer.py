"""The decisions of a broker's StandardAuthorizer, predicted from listed bindings. Pure.

Kafka: StandardAuthorizerData (KIP-11, KIP-290). A DENY that applies wins over every ALLOW; Read,
Write, Delete and Alter imply Describe, AlterConfigs implies DescribeConfigs, for ALLOW only. Which
bindings match is looked up by name, by `*` and by the lengths that prefixes have, so that the time
of a decision does not depend on the number of bindings.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from pyconnect_clients.acls.words import Binding, GrantOperation, Pattern, Resource, ResourceType

ANYBODY = "User:*"
ANY = "*"
_IMPLY_DESCRIBE = frozenset(
    {GrantOperation.READ, GrantOperation.WRITE, GrantOperation.DELETE, GrantOperation.ALTER}
)


class AclDecision(NamedTuple):
    """A decision; `binding` is the deciding one, None if `reason` is another."""

    allowed: bool
    reason: str
    binding: Binding | None = None


class Authorizer:
    """The bindings of one Kafka cluster.

    `super_users` and `allow_everyone` (`allow.everyone.if.no.acl.found`) cannot be read from
    brokers: the user gives them.
    """

    def __init__(
        self,
        bindings: Iterable[Binding],
        *,
        super_users: frozenset[str] = frozenset(),
        allow_everyone: bool = False,
    ) -> None:
        self._super_users = super_users
        self._allow_everyone = allow_everyone
        self._literal: dict[Resource, list[Binding]] = defaultdict(list)
        self._prefixed: dict[Resource, list[Binding]] = defaultdict(list)
        lengths: dict[ResourceType, set[int]] = defaultdict(set)
        for binding in bindings:
            resource = Resource(binding.type, binding.name)
            if binding.pattern is Pattern.LITERAL:
                self._literal[resource].append(binding)
            else:
                self._prefixed[resource].append(binding)
                lengths[binding.type].add(len(binding.name))
        self._lengths = {kind: sorted(found) for kind, found in lengths.items()}

    def decide(
        self, principal: str, operation: GrantOperation, resource: Resource, host: str | None = None
    ) -> AclDecision:
        """Decide as the broker; `host` None: unknown, bindings for one host do not allow then.

        A DENY for one host counts when the host is unknown: the opposite cannot be proven.
        """
        if principal in self._super_users:
            return AclDecision(True, f"{principal} is a super user")
        matched = False
        allowing: Binding | None = None
        for binding in self._matching(resource):
            matched = True
            if binding.principal not in (principal, ANYBODY):
                continue
            if not binding.allow:
                if _hosted(binding, host, unknown=True) and _denies(binding, operation):
                    return AclDecision(False, f"denied by: {binding}", binding)
            elif (
                allowing is None
                and _hosted(binding, host, unknown=False)
                and implies(binding.operation, operation)
            ):
                allowing = binding
        if allowing is not None:
            return AclDecision(True, str(allowing), allowing)
        if matched:
            return AclDecision(False, "no ACL allows it")
        if self._allow_everyone:
            return AclDecision(True, "no ACL on it, and allow.everyone.if.no.acl.found")
        return AclDecision(False, "no ACL on it")

    def _matching(self, resource: Resource) -> Iterator[Binding]:
        kind, name = resource
        yield from self._literal.get(resource, ())
        if name != ANY:
            yield from self._literal.get(Resource(kind, ANY), ())
        for length in self._lengths.get(kind, ()):
            if length > len(name):
                break
            yield from self._prefixed.get(Resource(kind, name[:length]), ())


def _hosted(binding: Binding, host: str | None, *, unknown: bool) -> bool:
    if binding.host == ANY:
        return True
    return unknown if host is None else binding.host == host


def implies(given: GrantOperation, operation: GrantOperation) -> bool:
    """Whether a grant of one operation allows another one."""
    if given in (operation, GrantOperation.ALL):
        return True
    if operation is GrantOperation.DESCRIBE:
        return given in _IMPLY_DESCRIBE
    return operation is GrantOperation.DESCRIBE_CONFIGS and given is GrantOperation.ALTER_CONFIGS


def _denies(binding: Binding, operation: GrantOperation) -> bool:
    return binding.operation in (operation, GrantOperation.ALL)
