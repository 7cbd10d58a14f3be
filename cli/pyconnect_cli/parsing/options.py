"""Options that many commands share, as plain tables: no parser is imported to read them.

`pyconnect --help`, the completion and `verbs` (which turns each row into an option of the
parser) read the same rows. A row's value, when given, is found in `Session.given` by its name.
"""

from __future__ import annotations

from typing import NamedTuple

STATES = ("RUNNING", "PAUSED", "STOPPED", "FAILED", "RESTARTING", "UNASSIGNED")
CONNECTOR_TYPES = ("source", "sink")
OUTPUT_FORMATS = ("table", "wide", "json", "yaml", "ndjson", "name")
WAIT_STATES = ("RUNNING", "PAUSED", "STOPPED", "FAILED", "DELETED")


class OptionSpec(NamedTuple):
    """One shared option: its flags, longest first, and what its value is."""

    flags: tuple[str, ...]
    help: str
    metavar: str = ""  # empty: a switch without a value
    env: str = ""
    choices: tuple[str, ...] = ()
    repeatable: bool = False
    counted: bool = False
    common: bool = False  # shown in the help of every verb, not only in the root's

    @property
    def name(self) -> str:
        """The key of the option's value: `--no-color` is `no_color`."""
        return self.flags[0].lstrip("-").replace("-", "_")


GLOBAL_OPTIONS = (
    OptionSpec(
        ("--context",),
        "use this context instead of the current one",
        "CONTEXT",
        "PYCONNECT_CONTEXT",
        common=True,
    ),
    OptionSpec(
        ("--url",),
        "a worker's REST address; several are tried in order",
        "URL",
        "PYCONNECT_URL",
        repeatable=True,
        common=True,
    ),
    OptionSpec(
        ("--output", "-o"),
        "how results are printed: table, wide, json, yaml, ndjson or name",
        "FORMAT",
        "PYCONNECT_OUTPUT",
        choices=OUTPUT_FORMATS,
        common=True,
    ),
    OptionSpec(
        ("--columns",), "columns of a table, separated by commas", "LIST", "PYCONNECT_COLUMNS"
    ),
    OptionSpec(("--no-headers",), "tables without a header line", env="PYCONNECT_NO_HEADERS"),
    OptionSpec(
        ("--timeout",),
        "time for the whole command's requests and waits, as 90s, 2m or 1h (default 2m, and 10s"
        " more for each object of a batch)",
        "TIME",
        "PYCONNECT_TIMEOUT",
        common=True,
    ),
    OptionSpec(
        ("--request-timeout",),
        "time for one request to one worker (default 10s, 60s where a connector's code runs)",
        "TIME",
        "PYCONNECT_REQUEST_TIMEOUT",
        common=True,
    ),
    OptionSpec(
        ("--yes", "-y"), "do not ask before a destructive step", env="PYCONNECT_YES", common=True
    ),
    OptionSpec(("--quiet", "-q"), "print nothing on success", env="PYCONNECT_QUIET", common=True),
    OptionSpec(
        ("--verbose", "-v"),
        "show each HTTP exchange, secrets masked; -vv with bodies",
        env="PYCONNECT_VERBOSE",
        counted=True,
        common=True,
    ),
    OptionSpec(("--debug",), "show Python's traceback of an error", env="PYCONNECT_DEBUG"),
    OptionSpec(("--no-color",), "no colours (NO_COLOR is honoured too)", env="PYCONNECT_NO_COLOR"),
    OptionSpec(("--config",), "the user's configuration file", "FILE", "PYCONNECT_CONFIG"),
    OptionSpec(("--username",), "user of HTTP basic authentication", "NAME", "PYCONNECT_USERNAME"),
    OptionSpec(
        ("--password",),
        "its password; others on this machine may see it, prefer the next two",
        "TEXT",
        "PYCONNECT_PASSWORD",
    ),
    OptionSpec(
        ("--password-file",),
        "file whose first line is the password",
        "FILE",
        "PYCONNECT_PASSWORD_FILE",
    ),
    OptionSpec(
        ("--password-command",),
        "command that prints the password",
        "COMMAND",
        "PYCONNECT_PASSWORD_COMMAND",
    ),
    OptionSpec(("--token",), "bearer token", "TEXT", "PYCONNECT_TOKEN"),
    OptionSpec(
        ("--token-file",),
        "file whose first line is the bearer token",
        "FILE",
        "PYCONNECT_TOKEN_FILE",
    ),
    OptionSpec(
        ("--token-command",),
        "command that prints the bearer token",
        "COMMAND",
        "PYCONNECT_TOKEN_COMMAND",
    ),
    OptionSpec(
        ("--ca-file",),
        "certificates that vouch for the workers (PEM)",
        "FILE",
        "PYCONNECT_CA_FILE",
    ),
    OptionSpec(("--cert",), "our client certificate (PEM)", "FILE", "PYCONNECT_CERT"),
    OptionSpec(("--key",), "its private key, if not in the same file", "FILE", "PYCONNECT_KEY"),
    OptionSpec(
        ("--insecure",), "accept any certificate: for trials only", env="PYCONNECT_INSECURE"
    ),
    OptionSpec(
        ("--kafka-bootstrap",),
        "brokers, for what REST cannot answer",
        "HOST:PORT,…",
        "PYCONNECT_KAFKA_BOOTSTRAP",
    ),
    OptionSpec(
        ("--kafka-properties",),
        "Kafka client properties file",
        "FILE",
        "PYCONNECT_KAFKA_PROPERTIES",
    ),
)

SELECTION_OPTIONS = (
    OptionSpec(("--all",), "every connector"),
    OptionSpec(
        ("--regex", "-e"), "names that match the whole of this pattern", "REGEX", repeatable=True
    ),
    OptionSpec(
        ("--selector", "-l"),
        "config values: key=value, key!=value or key; several must all hold",
        "KEY=VALUE",
        repeatable=True,
    ),
    OptionSpec(("--state",), "the connector's state", "STATE", choices=STATES, repeatable=True),
    OptionSpec(("--type",), "source or sink", "TYPE", choices=CONNECTOR_TYPES),
    OptionSpec(("--class",), "connector class, full or its last part", "CLASS", repeatable=True),
    OptionSpec(
        ("--worker",), "runs there, connector or a task (host:port)", "WORKER", repeatable=True
    ),
    OptionSpec(("--failed",), "the connector or one of its tasks is FAILED"),
)

PLAN_OPTIONS = (
    OptionSpec(("--dry-run",), "print what would be done and change nothing"),
    OptionSpec(("--exit-code",), "with --dry-run: exit 1 when something would change"),
)

BATCH_OPTIONS = (
    *PLAN_OPTIONS,
    OptionSpec(("--parallel",), "how many objects at once (default 1)", "N"),
    OptionSpec(("--max-failures",), "start no more objects after N failures", "N"),
)

SELECTED_BATCH_OPTIONS = (
    *BATCH_OPTIONS,
    OptionSpec(("--allow-empty",), "nothing selected is success, not exit 3"),
)

WAIT_OPTIONS = (
    OptionSpec(
        ("--wait",),
        "then wait until connector and tasks are in this state",
        "STATE",
        choices=WAIT_STATES,
    ),
    OptionSpec(("--stable",), "how long that state has to last (default 0)", "TIME"),
)

CRON_OPTIONS = (
    OptionSpec(("--lock",), "exit 6 at once while a run with this lock goes on", "NAME"),
    OptionSpec(("--jitter",), "first wait a random time up to this", "TIME"),
    OptionSpec(("--deadline",), "end the whole run after this time, exit 124", "TIME"),
    OptionSpec(("--summary-json",), "print one line of JSON instead of the results"),
    OptionSpec(
        ("--textfile",), "write the run's result for Prometheus' textfile collector", "FILE"
    ),
)
