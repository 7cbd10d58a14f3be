"""The verdict on each need, and the exit code that follows."""

from dataclasses import replace

import pytest

from pyconnect_cli.acls.plan.check import AclReport, check
from pyconnect_cli.acls.plan.grants import missing_grants
from pyconnect_cli.errors import ExitCode
from pyconnect_clients.acls.model import (
    CLUSTER,
    Binding,
    Evidence,
    GrantFinding,
    GrantOperation,
    GrantVerdict,
    Pattern,
    ProbeAnswer,
    ProbeKey,
    Resource,
    ResourceType,
    Role,
)
from pyconnect_clients.acls.needs import ClusterFacts, ConnectorFacts
from pyconnect_clients.connect_names import Phase
from tests.support.cases import cases
from tests.support.servers.secured import WORKER, sasl

SOURCE = ConnectorFacts(
    name="c", type="source", config={"topic": "records", "tasks.max": "2"}, tasks=2
)
SINK = ConnectorFacts(name="s", type="sink", config={"topics": "records"})
FACTS = ClusterFacts(
    workers=(WORKER,),
    connectors=(SOURCE, SINK),
    existing_topics={"": frozenset({"configs", "offsets", "statuses", "records"})},
)
LEADER = Resource(ResourceType.TRANSACTIONAL_ID, "connect-cluster-g")


def generated() -> tuple[Binding, ...]:
    """Return the bindings that the generator makes for all needs."""
    report = check(FACTS, Phase.ENABLED, Evidence(bindings={"": ()}))
    return tuple(
        Binding(
            grant.resource.type,
            grant.resource.name,
            grant.pattern,
            grant.principal,
            "*",
            grant.operation,
            True,
        )
        for grant in missing_grants(report.findings).grants
    )


def of_rule(report: AclReport, rule: str) -> GrantFinding:
    return next(finding for finding in report.findings if finding.need.rule.id == rule)


def test_only_blockers_decide_and_granting_all_suffices() -> None:
    """The generated grants are enough, and the exit code ignores missing grants of warnings."""
    report = check(FACTS, Phase.ENABLED, Evidence(bindings={"": generated()}))
    assert {finding.verdict for finding in report.findings} == {GrantVerdict.PREDICTED}
    assert report.exit_code() is ExitCode.OK
    bindings = tuple(
        found for found in generated() if found.operation is not GrantOperation.DESCRIBE_CONFIGS
    )
    report = check(FACTS, Phase.ENABLED, Evidence(bindings={"": bindings}))
    assert of_rule(report, "W6").verdict is GrantVerdict.MISSING
    assert report.exit_code() is ExitCode.OK


@pytest.mark.parametrize("left_out", range(len(generated())))
def test_nothing_generated_is_superfluous(left_out: int) -> None:
    """Without any one of the generated grants, needs on its resource are missing, and no others."""
    bindings = list(generated())
    without = bindings.pop(left_out)
    report = check(FACTS, Phase.ENABLED, Evidence(bindings={"": tuple(bindings)}))
    missing = [finding for finding in report.findings if not finding.verdict.granted]
    assert missing
    for finding in missing:
        assert finding.need.resource == Resource(without.type, without.name)
        assert finding.need.principal == without.principal


def test_a_deny_is_denied_and_named() -> None:
    """A prefixed DENY for all users wins over a literal ALLOW, and the finding names the DENY."""
    denial = Binding(
        ResourceType.TRANSACTIONAL_ID,
        "connect-",
        Pattern.PREFIXED,
        "User:*",
        "*",
        GrantOperation.WRITE,
        False,
    )
    report = check(FACTS, Phase.PREPARING, Evidence(bindings={"": (*generated(), denial)}))
    finding = of_rule(report, "W7")
    assert finding.verdict is GrantVerdict.DENIED
    assert str(denial) in finding.evidence
    assert report.exit_code() is ExitCode.NEGATIVE
    assert [conflict.need.rule.id for conflict in missing_grants(report.findings).conflicts] == [
        "W7"
    ]


@cases("allowed", True, False)
def test_a_brokers_answer_outweighs_the_bindings(allowed: bool) -> None:
    """A broker's answer wins over bindings, which do not show super users or other authorizers."""
    key = ProbeKey(Role.WORKER, "w", GrantOperation.WRITE, LEADER)
    probes = {key: ProbeAnswer(allowed, "asked")}
    bindings = () if allowed else generated()
    report = check(FACTS, Phase.PREPARING, Evidence(bindings={"": bindings}, probes=probes))
    verdict = GrantVerdict.PROVEN if allowed else GrantVerdict.DENIED
    assert of_rule(report, "W7").verdict is verdict


def test_a_deny_is_named_though_the_client_itself_was_refused() -> None:
    """A finding names the DENY beside the broker's refusal, because no grant would help."""
    denial = Binding(*LEADER, Pattern.LITERAL, "User:worker", "*", GrantOperation.WRITE, False)
    key = ProbeKey(Role.WORKER, "w", GrantOperation.WRITE, LEADER)
    probes = {key: ProbeAnswer(False, "the broker refused")}
    bindings = (*generated(), denial)
    report = check(FACTS, Phase.PREPARING, Evidence(bindings={"": bindings}, probes=probes))
    (conflict,) = missing_grants(report.findings).conflicts
    assert conflict.evidence == f"denied by: {denial}; the broker refused"
    plain = check(FACTS, Phase.PREPARING, Evidence(bindings={"": ()}, probes=probes))
    assert of_rule(plain, "W7").evidence == "the broker refused"
    assert missing_grants(plain.findings).conflicts == ()


def test_an_answer_to_one_client_holds_for_the_others_of_its_principal() -> None:
    """A broker's answer to one client counts for all clients with the same principal."""
    config = {
        **SOURCE.config,
        "offsets.storage.topic": "own",
        **sasl("root", "consumer.override."),
        **sasl("root", "admin.override."),
    }
    facts = replace(FACTS, connectors=(replace(SOURCE, config=config),))
    key = ProbeKey(Role.CONSUMER, "c", GrantOperation.READ, Resource(ResourceType.TOPIC, "own"))
    evidence = Evidence(bindings={"": generated()}, probes={key: ProbeAnswer(True, "it may")})
    report = check(facts, Phase.ENABLED, evidence)
    assert of_rule(report, "O2").verdict is GrantVerdict.PROVEN
    described = of_rule(report, "O3")
    assert (described.need.principal, described.verdict) == ("User:root", GrantVerdict.PROVEN)
    assert described.evidence == "it may, asked as the consumer"
    fenced = of_rule(report, "X2")
    assert fenced.need.principal == "User:root"
    assert fenced.verdict is GrantVerdict.UNKNOWN
    assert "is it a super user? (--super-user)" in fenced.evidence
    assert of_rule(check(facts, Phase.ENABLED, replace(evidence, probes={})), "X2").verdict is (
        GrantVerdict.MISSING
    )


def test_one_workers_answer_says_nothing_of_another_workers_user() -> None:
    """A broker's answer to one worker's user does not decide the needs of another worker's user."""
    other = replace(
        WORKER, name="w2", properties={**WORKER.properties, **sasl("writer2", "producer.")}
    )
    key = ProbeKey(
        Role.PRODUCER, "c", GrantOperation.WRITE, Resource(ResourceType.TRANSACTIONAL_ID, "g-c-0")
    )
    report = check(
        replace(FACTS, workers=(WORKER, other)),
        Phase.ENABLED,
        Evidence(bindings={"": generated()}, probes={key: ProbeAnswer(True, "it may")}),
    )
    found = {
        finding.need.principal: finding.verdict
        for finding in report.findings
        if finding.need.rule.id == "X1" and finding.need.resource.name == "g-c-0"
    }
    assert found == {"User:writer": GrantVerdict.PROVEN, "User:writer2": GrantVerdict.MISSING}
    assert report.exit_code() is ExitCode.NEGATIVE
    grants = missing_grants(report.findings).grants
    assert {grant.principal for grant in grants} == {"User:writer2"}


def test_what_cannot_be_seen_is_decided_by_the_brokers_words() -> None:
    """A probe without a result leaves the prediction; without an authorizer all is proven."""
    key = ProbeKey(Role.WORKER, "w", GrantOperation.WRITE, LEADER)
    probes = {key: ProbeAnswer(None, "too old")}
    report = check(FACTS, Phase.PREPARING, Evidence(bindings={"": generated()}, probes=probes))
    assert of_rule(report, "W7").verdict is GrantVerdict.PREDICTED
    unknown = check(FACTS, Phase.PREPARING, Evidence(refused=frozenset({""}), probes=probes))
    assert of_rule(unknown, "W7").evidence == "too old"
    report = check(FACTS, Phase.ENABLED, Evidence(open_clusters=frozenset({""})))
    assert {finding.verdict for finding in report.findings} == {GrantVerdict.PROVEN}


def test_undecided_blockers_are_exit_9_or_exit_5_if_listing_is_denied() -> None:
    """Unknown blockers are exit 9, or exit 5 if listing is denied, unless the user accepts them."""
    unasked = check(FACTS, Phase.ENABLED, Evidence())
    assert unasked.exit_code() is ExitCode.PRECONDITION
    assert unasked.exit_code(accept_unknown=True) is ExitCode.OK
    refused = check(FACTS, Phase.ENABLED, Evidence(refused=frozenset({""})))
    assert refused.exit_code() is ExitCode.FORBIDDEN


def test_another_cluster_that_was_not_asked_stays_unknown() -> None:
    """The bindings of the workers' cluster decide nothing about another cluster."""
    config = {**SOURCE.config, "producer.override.bootstrap.servers": "other:9092"}
    facts = replace(FACTS, connectors=(replace(SOURCE, config=config),))
    report = check(facts, Phase.ENABLED, Evidence(bindings={"": generated()}))
    assert of_rule(report, "X1").verdict is GrantVerdict.UNKNOWN
    assert of_rule(report, "X2").verdict is GrantVerdict.PREDICTED


def test_creation_may_be_granted_on_the_cluster() -> None:
    """A broker accepts Create on the cluster in place of Create on a topic."""
    facts = replace(FACTS, existing_topics={"": frozenset({"configs", "statuses", "records"})})
    create = Binding(*CLUSTER, Pattern.LITERAL, "User:worker", "*", GrantOperation.CREATE, True)
    assert of_rule(
        check(facts, Phase.DISABLED, Evidence(bindings={"": generated()})), "W5"
    ).verdict is (GrantVerdict.MISSING)
    report = check(facts, Phase.DISABLED, Evidence(bindings={"": (*generated(), create)}))
    assert of_rule(report, "W5").verdict is GrantVerdict.PREDICTED


def test_the_document_has_every_grant_with_its_reason() -> None:
    """The JSON of a grant has principal, resource, verdict, reason and the symptom if missing."""
    document = check(FACTS, Phase.PREPARING, Evidence(bindings={"": ()})).to_json()
    assert document["ready"] is False
    grants = document["grants"]
    assert isinstance(grants, list)
    (leader,) = [grant for grant in grants if grant["rule"] == "W7"]
    assert leader["principal"] == "User:worker"
    assert leader["resource"] == "connect-cluster-g"
    assert leader["verdict"] == "missing"
    assert leader["why"]
    assert leader["symptom"]
