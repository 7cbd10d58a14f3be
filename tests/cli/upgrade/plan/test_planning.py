"""The legs of an upgrade, and the findings that refuse it."""

from dataclasses import replace
from pathlib import Path

from pyconnect_cli.upgrade.gather import unusable_plugins
from pyconnect_cli.upgrade.plan.checks import PhaseWish
from pyconnect_cli.upgrade.plan.decide import Plan, make_plan
from pyconnect_cli.upgrade.plan.model import (
    Brokers,
    Kind,
    KnownSettings,
    Means,
    OpenTransaction,
    PhaseSource,
    SourceFacts,
    UpgradedWorker,
    View,
)
from pyconnect_clients.connect_names import Phase
from tests.support.cases import cases
from tests.support.plugins.java_jars import SOURCE_CONNECTOR, class_file, make_jar

DISABLED, PREPARING, ENABLED = Phase


def agent(name: str, phase: Phase, **members: object) -> UpgradedWorker:
    worker = UpgradedWorker(
        url=f"http://{name}",
        kind=Kind.AGENT,
        version="4.3.1",
        cluster_id="k",
        phases=frozenset({phase}),
        source=PhaseSource.TOLD,
        instance=name,
        means=Means.AGENT,
    )
    return replace(worker, **members)  # type: ignore[arg-type]


def java(name: str, *phases: Phase, **members: object) -> UpgradedWorker:
    worker = agent(name, DISABLED, kind=Kind.JAVA, source=PhaseSource.INFERRED)
    return replace(worker, phases=frozenset(phases), **members)  # type: ignore[arg-type]


def view(*workers: UpgradedWorker, **members: object) -> View:
    led = [replace(worker, leader=at == 0) for at, worker in enumerate(workers)]
    found = View(
        group_id="g",
        cluster_id="k",
        group_state="Stable",
        protocol="sessioned",
        workers=tuple(led),
        instances={"c": "RUNNING"},
    )
    return replace(found, **members)  # type: ignore[arg-type]


def three(phase: Phase) -> tuple[UpgradedWorker, ...]:
    return tuple(agent(name, phase) for name in "abc")


def refusals(found: Plan) -> str:
    return "\n".join(f"{finding.message} / {finding.hint}" for finding in found.refused)


def warnings(found: Plan) -> str:
    return "\n".join(finding.message for finding in found.warnings)


@cases(
    "start, wish, legs",
    (DISABLED, PhaseWish(target=PREPARING), ["disabled → preparing"]),
    (PREPARING, PhaseWish(target=ENABLED), ["preparing → enabled"]),
    (ENABLED, PhaseWish(target=PREPARING), ["enabled → preparing"]),
    (PREPARING, PhaseWish(target=DISABLED), ["preparing → disabled"]),
    (ENABLED, PhaseWish(target=DISABLED), ["enabled → preparing", "preparing → disabled"]),
    (ENABLED, PhaseWish(target=DISABLED, direct=True), ["enabled → disabled"]),
    (DISABLED, PhaseWish(target=ENABLED, full_stop=True), ["disabled → enabled"]),
    (ENABLED, PhaseWish(target=DISABLED, full_stop=True), ["enabled → disabled"]),
    (PREPARING, PhaseWish(target=PREPARING), []),
    (
        PREPARING,
        PhaseWish(target=DISABLED, hard=True),
        ["preparing → disabled", "replace the software"],
    ),
    (DISABLED, PhaseWish(target=DISABLED, hard=True), ["replace the software"]),
)
def test_the_way(start: Phase, wish: PhaseWish, legs: list[str]) -> None:
    """The way up takes one phase at a time; the way down takes two legs, or one with --direct."""
    plan = make_plan(view(*three(start)), wish)
    assert [str(leg) for leg in plan.legs] == legs
    assert plan.refused == ()
    for leg in plan.legs:
        assert plan.order(leg)[-1].url == "http://a"


def test_mixed_phases_and_interrupted_rollings_are_finished() -> None:
    """Workers that have the target phase already are left out of the plan."""
    workers = (agent("a", DISABLED), agent("b", PREPARING), agent("c", DISABLED))
    plan = make_plan(view(*workers), PhaseWish(target=PREPARING))
    assert plan.refused == ()
    assert [worker.url for worker in plan.order(plan.legs[0])] == ["http://c", "http://a"]
    plan = make_plan(view(A, E[1], P[2]), PhaseWish(target=DISABLED, direct=True))
    assert plan.refused == ()
    assert [str(leg) for leg in plan.legs] == ["enabled → disabled"]


A, B, C = three(DISABLED)
P = three(PREPARING)
E = three(ENABLED)
TO_1, TO_2, TO_0 = (
    PhaseWish(target=PREPARING),
    PhaseWish(target=ENABLED),
    PhaseWish(target=DISABLED),
)
SOURCE = SourceFacts(name="s", state="RUNNING", tasks=1)
FOREIGN = OpenTransaction(transactional_id="g-s-0", started_ms=1, timeout_ms=60_000)


def of_source(**members: object) -> View:
    """Return a cluster in the phase preparing with one source."""
    return view(*P, sources=(replace(SOURCE, **members),))  # type: ignore[arg-type]


@cases(
    "seen, wish, reason",
    (view(A, B), TO_2, "preparing would be skipped: http://a, http://b is disabled"),
    (view(A, E[1]), TO_1, "these phases cannot coexist"),
    (view(*E), replace(TO_0, only=("http://a",)), "phases that cannot coexist"),
    (view(A, replace(B, reachable=False, reason="refused")), TO_1, "does not answer: refused"),
    (view(A, replace(B, instance=None)), TO_1, "http://b is not a member of group g"),
    (view(A, java("b", DISABLED, version="3.2.1")), TO_1, "exactly-once support came with"),
    (view(A, java("b", DISABLED, fences=False)), TO_1, "http://b has no fencing endpoint"),
    (view(A, B, group_state="PreparingRebalance"), TO_1, "a rebalance is under way"),
    (view(A, B, hanging=("g-c-0",)), TO_1, "open beyond its timeout: the transaction of g-c-0"),
    (
        view(A, B, brokers=Brokers(transactions=False)),
        TO_1,
        "the brokers do not support transactions",
    ),
    (view(A, B, acl_blockers=("Write on id",)), TO_1, "missing ACL: Write on id"),
    (view(A, B, acl_unknown=("Write on id",)), TO_1, "ACL not known: Write on id"),
    (view(A, replace(B, cluster_id="other")), TO_1, "several Kafka clusters"),
    (view(A, replace(B, outdated=True)), TO_1, "was changed after its start"),
    (
        view(A, B),
        replace(TO_1, inventory=("http://a",)),
        "http://b is a member of the group but not in",
    ),
    (view(A, B), replace(TO_1, only=("http://x",)), "http://x: not a worker of this cluster"),
    (view(*P, brokers=Brokers(max_transaction_timeout_ms=60_000)), TO_2, "needs 90000"),
    (
        view(
            *P,
            brokers=Brokers(max_transaction_timeout_ms=90_000),
            sources=(replace(SOURCE, transaction_timeout_ms=100_000),),
        ),
        TO_2,
        "transaction.timeout.ms 100000 is above",
    ),
    (of_source(preflight=("no",), requires_exactly_once=True), TO_2, "s: no"),
    (of_source(preflight=("no",)), replace(TO_2, strict=True), "s: no"),
    (replace(view(*P), states_known=False), TO_2, "no worker reports the states"),
    (view(*P, stopped=("s",)), replace(TO_0, hard=True), "STOPPED: s; software before 3.5"),
    (view(java("a", DISABLED, PREPARING)), TO_2, "its REST API does not show"),
    (
        view(A, replace(java("b"), phases=frozenset(Phase), source=PhaseSource.UNKNOWN)),
        TO_1,
        "its phase cannot be determined",
    ),
    (
        view(java("a", ENABLED), aborted_offsets=("key k",), offsets_topic="offsets"),
        TO_0,
        "offsets of transactions that were not committed (key k): http://a would skip",
    ),
    (view(*P, brokers=Brokers(problems=("leaderless",))), TO_2, "leaderless"),
    (view(*P, brokers=Brokers(problems=("two",))), TO_2, "two"),
    (
        view(*P, worker_settings=KnownSettings(breaking=("w: retries=0",))),
        TO_2,
        "w: retries=0: no transactional producer",
    ),
    (
        of_source(breaking=("producer.acks=1",)),
        TO_2,
        "s: producer.acks=1: no transactional producer",
    ),
    (of_source(own_cluster=True, several_clusters=True), TO_2, "have different clusters"),
)
def test_unsafe_upgrades_are_refused(seen: View, wish: PhaseWish, reason: str) -> None:
    """A plan of an unsafe upgrade has a finding that refuses it."""
    assert reason in refusals(make_plan(seen, wish))


@cases(
    "seen, wish, text",
    (view(A, B, protocol="compatible"), TO_1, "the group's protocol is compatible"),
    (view(A, B, protocol="default"), TO_1, "the group's protocol is eager"),
    (view(A, java("b", DISABLED, version="3.3.2")), TO_1, "repaired by 3.4.1"),
    (view(A, B, instances={"c/0": "FAILED"}), TO_1, "already FAILED: c/0"),
    (view(A, replace(B, means=Means.OPERATOR)), TO_1, "restarts by hand, one worker at a time"),
    (of_source(preflight=("no",)), TO_2, "s: no"),
    (
        of_source(boundary="interval", boundary_interval_ms=120_000),
        TO_2,
        "s: its transactions last 120000 ms",
    ),
    (
        view(*E, sources=(replace(SOURCE, requires_exactly_once=True),)),
        TO_0,
        "s requires exactly-once",
    ),
    (view(A, B, brokers=Brokers(warnings=("one replica",))), TO_1, "one replica"),
    (view(A, B, brokers=Brokers(warnings=("one away",))), TO_1, "one away"),
    (
        view(A, B, worker_settings=KnownSettings(replaced=("w: transactional.id=x",))),
        TO_1,
        "w: transactional.id=x will be ignored",
    ),
    (
        of_source(replaced=("producer.transactional.id=x",)),
        TO_2,
        "s: producer.transactional.id=x will be ignored",
    ),
    (of_source(own_cluster=True), TO_2, "s writes to another cluster"),
    (
        view(*P, sources=(SOURCE, replace(SOURCE, name="s-0"))),
        TO_2,
        "the transactional id g-s-0 belongs to s and s-0",
    ),
    (
        view(*P, sources=(SOURCE,), leader_transactional_id="g-s-0"),
        TO_2,
        "the transactional id g-s-0 belongs to the leader and s",
    ),
    (
        view(*P, sources=(replace(SOURCE, name="x-s"),), other_groups=("g-x", "h")),
        TO_2,
        "those of a connector s in group g-x",
    ),
    (
        view(*P, sources=(SOURCE,), open_transactions=frozenset({FOREIGN})),
        TO_2,
        "another producer uses the transactional id g-s-0",
    ),
    (view(java("a", ENABLED), java("b", ENABLED)), TO_1, "enabled (inferred)"),
    (view(java("a", ENABLED)), TO_1, "the workers' offsets topic is not known"),
)
def test_some_findings_are_warnings_only(seen: View, wish: PhaseWish, text: str) -> None:
    """A finding that is only a warning does not refuse the upgrade."""
    plan = make_plan(seen, wish)
    assert plan.refused == ()
    assert text in warnings(plan)


def test_java_workers_go_on_when_their_phase_is_vouched_for() -> None:
    """An inferred phase needs the operator's word or the output of the command `show`."""
    seen = view(java("a", DISABLED, PREPARING), agent("b", PREPARING))
    assert make_plan(seen, TO_2).refused != ()
    assert make_plan(seen, replace(TO_2, declared=True)).refused == ()
    shown = java("a", PREPARING, source=PhaseSource.SHOWN)
    assert make_plan(view(shown, agent("b", PREPARING)), TO_2).refused == ()


def test_a_downgrade_plan_explains_offsets_and_consumers() -> None:
    """The notes of a downgrade name own offsets topics and the end of exactly-once."""
    seen = view(*E, sources=(replace(SOURCE, offsets_topic="own-offsets"),))
    notes = "\n".join(make_plan(seen, replace(TO_0, hard=True)).notes)
    assert "exactly-once ends with the first worker" in notes
    assert "(own-offsets) stay in use" in notes
    assert "software before 3.3 ignores connectors' own offsets topics" in notes


def test_plugins_that_a_restarted_java_worker_cannot_run_are_a_warning(tmp_path: Path) -> None:
    """Plugins that a Java worker cannot run after a restart are a warning; agents run them."""
    needs = class_file(
        "a.Old", SOURCE_CONNECTOR, names=("org.apache.kafka.common.utils.Sanitizer",)
    )
    make_jar(tmp_path / "old.jar", {"a.Old": needs})
    file = {"plugin.path": f"{tmp_path},/nowhere"}
    workers = (java("a", DISABLED, version="4.4.0"), agent("b", DISABLED))
    found = unusable_plugins(workers, [file])
    assert [text.startswith(str(tmp_path)) and "Kafka 4.4 lacks" in text for text in found] == [
        True
    ]
    plan = make_plan(view(*workers, unusable_plugins=found), TO_1)
    assert found[0] in warnings(plan)
    assert unusable_plugins((java("a", DISABLED, version="4.3.1"),), [file]) == ()
    assert unusable_plugins(three(DISABLED), [file]) == ()
