"""Commands in messages, completed with the options of this command. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from pyconnect_cli.parsing.options import GLOBAL_OPTIONS
from pyconnect_cli.rest.masking import mask_command

CLUSTER_NOUNS = "connectors tasks plugins loggers health info doctor agent"
BROKER_NOUNS = "dlq offsets topics acls transactions upgrade reconcile"
# Patterns as texts are compiled at their first use: few commands need them.
PROPOSED = rf"\bpyconnect (?P<noun>{'|'.join(f'{CLUSTER_NOUNS} {BROKER_NOUNS} context'.split())})\b"
ADDRESSING = (
    "config", "context", "url", "username", "password", "password_file", "password_command",
    "token", "token_file", "token_command", "ca_file", "cert", "key", "insecure",
)  # fmt: skip
BROKERS = ("kafka_bootstrap", "kafka_properties")
WORKER_FACTS = ("--worker-config", "--worker-property", "--super-user", "--principal", "--host")
FACTS_TAKEN = r"\bpyconnect (?:acls (?:check|generate|explain)|upgrade(?: plan| run)?(?= --phase))"
"""Commands that take facts of workers, which are not global options."""

Given = Mapping[str, object]


def proposer(given: Given, arguments: Sequence[str]) -> Callable[[str], str]:
    """Return a function that completes the commands in a text; secrets are masked."""
    facts = []
    for at, word in enumerate(arguments):
        flag, equals, value = word.partition("=")
        if flag in WORKER_FACTS and (equals or at + 1 < len(arguments)):
            facts.append([flag, value if equals else arguments[at + 1]])

    def complete(text: str) -> str:
        if "pyconnect " not in text:
            return text
        text = re.sub(FACTS_TAKEN, lambda found: _joined(found[0], text, found.end(), facts), text)
        return re.sub(
            PROPOSED,
            lambda found: (
                _joined("pyconnect", text, found.end(), _flags(given, found["noun"]))
                + f" {found['noun']}"
            ),
            text,
        )

    return complete


def _joined(command: str, text: str, end: int, words: Sequence[Sequence[str]]) -> str:
    """Return a command with the words of options that it does not have already."""
    rest, _, _ = text[end:].partition(";")
    missing = [word for pair in words if f"{pair[0]} " not in rest for word in pair]
    return f"{command} {mask_command(missing)}" if missing else command


def _flags(given: Given, noun: str) -> list[list[str]]:
    if noun == "context":
        names: tuple[str, ...] = ("config",)
    else:
        names = (*ADDRESSING, *(BROKERS if noun in BROKER_NOUNS else ()))
    options = {option.name: option for option in GLOBAL_OPTIONS}
    found = []
    for name in names:
        value = given.get(name)
        flag = options[name].flags[0]
        if value is True:
            found.append([flag])
        elif value:
            found += [[flag, str(one)] for one in (value if isinstance(value, tuple) else (value,))]
    return found
