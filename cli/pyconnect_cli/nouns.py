"""The words after `pyconnect`, with their modules and one line of help: nothing is imported.

`pyconnect --help` prints these lines without loading a command; a test holds each against the
help that the module gives itself.
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
        "pyconnect_cli.commands.connectors",
        "List, create, change, pause, stop, restart and delete connectors.",
        ("connector",),
    ),
    Noun(
        "tasks", "pyconnect_cli.commands.tasks", "List, inspect, restart and kill tasks.", ("task",)
    ),
    Noun(
        "offsets",
        "pyconnect_cli.commands.offsets",
        "See, back up, change, copy and restore connectors' offsets.",
        ("offset",),
    ),
    Noun("topics", "pyconnect_cli.commands.topics", "Look at records of a topic.", ("topic",)),
    Noun(
        "acls",
        "pyconnect_cli.commands.acls",
        "Check, explain and generate the ACLs that connectors and workers need.",
        ("acl",),
    ),
    Noun(
        "transactions",
        "pyconnect_cli.commands.transactions",
        "List, describe and, when nobody else will, abort connectors' transactions.",
        ("transaction", "txn"),
    ),
    Noun(
        "plugins",
        "pyconnect_cli.commands.plugins",
        "List and describe what is installed on a worker.",
        ("plugin",),
    ),
    Noun(
        "loggers",
        "pyconnect_cli.commands.loggers",
        "Read and set log levels of running workers.",
        ("logger",),
    ),
    Noun(
        "reconcile",
        "pyconnect_cli.commands.reconcile",
        "Audit with Spark what was moved: losses, duplicates, gaps, differences.",
    ),
    Noun(
        "upgrade",
        "pyconnect_cli.commands.upgrade",
        "Take a cluster from one phase of exactly-once to another, worker by worker.",
    ),
    Noun(
        "agent",
        "pyconnect_cli.commands.agent",
        "See and drain pyconnect's own workers.",
        ("agents",),
    ),
    Noun("health", "pyconnect_cli.commands.health", "Ask each worker whether it is healthy."),
    Noun("info", "pyconnect_cli.commands.info", "Show the cluster: version, workers, states."),
    Noun("doctor", "pyconnect_cli.commands.doctor", "Check configuration, connection and cluster."),
    Noun(
        "context",
        "pyconnect_cli.commands.context",
        "Name clusters and choose between them.",
        ("contexts",),
    ),
    Noun(
        "config",
        "pyconnect_cli.commands.config",
        "Show the settings in force and their origin; trust a project's file.",
    ),
    Noun(
        "sandbox",
        "pyconnect_cli.commands.sandbox",
        "Run a real Kafka on this machine, for trials and tests.",
    ),
    Noun(
        "completion", "pyconnect_cli.commands.completion", "Print the completion script of a shell."
    ),
    Noun("version", "pyconnect_cli.commands.version", "Show the version of this command."),
    Noun("help", "pyconnect_cli.commands.help", "Explain a topic, such as exit codes."),
)


def find_noun(word: str) -> Noun | None:
    """Return the noun called `word`, by its name or an alias."""
    for noun in NOUNS:
        if word == noun.name or word in noun.aliases:
            return noun
    return None
