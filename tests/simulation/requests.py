"""Requests that hypothesis may send to a worker."""

from hypothesis import strategies as st

from pyconnect_agent.core.herder import requests as ask
from pyconnect_agent.core.ids import ConnectorTaskId, TargetState
from tests.simulation.herder_world import TASKS

CONNECTOR_NAMES = ("a", "b")
CONNECTORS = st.sampled_from(CONNECTOR_NAMES)
CONFIGS = st.fixed_dictionaries(
    {TASKS: st.sampled_from(["0", "1", "3"]), "text": st.sampled_from(["x", "y"])}
)
TIMEOUTS_MS = st.sampled_from([100, 1_000, 90_000])


def requests() -> st.SearchStrategy[ask.Request]:
    """Return a strategy for every request that one worker serves."""
    tasks = st.builds(ConnectorTaskId, CONNECTORS, st.integers(0, 3))
    unready = st.sampled_from([TargetState.STARTED, TargetState.PAUSED])
    return st.one_of(
        st.builds(ask.Probe),
        st.builds(ask.GetConnectorInfo, connector=CONNECTORS),
        st.builds(ask.GetTaskConfigs, connector=CONNECTORS),
        st.builds(
            ask.PutConnectorConfig,
            connector=CONNECTORS,
            config=CONFIGS,
            initial_state=st.none() | st.sampled_from(TargetState),
            allow_replace=st.booleans(),
        ),
        st.builds(
            ask.PatchConnectorConfig,
            connector=CONNECTORS,
            patch=st.fixed_dictionaries({"text": st.sampled_from(["p", None])}),
        ),
        st.builds(ask.DeleteConnector, connector=CONNECTORS),
        st.builds(ask.SetTargetState, connector=CONNECTORS, target_state=unready),
        st.builds(ask.StopConnector, connector=CONNECTORS),
        st.builds(ask.RestartConnector, connector=CONNECTORS),
        st.builds(
            ask.RestartConnectorAndTasks,
            connector=CONNECTORS,
            only_failed=st.booleans(),
            include_tasks=st.booleans(),
        ),
        st.builds(ask.RestartTask, task_id=tasks),
        st.builds(
            ask.ChangeOffsets,
            connector=CONNECTORS,
            offsets=st.none() | st.just(b'{"offsets":[{}]}'),
        ),
    )
