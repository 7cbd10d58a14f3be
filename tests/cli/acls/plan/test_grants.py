"""Generated grants are minimal, sorted, quoted, and never wider than asked."""

import json
import shlex
import subprocess
from dataclasses import replace

from pyconnect_cli.acls.plan.check import check
from pyconnect_cli.acls.plan.grants import (
    Grant,
    foreign_ids,
    kafka_acls,
    missing_grants,
    strimzi_users,
    terraform,
)
from pyconnect_clients.acls.model import (
    Evidence,
    GrantFinding,
    GrantOperation,
    Pattern,
    Resource,
    ResourceType,
    Role,
)
from pyconnect_clients.acls.needs import ClusterFacts, ConnectorFacts, Named
from pyconnect_clients.connect_names import Phase
from tests.support.servers.secured import WORKER

SOURCE = ConnectorFacts(
    name="c", type="source", config={"topic": "records", "tasks.max": "2"}, tasks=2
)
FACTS = ClusterFacts(workers=(WORKER,), connectors=(SOURCE,))


def findings(facts: ClusterFacts = FACTS) -> tuple[GrantFinding, ...]:
    return check(facts, Phase.ENABLED, Evidence(bindings={"": ()})).findings


def test_commands_group_a_principals_operations_by_resource() -> None:
    """Resources for which a principal needs the same operations share one command."""
    commands = kafka_acls(missing_grants(findings()).grants, "b:9092")
    assert (
        "kafka-acls.sh --bootstrap-server b:9092 --command-config admin.properties --add"
        " --allow-principal User:worker --operation Read --group g"
    ) in commands
    assert (
        "kafka-acls.sh --bootstrap-server b:9092 --command-config admin.properties --add"
        " --allow-principal User:writer --operation Write"
        " --transactional-id g-c --transactional-id g-c-0 --transactional-id g-c-1"
    ) in commands


def test_nothing_is_granted_on_everything() -> None:
    """Grants never have `All` or `*`; Describe is listed beside Read only on request."""
    grants = missing_grants(findings(), everything=True).grants
    assert grants
    for grant in grants:
        assert grant.operation is not GrantOperation.ALL
        assert grant.resource.name != "*"
        assert grant.pattern is Pattern.LITERAL
    group = Resource(ResourceType.GROUP, "g")
    plain = {grant.operation for grant in missing_grants(findings()).grants if grant[2] == group}
    assert plain == {GrantOperation.READ}
    explicit = missing_grants(findings(), explicit_describe=True).grants
    expected = {GrantOperation.READ, GrantOperation.DESCRIBE}
    assert {grant.operation for grant in explicit if grant[2] == group} == expected


def test_a_prefix_replaces_the_ids_of_one_connector() -> None:
    """One prefixed grant replaces a connector's ids; other connectors' covered ids are named."""
    grants = missing_grants(findings(), prefixes={"c": "g-c-"}).grants
    prefixed = [grant for grant in grants if grant.pattern is Pattern.PREFIXED]
    expected = {("User:writer", "g-c-"), ("User:worker", "g-c-")}
    assert {(grant.principal, grant.resource.name) for grant in prefixed} == expected
    commands = kafka_acls(prefixed, "b")
    assert all("--resource-pattern-type prefixed" in command for command in commands)
    both = replace(FACTS, connectors=(SOURCE, replace(SOURCE, name="c-more", tasks=1)))
    assert foreign_ids("g-c-", "c", findings(both)) == ["g-c-more", "g-c-more-0", "g-c-more-1"]
    assert foreign_ids("g-c-", "c", findings()) == []


def test_a_need_without_a_principal_cannot_be_granted() -> None:
    """A need without a principal is listed, so that the user can name the principal."""
    facts = replace(
        FACTS,
        connectors=(
            replace(
                SOURCE, config={"topic": "t", "admin.override.sasl.jaas.config": "${file:a:b}"}
            ),
        ),
    )
    unnamed = missing_grants(findings(facts), everything=True).unnamed
    assert {need.rule.role for need in unnamed} == {Role.ADMIN}
    named = replace(facts, principals={Named("c", Role.ADMIN): "User:a"})
    assert missing_grants(findings(named)).unnamed == ()


def test_hostile_names_stay_one_word() -> None:
    """The shell does not interpret a name from a connector's configuration."""
    name = "x'; touch /tmp/owned; '$(id) ${HOME}"
    grant = Grant(
        "", "User:a b", Resource(ResourceType.TOPIC, name), Pattern.LITERAL, GrantOperation.READ
    )
    (command,) = kafka_acls([grant], "b")
    assert name in shlex.split(command)
    script = f"kafka-acls.sh() {{ printf '%s\\n' \"$@\"; }}; {command}"
    printed = subprocess.run(
        ["/bin/bash", "-c", script], capture_output=True, text=True, check=True
    ).stdout
    assert name in printed.splitlines()
    (block,) = terraform([grant])
    assert "$${HOME}" in block


def test_grants_are_mirrored_by_removals_and_users() -> None:
    """The removing commands mirror the adding ones; Strimzi's users have Strimzi's form."""
    grants = missing_grants(findings()).grants
    added = kafka_acls(grants, "b")
    removed = kafka_acls(grants, "b", remove=True)
    assert [line.replace("--add", "--remove --force") for line in added] == removed
    users = strimzi_users(missing_grants(findings()).grants, "my-cluster")
    by_name = {json.loads(json.dumps(user))["metadata"]["name"]: user for user in users}
    assert set(by_name) == {"worker", "writer", "reader"}
    spec = json.dumps(by_name["writer"])
    assert '"type": "transactionalId", "name": "g-c-0", "patternType": "literal"' in spec


def test_the_output_is_stable_and_labels_are_unique() -> None:
    """The order of connectors does not change the output, and all labels are different."""
    topics = [Resource(ResourceType.TOPIC, name) for name in ("a.b", "a-b", "a_b", "a_2d_b")]
    grants = [Grant("", "User:u", topic, Pattern.LITERAL, GrantOperation.READ) for topic in topics]
    labels = {block.splitlines()[0] for block in terraform(grants)}
    assert len(labels) == len(topics)
    other = replace(SOURCE, name="a")
    one = findings(replace(FACTS, connectors=(SOURCE, other)))
    two = findings(replace(FACTS, connectors=(other, SOURCE)))
    assert missing_grants(one).grants == missing_grants(two).grants
