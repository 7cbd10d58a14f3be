"""Tries a connector on this machine, without a worker.

Composition root. `python -m pyconnect_agent.worker.trial` reads a question from standard input and
prints an answer, both as a JSON object. It makes the same processes as a worker: one that
validates, one of a source connector, one of its first task (`tasks.trial`).

    {"config", "properties", "given": [{"topic", "partition", "offset", "timestamp_ms", "key",
     "value", "headers": [[NAME, DATA], ...]}] | null, "most", "time_s"}      data: base64 or null
    {"records": [...], "notes": [TEXT, ...], "failure": TEXT | null}

Settings that would leave traces at the connector's system are replaced, if its definition has a key
for them.
"""

import asyncio
import base64
import json
import os
import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from pyconnect_agent.channel.requests import GivenRecord, TryConnectorJob, WorkerSettings
from pyconnect_agent.children.children import ChildProcesses
from pyconnect_agent.children.launch import Launcher
from pyconnect_agent.children.ports import ChildSettings
from pyconnect_agent.core.errors import AgentError
from pyconnect_agent.core.ids import ConnectorTaskId, Instance, State, TargetState
from pyconnect_agent.core.reporting import Reported
from pyconnect_agent.process.logging import configure_logging
from pyconnect_agent.stores import MemoryLog
from pyconnect_agent.stores.offset import KafkaOffsetStore
from pyconnect_agent.worker.plugins import find_plugins, resolve_properties
from pyconnect_api.errors import ConnectException

JSON = "org.apache.kafka.connect.json.JsonConverter"
DEFAULTS = {"bootstrap.servers": "localhost:9092", "key.converter": JSON, "value.converter": JSON}
SPARE_S = 15.0
"""Extra time, for the start of Java and the end of a database's snapshot."""
OF_DEBEZIUM = {
    "slot.name": f"pyconnect_try_{os.getpid()}",
    "slot.drop.on.stop": "true",
    "database.server.id": str(1_000_000_000 + os.getpid()),
    "schema.history.internal": "io.debezium.relational.history.MemorySchemaHistory",
}
"""Settings against traces in the database or Kafka, and against disturbing a running connector."""
OFFSETS_TOPIC = "offsets.storage.topic"
REGISTRY = "converter.schema.registry.url"
NOT_PUT = "put is not called: nothing is written, and no offset is committed"
WAS_RUN = "start and poll were called: what they change at the system itself stays changed"


class _Listener:
    """A listener that waits for the connector's first state; see `children.ports.ChildListener`."""

    def __init__(self) -> None:
        self.started: asyncio.Future[Reported] = asyncio.get_running_loop().create_future()

    def reported(self, item: Instance, report: Reported) -> None:
        if isinstance(item, str) and not self.started.done():
            self.started.set_result(report)

    def task_start_asked(self, task_id: ConnectorTaskId, request_id: int) -> None: ...
    def task_reconfiguration_requested(self, connector: str) -> None: ...
    def topic_used(self, task_id: ConnectorTaskId, topic: str) -> None: ...
    def config_ttl_expired(self, connector: str) -> None: ...
    def lease_expired(self) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerTrial:
    """One trial. `given`: records for a sink; None: a source returns `most` within `time_s`."""

    config: Mapping[str, str]
    given: tuple[GivenRecord, ...] | None
    most: int
    time_s: float

    async def run(self, children: ChildProcesses, settings: WorkerSettings) -> dict[str, Any]:
        """Run the trial and return the answer. Raises AgentError."""
        listener = _Listener()
        children.connect(listener)
        await children.start()
        try:
            infos = await children.jobs.validate(dict(self.config), self._timeout_ms)
            values = [info.value for info in infos.configs if info.value is not None]
            if errors := [f"{value.name}: {error}" for value in values for error in value.errors]:
                raise AgentError("\n".join(("its config is not valid", *errors)))
            known = {
                str(info.definition["name"])
                for info in infos.configs
                if info.definition is not None
            }
            is_source = "topics.regex" not in known
            if is_source and self.given is not None:
                raise AgentError("a source takes no records: --topic and --records are for sinks")
            if not is_source and self.given is None:
                raise AgentError("a sink needs records: give --topic or --records")
            config, notes = replaced(self.config, known) if is_source else (self.config, [NOT_PUT])
            task_config: Mapping[str, str | None] = {}
            if is_source:
                task_config = await self._task_config(children, listener, config)
            job = TryConnectorJob(
                worker=settings,
                connector=config["name"],
                config=dict(config),
                task_config=dict(task_config),
                given=self.given,
                most=self.most,
                time_ms=int(self.time_s * 1000),
            )
            tried = await children.jobs.try_connector(job, self._timeout_ms)
            records = [json.loads(record) for record in tried.records]
            return {"records": records, "notes": notes, "failure": tried.failure}
        finally:
            await children.stop()

    @property
    def _timeout_ms(self) -> int:
        return int((self.time_s + SPARE_S) * 1000)

    async def _task_config(
        self, children: ChildProcesses, listener: _Listener, config: Mapping[str, str]
    ) -> Mapping[str, str | None]:
        """Start the connector; return the config of its first task."""
        name = config["name"]
        children.connectors.start(name, dict(config), TargetState.STARTED)
        try:
            async with asyncio.timeout(self._timeout_ms / 1000):
                report = await listener.started
        except TimeoutError:
            raise AgentError("The connector's start did not return in time.") from None
        if report.state is not State.RUNNING:
            raise AgentError(report.trace or "The connector did not start.")
        generated = await children.connectors.generate_task_configs(name, dict(config), None)
        if not generated.configs:
            raise AgentError("The connector made no task: task_configs returned none.")
        return generated.configs[0]


def replaced(
    config: Mapping[str, str], known: Collection[str]
) -> tuple[Mapping[str, str], list[str]]:
    """Return a source's config for a trial, and remarks; `known` are the keys that it defines."""
    made, notes = dict(config), [WAS_RUN]
    for key in OF_DEBEZIUM.keys() & set(known):
        made[key] = OF_DEBEZIUM[key]
    for role in ("key", "value"):
        if f"{role}.{REGISTRY}" in made:
            made[f"{role}.converter.auto.register.schemas"] = "false"
    made.pop(OFFSETS_TOPIC, None)
    changed = sorted(key for key in {*config, *made} if config.get(key) != made.get(key))
    notes += [f"for this trial {key} is {made.get(key, 'not set')}" for key in changed]
    return made, notes


async def _tried(question: Mapping[str, Any], launcher: Launcher) -> dict[str, Any]:
    def data(text: str | None) -> bytes | None:
        return None if text is None else base64.b64decode(text)

    raw = {**DEFAULTS, **question["properties"]}
    catalog = await asyncio.to_thread(find_plugins, raw)
    settings = WorkerSettings(
        properties=resolve_properties(raw, catalog),
        plugins=catalog.plugins,
        levels={"root": "WARN"},
    )
    given: tuple[GivenRecord, ...] | None = None
    if question["given"] is not None:
        given = tuple(
            GivenRecord(
                topic=row["topic"],
                partition=row["partition"],
                offset=row["offset"],
                timestamp_ms=row["timestamp_ms"],
                key=data(row["key"]),
                value=data(row["value"]),
                headers=tuple((name, data(text)) for name, text in row["headers"]),
            )
            for row in question["given"]
        )
    trial = WorkerTrial(
        config=question["config"], given=given, most=question["most"], time_s=question["time_s"]
    )
    children = ChildProcesses(
        ChildSettings(worker=settings), KafkaOffsetStore(MemoryLog()), launcher=launcher
    )
    return await trial.run(children, settings)


def main() -> int:
    """Answer the question on standard input; the answer is the last line of the output."""
    question = json.load(sys.stdin)
    launcher = Launcher()
    launcher.fork()
    configure_logging(levels={"root": "ERROR"})
    try:
        answer = asyncio.run(_tried(question, launcher))
    except (AgentError, ConnectException) as error:
        answer = {"records": [], "notes": [], "failure": str(error)}
    launcher.close()
    sys.stdout.write(f"\n{json.dumps(answer)}\n")
    sys.stdout.flush()
    return 0


if __name__ == "__main__":
    # A thread of a client library must not delay the exit.
    os._exit(main())
