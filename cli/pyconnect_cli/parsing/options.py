"""Options that many commands share, as plain tables without an import of the parser.

`pyconnect --help`, the completion and `verbs` (which turns each row into an option of the
parser) read the same rows. A row's value, when given, is found in `Session.given` by its name.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

STATES = ("RUNNING", "PAUSED", "STOPPED", "FAILED", "RESTARTING", "UNASSIGNED")
CONNECTOR_TYPES = ("source", "sink")
OUTPUT_FORMATS = ("table", "wide", "json", "yaml", "ndjson", "name")
COLOURS = ("auto", "always", "never")
WAIT_STATES = ("RUNNING", "PAUSED", "STOPPED", "FAILED", "DELETED")


class OptionSpec(NamedTuple):
    """One shared option: its flags, longest first, its help and the kind of its value."""

    flags: tuple[str, ...]
    help: str
    metavar: str = ""  # empty: a switch without a value
    choices: tuple[str, ...] = ()
    repeatable: bool = False
    counted: bool = False
    common: bool = False  # shown in the help of every verb, not only in the root's

    @property
    def name(self) -> str:
        """The key of the option's value: `--no-color` is `no_color`."""
        return self.flags[0].lstrip("-").replace("-", "_")

    @property
    def env(self) -> str:
        """The variable of a global option."""
        return f"PYCONNECT_{self.name.upper()}"

    @property
    def text(self) -> str:
        """The help, with the list of values and `repeatable` if they apply."""
        named = all(choice.lower() in self.help.lower() for choice in self.choices)
        text = self.help if named else f"{self.help}: {', '.join(self.choices)}"
        return f"{text}; repeatable" if self.repeatable else text


OptionGroups = tuple[tuple[str, tuple[OptionSpec, ...]], ...]
"""Options of verbs under the titles that their help pages show."""

GLOBAL_OPTIONS = (
    OptionSpec(
        ("--context",),
        "context to use instead of the current one; separated by commas: each in turn",
        "CONTEXT",
        common=True,
    ),
    OptionSpec(
        ("--url",),
        "REST address of a worker; several addresses are tried in order",
        "URL",
        repeatable=True,
        common=True,
    ),
    OptionSpec(
        ("--output", "-o"),
        "format of results: table, wide, json, yaml, ndjson or name",
        "FORMAT",
        choices=OUTPUT_FORMATS,
        common=True,
    ),
    OptionSpec(("--columns",), "columns of a table, separated by commas", "LIST"),
    OptionSpec(
        ("--jq",),
        "jq program that selects from the results, as `.failed[].name`; implies -o json",
        "PROGRAM",
    ),
    OptionSpec(("--no-headers",), "tables without a header line"),
    OptionSpec(
        ("--timeout",),
        "time for the whole command's requests and waits, as 90s, 2m or 1h (default 2m, and 10s"
        " more for each object of a batch)",
        "TIME",
        common=True,
    ),
    OptionSpec(
        ("--request-timeout",),
        "time for one request to one worker (default 10s, 60s where a connector's code runs)",
        "TIME",
        common=True,
    ),
    OptionSpec(("--yes", "-y"), "no question before a change", common=True),
    OptionSpec(("--quiet", "-q"), "no output on success", common=True),
    OptionSpec(
        ("--verbose", "-v"),
        "trace of each HTTP exchange, with secrets masked; -vv adds the bodies",
        counted=True,
        common=True,
    ),
    OptionSpec(("--debug",), "Python traceback of an error"),
    OptionSpec(
        ("--color",),
        "colours: auto (on terminals, unless NO_COLOR is set), always or never",
        "WHEN",
        choices=COLOURS,
    ),
    OptionSpec(("--no-color",), "as --color never"),
    OptionSpec(("--config",), "the user's configuration file", "FILE"),
    OptionSpec(("--username",), "user of HTTP basic authentication", "NAME"),
    OptionSpec(
        ("--password",),
        "password of --username; visible to other users of this machine, so prefer the next two"
        " options",
        "TEXT",
    ),
    OptionSpec(("--password-file",), "file whose first line is the password", "FILE"),
    OptionSpec(("--password-command",), "command that prints the password", "COMMAND"),
    OptionSpec(("--token",), "bearer token", "TEXT"),
    OptionSpec(("--token-file",), "file whose first line is the bearer token", "FILE"),
    OptionSpec(("--token-command",), "command that prints the bearer token", "COMMAND"),
    OptionSpec(
        ("--ca-file",),
        "CA certificates that the workers' certificates are checked against (PEM)",
        "FILE",
    ),
    OptionSpec(("--cert",), "client certificate of this command (PEM)", "FILE"),
    OptionSpec(("--key",), "private key of --cert, if it is not in the same file", "FILE"),
    OptionSpec(("--insecure",), "no check of certificates: for trials only"),
    OptionSpec(
        ("--kafka-bootstrap",),
        "Kafka brokers, for the commands that need more than REST",
        "HOST:PORT,…",
    ),
    OptionSpec(("--kafka-properties",), "Kafka client properties file", "FILE"),
)
"""Each has a variable: `--output` is PYCONNECT_OUTPUT."""

SELECTION_OPTIONS = (
    OptionSpec(("--all",), "every connector"),
    OptionSpec(
        ("--regex", "-e"),
        "connectors whose whole name matches this pattern",
        "REGEX",
        repeatable=True,
    ),
    OptionSpec(
        ("--selector", "-l"),
        "conditions on config values: key=value, key!=value or key; all of them must hold",
        "KEY=VALUE",
        repeatable=True,
    ),
    OptionSpec(("--state",), "connectors in this state", "STATE", choices=STATES, repeatable=True),
    OptionSpec(
        ("--type",), "connectors of this type: source or sink", "TYPE", choices=CONNECTOR_TYPES
    ),
    OptionSpec(
        ("--class",),
        "connectors of this class: its full name or the last part",
        "CLASS",
        repeatable=True,
    ),
    OptionSpec(
        ("--worker",),
        "connectors that run on this worker, or have a task there (host:port)",
        "WORKER",
        repeatable=True,
    ),
    OptionSpec(("--failed",), "connectors that are FAILED or have a FAILED task"),
)

PLAN_OPTIONS = (
    OptionSpec(("--dry-run",), "print the plan and change nothing"),
    OptionSpec(("--exit-code",), "with --dry-run: exit 1 if the plan has a change"),
)

BATCH_OPTIONS = (
    *PLAN_OPTIONS,
    OptionSpec(("--parallel",), "number of objects to work on at once (default 1)", "N"),
    OptionSpec(
        ("--max-failures",), "number of failures after which no further object is started", "N"
    ),
)

SELECTED_BATCH_OPTIONS = (
    *BATCH_OPTIONS,
    OptionSpec(("--allow-empty",), "exit 0 instead of 3 if nothing is selected"),
)

WAIT_OPTIONS = (
    OptionSpec(
        ("--wait",),
        "state of the connectors and their tasks to wait for after the change (default: the state"
        " that the command leads to)",
        "[STATE]",
        choices=WAIT_STATES,
    ),
    OptionSpec(("--stable",), "with --wait: time for which the state has to last", "TIME"),
)

CRON_OPTIONS = (
    OptionSpec(("--lock",), "name of a lock: exit 6 at once while another run holds it", "NAME"),
    OptionSpec(("--jitter",), "maximum of a random delay before the start", "TIME"),
    OptionSpec(("--deadline",), "time limit of the whole run, exit 124 after it", "TIME"),
    OptionSpec(("--summary-json",), "one line of JSON instead of the results"),
    OptionSpec(
        ("--textfile",),
        "file for the result of the run, for the textfile collector of Prometheus",
        "FILE",
    ),
)


def without_bare_wait(words: Sequence[str]) -> tuple[list[str], bool]:
    """Return the words without a `--wait` that no state follows, and whether there was one."""
    end = words.index("--") if "--" in words else len(words)
    following = [*words[1:end], ""]
    kept = [
        word
        for word, after in zip(words[:end], following, strict=False)
        if word != "--wait" or after.upper() in WAIT_STATES
    ]
    return [*kept, *words[end:]], len(kept) < end
