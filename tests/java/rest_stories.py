"""Lives of connectors on a Java worker and on an agent, compared step by step.

Each story runs on one worker, with a connector of its own. Requests that are possible at any time
are in `rest_scenarios`; the steps here depend on earlier steps.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any

from tests.java.rest_life import Life
from tests.support.agents.rest_client import Answer

Story = Callable[[Life], None]


def life_of_a_source(life: Life) -> None:
    """Create, read, change, pause, restart, stop and delete a connector."""
    config = life.source_config()
    life.create({**config, "topic": ""})
    life.create({"a": "b"})
    life.create({"connector.class": None})
    life.create(config)
    life.wait_for_state("RUNNING", tasks=1)
    life.create(config)
    life.create({**config, "tasks.max": "x"})
    life.ask("GET", "/connectors/{c}")
    life.ask("GET", "/connectors/{c}/config")
    life.ask("GET", "/connectors/{c}/tasks")
    life.ask("GET", "/connectors/{c}/tasks/0/status")
    life.ask("GET", "/connectors/{c}/tasks/1/status")
    life.ask("GET", "/connectors/{c}/topics")
    _change_config(life, config)
    _change_state(life)
    _restart(life)
    _stop_and_delete(life, config)


def _change_config(life: Life, config: Mapping[str, str]) -> None:
    life.ask("PUT", "/connectors/{c}/config", {**config, "batch.size": 10})
    life.ask("GET", "/connectors/{c}/config", until=lambda it: "batch.size" in it.json())
    life.ask("PUT", "/connectors/{c}/config", {**config, "name": "other"})
    life.ask("PUT", "/connectors/{c}/config", {**config, "topic": None, "transforms": "x"})
    life.ask("PATCH", "/connectors/{c}/config", told=_without_text)
    life.ask("PATCH", "/connectors/{c}/config", {"batch.size": None, "errors.log.enable": True})
    life.ask("GET", "/connectors/{c}/config", until=lambda it: "batch.size" not in it.json())
    life.ask("PATCH", "/connectors/{c}/config", {"topic": None})
    life.ask("PATCH", "/connectors/{c}/config", {"name": None})
    life.ask("GET", "/connectors/{c}/tasks", until=lambda it: "errors.log.enable" in it.text)
    life.wait_for_state("RUNNING", tasks=1)


def _change_state(life: Life, tasks: int = 1) -> None:
    life.ask("PUT", "/connectors/{c}/pause")
    life.wait_for_state("PAUSED", tasks=tasks)
    life.ask("PUT", "/connectors/{c}/pause")
    life.ask("POST", "/connectors/{c}/tasks/0/restart")
    life.wait_for_state("PAUSED", tasks=tasks)
    life.ask("PUT", "/connectors/{c}/resume")
    life.wait_for_state("RUNNING", tasks=tasks)


def _restart(life: Life) -> None:
    life.ask("POST", "/connectors/{c}/restart")
    _settle(life)
    life.ask("POST", "/connectors/{c}/tasks/0/restart")
    life.ask("POST", "/connectors/{c}/tasks/7/restart")
    _settle(life)
    for flags in ("onlyFailed=true", "onlyFailed=true&includeTasks=true", "includeTasks=true"):
        life.ask("POST", f"/connectors/{{c}}/restart?{flags}")
        _settle(life)


def _settle(life: Life) -> None:
    """Wait until a restart is over.

    RUNNING may be the state before the restart. PAUSED is requested later, so it is reported later.
    """
    life.ask("PUT", "/connectors/{c}/pause")
    life.wait_for_state("PAUSED", tasks=1)
    life.ask("PUT", "/connectors/{c}/resume")
    life.wait_for_state("RUNNING", tasks=1)


def _stop_and_delete(life: Life, config: Mapping[str, str]) -> None:
    life.ask("PUT", "/connectors/{c}/stop")
    life.wait_for_state("STOPPED", tasks=0)
    life.ask("GET", "/connectors/{c}/tasks", until=lambda it: it.json() == [])
    life.ask("PUT", "/connectors/{c}/stop")
    # A Java worker that remembers task 0 answers 409 for ever, so its restart is left out.
    life.ask("POST", "/connectors/{c}/restart")
    life.ask("POST", "/connectors/{c}/restart?includeTasks=true")
    life.ask("PUT", "/connectors/{c}/topics/reset")
    life.wait_for_state("STOPPED", tasks=0)
    life.ask("PUT", "/connectors/{c}/resume")
    life.wait_for_state("RUNNING", tasks=1)
    life.ask("DELETE", "/connectors/{c}")
    life.ask("GET", "/connectors/{c}", until=lambda it: it.status == 404)
    life.ask("GET", "/connectors/{c}/status", until=lambda it: it.status == 404)
    life.ask("DELETE", "/connectors/{c}")
    life.create(config, initial_state="Stopped")
    life.wait_for_state("STOPPED", tasks=0)
    life.ask("DELETE", "/connectors/{c}")


def life_of_a_sink(life: Life) -> None:
    """Do the same for a sink, whose consumer group and topics have rules of their own."""
    config = life.sink_config()
    for refused in (
        {**config, "topics": ""},
        {**config, "topics": "a,a"},
        {**config, "topics.regex": "a.*"},
        {**config, "errors.deadletterqueue.topic.name": config["topics"]},
        {name: value for name, value in config.items() if name != "topics"},
    ):
        life.create(refused)
    life.create(config)
    life.wait_for_state("RUNNING", tasks=1)
    life.ask("GET", "/connectors/{c}")
    life.ask("GET", "/connectors/{c}/tasks")
    life.ask("GET", "/connectors?expand=info", told=life.of_connector)
    life.ask("GET", "/connectors?expand=status&expand=info", told=life.of_connector)
    life.ask("GET", "/connectors?expand=status,info", told=life.of_connector)
    life.ask("GET", "/connectors", told=life.of_connector)
    life.ask("PUT", "/connectors/{c}/config", {**config, "tasks.max": "3"})
    life.wait_for_state("RUNNING", tasks=3)
    life.ask("GET", "/connectors/{c}/tasks")
    life.ask("PATCH", "/connectors/{c}/config", {"tasks.max": 2, "consumer.override.a": "b"})
    life.wait_for_state("RUNNING", tasks=2)
    _change_state(life, tasks=2)
    life.ask("POST", "/connectors/{c}/restart?includeTasks=true")
    life.wait_for_state("RUNNING", tasks=2)
    life.ask("PUT", "/connectors/{c}/stop")
    life.wait_for_state("STOPPED", tasks=0)
    life.ask("PUT", "/connectors/{c}/config", {**config, "tasks.max": "1"})
    life.wait_for_state("STOPPED", tasks=0)
    life.ask("PUT", "/connectors/{c}/pause")
    life.wait_for_state("PAUSED", tasks=0)
    life.ask("PUT", "/connectors/{c}/resume")
    life.wait_for_state("RUNNING", tasks=1)
    life.ask("DELETE", "/connectors/{c}")


def created_in_each_state(life: Life) -> None:
    """Create connectors of both kinds in each `initial_state` (KIP-980)."""
    for config in (life.source_config(), life.sink_config()):
        for state, tasks in (("running", 1), ("PAUSED", 0), ("Stopped", 0)):
            life.create(config, initial_state=state)
            life.wait_for_state(state.upper(), tasks=tasks)
            life.ask("GET", "/connectors/{c}/tasks")
            life.ask("POST", "/connectors/{c}/restart?includeTasks=true")
            life.wait_for_state(state.upper(), tasks=tasks)
            life.ask("PUT", "/connectors/{c}/resume")
            life.wait_for_state("RUNNING", tasks=1)
            _delete(life)


def a_failed_task(life: Life) -> None:
    """Send every request to a sink that cannot create its file, then correct its config."""
    config = life.sink_config()
    life.create({**config, "file": "/nonexistent/file"})
    life.wait_for_states("RUNNING", "FAILED")
    life.ask("GET", "/connectors/{c}/tasks/0/status")
    life.ask("PUT", "/connectors/{c}/pause")
    life.wait_for_states("PAUSED", "FAILED")
    life.ask("PUT", "/connectors/{c}/resume")
    life.wait_for_states("RUNNING", "FAILED")
    for flags in ("?onlyFailed=true", "?onlyFailed=true&includeTasks=true", ""):
        life.ask("POST", f"/connectors/{{c}}/restart{flags}")
        life.wait_for_states("RUNNING", "FAILED")
    # The task's state does not show whether this restart has failed already.
    life.ask("POST", "/connectors/{c}/tasks/0/restart")
    life.ask("PUT", "/connectors/{c}/stop")
    life.wait_for_state("STOPPED", tasks=0)
    life.ask("PUT", "/connectors/{c}/resume")
    life.wait_for_states("RUNNING", "FAILED")
    life.ask("PUT", "/connectors/{c}/config", config)
    life.wait_for_state("RUNNING", tasks=1)
    _delete(life)


def a_failed_connector(life: Life) -> None:
    """Send every request to a connector that never starts, then correct its config.

    The story has no stop: a Java worker leaves a connector FAILED that it could not construct.
    """
    config = life.source_config()
    life.create({**config, "topic": None})
    life.wait_for_states("FAILED")
    life.ask("GET", "/connectors/{c}")
    life.ask("GET", "/connectors/{c}/tasks")
    for flags in ("?onlyFailed=true", "?includeTasks=true", ""):
        # FAILED may be the state before the restart, so the trace is left out.
        life.ask("POST", f"/connectors/{{c}}/restart{flags}", told=_without_trace)
        life.wait_for_states("FAILED")
    life.ask("POST", "/connectors/{c}/tasks/0/restart")
    for state in ("pause", "resume"):
        life.ask("PUT", f"/connectors/{{c}}/{state}")
        life.wait_for_states("FAILED")
    life.ask("PUT", "/connectors/{c}/config", config)
    life.wait_for_state("RUNNING", tasks=1)
    _delete(life)


def _without_text(body: Any) -> object:
    """Return the code only: our texts about a body that cannot be bound differ from Java's."""
    return body["error_code"]


def _without_trace(body: object) -> object:
    if not isinstance(body, dict) or "connector" not in body:
        return body
    connector = {key: value for key, value in body["connector"].items() if key != "trace"}
    return {**body, "connector": connector}


def active_topics(life: Life) -> None:
    """List topics once a task has used them, until they are reset (KIP-558)."""
    life.write_lines(3)
    life.create({**life.source_config(), "file": life.file})
    life.wait_for_state("RUNNING", tasks=1)
    life.ask("GET", "/connectors/{c}/topics", until=lambda it: "-topic" in it.text)
    life.ask("PUT", "/connectors/{c}/topics/reset")
    life.ask("GET", "/connectors/{c}/topics", until=lambda it: "-topic" not in it.text)
    life.write_lines(2)
    life.ask("GET", "/connectors/{c}/topics", until=lambda it: "-topic" in it.text)
    _delete(life)
    life.ask("GET", "/connectors/{c}/topics", until=lambda it: "-topic" not in it.text)


def offsets_of_both_kinds(life: Life) -> None:
    """Read the offsets of a source, and those of a sink's consumer group (KIP-875)."""
    offsets = "/connectors/{c}/offsets"
    life.ask("GET", offsets)
    life.write_lines(3)
    source, sink = {**life.source_config(), "file": life.file}, life.sink_config()
    life.create(source, initial_state="stopped")
    life.wait_for_states("STOPPED")
    life.ask("GET", offsets)
    life.ask("PUT", "/connectors/{c}/resume")
    life.ask("GET", offsets, until=life.has_read_its_file)
    life.ask("PUT", "/connectors/{c}/stop")
    life.wait_for_states("STOPPED")
    life.ask("GET", offsets)
    _delete(life)
    life.ask("GET", offsets)
    life.create(sink)
    life.ask("GET", offsets, until=lambda it: '"kafka_offset":3' in it.text)
    life.ask("PUT", "/connectors/{c}/stop")
    life.wait_for_states("STOPPED")
    life.ask("GET", offsets)
    life.ask("PATCH", "/connectors/{c}/config", {"consumer.override.group.id": "nobody-{c}"})
    life.ask("GET", "/connectors/{c}/config", until=lambda it: "nobody" in it.text)
    life.ask("GET", offsets)
    _delete(life)


def changed_offsets_of_a_source(life: Life) -> None:
    """Change the offsets of a stopped source; a refused change leaves them (KIP-875)."""
    offsets = "/connectors/{c}/offsets"
    life.write_lines(3)
    life.create({**life.source_config(), "file": life.file})
    life.wait_for_states("RUNNING", "RUNNING")
    life.ask("GET", offsets, until=life.has_read_its_file)
    good = _file_offsets({"filename": "f"}, {"position": 7})
    for state, tasks in (("pause", ["PAUSED"]), ("resume", ["RUNNING"]), ("stop", [])):
        life.ask("PATCH", offsets, good)
        life.ask("DELETE", offsets)
        life.ask("PUT", f"/connectors/{{c}}/{state}")
        reached = {"pause": "PAUSED", "resume": "RUNNING", "stop": "STOPPED"}[state]
        life.wait_for_states(reached, *tasks)
    for refused in (
        *(_file_offsets({"filename": "f"}, {"position": it}) for it in ("1", -1, 1.5, None, 2**63)),
        *(_file_offsets({"filename": "f"}, {"position": it}) for it in ([1], {"a": 1}, True)),
        _file_offsets({"filename": "f"}, {}),
        _file_offsets({"filename": {"a": 1}}, {"position": 1}),
        _file_offsets({"filename": [1]}, {"position": 1}),
        _file_offsets({}, {"position": 1}),
        _file_offsets(None, {"position": 1}),
        '{"offsets":[{"partition":{"filename":"f"},"offset":{"position":1e400}}]}',
    ):
        life.ask("PATCH", offsets, refused)
    life.ask("GET", offsets, told=_sorted_offsets)
    for number, accepted in enumerate(
        (
            good,
            _file_offsets({"filename": 7}, {"position": 7, "other": "x"}),
            _file_offsets({"filename": "f", "b": True, "d": 1.5, "n": None}, {"position": 0}),
            {"offsets": [*good["offsets"], *_file_offsets({"filename": "f"}, None)["offsets"]]},
            {"offsets": [{}]},
        )
    ):
        life.ask("PATCH", offsets, accepted)
        count = 2 + number if number < 3 else 3
        life.ask("GET", offsets, told=_sorted_offsets, until=lambda it, n=count: _count(it) == n)
    for _ in range(2):
        life.ask("DELETE", offsets)
        life.ask("GET", offsets, until=lambda it: _count(it) == 0)
    life.ask("PUT", "/connectors/{c}/resume")
    life.ask("GET", offsets, until=life.has_read_its_file)
    _delete(life)


def changed_offsets_of_a_sink(life: Life) -> None:
    """Change the offsets of a sink, which are those of its consumer group."""
    offsets, topic = "/connectors/{c}/offsets", life.sink_config()["topics"]
    life.create(life.sink_config(), initial_state="STOPPED")
    life.wait_for_states("STOPPED")
    # Without a consumer group there is no offset to delete.
    life.ask("PATCH", offsets, _sink_offsets(topic, 0, None))
    life.ask("DELETE", offsets)
    _delete(life)
    life.write_lines(3)
    life.create({**life.source_config(), "file": life.file})
    life.ask("GET", offsets, until=life.has_read_its_file)
    _delete(life)
    life.create(life.sink_config(), initial_state="STOPPED")
    life.wait_for_states("STOPPED")
    for refused in (
        {"offsets": [{}]},
        {"offsets": [{"partition": {}}]},
        {"offsets": [{"partition": {"kafka_topic": topic}}]},
        *(_sink_offsets(topic, it) for it in (None, 1.0, True, [1, "a", {"b": None}], 2**31, "x")),
        *(_sink_offsets(topic, 0, it) for it in (1000.5, 2**63, "", True, {"a": None}, -1)),
        _sink_offsets(None, 0),
        _sink_offsets(topic, -1),
        _sink_offsets(topic, 7),
        _sink_offsets("no-such-topic", 0),
        {"offsets": [{**_sink_offsets(topic, 0)["offsets"][0], "offset": {}}]},
        {"offsets": [{**_sink_offsets(topic, 0)["offsets"][0], "offset": {"kafka_offset": None}}]},
    ):
        life.ask("PATCH", offsets, refused)
    life.ask("GET", offsets)
    for accepted in (
        _sink_offsets(topic, "+0", "2"),
        _sink_offsets(topic, 0, 99_999),
        {"offsets": [_sink_offsets(topic, 0, n)["offsets"][0] for n in (3, 1)]},
    ):
        life.ask("PATCH", offsets, accepted)
        life.ask("GET", offsets)
    life.ask("PATCH", offsets, _sink_offsets(topic, 0, None))
    life.ask("PATCH", offsets, _sink_offsets(topic, 0, None))
    life.ask("GET", offsets)
    life.ask("PATCH", offsets, _sink_offsets(topic, 0, 1))
    for _ in range(2):
        life.ask("DELETE", offsets)
        life.ask("GET", offsets)
    life.ask("PUT", "/connectors/{c}/resume")
    life.ask("GET", offsets, until=lambda it: '"kafka_offset":3' in it.text)
    _delete(life)


def _file_offsets(partition: Any, offset: Any) -> dict[str, Any]:
    return {"offsets": [{"partition": partition, "offset": offset}]}


def _sink_offsets(topic: Any, partition: Any, position: Any = 1) -> dict[str, Any]:
    offset = None if position is None else {"kafka_offset": position}
    return _file_offsets({"kafka_topic": topic, "kafka_partition": partition}, offset)


def _sorted_offsets(body: Any) -> object:
    """Return the offsets in a fixed order, because Kafka promises none."""
    return sorted(json.dumps(entry, sort_keys=True) for entry in body["offsets"])


def _count(answer: Answer) -> int:
    return len(answer.json()["offsets"])


def levels_of_loggers(life: Life) -> None:
    """Set levels of loggers by a prefix of their names, on one worker or the whole cluster."""
    own = "/admin/loggers/{c}"
    for name, level in (
        ("", "INFO"),
        ("", "DEBUG"),
        ("", "debug"),
        (".a.b", "WARN"),
        (".a", "off"),
    ):
        life.ask("PUT", own + name, {"level": level})
        life.ask("GET", own + name)
    life.ask("PUT", own + ".a", {"level": "Trace", "other": 1})
    life.ask("PUT", own + "?scope=nobody", {"level": "ERROR"})
    life.ask("PUT", own + "?scope=WORKER", {"level": "ERROR"})
    life.ask("PUT", own + ".x", {"level": "nope"})
    life.ask("GET", own + ".x")
    life.ask("PUT", own + ".x?scope=cluster", {"level": "nope"})
    life.ask("PUT", own + ".x?scope=cluster", {"level": "fatal"})
    life.ask("GET", own + ".x", until=lambda it: "FATAL" in it.text)
    life.ask("PUT", own + ".y?scope=cluster&scope=worker", {"level": "warn"})
    life.ask("GET", own + ".y", until=lambda it: "WARN" in it.text)
    life.ask("GET", "/admin/loggers", told=life.loggers)


def _delete(life: Life) -> None:
    life.ask("DELETE", "/connectors/{c}")
    life.ask("GET", "/connectors/{c}", until=lambda it: it.status == 404)
    life.ask("GET", "/connectors/{c}/status", until=lambda it: it.status == 404)


STORIES: tuple[Story, ...] = (
    life_of_a_source,
    life_of_a_sink,
    created_in_each_state,
    a_failed_task,
    a_failed_connector,
    active_topics,
    levels_of_loggers,
    offsets_of_both_kinds,
    changed_offsets_of_a_source,
    changed_offsets_of_a_sink,
)
