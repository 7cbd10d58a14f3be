"""The targets of requests that belong to another worker."""

import json
from collections.abc import Mapping
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pyconnect_agent.core.errors import InternalError, NotAssignedError, NotLeaderError
from pyconnect_agent.core.herder import requests
from pyconnect_agent.rest.errors import RelayedError
from pyconnect_agent.rest.forwarding import (
    ForwardableRequest,
    WorkerClient,
    WorkerResponse,
    forward_url,
)
from pyconnect_agent.rest.routing import decode_segment, segments_of
from tests.support.agents.rest_client import Answer, call_app
from tests.support.cases import cases
from tests.support.fakes.fake_herder import FakeHerder
from tests.support.fakes.rest_services import application

LEADER = "http://leader:8083/"
CONFIG = {"connector.class": "FileStreamSource", "topic": "t"}
INFO = {"name": "c", "config": {**CONFIG, "name": "c"}, "tasks": [], "type": "source"}
NOT_LEADER = NotLeaderError("Only the leader can", target_url=LEADER)


class FakeWorkerClient(WorkerClient):
    """A client that answers with `outcome`, and keeps the requests."""

    def __init__(self, outcome: WorkerResponse | Exception) -> None:
        super().__init__()
        self.outcome = outcome
        self.sent: list[tuple[str, str, bytes | None, Mapping[str, str] | None]] = []

    async def send(
        self,
        method: str,
        url: str,
        *,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> WorkerResponse:
        self.sent.append((method, url, body, headers))
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome


def call(
    failure: Exception,
    client: FakeWorkerClient,
    method: str,
    target: str,
    body: object = None,
    headers: Mapping[str, str] | None = None,
) -> Answer:
    herder = FakeHerder()
    herder.signed_requests = False
    herder.failures = dict.fromkeys(
        (
            requests.PutConnectorConfig,
            requests.PatchConnectorConfig,
            requests.DeleteConnector,
            requests.StopConnector,
            requests.RestartConnector,
            requests.RestartConnectorAndTasks,
            requests.RestartTask,
            requests.SubmitTaskConfigs,
            requests.FenceZombies,
        ),
        failure,
    )
    return call_app(
        application(herder, client=client),
        method,
        target,
        None if body is None else json.dumps(body),
        {"Content-Type": "application/json", **(headers or {})},
    )


NAMED = {**CONFIG, "name": "c"}
DONE = WorkerResponse(204, None)


@cases(
    "method, target, body, response, sent_body, rest",
    (
        "POST",
        "connectors?other=1",
        {"name": "c", "config": CONFIG, "initial_state": "paused"},
        WorkerResponse(201, INFO),
        {"name": "c", "config": NAMED, "initial_state": "PAUSED"},
        "",
    ),
    ("PUT", "connectors/c/config", CONFIG, WorkerResponse(200, INFO), NAMED, ""),
    ("PUT", "connectors/c/config", CONFIG, WorkerResponse(201, INFO), NAMED, ""),
    ("PATCH", "connectors/c/config", {"a": None}, WorkerResponse(200, INFO), {"a": None}, ""),
    ("DELETE", "connectors/a%3Fb", None, DONE, None, ""),
    ("PUT", "connectors/c/stop", None, DONE, None, ""),
    ("POST", "connectors/c/restart", None, DONE, None, ""),
    (
        "POST",
        "connectors/c/restart?onlyFailed=true",
        None,
        WorkerResponse(202, {"name": "c"}),
        None,
        "&includeTasks=false&onlyFailed=true",
    ),
    ("POST", "connectors/c/tasks/3/restart", None, DONE, None, ""),
    ("POST", "connectors/c/tasks", [{"a": 1}], DONE, [{"a": "1"}], ""),
    ("PUT", "connectors/c/fence", None, DONE, None, ""),
)
def test_a_request_for_another_worker_is_forwarded(
    method: str, target: str, body: object, response: WorkerResponse, sent_body: object, rest: str
) -> None:
    """Method, path, rebuilt query and body go to the leader, whose answer comes back."""
    client = FakeWorkerClient(response)
    answer = call(NOT_LEADER, client, method, f"/{target}", body)
    assert answer.status == response.status
    [(sent_method, url, sent, _)] = client.sent
    sent_to = f"{LEADER}{target.partition('?')[0]}?forward=true{rest}"
    assert (sent_method, url) == (method, sent_to)
    assert (None if sent is None else json.loads(sent)) == sent_body
    assert (json.loads(answer.body) if answer.body else None) == response.body


def test_what_is_forwarded_keeps_location_and_authorization() -> None:
    """The location names the worker that the client asked, and signatures are not forwarded."""
    client = FakeWorkerClient(WorkerResponse(201, INFO))
    answer = call(NOT_LEADER, client, "PUT", "/connectors/c/config", CONFIG)
    assert answer.headers["location"] == "http://worker:8083/connectors/c"
    client = FakeWorkerClient(DONE)
    headers = {"Authorization": "Basic x", "X-Other": "1", "X-Connect-Authorization": "s"}
    call(NOT_LEADER, client, "DELETE", "/connectors/c", headers=headers)
    assert client.sent[0][3] == {"Authorization": "Basic x"}


@cases("forward, next_forward", ("", "true"), ("?forward=TRUE", "false"))
def test_a_hop_allows_one_more_hop_at_most(forward: str, next_forward: str) -> None:
    """A client's request may be forwarded once more by the worker that receives it."""
    client = FakeWorkerClient(DONE)
    call(NOT_LEADER, client, "DELETE", f"/connectors/c{forward}")
    assert client.sent[0][1] == f"{LEADER}connectors/c?forward={next_forward}"


@cases("value", "false", "no", "")
def test_a_request_that_has_hopped_twice_is_a_conflict(value: str) -> None:
    """`forward=false`, and each value other than true, ends the forwarding."""
    client = FakeWorkerClient(DONE)
    answer = call(NOT_LEADER, client, "DELETE", f"/connectors/c?forward={value}")
    assert (answer.status, answer.message) == (
        409,
        "Cannot complete request because of a conflicting operation (e.g. worker rebalance)",
    )
    assert client.sent == []


@cases("failure", NotLeaderError("", target_url=None), NotAssignedError("", target_url=""))
def test_an_unknown_target_is_a_conflict(failure: Exception) -> None:
    """While the leader is unknown, the worker forwards no request."""
    client = FakeWorkerClient(DONE)
    answer = call(failure, client, "POST", "/connectors/c/restart")
    assert (answer.status, answer.message) == (
        409,
        (
            "Cannot complete request momentarily due to no known leader URL, likely because a "
            "rebalance was underway."
        ),
    )


@cases(
    "failure, status, envelope",
    (RelayedError(409, "busy", error_code=409), 409, {"error_code": 409, "message": "busy"}),
    (RelayedError(503, None, error_code=7), 503, {"error_code": 7, "message": None}),
    (InternalError("IO Error"), 500, {"error_code": 500, "message": "IO Error"}),
)
def test_errors_of_targets_pass(failure: Exception, status: int, envelope: dict[str, Any]) -> None:
    """The client gets the other worker's status, code and message."""
    answer = call(NOT_LEADER, FakeWorkerClient(failure), "DELETE", "/connectors/c")
    assert (answer.status, answer.json()) == (status, envelope)


def test_an_invalid_config_is_sent_to_the_leader() -> None:
    """Only the leader validates a config; a follower forwards it without validation."""
    client = FakeWorkerClient(WorkerResponse(200, INFO))
    answer = call(NOT_LEADER, client, "PUT", "/connectors/c/config", {"a": "b"})
    assert answer.status == 200
    assert len(client.sent) == 1


@given(name=st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1))
def test_any_printable_name_survives_a_hop(name: str) -> None:
    """The target decodes the same name, unless it refuses the path."""
    request = ForwardableRequest(method="PUT", path=("connectors", name, "stop"))
    path = forward_url("http://leader:1", request).partition("?")[0]
    raw_path = path.removeprefix("http://leader:1")
    if any(character in name for character in "/%\\") or name in (".", ".."):
        return
    assert decode_segment(segments_of(raw_path)[1]) == name


@cases("target", "http://leader:1", "http://leader:1/")
def test_the_target_may_end_with_a_slash(target: str) -> None:
    """A URL never has two slashes in a row."""
    request = ForwardableRequest(method="POST", path=("connectors",))
    assert forward_url(target, request) == "http://leader:1/connectors?forward=true"
