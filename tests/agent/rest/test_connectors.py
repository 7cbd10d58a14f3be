"""Resources of connectors, offsets, and requests between workers, with a fake herder."""

import asyncio
import json
from typing import Any

import pytest

from pyconnect_agent.core.config.config_infos import ConfigInfos
from pyconnect_agent.core.errors import ConflictError, InternalError, RequestTimedOutError
from pyconnect_agent.core.herder import requests
from pyconnect_agent.core.herder.session_keys import signature_headers
from pyconnect_agent.core.ids import ConnectorTaskId, TargetState
from pyconnect_agent.core.internal_topics.config_snapshot import SessionKey
from pyconnect_agent.core.offsets.connector_offsets import ConnectorOffset
from pyconnect_agent.core.reporting import Stage
from tests.support.agents.rest_client import Answer, acall_app, call_app
from tests.support.cases import cases
from tests.support.fakes.fake_herder import SOURCE_CLASS, FakeHerder
from tests.support.fakes.rest_services import application

CONFIG = {"connector.class": "FileStreamSource", "topic": "t", "file": "/tmp/x"}
JSON = {"Content-Type": "application/json"}


@pytest.fixture
def herder() -> FakeHerder:
    return FakeHerder()


def call(
    herder: FakeHerder, method: str, target: str, body: object = None, **settings: Any
) -> Answer:
    content = None if body is None else json.dumps(body)
    return call_app(application(herder, **settings), method, target, content, JSON)


def test_create_answers_201_with_location_and_the_submitted_config(herder: FakeHerder) -> None:
    """The answer to POST holds the submitted config with its name, and the absolute location."""
    answer = call(herder, "POST", "/connectors", {"name": " a b;é\t", "config": CONFIG})
    assert answer.status == 201
    assert answer.headers["location"] == "http://worker:8083/connectors/a%20b%3B%C3%A9"
    assert answer.json() == {
        "name": "a b;é",
        "config": {**CONFIG, "name": "a b;é"},
        "tasks": [],
        "type": "source",
    }
    assert herder.submitted == [
        requests.PutConnectorConfig(
            connector="a b;é", config={**CONFIG, "name": "a b;é"}, allow_replace=False
        )
    ]


@cases(
    "text, state",
    ("running", TargetState.STARTED), ("Paused", TargetState.PAUSED),
    ("STOPPED", TargetState.STOPPED), (None, None),
)  # fmt: skip
def test_initial_state_is_handed_on(
    herder: FakeHerder, text: str | None, state: TargetState | None
) -> None:
    """`initial_state` ignores case, and null counts as missing."""
    call(herder, "POST", "/connectors", {"name": "c", "config": CONFIG, "initial_state": text})
    request = herder.submitted[0]
    assert isinstance(request, requests.PutConnectorConfig)
    assert request.initial_state is state


def test_scalars_of_a_config_become_their_json_text(herder: FakeHerder) -> None:
    """Numbers and booleans keep their spelling."""
    body = (
        '{"name":"c","config":{"connector.class":"FileStreamSource","topic":"t","a":1.50,"b":true,'
        '"c":1E+2,"d":-0,"e":123456789012345678901234567890,"f":"\\u00e9\\ud83d\\ude00"}}'
    )
    call_app(application(herder), "POST", "/connectors", body, JSON)
    stored = herder.configs["c"]
    expected = ["1.50", "true", "1E+2", "-0", "123456789012345678901234567890", "é😀"]
    assert [stored[key] for key in "abcdef"] == expected


def test_an_existing_name_is_a_conflict_but_its_bad_config_comes_first(herder: FakeHerder) -> None:
    """An existing name is answered with 409, but errors of its config come first."""
    herder.configs["c"] = CONFIG
    exists = call(herder, "POST", "/connectors", {"name": "c", "config": CONFIG})
    assert (exists.status, exists.message) == (409, "Connector c already exists")
    invalid = {"connector.class": "FileStreamSource"}
    refused = call(herder, "POST", "/connectors", {"name": "c", "config": invalid})
    assert refused.status == 400
    assert refused.message == (
        "Connector configuration is invalid and contains the following 1 error(s):\n"
        'Missing required configuration "topic" which has no default value.\n'
        "You can also find the above list of errors at the endpoint "
        "`/connector-plugins/{connectorType}/config/validate`"
    )


def test_put_config_answers_201_only_when_it_created(herder: FakeHerder) -> None:
    """PUT answers 201 with a location for a new connector, and 200 for a changed one."""
    created = call(herder, "PUT", "/connectors/c/config", CONFIG)
    changed = call(herder, "PUT", "/connectors/c/config", CONFIG)
    assert (created.status, changed.status) == (201, 200)
    assert created.headers["location"] == "http://worker:8083/connectors/c"
    assert "location" not in changed.headers


def test_patches_hand_nulls_on_and_need_a_body(herder: FakeHerder) -> None:
    """PATCH answers 200; a null removes a key, and an empty body changes nothing."""
    herder.configs["c"] = {**CONFIG, "name": "c"}
    answer = call(herder, "PATCH", "/connectors/c/config", {"file": None, "batch.size": 5})
    assert answer.status == 200
    expected = {"connector.class": "FileStreamSource", "topic": "t", "name": "c", "batch.size": "5"}
    assert answer.json()["config"] == expected
    assert herder.submitted == [
        requests.PatchConnectorConfig(connector="c", patch={"file": None, "batch.size": "5"})
    ]
    herder.configs["c"] = CONFIG
    answer = call(herder, "PATCH", "/connectors/c/config")
    assert (answer.status, answer.message) == (500, "The body of the request must have a patch")
    assert herder.configs["c"] == CONFIG


def test_expand_shows_the_requested_parts_and_leaves_out_connectors_without_status(
    herder: FakeHerder,
) -> None:
    """Each `expand` makes the answer an object, and unknown kinds add nothing."""
    herder.configs = {"a": CONFIG, "b": CONFIG}
    herder.without_status = {"b"}
    assert call(herder, "GET", "/connectors").json() == ["a", "b"]
    assert call(herder, "GET", "/connectors?expand").json() == {"a": {}, "b": {}}
    assert call(herder, "GET", "/connectors?expand=info,status").json() == {"a": {}, "b": {}}
    both = call(herder, "GET", "/connectors?expand=info&expand=status").json()
    assert list(both) == ["a"]
    assert list(both["a"]) == ["status", "info"]
    assert both["a"]["info"]["name"] == "a"
    assert list(call(herder, "GET", "/connectors?expand=info").json()) == ["a", "b"]


def test_statuses_have_apaches_members(herder: FakeHerder) -> None:
    """Members are in Apache's order, and a trace is last, if there is one."""
    herder.configs["c"] = CONFIG
    herder.task_counts["c"] = 1
    assert call(herder, "GET", "/connectors/c/status").text == (
        '{"name":"c","connector":{"state":"RUNNING","worker_id":"127.0.0.1:8083","version":"4.3.1"}'
        ',"tasks":[{"id":0,"state":"RUNNING","worker_id":"127.0.0.1:8083","version":"4.3.1"}]'
        ',"type":"source"}'
    )
    expected = '{"id":0,"state":"RUNNING","worker_id":"127.0.0.1:8083","version":"4.3.1"}'
    assert call(herder, "GET", "/connectors/c/tasks/0/status").text == expected
    herder.configs["c"] = CONFIG
    herder.task_counts["c"] = 1
    herder.task_failures[ConnectorTaskId("c", 0)] = "Error: é\n\tat x"
    assert call(herder, "GET", "/connectors/c/tasks/0/status").text == (
        '{"id":0,"state":"FAILED","worker_id":"127.0.0.1:8083","version":"4.3.1",'
        '"trace":"Error: é\\n\\tat x"}'
    )


def test_tasks_are_listed_with_their_configs(herder: FakeHerder) -> None:
    """GET tasks answers with ids and raw configs."""
    herder.configs["c"] = CONFIG
    herder.task_counts["c"] = 1
    expected = [{"id": {"connector": "c", "task": 0}, "config": {**CONFIG, "task.class": "T"}}]
    assert call(herder, "GET", "/connectors/c/tasks").json() == expected


@cases(
    "query, status, request_",
    ("", 204, requests.RestartConnector(connector="c")),
    ("?includeTasks=false&onlyFailed=yes", 204, requests.RestartConnector(connector="c")),
    (
        "?includeTasks=TRUE",
        202,
        requests.RestartConnectorAndTasks(connector="c", include_tasks=True, only_failed=False),
    ),
    (
        "?onlyFailed=true",
        202,
        requests.RestartConnectorAndTasks(connector="c", include_tasks=False, only_failed=True),
    ),
)
def test_restart_flags_choose_the_mode(
    herder: FakeHerder, query: str, status: int, request_: requests.Request
) -> None:
    """Without a flag only the connector instance is restarted, and the answer has no body."""
    herder.configs["c"] = CONFIG
    answer = call(herder, "POST", f"/connectors/c/restart{query}")
    assert answer.status == status
    assert herder.submitted == [request_]
    assert bool(answer.body) is (status == 202)


def test_state_changes_have_their_statuses(herder: FakeHerder) -> None:
    """Pause and resume answer 202; stop, delete and a task's restart 204; none has a body."""
    herder.configs["c"] = CONFIG
    herder.task_counts["c"] = 1
    answers = [
        call(herder, method, target)
        for method, target in (
            ("PUT", "/connectors/c/pause"),
            ("PUT", "/connectors/c/resume"),
            ("POST", "/connectors/c/tasks/0/restart"),
            ("PUT", "/connectors/c/stop"),
            ("DELETE", "/connectors/c"),
        )
    ]
    assert [answer.status for answer in answers] == [202, 202, 204, 204, 204]
    assert not any(answer.body for answer in answers)
    assert herder.submitted == [
        requests.SetTargetState(connector="c", target_state=TargetState.PAUSED),
        requests.SetTargetState(connector="c", target_state=TargetState.STARTED),
        requests.RestartTask(task_id=ConnectorTaskId("c", 0)),
        requests.StopConnector(connector="c"),
        requests.DeleteConnector(connector="c"),
    ]


def test_topics_can_be_switched_off(herder: FakeHerder) -> None:
    """The error about tracking comes before the one about resets."""
    herder.topics["c"] = ("t1",)
    assert call(herder, "GET", "/connectors/c/topics").text == '{"c":{"topics":["t1"]}}'
    for settings, method, target, message in (
        ({"topic_tracking_enable": False}, "GET", "topics", "Topic tracking is disabled."),
        (
            {"topic_tracking_enable": False, "topic_tracking_allow_reset": False},
            "PUT",
            "topics/reset",
            "Topic tracking is disabled.",
        ),
        (
            {"topic_tracking_allow_reset": False},
            "PUT",
            "topics/reset",
            "Topic tracking reset is disabled.",
        ),
    ):
        answer = call(herder, method, f"/connectors/c/{target}", **settings)
        assert (answer.status, answer.message) == (403, message)
    assert call(herder, "PUT", "/connectors/c/topics/reset").status == 202
    assert herder.topics == {}


def test_errors_of_the_herder_have_their_statuses(herder: FakeHerder) -> None:
    """A conflict is 409, and a failure of the herder is 500, both with their texts."""
    for failure, status in (
        (ConflictError("Cannot complete request momentarily"), 409),
        (InternalError("Request cannot be completed because a rebalance is expected"), 500),
        (RequestTimedOutError("Request timed out"), 500),
    ):
        herder.failures[requests.GetConnectorInfo] = failure
        answer = call(herder, "GET", "/connectors/c")
        assert answer.json() == {"error_code": status, "message": str(failure)}


def test_an_unexpected_failure_is_500_with_its_own_message(
    herder: FakeHerder, caplog: pytest.LogCaptureFixture
) -> None:
    """A bug is answered with 500 and leaves its trace in the log."""
    herder.failures[requests.GetConnectorInfo] = ZeroDivisionError("division by zero")
    answer = call(herder, "GET", "/connectors/c")
    assert answer.json() == {"error_code": 500, "message": "division by zero"}
    assert [record.message for record in caplog.records if record.exc_info] == ["request failed"]


def test_a_timed_out_validation_has_no_final_dot(herder: FakeHerder) -> None:
    """Apache's worker writes this text without a dot at this endpoint only."""
    herder.held = {ConfigInfos, requests.PutConnectorConfig}
    herder.stage = Stage(description="polling", started_ms=0)
    target = "/connector-plugins/FileStreamSource/config/validate"
    expected = (
        "Request timed out. The worker is currently polling, which began at 1970-01-01T00:00:00Z"
    )
    assert call(herder, "PUT", target, CONFIG).message == expected
    assert call(herder, "PUT", "/connectors/c/config", CONFIG).message == f"{expected}."


def test_validation_answers_200_even_with_errors(herder: FakeHerder) -> None:
    """Errors of fields are the content of the answer, for a plugin's alias or full name."""
    for plugin, connector_class in (
        ("FileStreamSource", "FileStreamSourceConnector"),
        ("FileStreamSourceConnector", SOURCE_CLASS),
        (SOURCE_CLASS, SOURCE_CLASS),
    ):
        answer = call(
            herder,
            "PUT",
            f"/connector-plugins/{plugin}/config/validate",
            {"connector.class": connector_class},
        )
        assert answer.status == 200
        assert answer.json()["error_count"] == 2


def test_plugins_are_connectors_unless_all_are_asked_for(herder: FakeHerder) -> None:
    """`connectorsOnly` is true by default, and an undefined version is left out."""
    assert len(call(herder, "GET", "/connector-plugins").json()) == 2
    everything = call(herder, "GET", "/connector-plugins?connectorsOnly=x").json()
    expected = {"class": "org.apache.kafka.connect.storage.StringConverter", "type": "converter"}
    assert everything[-1] == expected


def test_health_reports_the_stage_of_the_worker(herder: FakeHerder) -> None:
    """A probe that times out is answered with 503 at a start and 500 later, with the stage."""
    assert call(herder, "GET", "/health").json()["status"] == "healthy"
    herder.held = {requests.Probe}
    herder.stage = Stage(description="reading", started_ms=1_500, completed_ms=2_000)
    sentence = (
        "The last operation the worker completed was reading, which began at "
        "1970-01-01T00:00:01.500Z and completed at 1970-01-01T00:00:02Z."
    )
    unhealthy = call(herder, "GET", "/health")
    assert (unhealthy.status, unhealthy.json()) == (
        500,
        {
            "status": "unhealthy",
            "message": "Worker was unable to handle this request and may be unable to handle other "
            f"requests. {sentence}",
        },
    )
    herder.ready = False
    starting = call(herder, "GET", "/health", health_timeout_ms=10)
    assert starting.status == 503
    assert starting.json()["message"] == f"Worker is still starting up. {sentence}"
    assert herder.timeouts_ms == [10_000, 10_000, 10]


def test_a_failed_probe_is_an_error_envelope(herder: FakeHerder) -> None:
    """A worker that shuts down answers with the usual error envelope."""
    herder.failures[requests.Probe] = InternalError("Worker is shutting down")
    answer = call(herder, "GET", "/health")
    assert answer.json() == {"error_code": 500, "message": "Worker is shutting down"}


def test_requests_do_not_wait_for_one_another(herder: FakeHerder) -> None:
    """Another request is answered while one waits for the herder."""

    async def run() -> Answer:
        release = asyncio.Event()

        class Waiting(FakeHerder):
            async def submit(self, request: requests.Request, *, timeout_ms: int) -> Any:
                await release.wait()
                return await super().submit(request, timeout_ms=timeout_ms)

        app = application(Waiting())
        waiting = asyncio.create_task(acall_app(app, "GET", "/connectors/c"))
        answer = await acall_app(app, "GET", "/connectors")
        assert not waiting.done()
        release.set()
        await waiting
        return answer

    assert asyncio.run(run()).status == 200


@cases("name", ".", "..", " .. ")
def test_a_name_that_no_path_carries_is_refused(herder: FakeHerder, name: str) -> None:
    """Clients and proxies resolve such a name, so the connector could not be seen or deleted."""
    created = call(herder, "POST", "/connectors", {"name": name, "config": CONFIG})
    assert created.status == 400
    assert "is not possible" in created.json()["message"]
    if name == name.strip():
        path = f"/connectors/{name.replace('.', '%2E')}/config"
        assert call(herder, "PUT", path, CONFIG).status in {400, 404, 405}
    assert herder.submitted == []
    assert call(herder, "POST", "/connectors", {"name": "...", "config": CONFIG}).status == 201


KEY = SessionKey(key=bytes(range(32)), algorithm="HmacSHA256", created_ms=0)


@pytest.fixture
def keyed() -> FakeHerder:
    keyed = FakeHerder()
    keyed.session_key = KEY
    keyed.configs["c"] = {"connector.class": "FileStreamSource"}
    return keyed


def signed(body: bytes) -> dict[str, str]:
    return dict(signature_headers(body, session_key=KEY, algorithm="HmacSHA256"))


def test_the_body_that_was_signed_reaches_the_herder(keyed: FakeHerder) -> None:
    """White space that JSON ignores breaks the signature, and the answer is empty."""
    answer = call_app(application(keyed), "POST", "/connectors/c/tasks", b"[ ]", signed(b"[]"))
    assert answer.status == 403
    assert keyed.submitted == []
    body = b'[ {"a":1}, {"b":null} ]'
    answer = call_app(application(keyed), "POST", "/connectors/c/tasks", body, signed(body))
    assert (answer.status, answer.body) == (204, b"")
    expected = [requests.SubmitTaskConfigs(connector="c", configs=({"a": "1"}, {"b": None}))]
    assert keyed.submitted == expected


def test_signatures_are_tested_before_existence(keyed: FakeHerder) -> None:
    """Unsigned requests do not learn which connectors exist; a fencing one signs the empty body."""
    answer = call_app(application(keyed), "PUT", "/connectors/c/fence", None, signed(b""))
    assert answer.status == 204
    assert keyed.submitted == [requests.FenceZombies(connector="c")]
    for connector in ("c", "absent"):
        assert call_app(application(keyed), "PUT", f"/connectors/{connector}/fence").status == 400


def test_without_a_session_key_the_worker_is_not_ready(keyed: FakeHerder) -> None:
    """A worker without a session key answers that it is not ready yet."""
    keyed.session_key = None
    answer = call_app(application(keyed), "POST", "/connectors/c/tasks", b"[]", signed(b"[]"))
    assert (answer.status, answer.message) == (
        503,
        (
            "This worker is still starting up and has not been able to read a session key from the "
            "config topic yet"
        ),
    )


@cases("body", b"null", b"[null]", b'[{"a":"b"},null]')
def test_null_task_sets_are_refused(keyed: FakeHerder, body: bytes) -> None:
    """A signed null is not a task set, and changes nothing."""
    answer = call_app(application(keyed), "POST", "/connectors/c/tasks", body, signed(body))
    assert answer.status == 500
    assert keyed.submitted == []


def test_groups_without_sessions_need_no_signature(keyed: FakeHerder) -> None:
    """Under older protocols the herder accepts requests without a signature."""
    keyed.signed_requests = False
    assert call_app(application(keyed), "POST", "/connectors/c/tasks", "[]").status == 204


MANY = tuple(
    ConnectorOffset(partition={"filename": f"/data/{number}"}, offset={"position": number})
    for number in range(10_000)
)


def test_offsets_are_listed_as_pairs_of_objects(herder: FakeHerder) -> None:
    """A listing has pairs of partition and offset."""
    herder.configs["c"] = CONFIG
    answer = call(herder, "GET", "/connectors/c/offsets")
    assert answer.status == 200
    assert answer.text == '{"offsets":[{"partition":{"filename":"a"},"offset":{"position":30}}]}'


def test_very_many_offsets_are_one_document(herder: FakeHerder) -> None:
    """GET sends the document in parts, and HEAD knows its length."""
    herder.configs["c"] = CONFIG
    herder.offsets = MANY
    sent = call(herder, "GET", "/connectors/c/offsets")
    assert sent.json() == {"offsets": [offset.to_json() for offset in MANY]}
    assert "content-length" not in sent.headers
    assert sent.headers["content-type"] == "application/json"
    answer = call(herder, "HEAD", "/connectors/c/offsets")
    assert answer.text == ""
    assert answer.headers["content-length"] == str(len(sent.text))


def test_unknown_and_unreadable_offsets_are_errors(herder: FakeHerder) -> None:
    """Offsets of a deleted connector may be stored; failures have the herder's text."""
    answer = call(herder, "GET", "/connectors/c/offsets")
    assert (answer.status, answer.message) == (404, "Connector c not found")
    herder.configs["c"] = CONFIG
    text = "Failed to retrieve offsets for source connector c"
    herder.failures[ConnectorOffset] = InternalError(text)
    answer = call(herder, "GET", "/connectors/c/offsets")
    assert (answer.status, answer.message) == (500, text)
