"""Facts of Kafka that agent and command line know each for itself: both know the same.

They share no code of it, so that the command line speaks to any Connect cluster; this holds them
equal.
"""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyconnect_agent.core.clients import acl_needs
from pyconnect_agent.core.clients.configs import sink_group_id
from pyconnect_agent.core.config.connector_keys import PluginDefaults
from pyconnect_agent.core.config.sink_keys import sink_config_def
from pyconnect_agent.core.config.source_keys import source_config_def
from pyconnect_agent.core.config.worker_config import DistributedConfig, ExactlyOnceSourceSupport
from pyconnect_agent.core.exactly_once.transactional_ids import (
    alter_transactional_id,
    leader_transactional_id,
    task_transactional_ids,
)
from pyconnect_agent.core.ids import ConnectorTaskId
from pyconnect_agent.core.internal_topics import config_records
from pyconnect_agent.core.offsets.source import partition_key
from pyconnect_agent.core.protocol.messages import (
    Assignment,
    ProtocolVersion,
    Subscription,
    Work,
    encode_assignment,
    encode_subscription,
)
from pyconnect_api import ConfigType
from pyconnect_cli.acls.plan import model as acls
from pyconnect_cli.kafka import reader
from pyconnect_cli.kafka.transactional_ids import LEADER_ID_KEY, leader_id
from pyconnect_cli.offsets.plan.orphans import GROUP_PREFIX, connector_of
from pyconnect_cli.rest.masking import is_secret_key
from pyconnect_cli.rest.phases import Phase
from pyconnect_cli.upgrade.cluster import kafka_group
from pyconnect_cli.upgrade.plan import model as upgrade
from pyconnect_cli.upgrade.plan.transactional_ids import ids_of
from tests.support.worker_properties import distributed

NAMES = st.text(min_size=1, max_size=8)
CERTIFICATES = {"ssl.keystore.certificate.chain", "ssl.truststore.certificates"}
URL = "http://worker:8083/"


@given(group=NAMES, connector=NAMES, tasks=st.integers(0, 4))
def test_transactional_ids_are_put_together_alike(group: str, connector: str, tasks: int) -> None:
    """Of the leader, of changed offsets, of each task."""
    source = upgrade.SourceFacts(name=connector, state="RUNNING", tasks=tasks, tasks_max=tasks)
    own = alter_transactional_id(group, connector)
    assert ids_of(group, source) == (own, *task_transactional_ids(group, connector, tasks))
    assert leader_id(group) == leader_transactional_id(group)


def test_the_agents_own_key_names_the_leaders_id_for_both() -> None:
    """The command line reads it in the properties that the agent is configured with."""
    properties = {LEADER_ID_KEY: "other"}
    worker = distributed(**{LEADER_ID_KEY.replace(".", "_"): "other"})
    assert leader_id(worker.group_id, properties) == worker.leader_transactional_id == "other"


def test_the_phases_of_exactly_once_are_the_same_in_the_same_order() -> None:
    """For who upgrades a worker and for the worker that is configured."""
    phases = [phase.value for phase in acl_needs.PHASES]
    assert phases == [phase.value for phase in Phase]
    assert set(phases) == {support.value for support in ExactlyOnceSourceSupport}


@pytest.mark.parametrize("protocol", list(ProtocolVersion))
@pytest.mark.parametrize("own_leader_id", [None, "other"])
def test_a_members_bytes_are_read_as_they_are_written(
    protocol: ProtocolVersion, own_leader_id: str | None
) -> None:
    """Its URL, and the leader's, whatever comes behind them."""
    work = Work.of(["c"], [ConnectorTaskId("c", 0)])
    assignment = Assignment(
        version=protocol, leader="m-1", leader_url=URL, config_offset=7, assigned=work
    )
    subscription = Subscription(
        version=protocol,
        url=URL,
        config_offset=7,
        allocation=None if protocol is ProtocolVersion.EAGER else assignment,
        leader_transactional_id=own_leader_id,
    )
    group = kafka_group._group(
        SimpleNamespace(
            group_id="g",
            group_state="Stable",
            protocol_type="connect",
            protocol_data=protocol.group_name,
            members=[
                SimpleNamespace(
                    member_id="m-1",
                    member_metadata=encode_subscription(subscription),
                    member_assignment=encode_assignment(assignment),
                )
            ],
        )
    )
    assert group.members == (kafka_group.Member(id="m-1", url="http://worker:8083"),)
    assert group.leader_url == "http://worker:8083"


@given(connector=NAMES, partition=st.dictionaries(NAMES, NAMES, max_size=2))
def test_a_key_of_offsets_names_its_connector_to_both(
    connector: str, partition: dict[str, str]
) -> None:
    """Orphans are told by the bytes that tasks wrote."""
    assert connector_of(partition_key(connector, partition)) == connector


def test_a_sinks_group_is_named_alike() -> None:
    """Unless its config overrides it."""
    assert sink_group_id(distributed(), "c", {}) == f"{GROUP_PREFIX}c"


def test_a_task_count_is_read_as_it_is_written() -> None:
    """It is the one record of the config topic that the command line reads."""
    key, value = config_records.task_count_record("c", 3)
    assert (key or b"").decode() == f"{reader._TASK_COUNT}c"
    assert reader._task_count(value) == 3 == json.loads(value or b"")["task-count"]


def test_the_command_line_masks_the_agents_password_keys() -> None:
    """The command line has names only; of the type PASSWORD it shows certificates alone."""
    definitions = (
        DistributedConfig.definition(),
        source_config_def(PluginDefaults.none()),
        sink_config_def(PluginDefaults.none()),
    )
    keys = [key for definition in definitions for key in definition.keys.values()]
    secrets = {key.name for key in keys if key.type is ConfigType.PASSWORD}
    assert "sasl.jaas.config" in secrets
    assert {name for name in secrets if not is_secret_key(name)} == CERTIFICATES


def test_needs_have_the_same_names_in_agent_and_command_line() -> None:
    """They meet in the answer of an agent that has asked its brokers."""
    assert {client.value for client in acl_needs.AclClient} <= {role.value for role in acls.Role}
    operations = {operation.value for operation in acls.GrantOperation}
    assert {operation.value for operation in acl_needs.AclOperation} <= operations
    resources = {kind.value for kind in acls.ResourceType}
    assert {kind.value for kind in acl_needs.AclResource} <= resources
