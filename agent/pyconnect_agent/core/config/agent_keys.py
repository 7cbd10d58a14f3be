"""The keys of this agent that a worker's file and a connector's config may have.

Kafka Connect lacks these keys; its workers ignore them in a connector's config. A connector may
override the worker's values for restarts, limits, sleep and isolation: the worker process itself
reads them, and it never resolves `${provider:path:key}`. Beside them are the keys for heap, options
and environment of Java processes; a worker checks its own values when it starts.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any

from pyconnect_agent.core.config.config_infos import ConfigInfos, prefixed_infos
from pyconnect_agent.core.config.variables import has_variables
from pyconnect_agent.core.restart_policy import RestartMode, RestartPolicy, restart_policy
from pyconnect_agent.core.task_limits import NO_LIMITS, TaskLimits
from pyconnect_api import ConfigException, LambdaValidator
from pyconnect_api.configdef import ConfigDef, Range, Validator, ValidString, define_table

GROUP = "Agent"
MEMORY, PROCESSOR = "agent.limit.memory.bytes", "agent.limit.cpu.percent"
SLEEP = "agent.connector.sleep"
ISOLATION, JAVA_ISOLATION = "agent.isolation", "agent.java.isolation"
OWN_PROCESS, OF_CONNECTOR, OF_LOCATION = "task", "connector", "location"
_DEFAULTS = RestartPolicy()
_OWN = "A key of this agent alone; a connector's config may override the worker's."
_TABLE = f"""
agent.restart.policy  STRING  MEDIUM  {_DEFAULTS.mode.value}
    Whether a FAILED connector or task is restarted automatically: never or on-failure; auto is
    on-failure, but never in a group that has a worker which is not an agent.
agent.restart.backoff.ms  LONG  LOW  {_DEFAULTS.backoff_ms}
    Wait before the first restart; doubled by each failure in a row, and varied by a fifth.
agent.restart.backoff.max.ms  LONG  LOW  {_DEFAULTS.backoff_max_ms}
    Longest wait between two restarts.
agent.restart.max.attempts  INT  LOW  {_DEFAULTS.max_attempts}
    Most automatic restarts within agent.restart.window.ms; after them a task stays FAILED.
agent.restart.window.ms  LONG  LOW  {_DEFAULTS.window_ms}
    Time in which automatic restarts are counted.
agent.restart.stable.ms  LONG  LOW  {_DEFAULTS.stable_ms}
    Time for which a task has to run until its failures and restarts are forgotten.
{MEMORY}  LONG  LOW  0
    Most memory of a task's process in bytes; a task over it is ended, FAILED. 0: no limit.
{PROCESSOR}  INT  LOW  0
    Most processor time of a task's process, in percent of one processor: a task that exceeds it on
    average over a minute is ended, FAILED; with a delegated cgroup the kernel slows it down
    instead. 0: no limit.
{SLEEP}  BOOLEAN  LOW  true
    Whether a connector's process ends while the connector has neither threads nor requests: its
    stop is called then, and its start again before the next call. Tasks are not affected.
{ISOLATION}  STRING  LOW  {OWN_PROCESS}
    Which tasks share a process, each in a thread: none (task), those of a connector (connector), or
    those of all connectors of a plugin location (location). A task that does not stop in time, a
    kill and a crash then end all of them. Limits of tasks need {OWN_PROCESS}.
{JAVA_ISOLATION}  STRING  LOW  ""
    The same for Java connectors, whose tasks also share a Java process, with their connectors and
    with the same heap, options and release of Kafka. Its heap is theirs together: agent.java.heap,
    by default agent.java.heap.limit. Empty: as {ISOLATION}.
"""
_FROM_ZERO = ("agent.restart.stable.ms", MEMORY, PROCESSOR)
_FROM_ONE = ("backoff.ms", "backoff.max.ms", "max.attempts", "window.ms")


def define_agent_keys(definition: ConfigDef) -> ConfigDef:
    """Add the keys to a worker's definition, or to an empty one for a connector."""
    validators: dict[str, Validator] = {
        "agent.restart.policy": ValidString.one_of(*(mode.value for mode in RestartMode)),
        **{f"agent.restart.{name}": Range.at_least(1) for name in _FROM_ONE},
        **dict.fromkeys(_FROM_ZERO, Range.at_least(0)),
        ISOLATION: ValidString.one_of(OWN_PROCESS, OF_CONNECTOR, OF_LOCATION),
        JAVA_ISOLATION: ValidString.one_of("", OWN_PROCESS, OF_CONNECTOR, OF_LOCATION),
    }
    for key in define_table(ConfigDef(), _TABLE, validators).keys.values():
        text = f"{key.documentation} {_OWN}"
        definition.define_key(replace(key, documentation=text, group=GROUP))
    return definition


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentKeys:
    """The values of a worker or connector. `sleep`: an idle connector's process may sleep.

    `isolation`: which tasks share a process; `java_isolation`: the same for Java connectors and
    all Java processes, "" for the same value.
    """

    restart: RestartPolicy = _DEFAULTS
    limits: TaskLimits = NO_LIMITS
    sleep: bool = True
    isolation: str = OWN_PROCESS
    java_isolation: str = ""

    def isolation_of(self, *, is_java: bool) -> str:
        """Return which tasks share a process; `is_java`: for a Java connector or a Java process."""
        return self.java_isolation or self.isolation if is_java else self.isolation

    def check_limits(self, *, is_java: bool) -> None:
        """Raise ConfigException if the tasks have limits but share a process."""
        isolation = self.isolation_of(is_java=is_java)
        if self.limits.any and isolation != OWN_PROCESS:
            raise ConfigException(
                f"Invalid value {isolation} for configuration"
                f" {JAVA_ISOLATION if is_java and self.java_isolation else ISOLATION}: the limits"
                f" of tasks are those of a process of their own; set {OWN_PROCESS}, or no limits"
            )

    def overridden(self, values: Mapping[str, Any]) -> AgentKeys:
        """Return these values with the parsed `values` over them; missing keys change nothing."""
        return AgentKeys(
            restart=restart_policy(values, self.restart),
            limits=TaskLimits(
                memory_bytes=values.get(MEMORY, self.limits.memory_bytes) or None,
                cpu_percent=values.get(PROCESSOR, self.limits.cpu_percent) or None,
            ),
            sleep=values.get(SLEEP, self.sleep),
            isolation=values.get(ISOLATION, self.isolation),
            java_isolation=values.get(JAVA_ISOLATION) or self.java_isolation,
        )

    def of_connector(self, config: Mapping[str, str | None]) -> AgentKeys:
        """Return these values with a connector's overrides, without those that cannot be parsed.

        Validation refuses such values, but a Java worker of the group does not know the keys.
        """
        found: dict[str, Any] = {}
        for name in config.keys() & _CONNECTOR_DEF.keys.keys():
            try:
                found[name] = _CONNECTOR_DEF.parse({name: config[name]})[name]
            except ConfigException:
                continue
        return self.overridden(found)


NO_AGENT_KEYS = AgentKeys(restart=RestartPolicy(mode=RestartMode.NEVER), sleep=False)
"""No restarts, no limits and no sleep."""

_CONNECTOR_DEF = define_agent_keys(ConfigDef())


def agent_infos(config: Mapping[str, str | None], raw: Mapping[str, str | None]) -> ConfigInfos:
    """Validate the agent's keys that a connector's config has; other keys are not shown.

    Java's answer has no such keys, and a form that is made from it must not change.
    """
    given = {name: config[name] for name in _CONNECTOR_DEF.keys if name in config}
    values = [value for value in _CONNECTOR_DEF.validate(given) if value.name in given]
    for value in values:
        if has_variables(raw.get(value.name)):
            value.add_error_message(
                f"Invalid value for configuration {value.name}: references to config providers"
                " are not resolved here; write the value itself"
            )
        if value.name in (ISOLATION, JAVA_ISOLATION) and value.value not in ("", OWN_PROCESS):
            for limit in {MEMORY, PROCESSOR} & given.keys():
                value.add_error_message(
                    f"Invalid value {value.value} for configuration {value.name}: {limit} limits a"
                    f" task's own process; set {OWN_PROCESS}, or remove the limit"
                )
    return prefixed_infos(_CONNECTOR_DEF.keys, values, "")


HEAP = "agent.java.heap"
HEAP_LIMIT = "agent.java.heap.limit"
OPTIONS = "agent.java.options"
ENVIRONMENT = "agent.java.environment"
KAFKA_RELEASES = "agent.java.kafka.releases"
DEFAULT_HEAP = "256m"

_SIZE = re.compile(r"(\d+)([kKmMgG])")
_UNITS = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


def heap_bytes(key: str, size: str) -> int:
    """Return the bytes of a value of `-Xmx`. Raises ConfigException with the key that has it."""
    found = _SIZE.fullmatch(size)
    if found is None:
        raise ConfigException(
            f"Invalid value {size} for configuration {key}: a size is a number followed by k, m or "
            "g, such as 512m"
        )
    return int(found[1]) * _UNITS[found[2].lower()]


def option_words(text: str) -> tuple[str, ...]:
    """Split `agent.java.options` as a shell does. Raises ConfigException."""
    words = _words(OPTIONS, text)
    for word in words:
        # The heap option has no effect here: the heap's key comes last on the command line.
        if word.startswith(("-Xmx", "-XX:MaxHeapSize=")):
            raise ConfigException(
                f"Invalid value {word} for configuration {OPTIONS}: {HEAP} sets the largest heap"
            )
    return words


def variables(text: str) -> dict[str, str]:
    """Return the variables of `agent.java.environment`. Raises ConfigException."""
    found = {}
    for word in _words(ENVIRONMENT, text):
        name, equals, value = word.partition("=")
        if not name or not equals:
            raise ConfigException(
                f"Invalid value {word} for configuration {ENVIRONMENT}: a variable is NAME=value"
            )
        found[name] = value
    return found


def kafka_of_location(text: str, location: str) -> str:
    """Return a plugin location's Kafka by `agent.java.kafka.releases`; empty when none matches.

    The first pattern that matches counts. Raises ConfigException.
    """
    for entry in filter(None, map(str.strip, text.split(","))):
        pattern, equals, kafka = map(str.strip, entry.partition("="))
        if not (pattern and equals and kafka):
            raise ConfigException(
                f"Invalid value {entry} for configuration {KAFKA_RELEASES}: an entry is the name of"
                " a plugin location, which may have wildcards, = and a release or a directory of"
                " Kafka, such as debezium-*=4.3"
            )
        if fnmatchcase(location, pattern):
            return kafka
    return ""


def _words(key: str, text: str) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(text))
    except ValueError as exc:
        raise ConfigException(f"Invalid value {text} for configuration {key}: {exc}") from exc


VALID_HEAP = LambdaValidator(lambda key, size: heap_bytes(key, str(size)), "a number and k, m or g")
VALID_OPTIONS = LambdaValidator(lambda _, text: option_words(str(text)), "options of Java")
VALID_KAFKA_RELEASES = LambdaValidator(
    lambda _, text: kafka_of_location(str(text), ""), "entries PATTERN=KAFKA"
)
VALID_ENVIRONMENT = LambdaValidator(lambda _, text: variables(str(text)), "variables: NAME=value")
