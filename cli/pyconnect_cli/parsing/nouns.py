"""The words after `pyconnect`, with their modules and one line of help: nothing is imported.

`pyconnect --help` prints these lines without loading a command; a test compares each line with the
help of its module.
"""

from __future__ import annotations

from typing import NamedTuple


class Noun(NamedTuple):
    """One word of the command line and the module that carries it out."""

    name: str
    module: str
    help: str
    aliases: tuple[str, ...] = ()


NOUNS = (
    Noun(
        "connectors",
        "pyconnect_cli.connectors.commands",
        "List, create, change, pause, stop, restart and delete connectors.",
        ("connector",),
    ),
    Noun(
        "tasks", "pyconnect_cli.tasks.commands", "List, inspect, restart and kill tasks.", ("task",)
    ),
    Noun(
        "offsets",
        "pyconnect_cli.offsets.commands",
        "Show, back up, change, copy and restore connectors' offsets.",
        ("offset",),
    ),
    Noun(
        "topics",
        "pyconnect_cli.topics.commands",
        "List and reset the topics that connectors use; show records.",
        ("topic",),
    ),
    Noun(
        "acls",
        "pyconnect_cli.acls.commands",
        "Check, explain and generate the ACLs that connectors and workers need.",
        ("acl",),
    ),
    Noun(
        "transactions",
        "pyconnect_cli.transactions.commands",
        "List and describe connectors' transactions, and abort those that hang.",
        ("transaction", "txn"),
    ),
    Noun(
        "plugins",
        "pyconnect_cli.plugins.commands",
        "List, describe and test the plugins of a worker.",
        ("plugin",),
    ),
    Noun(
        "loggers",
        "pyconnect_cli.diagnostics.loggers",
        "Read and set log levels of running workers.",
        ("logger",),
    ),
    Noun(
        "reconcile",
        "pyconnect_cli.reconcile.commands",
        "Audit moved data with Spark: losses, duplicates, gaps, differences.",
    ),
    Noun(
        "upgrade",
        "pyconnect_cli.upgrade.commands",
        "Move a cluster to another phase of exactly-once, worker by worker.",
    ),
    Noun(
        "agent",
        "pyconnect_cli.agents.commands",
        "Show, check and drain pyconnect's own workers.",
        ("agents",),
    ),
    Noun(
        "status",
        "pyconnect_cli.overview.commands",
        "Show states, root causes of failures and lag of a cluster on one screen.",
    ),
    Noun("top", "pyconnect_cli.top.commands", "Watch and operate a cluster in a live view."),
    Noun("health", "pyconnect_cli.diagnostics.health", "Check the health of each worker."),
    Noun("info", "pyconnect_cli.diagnostics.info", "Show the cluster: version, workers, states."),
    Noun(
        "doctor", "pyconnect_cli.diagnostics.doctor", "Check configuration, connection and cluster."
    ),
    Noun(
        "context",
        "pyconnect_cli.configuration.context",
        "Name clusters and choose between them.",
        ("contexts",),
    ),
    Noun(
        "config",
        "pyconnect_cli.configuration.config",
        "Show the settings in force and their origin; trust a project file.",
    ),
    Noun(
        "sandbox",
        "pyconnect_cli.sandbox.commands",
        "Run a real Kafka on this machine, for trials and tests.",
    ),
    Noun(
        "completion", "pyconnect_cli.completion.commands", "Print the completion script of a shell."
    ),
    Noun("version", "pyconnect_cli.about.version", "Show the version of this command."),
    Noun("help", "pyconnect_cli.about.help", "Explain a topic, such as exit codes."),
)


def find_noun(word: str) -> Noun | None:
    """Return the noun called `word`, by its name or an alias."""
    for noun in NOUNS:
        if word == noun.name or word in noun.aliases:
            return noun
    return None
