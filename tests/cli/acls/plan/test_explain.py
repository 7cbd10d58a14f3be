"""An error text, a topic or an id leads to the grants that it concerns."""

from pyconnect_cli.acls.plan.check import check
from pyconnect_cli.acls.plan.grants import explain
from pyconnect_clients.acls.model import Evidence
from pyconnect_clients.acls.needs import ClusterFacts, ConnectorFacts
from pyconnect_clients.connect_names import Phase
from tests.support.cases import cases
from tests.support.servers.secured import WORKER

SOURCE = ConnectorFacts(name="c", type="source", config={"topic": "records"}, tasks=1)
FINDINGS = check(
    ClusterFacts(workers=(WORKER,), connectors=(SOURCE,)),
    Phase.ENABLED,
    Evidence(bindings={"": ()}),
).findings
TOPICS = ("S1", "S4", "K2", "O1", "O2", "O3", "W2r", "W2w", "W3r", "W3w", "W4r", "W4w")


@cases(
    "text, rules, names",
    (
        "GroupAuthorizationException: Not authorized to access group: connect-s",
        ("W1", "K1"),
        ("connect-s",),
    ),
    (
        "Not authorized to get the end offsets for topic 'offsets' on brokers at b:9092",
        ("O3",),
        ("offsets",),
    ),
    (
        "ConnectException: Not authorized to describe topic(s) 't' on the brokers b:9092",
        ("S2",),
        ("t",),
    ),
    (
        "Grant Read on topic 't' to the principal of the consumer 'connector-consumer-c-0'.",
        ("O2", "K2"),
        ("connector-consumer-c-0", "t"),
    ),
    (
        "Grant Describe on topic 't' to the principal of the admin client 'connector-admin-c'.",
        ("O3",),
        ("connector-admin-c", "t"),
    ),
    ("Failed to flush offsets and/or records for task my-c-0", ("O1", "S1", "S4"), ("my-c",)),
    ("Unrecoverable exception trying to send", ("S1", "S4"), ()),
    ("Could not initialize dead letter queue with topic=dead", ("K4d", "K4c"), ("dead",)),
    (
        "InitProducerId request for transactionalId `g-c-0` failed due to ... authorization",
        ("X2",),
        ("g-c-0",),
    ),
    (
        "Unable to claim write privileges for config topic. Will backoff and possibly retry",
        ("W7",),
        (),
    ),
    ("Broker: Transactional Id authorization failed", ("X1", "X2", "W7"), ()),
    ("Failed to perform zombie fencing", ("X2",), ()),
    (
        "ERROR [c|task-0] WorkerSourceTask{id=c-0} Unrecoverable exception trying to send",
        ("S1", "S4"),
        ("c",),
    ),
    (
        "[c|task-0] Unrecoverable exception trying to send: TransactionalIdAuthorization",
        ("X1", "X2", "W7"),
        ("c",),
    ),
    (
        "[c|task-0] failed to send record to records: TRANSACTIONAL_ID_AUTHORIZATION_FAILED",
        ("X1", "X2", "W7"),
        ("c",),
    ),
    (
        "Failed to flush offsets and/or records\nCaused by: TopicAuthorizationException",
        ("O1", "S1", "S4"),
        (),
    ),
    ("Failed to retrieve consumer group offsets: GROUP_AUTHORIZATION_FAILED", ("K5",), ()),
    (
        "TopicAuthorizationException: Not authorized to access topics: [records, others]",
        TOPICS,
        ("others", "records"),
    ),
    ("Error while fetching metadata: {records=TOPIC_AUTHORIZATION_FAILED}", TOPICS, ("records",)),
    ("records", (), ("records",)),
)
def test_texts(text: str, rules: tuple[str, ...], names: tuple[str, ...]) -> None:
    """Each text that clients and workers print leads to its rules and names."""
    found = explain(text)
    assert (found.rules, found.names) == (rules, names)


def test_a_name_selects_all_that_concerns_it() -> None:
    """The name of a topic, an id or a connector selects all needs that concern it."""
    assert {f.need.rule.id for f in explain("records").select(FINDINGS)} == {"S1"}
    assert {f.need.rule.id for f in explain("g-c-0").select(FINDINGS)} == {"X1", "X2", "X3"}
    assert {f.need.owner for f in explain("c").select(FINDINGS)} == {"c"}
    assert explain("nothing-of-ours").select(FINDINGS) == []


def test_an_error_selects_the_grants_behind_it() -> None:
    """An error that names a resource selects only its needs, else all needs of its rules."""
    text = "Not authorized to access group: g"
    assert [f.need.rule.id for f in explain(text).select(FINDINGS)] == ["W1"]
    found = explain("Broker: Transactional Id authorization failed").select(FINDINGS)
    assert {f.need.rule.id for f in found} == {"X1", "X2", "W7"}


def test_only_the_denied_grant_of_a_step_is_named() -> None:
    """An authorization error of the transactional id does not select the grants of the topic."""
    text = (
        "[c|task-0] WorkerSourceTask{id=c-0} Unrecoverable exception trying to send to 'records'\n"
        "Caused by: org.apache.kafka.common.errors.TransactionalIdAuthorizationException"
    )
    assert {f.need.rule.id for f in explain(text).select(FINDINGS)} == {"X1", "X2"}


def denied(operation: str, resource: str, principal: str = "User:writer") -> str:
    return (
        f"[2026-11-21 14:00:00,123] INFO Principal = {principal} is Denied operation = {operation}"
        f" from host = 10.0.0.5 on resource = {resource} for request = Produce with"
        " resourceRefCount = 1 based on rule DefaultDeny (kafka.authorizer.logger)"
    )


@cases(
    "line, rules",
    (denied("WRITE", "TransactionalId:LITERAL:g-c-0"), ["X1", "X3"]),
    (denied("DESCRIBE", "TransactionalId:LITERAL:g-c-0"), ["X1", "X3"]),
    (denied("WRITE", "Topic:LITERAL:offsets"), ["O1"]),
    (denied("DESCRIBE_CONFIGS", "Topic:LITERAL:offsets", "User:worker"), ["W6", "O5"]),
    (denied("READ", "Topic:LITERAL:records"), []),
    (denied("WRITE", "Topic:LITERAL:records", "User:somebody"), []),
)
def test_a_line_of_the_authorizer_selects_the_denied_needs(line: str, rules: list[str]) -> None:
    """A line of the authorizer selects the needs of its principal, resource and operation."""
    assert [f.need.rule.id for f in explain(line).select(FINDINGS)] == rules
