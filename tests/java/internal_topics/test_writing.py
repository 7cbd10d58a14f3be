"""Records of our stores in the internal topics, obeyed by an Apache worker."""

from pathlib import Path

import pytest

from pyconnect_agent.core.ids import State, TargetState
from pyconnect_agent.core.java_text import json_text
from pyconnect_agent.core.offsets.source import partition_key
from pyconnect_agent.stores.config import ConfigStore
from pyconnect_agent.stores.offset import KafkaOffsetStore
from pyconnect_agent.stores.status import StatusStore
from tests.java.internal_topics.java_scenario import ODD_TEXT, TIMEOUT_MS, WAIT_S, JavaScenario
from tests.support.agents.agent import STRING_CONVERTER, source_config
from tests.support.eventually import eventually
from tests.support.names import unique_name

pytestmark = pytest.mark.java


def test_java_reads_records_of_our_stores(
    scenario: JavaScenario,
    configs: ConfigStore,
    statuses: StatusStore,
    offsets: KafkaOffsetStore,
    tmp_path: Path,
) -> None:
    """A config, a target state and an offset of ours become the Java worker's own."""
    (tmp_path / "in").write_text("skipped\nread\n")
    name, rest = unique_name("ours"), scenario.rest
    source = {
        **source_config(tmp_path / "in", unique_name("lines"), value_converter=STRING_CONVERTER),
        "name": name,
        "odd": ODD_TEXT,
    }
    configs.put_connector_config(name, source, TargetState.PAUSED)
    rest.wait_for_states(name, "PAUSED", timeout_s=WAIT_S)
    assert rest.get(f"/connectors/{name}")["config"] == source
    configs.put_target_state(name, TargetState.STARTED)
    rest.wait_for_states(name, "RUNNING", "RUNNING", timeout_s=WAIT_S)
    configs.refresh(TIMEOUT_MS)
    assert configs.snapshot().task_count(name) == 1
    configs.put_task_configs(name, [])
    configs.put_target_state(name, TargetState.STOPPED)
    rest.wait_for_states(name, "STOPPED", timeout_s=WAIT_S)
    eventually(lambda: (found := statuses.connector(name)) and found.state is State.STOPPED)
    key = partition_key(name, {"filename": str(tmp_path / "in")})
    eventually(lambda: offsets.read([key], TIMEOUT_MS)[key])
    offsets.write({key: json_text.dumps({"position": 8})}, TIMEOUT_MS)
    assert rest.get(f"/connectors/{name}/offsets")["offsets"] == [
        {"partition": {"filename": str(tmp_path / "in")}, "offset": {"position": 8}}
    ]
    configs.remove_connector_config(name)
    eventually(lambda: name not in rest.get("/connectors"))
