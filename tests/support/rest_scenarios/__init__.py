"""Requests whose answers do not depend on what a cluster holds, with Apache's answers.

The same list is asked of the application over a fake herder, of a real Java worker (so that the
expectations are facts) and of a complete agent. No connector named `absent` exists anywhere.
"""

from tests.support.rest_scenarios.resources import BODIES, OFFSETS, RESOURCES
from tests.support.rest_scenarios.routing import ROUTING
from tests.support.rest_scenarios.scenario import Scenario

__all__ = ["SCENARIOS", "Scenario"]

SCENARIOS: tuple[Scenario, ...] = (*ROUTING, *BODIES, *OFFSETS, *RESOURCES)
