"""A Java worker and an agent in one group, both with Apache's BasicAuthSecurityRestExtension."""

import base64
import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from pyconnect_agent.core.rest_access import EXTENSION_NAMES
from pyconnect_sandbox.connect_worker import (
    AgentProcess,
    ConnectWorker,
    JavaConnectWorker,
    WorkerLaunch,
    worker_properties,
)
from tests.support.agents.agent import STRING_CONVERTER, source_config
from tests.support.agents.rest_client import Answer, WorkerRest, call_url
from tests.support.eventually import eventually
from tests.support.names import unique_name
from tests.support.plugins.maven_plugins import BASIC_AUTH, location_of
from tests.support.servers.cluster import QUICK_GROUP
from tests.support.servers.kafka import Servers, SharedBroker

pytestmark = [pytest.mark.java, pytest.mark.timeout(900)]

WAIT_S = 150


def basic(user: str, password: str) -> dict[str, str]:
    return {"Authorization": "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()}


class WithExtension(JavaConnectWorker):
    """A Java worker with the extension's jar on Kafka's class path, where JAAS searches."""

    def _command(self, worker_file: Path, connector_files: Sequence[Path]) -> Sequence[str]:
        words = list(super()._command(worker_file, connector_files))
        (jar,) = location_of(BASIC_AUTH).glob("*.jar")
        words[words.index("-cp") + 1] += f":{jar}"
        # A class data archive fits only one class path.
        return [word for word in words if "Archive" not in word]


class Signed(WorkerRest[ConnectWorker]):
    """A worker that gets every request as the user anna."""

    def call(
        self, method: str, path: str, body: object = None, headers: dict[str, str] | None = None
    ) -> Answer:
        own = {"Content-Type": "application/json"} if body is not None else {}
        own |= basic("anna", "pa:ss wörd") if headers is None else headers
        return call_url(self.url, method, path, None if body is None else json.dumps(body), own)


@pytest.fixture(scope="module", params=["java", "agent"])
def group(
    request: pytest.FixtureRequest,
    module_servers: Servers,
    kafka_broker: SharedBroker,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[Signed, Signed]]:
    """A leader and a follower with the same properties and the same environment variable."""
    directory = tmp_path_factory.mktemp("jaas")
    (directory / "credentials.properties").write_text("anna=pa:ss w\\u00f6rd\nbob=b\n")
    (directory / "jaas.conf").write_text(
        "// who may use REST\n"
        "KafkaClient { com.example.Other required a=b; };\n"
        "KafkaConnect {\n  org.apache.kafka.connect.rest.basic.auth.extension"
        f'.PropertyFileLoginModule required file="{directory}/credentials.properties";\n}};\n'
    )
    properties = {
        **QUICK_GROUP,
        "key.converter": STRING_CONVERTER,
        "value.converter": STRING_CONVERTER,
        "rest.extension.classes": EXTENSION_NAMES[0],
    }
    launch = WorkerLaunch(
        directory=directory / "java-worker",
        properties={
            **worker_properties(kafka_broker.bootstrap_servers, unique_name("basic-auth")),
            **properties,
        },
        hold_file=directory / "workers.hold",
    )
    with pytest.MonkeyPatch.context() as patch, ExitStack() as started:
        option = f"-Djava.security.auth.login.config={directory}/jaas.conf"
        patch.setenv("JAVA_TOOL_OPTIONS", option)
        workers: list[ConnectWorker] = [
            WithExtension(module_servers.runtime, launch),
            AgentProcess(replace(launch, directory=directory / "agent")),
        ]
        first, second = workers if request.param == "java" else reversed(workers)
        for process in (first, second):
            started.callback(process.stop)
            process.start()
            worker = Signed(process)
            eventually(
                lambda worker=worker: worker.call("GET", "/health").status == 200,
                WAIT_S,
                lambda worker=worker: worker.call("GET", "/health").text,
            )
        yield Signed(first), Signed(second)


GIVEN = (
    {},
    basic("anna", "wrong"),
    basic("nobody", "b"),
    basic("bob", ""),
    {"Authorization": "Bearer b"},
    {"Authorization": "Basic"},
    {"Authorization": "bAsIc Ym9iOmI="},
    {"Authorization": "Basic Om5vYm9keQ=="},
)
TARGETS = (
    ("GET", "/"),
    ("GET", "/health"),
    ("GET", "/connectors"),
    ("OPTIONS", "/connectors"),
    ("GET", "/admin/loggers/root"),
    ("DELETE", "/connectors/none"),
    ("POST", "/connectors/none/tasks"),
    ("PUT", "/connectors/none/fence"),
    ("GET", "/no/such/path"),
    ("PATCH", "/connectors"),
)


def test_both_kinds_admit_and_refuse_the_same(group: tuple[Signed, Signed]) -> None:
    """Status and text are the same; requests between workers need no user, and health does.

    For a password that is not Base64 a Java worker answers 500, and an agent 401.
    """
    refused = "User cannot access the resource."
    for target in TARGETS:
        for headers in GIVEN:
            answers = {
                isinstance(worker.process, AgentProcess): worker.call(*target, headers=headers)
                for worker in group
            }
            java, agent = answers[False], answers[True]
            assert agent.status == java.status, (target, headers)
            if agent.status == 401:
                assert (agent.message, java.text) == (refused, refused)
                assert agent.headers["www-authenticate"].startswith("Basic realm=")


def test_connectors_are_changed_through_either_worker_and_run(
    group: tuple[Signed, Signed], tmp_path: Path
) -> None:
    """A follower forwards the user's header to the leader; task configs are sent without a user."""
    names = [unique_name("lines") for _ in range(4)]
    for number, name in enumerate(names):
        file = tmp_path / f"{name}.txt"
        file.write_text("line\n")
        group[number % 2].create(name, source_config(file, name))
    owners = set()
    for name in names:
        for worker in group:
            worker.wait_for_states(name, "RUNNING", "RUNNING", timeout_s=WAIT_S)
        owners.add(group[0].get(f"/connectors/{name}/status")["connector"]["worker_id"])
    assert len(owners) == 2
    for number, name in enumerate(names):
        group[number % 2].do("DELETE", f"/connectors/{name}")
