"""The needs that follow from configs, the phase and the existing topics."""

from dataclasses import replace

from pyconnect_clients.acls.model import Need, NeedSeverity, Role
from pyconnect_clients.acls.needs import (
    ClusterFacts,
    ConnectorFacts,
    Named,
    WorkerFacts,
    cluster_needs,
)
from pyconnect_clients.connect_names import Phase
from pyconnect_clients.security import principal_of
from tests.support.cases import cases
from tests.support.servers.secured import WORKER, jaas

SOURCE = ConnectorFacts(
    name="c", type="source", config={"topic": "records", "tasks.max": "2"}, tasks=2
)
SINK = ConnectorFacts(name="s", type="sink", config={"topics": "records, more"})
FACTS = ClusterFacts(workers=(WORKER,), connectors=(SOURCE, SINK))
INTERNAL = frozenset({"configs", "offsets", "statuses"})


def needs(facts: ClusterFacts = FACTS, phase: Phase = Phase.ENABLED) -> list[Need]:
    return list(cluster_needs(facts, phase).needs)


def texts(rule: str, facts: ClusterFacts = FACTS, phase: Phase = Phase.ENABLED) -> list[str]:
    return [need.text for need in needs(facts, phase) if need.rule.id == rule]


def notes(facts: ClusterFacts, phase: Phase = Phase.ENABLED) -> str:
    return "\n".join(cluster_needs(facts, phase).notes)


def with_source(**changes: object) -> ClusterFacts:
    return replace(FACTS, connectors=(replace(SOURCE, **changes),))  # type: ignore[arg-type]


def with_config(**changes: str) -> ClusterFacts:
    settings = {key.replace("_", "."): value for key, value in changes.items()}
    return with_source(config={**SOURCE.config, **settings})


def test_a_phase_includes_the_needs_of_earlier_phases() -> None:
    """The leader's id is needed from preparing on, and the tasks' ids from enabled on."""
    by_phase = [{need.rule.id for need in needs(phase=phase)} for phase in Phase]
    assert by_phase[0] < by_phase[1] < by_phase[2]
    assert by_phase[1] - by_phase[0] == {"W7"}
    assert by_phase[2] - by_phase[1] == {"O1", "O2", "O3", "O5", "O6", "X1", "X2", "X3", "X4"}


def test_transactional_ids_have_the_workers_names() -> None:
    """The ids are `<group>-<connector>-<task>`, `connect-cluster-<group>`, and KIP-875's."""
    assert texts("X1") == ["Write TransactionalId g-c-0", "Write TransactionalId g-c-1"]
    assert texts("W7") == ["Write TransactionalId connect-cluster-g"]
    assert texts("X3") == ["Write TransactionalId g-c-0"]
    assert texts("X4") == ["Write TransactionalId g-c"]


def worker_with(name: str, *users: tuple[str, str]) -> WorkerFacts:
    """Return another worker of the group, with users of its own for some clients."""
    changed = {f"{prefix}sasl.jaas.config": jaas(user) for prefix, user in users}
    return replace(WORKER, name=name, properties={**WORKER.properties, **changed})


def whose(rule: str, facts: ClusterFacts) -> list[tuple[str, str | None]]:
    return [(n.resource.name, n.principal) for n in needs(facts) if n.rule.id == rule]


def test_a_connectors_clients_are_those_of_every_worker() -> None:
    """Any worker may run and fence a connector's tasks, so the principals of all need the grant."""
    alike = replace(FACTS, workers=(WORKER, worker_with("w2"), worker_with("w3")))
    assert [n for n in needs(alike) if n.owner in "cs"] == [n for n in needs() if n.owner in "cs"]
    other = worker_with("w2", ("", "worker2"), ("producer.", "writer2"))
    facts = replace(FACTS, workers=(WORKER, other))
    ids = ("g-c-0", "g-c-1")
    both = [(i, f"User:writer{n}") for n in ("", "2") for i in ids]
    assert whose("X1", facts) == both
    assert whose("X2", facts) == [(i, f"User:worker{n}") for n in ("", "2") for i in ids]
    assert whose("S1", facts) == [("records", "User:writer"), ("records", "User:writer2")]
    assert whose("K1", facts) == [("connect-s", "User:reader")]
    assert "belongs to" not in notes(facts)


def test_overrides_of_a_connector_are_the_same_on_every_worker() -> None:
    """A connector's overrides, and principals that the user names, hold on every worker."""
    other = worker_with("w2", ("", "worker2"), ("producer.", "writer2"))
    facts = replace(
        with_config(producer_override_sasl_jaas_config=jaas("own")), workers=(WORKER, other)
    )
    assert whose("S1", facts) == [("records", "User:own")]
    named = replace(facts, principals={Named(None, Role.ADMIN): "User:admin"})
    assert {principal for _, principal in whose("X2", named)} == {"User:admin"}


def test_the_leaders_id_may_be_an_own_one() -> None:
    """`agent.leader.transactional.id` replaces the leader's id everywhere, and may collide."""
    properties = {**WORKER.properties, "agent.leader.transactional.id": "g-c-1"}
    facts = replace(FACTS, workers=(replace(WORKER, properties=properties),), tool="User:tool")
    assert texts("W7", facts) == ["Write TransactionalId g-c-1"]
    assert texts("T4", facts) == ["Describe TransactionalId g-c-1"]
    assert "the transactional id g-c-1 belongs to the leader and c" in notes(facts)


@cases(
    "tasks, tasks_max, fenced, ids",
    (2, "10", None, 10), (2, "2", 10, 10), (12, "2", 1, 12), (0, "1", None, 1),
)  # fmt: skip
def test_ids_cover_all_tasks(tasks: int, tasks_max: str, fenced: int | None, ids: int) -> None:
    """A connector that shrank from 10 tasks to 2 has 10 tasks to fence."""
    facts = with_source(
        tasks=tasks, fenced_tasks=fenced, config={**SOURCE.config, "tasks.max": tasks_max}
    )
    assert len(texts("X2", facts)) == ids


def test_topics_that_a_sink_has_read_or_transformed_are_asked_for() -> None:
    """Topics are of the history or of --topic; names after transformations are not guessed."""
    sink = replace(SINK, topics=("seen", "more"))
    facts = replace(FACTS, connectors=(sink,))
    assert texts("K2", facts) == ["Read Topic more", "Read Topic records", "Read Topic seen"]
    facts = with_config(transforms="route")
    assert texts("S1", facts) == []
    assert "--topic c=TOPIC" in notes(facts)
    assert texts("S1", with_source(topics=("seen",), config={})) == ["Write Topic seen"]


def test_fencing_a_single_task_is_not_a_blocker() -> None:
    """One task before and after needs no fencing, but a later change of the number does."""
    single = with_source(tasks=1, config={**SOURCE.config, "tasks.max": "1"})
    assert {n.severity for n in needs(single) if n.rule.id == "X2"} == {NeedSeverity.WARNING}
    assert {n.severity for n in needs() if n.rule.id == "X2"} == {NeedSeverity.BLOCKER}


def test_offsets_topics_are_needed_and_created_where_they_lack() -> None:
    """A connector's own offsets topic is needed in each phase, and the worker's at enabled."""
    assert texts("O1") == ["Write Topic offsets"]
    assert texts("O1", phase=Phase.PREPARING) == []
    facts = with_config(offsets_storage_topic="own")
    assert texts("O2", facts, Phase.DISABLED) == ["Read Topic own"]
    assert texts("O4", facts) == []
    known = replace(facts, existing_topics={"": INTERNAL})
    assert texts("O4", known) == ["Create Topic own"]
    assert texts("W5") == texts("S4") == []
    known = replace(FACTS, existing_topics={"": frozenset({"configs", "records", "statuses"})})
    assert texts("W5", known) == ["Create Topic offsets"]
    assert texts("S4", known) == []
    assert texts("S4", replace(FACTS, existing_topics={"": INTERNAL})) == ["Create Topic records"]


def test_topic_creation_is_done_by_the_admin_client() -> None:
    """The admin client creates topics with `topic.creation.*`, unless the worker forbids it."""
    facts = replace(
        with_config(topic_creation_default_partitions="1"), existing_topics={"": INTERNAL}
    )
    assert texts("S2", facts) == ["Describe Topic records"]
    assert texts("S3", facts) == ["Create Topic records"]
    assert texts("S4", facts) == []
    worker = replace(WORKER, properties={**WORKER.properties, "topic.creation.enable": "false"})
    assert texts("S3", replace(facts, workers=(worker,))) == []


def test_a_sink_reads_its_topics_in_its_group() -> None:
    """A sink reads all of `topics`, and topics whose whole names match `topics.regex`."""
    assert texts("K1") == ["Read Group connect-s"]
    assert texts("K2") == ["Read Topic more", "Read Topic records"]
    pattern = ConnectorFacts(name="s", type="sink", config={"topics.regex": "rec.*"})
    known = replace(
        FACTS, connectors=(pattern,), existing_topics={"": frozenset({"records", "a-rec"})}
    )
    assert texts("K2", known) == ["Read Topic records"]
    assert "topics.regex" in notes(replace(FACTS, connectors=(pattern,)))


def test_groups_and_dead_letter_queues_of_a_sink_are_its_clients() -> None:
    """The group is the connector's, else the worker's; the queue is described and written."""
    sink = replace(SINK, config={"topics": "t", "consumer.override.group.id": "mine"})
    assert texts("K1", replace(FACTS, connectors=(sink,))) == ["Read Group mine"]
    worker = replace(WORKER, properties={**WORKER.properties, "consumer.group.id": "theirs"})
    assert texts("K1", replace(FACTS, workers=(worker,))) == ["Read Group theirs"]
    sink = replace(SINK, config={"topics": "t", "errors.deadletterqueue.topic.name": "dead"})
    facts = replace(FACTS, connectors=(sink,), existing_topics={"": INTERNAL})
    assert texts("K3", facts) == ["Write Topic dead"]
    assert texts("K4d", facts) == ["Describe Topic dead"]
    assert texts("K4c", facts) == ["Create Topic dead"]


def principals(facts: ClusterFacts, rule: str) -> set[str | None]:
    return {need.principal for need in needs(facts) if need.rule.id == rule}


def test_each_client_has_its_own_principal() -> None:
    """Overrides come before the prefix, and only admin clients inherit the worker's other keys."""
    facts = with_source(
        config={**SOURCE.config, "producer.override.sasl.jaas.config": jaas("override")}
    )
    assert principals(facts, "W1") == {"User:worker"}
    assert principals(facts, "X1") == {"User:override"}
    assert principals(facts, "O2") == {"User:reader"}
    assert principals(facts, "X2") == {"User:worker"}


def test_producers_do_not_inherit_the_workers_credentials() -> None:
    """Producers without own settings connect without SASL, even if the worker uses it."""
    properties = {
        key: value for key, value in WORKER.properties.items() if not key.startswith("producer.")
    }
    facts = replace(FACTS, workers=(replace(WORKER, properties=properties),))
    assert principals(facts, "S1") == {"User:ANONYMOUS"}
    assert "its producer has no security settings" in notes(facts)


def test_a_principal_that_is_not_known_is_asked_for() -> None:
    """A reference to a secret does not show a principal, but the user can name it."""
    facts = with_source(
        config={**SOURCE.config, "producer.override.sasl.jaas.config": "${file:/run/secrets:jaas}"}
    )
    assert principals(facts, "X1") == {None}
    assert "--principal c:producer=User:NAME" in notes(facts)
    told = replace(facts, principals={Named("c", Role.PRODUCER): "User:p"})
    assert principals(told, "X1") == {"User:p"}
    everybody = replace(facts, principals={Named(None, Role.PRODUCER): "User:q"})
    assert principals(everybody, "X1") == {"User:q"}


def test_principals_reported_by_a_worker_outweigh_masked_properties() -> None:
    """An agent masks its JAAS configuration, and reports its principals."""
    masked = {**WORKER.properties, "sasl.jaas.config": "[hidden]"}
    worker = WorkerFacts(
        name="w", properties=masked, principals={Role.WORKER: "User:told", Role.ADMIN: "User:adm"}
    )
    facts = replace(FACTS, workers=(worker,))
    assert principals(facts, "W1") == {"User:told"}
    assert principals(facts, "X2") == {"User:adm"}


def test_a_connectors_cluster_is_a_set_of_addresses() -> None:
    """The addresses of a connector's clients have to agree, in any order."""
    other = {"producer.override.bootstrap.servers": "other:9092"}
    facts = with_source(config={**SOURCE.config, **other})
    assert {n.servers for n in needs(facts) if n.rule.id == "X1"} == {"other:9092"}
    assert {n.servers for n in needs(facts) if n.rule.id == "X2"} == {""}
    assert "different clusters" in notes(facts)
    worker = replace(WORKER, properties={**WORKER.properties, "bootstrap.servers": "a:1,b:2"})
    facts = replace(
        with_source(config={"producer.override.bootstrap.servers": "b:2, a:1"}), workers=(worker,)
    )
    assert {need.servers for need in needs(facts)} == {""}


def test_every_worker_needs_the_leaders_id() -> None:
    """Each worker may become leader and then uses the id."""
    facts = replace(FACTS, workers=(WORKER, replace(WORKER, name="w2")))
    owners = [need.owner for need in needs(facts) if need.rule.id == "W7"]
    assert owners == ["w", "w2"]


def test_colliding_ids_are_reported() -> None:
    """KIP-875's id of `c-0` is that of task 0 of `c`, and the leader's may be a task's."""
    clash = replace(SOURCE, name="c-0")
    assert "g-c-0 belongs to c and c-0" in notes(replace(FACTS, connectors=(SOURCE, clash)))
    worker = replace(WORKER, properties={**WORKER.properties, "group.id": "g"})
    assert "belongs to" not in notes(replace(FACTS, workers=(worker,)))


def test_simulated_old_brokers_alone_have_rows_of_their_own() -> None:
    """IdempotentWrite was needed before 2.8, and is a warning for simulated old brokers."""
    old = replace(FACTS, old_brokers=True)
    assert not {"W8", "X5p", "X5a"} & {need.rule.id for need in needs()}
    found = [need for need in needs(old) if need.rule.id in {"W8", "X5p", "X5a"}]
    assert len(found) == 3
    assert {need.severity for need in found} == {NeedSeverity.WARNING}


def test_the_tools_own_needs_are_listed_when_it_is_known() -> None:
    """The tool's own needs do not block a phase."""
    found = [n for n in needs(replace(FACTS, tool="User:t")) if n.rule.role is Role.TOOL]
    assert {need.principal for need in found} == {"User:t"}
    assert {need.severity for need in found} == {NeedSeverity.WARNING}


@cases(
    "config, principal",
    ({}, "User:ANONYMOUS"),
    ({"security.protocol": "SSL"}, None),
    ({"security.protocol": "SASL_SSL", "sasl.mechanism": "GSSAPI"}, None),
    (
        {
            "security.protocol": "sasl_plaintext",
            "sasl.mechanism": "PLAIN",
            "sasl.jaas.config": jaas('a\\"b'),
        },
        'User:a"b',
    ),
    (
        {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.jaas.config": "x.ScramLoginModule required password='p' username='u';",
        },
        "User:u",
    ),
    (
        {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "PLAIN",
            "sasl.jaas.config": 'x required username="${env:USER}" password="p";',
        },
        None,
    ),
)
def test_principals_of_configurations(config: dict[str, str | None], principal: str | None) -> None:
    """SASL shows a principal; TLS and references do not."""
    assert principal_of(config) == principal


def test_agents_read_the_workers_offsets_topic_themselves() -> None:
    """Only Apache's workers need a connector's right to read the topic."""
    agents = replace(FACTS, workers=(replace(WORKER, is_agent=True),))
    mild = {"O2", "O3"}
    for facts, severity in ((FACTS, NeedSeverity.BLOCKER), (agents, NeedSeverity.WARNING)):
        assert {n.severity for n in needs(facts) if n.rule.id in mild} == {severity}
    own = replace(SOURCE, config={**SOURCE.config, "offsets.storage.topic": "own"})
    facts = replace(agents, connectors=(own,))
    assert {n.severity for n in needs(facts) if n.rule.id in mild} == {NeedSeverity.BLOCKER}
