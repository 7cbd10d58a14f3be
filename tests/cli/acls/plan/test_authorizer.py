"""Decisions from listed bindings are those of Kafka's StandardAuthorizer."""

from hypothesis import given
from hypothesis import strategies as st

from pyconnect_cli.acls.plan.check import Authorizer
from pyconnect_clients.acls.model import Binding, GrantOperation, Pattern, Resource, ResourceType
from tests.support.cases import cases

CLIENT = "User:c"
HOST = "10.0.0.5"
ID = Resource(ResourceType.TRANSACTIONAL_ID, "g-x-0")
READ, WRITE, DESCRIBE, ALL = (
    GrantOperation.READ,
    GrantOperation.WRITE,
    GrantOperation.DESCRIBE,
    GrantOperation.ALL,
)


def binding(
    operation: GrantOperation,
    name: str,
    *,
    prefixed: bool = False,
    principal: str = CLIENT,
    host: str = "*",
    allow: bool = True,
) -> Binding:
    pattern = Pattern.PREFIXED if prefixed else Pattern.LITERAL
    return Binding(ID.type, name, pattern, principal, host, operation, allow)


ALTER_CONFIGS = binding(GrantOperation.ALTER_CONFIGS, "g-x-0")
NOT_DESCRIBE = [binding(ALL, "*"), binding(DESCRIBE, "g", prefixed=True, allow=False)]
NOT_EVERYBODY = [binding(ALL, "g-x-0"), binding(WRITE, "*", principal="User:*", allow=False)]


@cases(
    "bindings, operation, everyone, allowed",
    ([binding(WRITE, "g-x-", prefixed=True)], DESCRIBE, False, True),
    ([binding(DESCRIBE, "g-x-0")], WRITE, False, False),
    (NOT_DESCRIBE, WRITE, False, True),
    (NOT_DESCRIBE, DESCRIBE, False, False),
    (NOT_EVERYBODY, WRITE, False, False),
    ([binding(WRITE, "g-x*")], WRITE, False, False),
    ([binding(WRITE, "g-x-0", prefixed=True, principal="User:other")], WRITE, True, False),
    ([], WRITE, True, True),
    ([], WRITE, False, False),
    ([binding(WRITE, "g-x-0", host="10.0.0.6")], WRITE, False, False),
    ([binding(WRITE, "g-x-0", host=HOST)], WRITE, False, True),
    ([binding(READ, "g-x-0", allow=False), binding(READ, "g-x-0")], DESCRIBE, False, True),
    ([binding(WRITE, "g-x-0", principal="user:c")], WRITE, False, False),
    ([ALTER_CONFIGS], GrantOperation.DESCRIBE_CONFIGS, False, True),
    ([ALTER_CONFIGS], DESCRIBE, False, False),
    ([binding(WRITE, "g-x-0-and-more", prefixed=True)], WRITE, True, True),
)
def test_vectors(
    bindings: list[Binding], operation: GrantOperation, everyone: bool, allowed: bool
) -> None:
    """`Authorizer` decides every case of the specification's table as the table says."""
    authorizer = Authorizer(bindings, allow_everyone=everyone)
    assert authorizer.decide(CLIENT, operation, ID, HOST).allowed is allowed


def test_the_deciding_binding_is_named() -> None:
    """The decision names the DENY that caused it; a DENY does not stop a super user."""
    denial = binding(WRITE, "g", prefixed=True, allow=False)
    decision = Authorizer([binding(ALL, "*"), denial]).decide(CLIENT, WRITE, ID)
    assert decision.binding == denial
    assert "DENY Write TransactionalId g (prefixed) for User:c" in decision.reason
    authorizer = Authorizer([binding(ALL, "*", allow=False)], super_users=frozenset({CLIENT}))
    assert authorizer.decide(CLIENT, WRITE, ID).allowed


def test_a_binding_for_one_host_promises_nothing_for_an_unknown_one() -> None:
    """For an unknown host, an ALLOW for one host does not allow and a DENY for one host denies."""
    assert not Authorizer([binding(WRITE, "*", host=HOST)]).decide(CLIENT, WRITE, ID).allowed
    denied = [binding(WRITE, "*"), binding(WRITE, "*", host=HOST, allow=False)]
    assert not Authorizer(denied).decide(CLIENT, WRITE, ID).allowed
    assert Authorizer(denied).decide(CLIENT, WRITE, ID, "10.9.9.9").allowed


def slow_decision(bindings: list[Binding], operation: GrantOperation, resource: Resource) -> bool:
    """Return the decision by the same rules, with one pass over all bindings."""
    matching = [
        found
        for found in bindings
        if found.type is resource.type
        and (
            (
                resource.name.startswith(found.name)
                if found.pattern is Pattern.PREFIXED
                else found.name in (resource.name, "*")
            )
            and found.principal in (CLIENT, "User:*")
        )
    ]
    if any(not found.allow and found.operation in (operation, ALL) for found in matching):
        return False
    implying = {READ, WRITE, GrantOperation.DELETE, GrantOperation.ALTER}
    return any(
        found.allow
        and (
            found.operation in (operation, ALL)
            or (operation is DESCRIBE and found.operation in implying)
        )
        for found in matching
    )


NAMES = st.sampled_from(["*", "a", "ab", "abc", "b", "ab*"])
BINDINGS = st.builds(
    Binding,
    type=st.sampled_from([ResourceType.TOPIC, ResourceType.GROUP]),
    name=NAMES,
    pattern=st.sampled_from(Pattern),
    principal=st.sampled_from([CLIENT, "User:*", "User:d"]),
    host=st.just("*"),
    operation=st.sampled_from([READ, WRITE, DESCRIBE, ALL, GrantOperation.DELETE]),
    allow=st.booleans(),
)


@given(st.lists(BINDINGS, max_size=8), st.sampled_from([READ, WRITE, DESCRIBE]), NAMES)
def test_looking_up_decides_as_reading_all_does(
    bindings: list[Binding], operation: GrantOperation, name: str
) -> None:
    """`Authorizer` looks bindings up by name and prefix without missing one."""
    resource = Resource(ResourceType.TOPIC, name)
    found = Authorizer(bindings).decide(CLIENT, operation, resource)
    assert found.allowed is slow_decision(bindings, operation, resource)
