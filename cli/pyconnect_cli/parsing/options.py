"""Options that many commands share, as plain tables without an import of the parser.

`pyconnect --help`, the completion and `verbs` (which turns each row into an option of the
parser) read the same rows. A row's value, when given, is found in `Session.given` by its name.
"""

from collections.abc import Mapping, Sequence
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
"""Options of verbs under their titles in help pages."""


def option_specs(
    table: str, choices: Mapping[str, tuple[str, ...]] | None = None
) -> tuple[OptionSpec, ...]:
    """Read a table: a line with flags, name of the value and marks, then the help, indented.

    Marks are `repeatable`, `counted` and `common`. `choices` are by the first flag.
    """
    specs: list[OptionSpec] = []
    for line in table.strip("\n").splitlines():
        if line.startswith(" "):
            specs[-1] = specs[-1]._replace(help=f"{specs[-1].help} {line.strip()}".strip())
            continue
        flags, *words = line.split()
        names = tuple(flags.split("/"))
        marks = {word: True for word in words if word in OptionSpec._fields}
        metavar = "".join(word for word in words if word not in marks)
        specs.append(OptionSpec(names, "", metavar, (choices or {}).get(names[0], ()), **marks))
    return tuple(specs)


GLOBAL_OPTIONS = option_specs(
    """
--context  CONTEXT  common
    context to use instead of the current one; separated by commas: each in turn
--url  URL  repeatable  common
    REST address of a worker; several addresses are tried in order
--output/-o  FORMAT  common
    format of results: table, wide, json, yaml, ndjson or name
--columns  LIST
    columns of a table, separated by commas
--jq  PROGRAM
    jq program that selects from the results, as `.failed[].name`; implies -o json
--no-headers
    tables without a header line
--timeout  TIME  common
    time for the whole command's requests and waits, as 90s, 2m or 1h (default 2m, and 10s more
    for each object of a batch)
--request-timeout  TIME  common
    time for one request to one worker (default 10s, 60s where a connector's code runs)
--yes/-y  common
    no question before a change
--quiet/-q  common
    no output on success
--verbose/-v  counted  common
    trace of each HTTP exchange, with secrets masked; -vv adds the bodies
--debug
    Python traceback of an error
--color  WHEN
    colours: auto (on terminals, unless NO_COLOR is set), always or never
--no-color
    as --color never
--config  FILE
    the user's configuration file
--username  NAME
    user of HTTP basic authentication
--password  TEXT
    password of --username; visible to other users of this machine, so prefer the next two
    options
--password-file  FILE
    file whose first line is the password
--password-command  COMMAND
    command that prints the password
--token  TEXT
    bearer token
--token-file  FILE
    file whose first line is the bearer token
--token-command  COMMAND
    command that prints the bearer token
--ca-file  FILE
    CA certificates that the workers' certificates are checked against (PEM)
--cert  FILE
    client certificate of this command (PEM)
--key  FILE
    private key of --cert, if it is not in the same file
--insecure
    no check of certificates: for trials only
--kafka-bootstrap  HOST:PORT,…
    Kafka brokers, for the commands that need more than REST
--kafka-properties  FILE
    Kafka client properties file
""",
    {"--output": OUTPUT_FORMATS, "--color": COLOURS},
)
"""Each has a variable: `--output` is PYCONNECT_OUTPUT."""

SELECTION_OPTIONS = option_specs(
    """
--all
    every connector
--regex/-e  REGEX  repeatable
    connectors whose whole name matches this pattern
--selector/-l  KEY=VALUE  repeatable
    conditions on config values: key=value, key!=value or key; all of them must hold
--state  STATE  repeatable
    connectors in this state
--type  TYPE
    connectors of this type: source or sink
--class  CLASS  repeatable
    connectors of this class: its full name or the last part
--worker  WORKER  repeatable
    connectors that run on this worker, or have a task there (host:port)
--failed
    connectors that are FAILED or have a FAILED task
""",
    {"--state": STATES, "--type": CONNECTOR_TYPES},
)
PLAN_OPTIONS = option_specs("""
--dry-run
    print the plan and change nothing
--exit-code
    with --dry-run: exit 1 if the plan has a change
""")
WORK_OPTIONS = option_specs("""
--parallel  N
    number of objects to work on at once (default 1)
--max-failures  N
    number of failures after which no further object is started
""")
BATCH_OPTIONS = (*PLAN_OPTIONS, *WORK_OPTIONS)
SELECTED_BATCH_OPTIONS = (
    *BATCH_OPTIONS,
    *option_specs("""
--allow-empty
    exit 0 instead of 3 if nothing is selected
"""),
)
WAIT_OPTIONS = option_specs(
    """
--wait  [STATE]
    state of the connectors and their tasks to wait for after the change (default: the state
    that the command leads to)
--stable  TIME
    with --wait: time for which the state has to last
""",
    {"--wait": WAIT_STATES},
)
CRON_OPTIONS = option_specs("""
--lock  NAME
    name of a lock: exit 6 at once while another run holds it
--jitter  TIME
    maximum of a random delay before the start
--deadline  TIME
    time limit of the whole run, exit 124 after it
--summary-json
    one line of JSON instead of the results
--textfile  FILE
    file for the result of the run, for the textfile collector of Prometheus
""")


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
