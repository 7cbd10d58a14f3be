"""Requests whose answers do not depend on the connectors of a cluster, with Apache's answers.

The same list runs against the application over a fake herder, a real Java worker (so that the
expectations are facts) and a complete agent. A connector named `absent` exists on none of them.
"""

from tests.support.rest_scenarios.resources import BODIES, OFFSETS, RESOURCES
from tests.support.rest_scenarios.routing import ROUTING
from tests.support.rest_scenarios.scenario import Scenario

__all__ = ["SCENARIOS", "Scenario"]

SCENARIOS: tuple[Scenario, ...] = (*ROUTING, *BODIES, *OFFSETS, *RESOURCES)
