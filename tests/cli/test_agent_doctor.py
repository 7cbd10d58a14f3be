"""Findings of `pyconnect agent doctor` from the answers of agents."""

from dataclasses import replace

from pyconnect_cli.agents.commands import ExaminedAgent, examine
from pyconnect_cli.rest.agent_client import AgentInfo

INFO = AgentInfo(
    url="http://a",
    state="active",
    version="1",
    pid=1,
    leader=True,
    generation=1,
    phase="preparing",
    config_outdated=False,
    raw={"protocol": "sessioned", "restart": "self"},
)
AGENT = ExaminedAgent(info=INFO, config={"agent.allow.phase.change": "true"})


def warned(*agents: ExaminedAgent) -> dict[str, str]:
    """Return the details of warnings by check."""
    return {found.check: found.detail for found in examine(agents) if found.status == "warning"}


def test_a_sound_agent_has_no_warnings() -> None:
    """All checks of a sound agent are listed as ok; a standalone agent has no phase."""
    checks = [found.check for found in examine([AGENT])]
    assert checks == ["state", "configuration", "phase", "protocol", "upgrades"]
    assert warned(AGENT) == {}
    standalone = ExaminedAgent(info=replace(INFO, phase=None), config={})
    assert [found.check for found in examine([standalone])] == ["state", "configuration", "phase"]


def test_doctor_warns_about_every_fault() -> None:
    """Each fault of an agent is one warning."""
    other = replace(
        INFO,
        state="drained",
        config_outdated=True,
        plugin_problems=("Java plugins cannot be used: no Java was found",),
        phase="disabled",
        raw={"protocol": "eager"},
    )
    found = warned(AGENT, AGENT, ExaminedAgent(info=other, config={}))
    assert found["state"] == "drained"
    assert "changed after its start" in found["configuration"]
    assert found["plugins"].endswith("no Java was found")
    assert found["phase"].startswith("disabled, others are preparing")
    assert found["protocol"].startswith("eager")
    assert "needs agent.allow.phase.change=true" in found["upgrades"]
