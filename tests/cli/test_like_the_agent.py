"""Facts of Kafka that agent and command line implement separately: both agree.

Their common code is in `pyconnect_clients`. The rest are bytes that one writes and the other
reads, and settings that the agent gives its clients.
"""

from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyconnect_agent.core.config.connector_config import (
    PluginDefaults,
    sink_config_def,
    source_config_def,
)
from pyconnect_agent.core.config.worker_config import DistributedConfig
from pyconnect_agent.core.group_protocol import (
    Assignment,
    ProtocolVersion,
    Subscription,
    Work,
    encode_assignment,
    encode_subscription,
)
from pyconnect_agent.core.ids import ConnectorTaskId, TargetState
from pyconnect_agent.core.internal_topics import config_records
from pyconnect_agent.core.offsets.source import partition_key
from pyconnect_agent.worker import acls
from pyconnect_api import ConfigType
from pyconnect_cli.kafka import reader
from pyconnect_cli.offsets.plan.entries import connector_of
from pyconnect_cli.upgrade import observe
from pyconnect_clients.acls.model import Role
from pyconnect_clients.acls.needs import SECURITY_KEYS, client_config
from pyconnect_clients.config_values import is_secret_key
from pyconnect_clients.connect_names import leader_transactional_id
from tests.support.agents.worker_properties import distributed
from tests.support.cases import cases
from tests.support.servers.secured import sasl

NAMES = st.text(min_size=1, max_size=8)
CERTIFICATES = {"ssl.keystore.certificate.chain", "ssl.truststore.certificates"}
URL = "http://worker:8083/"
SECURED = {**sasl("worker"), **sasl("writer", "producer.")}


def test_the_agents_own_key_names_the_leaders_id_for_both() -> None:
    """The command line derives the leader's transactional id from the agent's properties."""
    worker = distributed(agent_leader_transactional_id="other")
    shown = leader_transactional_id(worker.group_id, worker.originals)
    assert shown == worker.leader_transactional_id == "other"


@pytest.mark.parametrize("protocol", list(ProtocolVersion))
@cases("own_leader_id", None, "other")
def test_bytes_of_members_are_read(protocol: ProtocolVersion, own_leader_id: str | None) -> None:
    """The command line reads the URLs of member and leader from bytes that the agent wrote."""
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
    group = observe._group(
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
    assert group.members == (observe.Member(id="m-1", url="http://worker:8083"),)
    assert group.leader_url == "http://worker:8083"


@given(connector=NAMES, partition=st.dictionaries(NAMES, NAMES, max_size=2))
def test_an_offset_key_names_its_connector(connector: str, partition: dict[str, str]) -> None:
    """The command line finds the connector in the key of an offset that a task wrote."""
    assert connector_of(partition_key(connector, partition)) == connector


def test_records_of_the_config_topic_are_read_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """The command line reads task counts and target states; a tombstone means STARTED."""
    written = [
        config_records.task_count_record("c", 3),
        config_records.target_state("paused", TargetState.PAUSED),
        config_records.target_state("stopped", TargetState.STOPPED),
        config_records.target_state("again", TargetState.STOPPED),
        config_records.target_state("again", TargetState.STARTED),
        (config_records.target_state("gone", TargetState.PAUSED)[0], None),
    ]
    messages = [
        SimpleNamespace(key=lambda key=key: key, value=lambda value=value: value)
        for key, value in written
    ]
    monkeypatch.setattr(reader, "records", lambda *_: iter(messages))
    assert reader.task_counts({}, "configs") == {"c": 3}
    expected = {"paused": "PAUSED", "stopped": "STOPPED", "again": "STARTED", "gone": "STARTED"}
    assert reader.stored_target_states({}, "configs") == expected


def test_the_command_line_masks_the_agents_password_keys() -> None:
    """The command line masks all password settings of the agent except certificates."""
    definitions = (
        DistributedConfig.definition(),
        source_config_def(PluginDefaults.none()),
        sink_config_def(PluginDefaults.none()),
    )
    keys = [key for definition in definitions for key in definition.keys.values()]
    secrets = {key.name for key in keys if key.type is ConfigType.PASSWORD}
    assert "sasl.jaas.config" in secrets
    assert {name for name in secrets if not is_secret_key(name)} == CERTIFICATES


@cases("role", Role.PRODUCER, Role.CONSUMER, Role.ADMIN)
def test_clients_have_the_principals_of_the_agents_clients(role: Role) -> None:
    """The command line derives the same security settings for each client as the agent."""
    worker = distributed(**{name.replace(".", "_"): text for name, text in SECURED.items()})
    for config in ({}, sasl("own", f"{role.value}.override.")):
        real = acls.client_config(worker, role, config)
        derived = client_config(role, worker.originals, config)
        expected = {key: real.get(key) for key in SECURITY_KEYS}
        assert {key: derived.get(key) for key in SECURITY_KEYS} == expected
