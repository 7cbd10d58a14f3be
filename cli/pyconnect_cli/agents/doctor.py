"""`pyconnect agent doctor`: problems that keep agents from work or from an upgrade."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

from pyconnect_cli.rest.agent_client import AgentInfo

ALLOW = "agent.allow.phase.change"


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentFinding:
    """One finding about one agent; `status` is ok, warning or failed."""

    url: str
    status: str
    check: str
    detail: str

    def to_json(self) -> dict[str, str]:
        """The stable form for machines."""
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExaminedAgent:
    """One agent with its configuration in force."""

    info: AgentInfo
    config: dict[str, str | None]


def examine(agents: Sequence[ExaminedAgent]) -> list[AgentFinding]:
    """Return a finding for each agent and check, and findings that compare the agents. Pure."""
    phases = Counter(agent.info.phase for agent in agents)
    usual = phases.most_common(1)[0][0] if phases else None
    return [finding for agent in agents for finding in _each(agent, usual)]


def _each(agent: ExaminedAgent, usual_phase: str | None) -> Iterator[AgentFinding]:
    info = agent.info
    url = info.url

    def finding(check: str, detail: str, *, status: str = "ok") -> AgentFinding:
        return AgentFinding(url=url, status=status, check=check, detail=detail)

    state = "ok" if info.state == "active" else "warning"
    yield finding("state", info.state, status=state)
    if info.config_outdated:
        yield finding(
            "configuration", "its properties file was changed after its start", status="warning"
        )
    else:
        yield finding("configuration", "the file is in force")
    for problem in info.plugin_problems:
        yield finding("plugins", problem, status="warning")
    if info.phase is None:
        yield finding("phase", "standalone: it has no group protocol")
        return
    differs = info.phase != usual_phase
    yield finding(
        "phase",
        f"{info.phase}, others are {usual_phase}: an upgrade is under way or was left"
        if differs
        else info.phase,
        status="warning" if differs else "ok",
    )
    protocol = str(info.raw.get("protocol") or "-")
    weak = protocol in {"eager", "compatible"}
    yield finding(
        "protocol",
        f"{protocol}: requests between workers are not signed" if weak else protocol,
        status="warning" if weak else "ok",
    )
    yield _changes(agent, finding("upgrades", "changes its phase and restarts itself"))


def _changes(agent: ExaminedAgent, able: AgentFinding) -> AgentFinding:
    """Return whether `pyconnect upgrade` can change this agent without an operator."""
    restart = str(agent.info.raw.get("restart") or "none")
    missing = []
    if agent.config.get(ALLOW) != "true":
        missing.append(f"{ALLOW}=true")
    if restart == "none":
        missing.append("a program: the one that it runs has been removed")
    if not missing:
        return able
    detail = f"by hand; to change its phase itself it needs {', and '.join(missing)}"
    return AgentFinding(url=able.url, status="warning", check=able.check, detail=detail)
