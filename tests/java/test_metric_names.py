"""The names of our metrics beside those of a Java worker."""

import re
import subprocess

import pytest

from pyconnect_agent.core.metric_values import (
    DESCRIPTIONS,
    RESTARTS,
    SINK_TASK,
    SOURCE_TASK,
    TRANSFORMATION,
)
from pyconnect_sandbox.runtime import KafkaRuntime

pytestmark = pytest.mark.java

# What we measure beyond a Java worker.
OWN = {
    (SINK_TASK, "sink-closing-commit-total"),
    (SINK_TASK, "sink-closing-commit-time-ms"),
    (SOURCE_TASK, "source-record-commit-lag-max-ms"),
    (SOURCE_TASK, "source-record-commit-lag-avg-ms"),
    (TRANSFORMATION, "transform-record-in-total"),
    (TRANSFORMATION, "transform-record-out-total"),
    (TRANSFORMATION, "transform-record-dropped-total"),
    (TRANSFORMATION, "transform-record-failed-total"),
    (TRANSFORMATION, "transform-record-avg-time-us"),
}
NEVER_FILLED = {(SINK_TASK, "sink-record-lag-max")}
ROW = re.compile(r"<td>([^<]+)</td>\s*<td>[^<]*</td>\s*<td>kafka\.connect:type=([^,<]+)[^<]*</td>")


def test_groups_and_names_are_those_of_kafka(kafka_runtime: KafkaRuntime) -> None:
    """Kafka prints its own table of them; OWN are ours, and what it never fills is left out."""
    command = kafka_runtime.command("org.apache.kafka.connect.runtime.ConnectMetrics", heap_mb=128)
    printed = subprocess.run(command, capture_output=True, text=True, timeout=400, check=True)
    theirs = {(group, name) for name, group in ROW.findall(printed.stdout)}
    ours = {
        (group, name)
        for group, members in DESCRIPTIONS.items()
        for name in members
        if group != RESTARTS
    }
    assert len(theirs) > 70
    assert ours - theirs == OWN
    assert theirs - ours == NEVER_FILLED
