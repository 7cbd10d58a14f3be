"""The verdict on each need: brokers' own answers first, then prediction from bindings. Pure.

A broker's answer to the client itself outweighs the prediction from listed bindings, because super
users, `allow.everyone.if.no.acl.found` and other authorizers cannot be seen from outside. An answer
holds for every client of the same principal. If no listed binding explains an answer, predictions
against that principal no longer count.

`Authorizer` predicts as StandardAuthorizerData decides (KIP-11, KIP-290). A DENY that applies wins
over every ALLOW; Read, Write, Delete and Alter imply Describe, AlterConfigs implies
DescribeConfigs, for ALLOW only. Which bindings match is looked up by name, by `*` and by the
lengths that prefixes have, so that the time of a decision does not depend on the number of
bindings.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

from pyconnect_cli.errors import ExitCode
from pyconnect_clients.acls.model import (
    CLUSTER,
    Binding,
    Evidence,
    GrantFinding,
    GrantOperation,
    GrantVerdict,
    Need,
    Pattern,
    ProbeAnswer,
    ProbeKey,
    Resource,
    ResourceType,
)
from pyconnect_clients.acls.needs import ClusterFacts, cluster_needs
from pyconnect_clients.connect_names import Phase

ANYBODY = "User:*"
ANY = "*"
IMPLYING_DESCRIBE = frozenset(
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
        self._lengths: dict[ResourceType, set[int]] = defaultdict(set)
        for binding in bindings:
            resource = Resource(binding.type, binding.name)
            if binding.pattern is Pattern.LITERAL:
                self._literal[resource].append(binding)
            else:
                self._prefixed[resource].append(binding)
                self._lengths[binding.type].add(len(binding.name))

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
        kind, name = resource
        matching = chain(
            self._literal.get(resource, ()),
            () if name == ANY else self._literal.get(Resource(kind, ANY), ()),
            *(
                self._prefixed.get(Resource(kind, name[:length]), ())
                for length in self._lengths.get(kind, ())
                if length <= len(name)
            ),
        )
        for binding in matching:
            matched = True
            if binding.principal not in (principal, ANYBODY):
                continue
            if not binding.allow:
                denies = binding.operation in (operation, GrantOperation.ALL)
                if denies and _hosted(binding, host, unknown=True):
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


def _hosted(binding: Binding, host: str | None, *, unknown: bool) -> bool:
    if binding.host == ANY:
        return True
    return unknown if host is None else binding.host == host


def implies(given: GrantOperation, operation: GrantOperation) -> bool:
    """Return whether a grant of one operation allows another one."""
    if given in (operation, GrantOperation.ALL):
        return True
    if operation is GrantOperation.DESCRIBE:
        return given in IMPLYING_DESCRIBE
    return operation is GrantOperation.DESCRIBE_CONFIGS and given is GrantOperation.ALTER_CONFIGS


OPEN = "the brokers have no authorizer: everything is allowed"


@dataclass(frozen=True, slots=True, kw_only=True)
class AclReport:
    """Everything about one phase; `not_allowed_to_look`: a cluster refused to list its ACLs."""

    phase: Phase
    findings: tuple[GrantFinding, ...]
    notes: tuple[str, ...] = ()
    not_allowed_to_look: bool = False

    @property
    def blockers(self) -> tuple[GrantFinding, ...]:
        """The needs that prevent the phase."""
        return tuple(finding for finding in self.findings if finding.blocks)

    @property
    def undecided(self) -> tuple[GrantFinding, ...]:
        """Blockers that could not be tested."""
        return tuple(finding for finding in self.findings if finding.undecided)

    def exit_code(self, *, accept_unknown: bool = False) -> ExitCode:
        """Return the exit code: 0 ready, 1 missing, 5 listing ACLs is denied, 9 undecided."""
        if self.blockers:
            return ExitCode.NEGATIVE
        if self.undecided and not accept_unknown:
            return ExitCode.FORBIDDEN if self.not_allowed_to_look else ExitCode.PRECONDITION
        return ExitCode.OK

    def to_json(self) -> dict[str, object]:
        """Return the stable form for machines."""
        counts = {verdict.value: 0 for verdict in GrantVerdict}
        for finding in self.findings:
            counts[finding.verdict.value] += 1
        return {
            "phase": self.phase.value,
            "ready": self.exit_code() is ExitCode.OK,
            "blockers": len(self.blockers),
            "undecided": len(self.undecided),
            "verdicts": counts,
            "notes": list(self.notes),
            "grants": [finding.to_json() for finding in self.findings],
        }


def check(facts: ClusterFacts, phase: Phase, evidence: Evidence) -> AclReport:
    """Return a finding for each need of `phase`: granted, missing or unknown."""
    wanted = cluster_needs(facts, phase)
    findings = assess(wanted.needs, evidence)
    return AclReport(
        phase=phase,
        findings=findings,
        notes=wanted.notes,
        not_allowed_to_look=bool(evidence.refused),
    )


def assess(needs: Sequence[Need], evidence: Evidence) -> tuple[GrantFinding, ...]:
    """Judge each need; return the findings in the order of the needs."""
    authorizers = {
        servers: Authorizer(
            bindings, super_users=evidence.super_users, allow_everyone=evidence.allow_everyone
        )
        for servers, bindings in evidence.bindings.items()
    }
    allowed: dict[tuple[str, str, Resource], list[tuple[GrantOperation, str]]] = defaultdict(list)
    unexplained: set[tuple[str, str]] = set()
    for need in needs:
        answer = _probed(need, evidence)
        if need.principal is None or answer is None or not answer.allowed:
            continue
        operation = need.rule.operation
        answered = (operation, f"{answer.evidence}, asked as the {need.rule.role.value}")
        allowed[need.servers, need.principal, need.resource].append(answered)
        authorizer = authorizers.get(need.servers)
        if authorizer is not None:
            host = evidence.hosts.get(need.owner)
            if not _decide(authorizer, need, need.principal, host).allowed:
                unexplained.add((need.servers, need.principal))
    proofs = _Proofs(allowed=allowed, unexplained=frozenset(unexplained))
    return tuple(
        GrantFinding(need=need, verdict=verdict, evidence=shown)
        for need in needs
        for verdict, shown in [_verdict(need, evidence, authorizers.get(need.servers), proofs)]
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Proofs:
    """Operations that brokers allowed, by cluster, principal and resource, with their evidence.

    `unexplained`: cluster and principal of operations that no listed binding allows.
    """

    allowed: Mapping[tuple[str, str, Resource], Sequence[tuple[GrantOperation, str]]]
    unexplained: frozenset[tuple[str, str]]

    def of(self, need: Need) -> str | None:
        """Return a broker's answer to the principal's other client, if it settles the need."""
        if need.principal is None or need.unasked:
            return None
        answers = self.allowed.get((need.servers, need.principal, need.resource), ())
        return next((text for given, text in answers if implies(given, need.rule.operation)), None)


def _probed(need: Need, evidence: Evidence) -> ProbeAnswer | None:
    """Return the brokers' answer to the need's own client."""
    # If listing ACLs is denied, the clients of all files have been asked.
    if need.unasked and need.servers not in evidence.refused:
        return None
    rule = need.rule
    return evidence.probes.get(ProbeKey(rule.role, need.owner, rule.operation, need.resource))


def _verdict(
    need: Need, evidence: Evidence, authorizer: Authorizer | None, proofs: _Proofs
) -> tuple[GrantVerdict, str]:
    """Return the verdict on a need, with its evidence."""
    probed = _probed(need, evidence)
    if probed is not None and probed.allowed is not None:
        if probed.allowed:
            return GrantVerdict.PROVEN, probed.evidence
        refusal = probed.evidence
        if authorizer is not None and need.principal is not None:
            decision = _decide(authorizer, need, need.principal, evidence.hosts.get(need.owner))
            if not decision.allowed and decision.binding is not None:
                refusal = f"{decision.reason}; {refusal}"
        return GrantVerdict.DENIED, refusal
    if proven := proofs.of(need):
        return GrantVerdict.PROVEN, proven
    if need.servers in evidence.open_clusters:
        return GrantVerdict.PROVEN, OPEN
    if authorizer is None:
        if probed is not None:
            return GrantVerdict.UNKNOWN, probed.evidence
        refused = need.servers in evidence.refused
        why = (
            "listing ACLs needs Describe on the cluster"
            if refused
            else "its brokers were not asked"
        )
        return GrantVerdict.UNKNOWN, f"{why}, and no probe decides this"
    if need.principal is None:
        return GrantVerdict.UNKNOWN, "the client's principal is not known"
    decision = _decide(authorizer, need, need.principal, evidence.hosts.get(need.owner))
    if decision.allowed:
        return GrantVerdict.PREDICTED, decision.reason
    if decision.binding is not None:
        return GrantVerdict.DENIED, decision.reason
    if (need.servers, need.principal) in proofs.unexplained:
        doubt = f"but brokers allow {need.principal} more than the ACLs do: is it a super user?"
        return GrantVerdict.UNKNOWN, f"{decision.reason}, {doubt} (--super-user)"
    return GrantVerdict.MISSING, decision.reason


def _decide(authorizer: Authorizer, need: Need, principal: str, host: str | None) -> AclDecision:
    operation = need.rule.operation
    decision = authorizer.decide(principal, operation, need.resource, host)
    creates = operation is GrantOperation.CREATE and need.resource.type is ResourceType.TOPIC
    if creates and not decision.allowed:
        # The broker checks the cluster first, then the topic: either grant is enough.
        wider = authorizer.decide(principal, operation, CLUSTER, host)
        return wider if wider.allowed else decision
    return decision
