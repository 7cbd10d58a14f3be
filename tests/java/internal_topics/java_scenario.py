"""A scenario that makes an Apache worker write into its internal topics."""

from dataclasses import dataclass
from pathlib import Path

from pyconnect_agent.core.clients.configs import InternalTopic
from pyconnect_agent.kafka.log import CompactedLog
from tests.support.agents.agent import STRING_CONVERTER, sink_config, source_config
from tests.support.agents.rest_client import WorkerRest
from tests.support.agents.worker_properties import store_log
from tests.support.eventually import eventually
from tests.support.names import unique_name
from tests.support.servers.kafka import SharedJavaWorker

WAIT_S = 150
TIMEOUT_MS = 30_000
ODD_TEXT = 'ü "quoted" \\ / \t\x01\x1f\x7f \u2028 😀 <&>'


@dataclass(frozen=True)
class JavaScenario:
    """Records that the Java worker was made to write."""

    rest: WorkerRest[SharedJavaWorker]
    bootstrap_servers: str
    group_id: str
    source: str
    sink: str
    paused: str
    stopped: str
    deleted: str

    @property
    def living(self) -> tuple[str, ...]:
        return (self.source, self.sink, self.paused, self.stopped)

    def log(self, kind: InternalTopic) -> CompactedLog:
        ending = "status" if kind is InternalTopic.STATUSES else kind.value
        return store_log(kind, self.bootstrap_servers, f"{self.group_id}-{ending}")


def run_scenario(done: JavaScenario, directory: Path) -> None:
    """Have connectors created, paused, stopped, restarted and deleted over REST."""
    rest, lines = done.rest, unique_name("lines")
    (directory / "in").write_text("first\nsecond\n")
    source = source_config(directory / "in", lines, value_converter=STRING_CONVERTER)
    rest.do("PUT", f"/connectors/{done.source}/config", {**source, "odd": ODD_TEXT, "empty": ""})
    rest.do(
        "PUT",
        f"/connectors/{done.sink}/config",
        sink_config(directory / "out", lines, tasks_max="2", value_converter=STRING_CONVERTER),
    )
    create = {"name": done.paused, "config": source, "initial_state": "PAUSED"}
    rest.do("POST", "/connectors", create)
    for name in (done.stopped, done.deleted):
        rest.do("PUT", f"/connectors/{name}/config", source)
        rest.wait_for_states(name, "RUNNING", "RUNNING", timeout_s=WAIT_S)
    rest.do("PUT", f"/connectors/{done.stopped}/stop")
    rest.do("DELETE", f"/connectors/{done.deleted}")
    rest.do("PUT", "/admin/loggers/org.example.interop?scope=cluster", {"level": "DEBUG"})
    rest.wait_for_states(done.source, "RUNNING", "RUNNING", timeout_s=WAIT_S)
    rest.wait_for_states(done.sink, "RUNNING", "RUNNING", "RUNNING", timeout_s=WAIT_S)
    rest.do("POST", f"/connectors/{done.source}/restart?includeTasks=true&onlyFailed=false")
    rest.wait_for_states(done.stopped, "STOPPED", timeout_s=WAIT_S)
    rest.wait_for_states(done.paused, "PAUSED", timeout_s=WAIT_S)
    # RUNNING may be from before the restart; PAUSED cannot.
    rest.do("PUT", f"/connectors/{done.source}/pause")
    rest.wait_for_states(done.source, "PAUSED", "PAUSED", timeout_s=WAIT_S)
    rest.do("PUT", f"/connectors/{done.source}/resume")
    rest.wait_for_states(done.source, "RUNNING", "RUNNING", timeout_s=WAIT_S)
    read = [{"position": (directory / "in").stat().st_size}]
    offsets = f"/connectors/{done.source}/offsets"
    eventually(lambda: [at["offset"] for at in rest.get(offsets)["offsets"]] == read, WAIT_S)
    for name in (done.source, done.sink):
        eventually(lambda name=name: rest.get(f"/connectors/{name}/topics")[name]["topics"], WAIT_S)
