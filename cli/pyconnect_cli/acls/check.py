"""What is known of each need: broker's own answers first, then prediction from bindings. Pure.

What a broker answered to the client itself outweighs what the listed bindings predict, because
super users, `allow.everyone.if.no.acl.found` and other authorizers cannot be seen from outside.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyconnect_cli.acls.authorizer import Authorizer, Decision
from pyconnect_cli.acls.facts import ClusterFacts
from pyconnect_cli.acls.model import (
    CLUSTER,
    Evidence,
    Finding,
    Need,
    Operation,
    ProbeAnswer,
    ProbeKey,
    ResourceType,
    Verdict,
)
from pyconnect_cli.acls.needs import cluster_needs
from pyconnect_cli.errors import ExitCode
from pyconnect_cli.phases import Phase

OPEN = "the brokers have no authorizer: everything is allowed"


@dataclass(frozen=True, slots=True, kw_only=True)
class AclReport:
    """Everything about one phase; `not_allowed_to_look`: a cluster refused to list its ACLs."""

    phase: Phase
    findings: tuple[Finding, ...]
    notes: tuple[str, ...] = ()
    not_allowed_to_look: bool = False

    @property
    def blockers(self) -> tuple[Finding, ...]:
        """What stands in the way."""
        return tuple(finding for finding in self.findings if finding.blocks)

    @property
    def undecided(self) -> tuple[Finding, ...]:
        """Blockers that could not be tested."""
        return tuple(finding for finding in self.findings if finding.undecided)

    def exit_code(self, *, accept_unknown: bool = False) -> ExitCode:
        """Say it with cli.md's numbers: 0 ready, 1 missing, 5 may not look, 9 undecided."""
        if self.blockers:
            return ExitCode.NEGATIVE
        if self.undecided and not accept_unknown:
            return ExitCode.FORBIDDEN if self.not_allowed_to_look else ExitCode.PRECONDITION
        return ExitCode.OK

    def to_json(self) -> dict[str, object]:
        """The stable form for machines."""
        counts = {verdict.value: 0 for verdict in Verdict}
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
    """Say what each principal needs in `phase` and whether it has it."""
    wanted = cluster_needs(facts, phase)
    findings = assess(wanted.needs, evidence)
    return AclReport(
        phase=phase,
        findings=findings,
        notes=wanted.notes,
        not_allowed_to_look=bool(evidence.refused),
    )


def assess(needs: Sequence[Need], evidence: Evidence) -> tuple[Finding, ...]:
    """Judge each need; findings stand in the order of the needs."""
    authorizers = {
        servers: Authorizer(
            bindings,
            super_users=evidence.super_users,
            allow_everyone=evidence.allow_everyone,
        )
        for servers, bindings in evidence.bindings.items()
    }
    return tuple(_finding(need, evidence, authorizers.get(need.servers)) for need in needs)


def _finding(need: Need, evidence: Evidence, authorizer: Authorizer | None) -> Finding:
    rule = need.rule
    probed = None
    # Where ACLs may not be listed, the clients of all files have been asked.
    if not need.unasked or need.servers in evidence.refused:
        probed = evidence.probes.get(ProbeKey(rule.role, need.owner, rule.operation, need.resource))
    if probed is not None and probed.allowed is not None:
        verdict = Verdict.PROVEN if probed.allowed else Verdict.DENIED
        return Finding(need=need, verdict=verdict, evidence=probed.evidence)
    if need.servers in evidence.open_clusters:
        return Finding(need=need, verdict=Verdict.PROVEN, evidence=OPEN)
    if authorizer is None:
        return Finding(need=need, verdict=Verdict.UNKNOWN, evidence=_unseen(need, evidence, probed))
    if need.principal is None:
        return Finding(
            need=need, verdict=Verdict.UNKNOWN, evidence="the client's principal is not known"
        )
    decision = _decide(authorizer, need, need.principal, evidence.hosts.get(need.owner))
    if decision.allowed:
        return Finding(need=need, verdict=Verdict.PREDICTED, evidence=decision.reason)
    verdict = Verdict.MISSING if decision.binding is None else Verdict.DENIED
    return Finding(need=need, verdict=verdict, evidence=decision.reason)


def _decide(authorizer: Authorizer, need: Need, principal: str, host: str | None) -> Decision:
    operation = need.rule.operation
    decision = authorizer.decide(principal, operation, need.resource, host)
    creates = operation is Operation.CREATE and need.resource.type is ResourceType.TOPIC
    if creates and not decision.allowed:
        # The broker asks for the cluster first, then for the topic: either is enough.
        wider = authorizer.decide(principal, operation, CLUSTER, host)
        return wider if wider.allowed else decision
    return decision


def _unseen(need: Need, evidence: Evidence, probed: ProbeAnswer | None) -> str:
    if probed is not None:
        return probed.evidence
    if need.servers in evidence.refused:
        return "listing ACLs needs Describe on the cluster, and no probe decides this"
    return "its brokers were not asked, and no probe decides this"
