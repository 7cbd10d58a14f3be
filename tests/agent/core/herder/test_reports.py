"""The herder's reactions to reports of children."""

from pyconnect_agent.core.herder import events as on
from pyconnect_agent.core.herder.decide import decide
from pyconnect_agent.core.herder.effects import PutStatus
from pyconnect_agent.core.herder.requests import PutConnectorConfig
from pyconnect_agent.core.ids import ConnectorTaskId, State
from pyconnect_agent.core.reporting import Reported
from tests.simulation.herder_world import TASKS, World
from tests.support.cases import cases


@cases("member", True, False)
@cases("state", State.UNASSIGNED, State.FAILED, State.RUNNING)
def test_a_final_report_without_membership_is_late(member: bool, state: State) -> None:
    """Others may have the work by then, so the status topic has to be read before the write."""
    world = World()
    world.settled(PutConnectorConfig(connector="a", config={TASKS: "1"}))
    found = world.state
    if not member:
        found, _ = decide(found, on.MembershipLost(), world.now_ms)
    late = []
    for report in (
        on.InstanceReported(item=ConnectorTaskId("a", 0), report=Reported(state=state)),
        on.InstanceReported(item="a", report=Reported(state=state)),
    ):
        _, effects = decide(found, report, world.now_ms)
        late += [e.late for e in effects if isinstance(e, PutStatus)]
    assert late == [not member and state is not State.RUNNING] * 2
