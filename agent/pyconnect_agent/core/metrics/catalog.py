"""All metrics of a worker: groups, names and meanings.

Layer: core. Kafka: ConnectMetricsRegistry, whose groups and names these are. The two of
`sink-task-metrics` that begin with `sink-closing` are this worker's own, and so is
`agent-restart-metrics`. `mbeans` has the numbers that Java plugins show by JMX, whose names are not
known here; so has `plugin-metrics` those of Python tasks. Own ones are also the lag of
`source-task-metrics` and the numbers of `connector-transform-metrics`. `sink-record-lag-max` is
left out: Kafka declares it and never gives it a value.
"""

from __future__ import annotations

from collections.abc import Mapping

CONNECTOR = "connector-metrics"
TASK = "connector-task-metrics"
SOURCE_TASK = "source-task-metrics"
SINK_TASK = "sink-task-metrics"
TASK_ERROR = "task-error-metrics"
TRANSFORMATION = "connector-transform-metrics"
PREDICATE = "connector-predicate-metrics"
WORKER = "connect-worker-metrics"
REBALANCE = "connect-worker-rebalance-metrics"
RESTARTS = "agent-restart-metrics"
MBEANS = "mbeans"
PLUGIN = "plugin-metrics"

_WINDOWS = "over the last sample windows"
_LAG = "time from a commit's last record, by its timestamp, to the commit"

DESCRIPTIONS: Mapping[str, Mapping[str, str]] = {
    CONNECTOR: {
        "status": "State of the connector",
        "connector-type": "source or sink",
        "connector-class": "Class of the connector",
        "connector-version": "Version the connector reports",
    },
    TASK: {
        "status": "State of the task",
        "connector-type": "source or sink",
        **{
            f"{role}-{what}": f"{what} of the {role.replace('-', ' ')}".capitalize()
            for role in (
                "connector",
                "task",
                "key-converter",
                "value-converter",
                "header-converter",
            )
            for what in ("class", "version")
        },
        "running-ratio": "Share of its life the task was running",
        "pause-ratio": "Share of its life the task was paused",
        "offset-commit-max-time-ms": f"Longest successful offset commit {_WINDOWS}",
        "offset-commit-avg-time-ms": f"Mean time of successful offset commits {_WINDOWS}",
        "offset-commit-success-percentage": f"Share of offset commits that succeeded {_WINDOWS}",
        "offset-commit-failure-percentage": f"Share of offset commits that failed {_WINDOWS}",
        "batch-size-max": f"Records of the largest batch {_WINDOWS}",
        "batch-size-avg": f"Mean records of a batch {_WINDOWS}",
    },
    SOURCE_TASK: {
        "source-record-poll-rate": "Records polled a second, before transformations",
        "source-record-poll-total": "Records polled, before transformations",
        "source-record-write-rate": "Records written to Kafka a second",
        "source-record-write-total": "Records written to Kafka",
        "poll-batch-max-time-ms": f"Longest poll {_WINDOWS}",
        "poll-batch-avg-time-ms": f"Mean time of a poll {_WINDOWS}",
        "source-record-active-count": "Records polled and not finished yet",
        "source-record-active-count-max": f"Most records polled and not finished {_WINDOWS}",
        "source-record-active-count-avg": f"Mean of records polled and not finished {_WINDOWS}",
        "source-record-commit-lag-max-ms": f"Longest {_LAG} {_WINDOWS}",
        "source-record-commit-lag-avg-ms": f"Mean {_LAG} {_WINDOWS}",
        "transaction-size-min": f"Records of the smallest committed transaction {_WINDOWS}",
        "transaction-size-max": f"Records of the largest committed transaction {_WINDOWS}",
        "transaction-size-avg": f"Mean records of a committed transaction {_WINDOWS}",
    },
    SINK_TASK: {
        "sink-record-read-rate": "Records consumed a second, before transformations",
        "sink-record-read-total": "Records consumed, before transformations",
        "sink-record-send-rate": "Records the task has taken a second",
        "sink-record-send-total": "Records the task has taken",
        "sink-record-active-count": "Records consumed and not committed yet",
        "sink-record-active-count-max": f"Most records consumed and not committed {_WINDOWS}",
        "sink-record-active-count-avg": f"Mean of records consumed and not committed {_WINDOWS}",
        "partition-count": "Partitions the task has",
        "offset-commit-seq-no": "Number of the last offset commit",
        "offset-commit-completion-rate": "Offset commits completed a second",
        "offset-commit-completion-total": "Offset commits completed",
        "offset-commit-skip-rate": "Results of offset commits that came too late, a second",
        "offset-commit-skip-total": "Results of offset commits that came too late",
        "put-batch-max-time-ms": f"Longest put {_WINDOWS}",
        "put-batch-avg-time-ms": f"Mean time of a put {_WINDOWS}",
        "sink-closing-commit-total": "Offset commits of partitions being given up",
        "sink-closing-commit-time-ms": f"Mean time of such commits {_WINDOWS}",
    },
    TASK_ERROR: {
        "total-record-failures": "Attempts to process a record that failed",
        "total-record-errors": "Records given up",
        "total-records-skipped": "Records left out because of an error",
        "total-retries": "Attempts that were repeated",
        "total-errors-logged": "Errors written to the log",
        "deadletterqueue-produce-requests": "Records sent to the dead letter queue",
        "deadletterqueue-produce-failures": "Records that did not reach the dead letter queue",
        "last-error-timestamp": "Time of the last error in epoch milliseconds, 0 before it",
    },
    TRANSFORMATION: {
        "transform-class": "Class of the transformation",
        "transform-version": "Version the transformation reports",
        "transform-record-in-total": "Records the transformation got",
        "transform-record-out-total": "Records it passed on, also those that a predicate exempts",
        "transform-record-dropped-total": "Records it dropped",
        "transform-record-failed-total": "Records it could not transform, after all attempts",
        "transform-record-avg-time-us": f"Mean time for a record, one in 100 measured, {_WINDOWS}",
    },
    PREDICATE: {
        "predicate-class": "Class of the predicate",
        "predicate-version": "Version the predicate reports",
    },
    WORKER: {
        "connector-count": "Connectors of this worker",
        "task-count": "Tasks of this worker",
        **{
            f"{what}-startup-{name}": f"{meaning} {what} starts"
            for what in ("connector", "task")
            for name, meaning in (
                ("attempts-total", "Number of"),
                ("success-total", "Number of successful"),
                ("success-percentage", "Share of successful"),
                ("failure-total", "Number of failed"),
                ("failure-percentage", "Share of failed"),
            )
        },
        "connector-total-task-count": "Tasks of the connector in this worker",
        **{
            f"connector-{state}-task-count": f"Its tasks here that are {state}"
            for state in ("running", "paused", "failed", "unassigned", "destroyed", "restarting")
        },
    },
    REBALANCE: {
        "connect-protocol": "Protocol the group has agreed on",
        "leader-name": "URL of the group's leader",
        "epoch": "Generation of the group",
        "completed-rebalances-total": "Rebalances this worker has completed",
        "rebalancing": "1 while a rebalance is under way",
        "rebalance-max-time-ms": f"Longest rebalance {_WINDOWS}",
        "rebalance-avg-time-ms": f"Mean time of a rebalance {_WINDOWS}",
        "time-since-last-rebalance-ms": "Time since the last rebalance was completed",
    },
    RESTARTS: {
        "restart-attempts": "Automatic restarts since it was last stable",
        "restart-attempts-total": "Automatic restarts since this worker got it",
        "next-restart-timestamp": "Time of the next restart in epoch milliseconds, 0 without one",
        "given-up": "1 when it is not restarted automatically any more",
    },
}
