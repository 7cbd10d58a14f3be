"""The words after `pyconnect`, with their modules and help, and names that resemble an unknown one.

`pyconnect --help` prints these lines without loading a command; a test compares each line with the
help of its module. `words.json` holds verbs and options, as scripts/generate-words read them from
the commands: the Tab key offers them, and a verb is imported without the other verbs of its noun.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from os import path
from typing import Any, NamedTuple

from pyconnect_cli.parsing.options import OptionSpec


class Noun(NamedTuple):
    """One word of the command line and its module, with `:` and a name if that has several."""

    name: str
    module: str
    help: str
    aliases: tuple[str, ...] = ()


_TABLE = """
connectors,connector connectors.commands List, create, change, pause, stop, restart and delete connectors.
tasks,task tasks List, inspect, restart and kill tasks.
offsets,offset offsets.commands Show, back up, change, copy and restore connectors' offsets.
topics,topic topics List and reset the topics that connectors use; show records.
dlq dlq.replay Replay dead letters exactly once; list and undo replays.
acls,acl acls.commands Check, explain and generate the ACLs that connectors and workers need.
transactions,transaction,txn transactions.commands List and describe connectors' transactions, and abort those that hang.
plugins,plugin plugins.commands List, describe and test the plugins of a worker.
loggers,logger loggers Read and set log levels of running workers.
reconcile reconcile.repair Audit moved data with Spark: losses, duplicates, gaps, differences.
upgrade upgrade.commands Move a cluster to another phase of exactly-once, worker by worker.
backup backup.save Save configurations, states, offsets and loggers of a cluster in a directory.
restore backup.restore Restore connectors, states, offsets and loggers from a backup.
agent,agents agents.commands Show, check and drain pyconnect's own workers.
journal diagnostics:journal_app Show which user has changed what on the agents of a cluster.
status overview.commands:status_app Show states, root causes of failures and lag of a cluster on one screen.
fleet overview.commands:fleet_app Show the clusters of all contexts, a line each, failures first.
top top.commands Watch and operate a cluster in a live view.
health diagnostics:health_app Check the health of each worker.
info diagnostics:info_app Show the cluster: version, workers, states.
doctor diagnostics:doctor_app Check configuration, connection and cluster.
context,contexts configuration:context_app Name clusters and choose between them.
config configuration:config_app Show the settings in force and their origin; trust a project file.
sandbox sandbox Run a real Kafka on this machine, for trials and tests.
completion about:completion_app Print the completion script of a shell.
version about:version_app Show the version of this command.
help about:help_app Explain a topic, such as exit codes.
"""  # noqa: E501  a noun, one line

NOUNS = tuple(
    Noun(names.split(",")[0], f"pyconnect_cli.{module}", text, tuple(names.split(",")[1:]))
    for names, module, text in (line.split(maxsplit=2) for line in _TABLE.strip().splitlines())
)


def find_noun(word: str) -> Noun | None:
    """Return the noun called `word`, by its name or an alias."""
    for noun in NOUNS:
        if word == noun.name or word in noun.aliases:
            return noun
    return None


VERB_ALIASES = {"ls": "list", "show": "describe", "rm": "delete"}
SAID_ELSEWHERE = {
    "audit": "reconcile",
    "auth": "acls check",
    "cluster": "info",
    "cluster-info": "info",
    "config current-context": "context current",
    "config delete-context": "context delete",
    "config get-contexts": "context list",
    "config set-context": "context set",
    "config use-context": "context use",
    "connectors start": "connectors resume",
    "conn": "connectors",
    "ctx": "context",
    "dlq get": "connectors dlq",
    "dlq list": "connectors dlq",
    "dlq ls": "connectors dlq",
    "dlq show": "connectors dlq",
    "explain": "plugins describe",
    "log": "connectors logs",
    "ps": "status",
    "sandbox start": "sandbox up",
    "sandbox stop": "sandbox down",
    "snapshot": "backup",
    "start": "connectors resume",
    "tail": "connectors logs",
    "worker": "health",
    "workers": "health",
}
"""Words of kubectl and other tools with their meaning here; they are proposed, never run."""
FILE_ENDINGS = (".json", ".yaml", ".yml", ".properties")
READING = ("get", "describe", "list")
"""Verbs that show objects; without a name they mean `list`."""


class KnownCommand(NamedTuple):
    """A noun or verb: a line of help, its options without the global ones, the verbs below it.

    `argument` is the name of its first argument. `module` defines the verb. The verbs of a
    `plain` noun may be imported one by one.
    """

    help: str
    argument: str
    changes: bool
    module: str
    plain: bool
    options: tuple[OptionSpec, ...]
    verbs: Mapping[str, KnownCommand]

    def verb(self, word: str) -> str | None:
        """Return the name of the verb that a word or an alias means."""
        name = word if word in self.verbs else VERB_ALIASES.get(word, "")
        return name if name in self.verbs else None


@cache
def known_commands() -> Mapping[str, KnownCommand]:
    """Return the nouns with their verbs and options."""
    file_name = path.join(path.dirname(__file__), "words.json")  # noqa: PTH118, PTH120 - quick
    with open(file_name, encoding="utf-8") as file:  # noqa: PTH123 - quick
        words = json.load(file)
    options = [OptionSpec(tuple(flags), *rest) for flags, *rest in words["options"]]

    def command(entry: dict[str, Any]) -> KnownCommand:
        verbs = {name: command(verb) for name, verb in entry["verbs"].items()}
        own = tuple(options[number] for number in entry["options"])
        return KnownCommand(**(entry | {"options": own, "verbs": verbs}))

    return {name: command(entry) for name, entry in words["nouns"].items()}


def meant_line(words: Sequence[str]) -> tuple[str, ...] | None:
    """Return the command line meant by words with the verb first, as `describe connector orders`.

    Without a noun, the verb is a task's for `orders/0`, else the connectors', else that of the only
    noun that has it. A file gets its `-f`. None: no such verb, or the noun does not have it.
    """
    verb = VERB_ALIASES.get(words[0], words[0])
    commands = known_commands()
    owners = [name for name, command in commands.items() if verb in command.verbs]
    kind, slash, name = (words[1] if len(words) > 1 else "").partition("/")
    rest = list(words[1:])
    noun = find_noun(kind)
    if not owners:
        return None
    if noun is not None:
        chosen = noun.name
        rest[:1] = [name] if slash else []
    elif name.isdigit() and ("tasks" in owners or verb in READING):
        chosen = "tasks"
    elif "connectors" in owners or len(owners) == 1:
        chosen = owners[0]
    else:
        return None
    verbs = commands[chosen].verbs
    if chosen == "tasks" and len(rest) > 1 and rest[1].isdigit():
        rest[:2] = ["/".join(rest[:2])]
    options = {flag for each in verbs[verb].options for flag in each.flags} if verb in verbs else ()
    if rest and rest[0].endswith(FILE_ENDINGS) and "-f" in options:
        rest[:0] = ["-f"]
    named = bool(rest) and not rest[0].startswith("-")
    if verb in READING:
        verb = next(
            (each for each in (*((verb, *READING) if named else ()), "list") if each in verbs), ""
        )
    return (chosen, verb, *rest) if verb in verbs else None


ALMOST = 0.75  # the likeness of a word of four letters with two of them exchanged
CLEARLY = 0.15  # the lead that it needs over every reading verb

CONSENT = frozenset(
    {"--yes", "--force", "--prune", "--insecure", "--no-backup", "--accept-unknown"}
)

# The spelling of Apache's own commands.
_APACHES = {
    "--bootstrap": "--kafka-bootstrap",
    "--bootstrap-server": "--kafka-bootstrap",
    "--bootstrap-servers": "--kafka-bootstrap",
    "--command-config": "--kafka-properties",
}


def near_names(name: str, known: Iterable[str], limit: int = 3, likeness: float = 0.6) -> list[str]:
    """Return up to `limit` known names that resemble `name`, the nearest first."""
    from difflib import get_close_matches

    by_lower = {candidate.lower(): candidate for candidate in known}
    close = get_close_matches(name.lower(), by_lower, n=limit, cutoff=likeness)
    prefixed = sorted(lower for lower in by_lower if lower.startswith(name.lower()))
    ordered = dict.fromkeys([*close, *prefixed])
    return [by_lower[lower] for lower in ordered][:limit]


def slip_of(option: str, known: Iterable[str]) -> str | None:
    """Return the option that a misspelt one stands for; None if unclear, or if it grants consent.

    An option changes the effect of a command, so a remotely similar one is not proposed.
    """
    from difflib import get_close_matches

    candidates = [name for name in known if name.startswith("--") and name not in CONSENT]
    if _APACHES.get(option) in candidates:
        return _APACHES[option]
    return next(iter(get_close_matches(option.lower(), candidates, n=1, cutoff=0.88)), None)


def did_you_mean(name: str, known: Iterable[str]) -> str | None:
    """Return `did you mean …?`, or None when no known name resembles the name."""
    near = near_names(name, known)
    if not near:
        return None
    return f"did you mean {' or '.join(f'`{candidate}`' for candidate in near)}?"


def near_verbs(word: str, reading: Sequence[str], changing: Sequence[str]) -> list[str]:
    """Return verbs that resemble an unknown one; verbs that change something need more likeness.

    A changing verb also has to be more similar to the word than every reading verb. A word without
    similar verbs gets the verbs that show one object.
    """
    from difflib import SequenceMatcher

    def likeness(name: str) -> float:
        begun = len(word) > 2 and name.startswith(word.lower())
        return 1.0 if begun else SequenceMatcher(None, word.lower(), name).ratio()

    wanted = max(changing, key=likeness, default="")
    rival = max(map(likeness, reading), default=0.0)
    if likeness(wanted) >= max(ALMOST, rival + CLEARLY):
        return [wanted]
    shown = [name for name in ("get", "describe", "list") if changing and name in reading]
    return near_names(word, reading) or shown[:2]
