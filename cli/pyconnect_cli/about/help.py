"""`pyconnect help TOPIC`: what no single command explains."""

from __future__ import annotations

from collections.abc import Callable

import typer

from pyconnect_cli.errors import EXIT_CODE_MEANINGS
from pyconnect_cli.render.output import key_value_lines
from pyconnect_cli.session import session_of

app = typer.Typer(help="Explain a topic, such as exit codes.", invoke_without_command=True)


def exit_codes() -> str:
    """The table of exit codes, from the errors themselves."""
    lines = ["Exit codes, the same for every command:", ""]
    lines += [f"  {int(code):>3}  {meaning}" for code, meaning in EXIT_CODE_MEANINGS.items()]
    return "\n".join(lines)


CONTEXTS = (
    "A context names a cluster: its workers' addresses, credentials, and its"
    " Kafka.\n\n  pyconnect context set prod --url https://connect-1:8083 --url"
    " https://connect-2:8083 \\\n      --username ops --password-command 'pass"
    " connect/prod' --use\n  pyconnect context list\n  pyconnect --context staging"
    " connectors list\n\nContexts are read from ./pyconnect.toml, then"
    " $XDG_CONFIG_HOME/pyconnect/config.toml,"
    " then\n/etc/xdg/pyconnect/config.toml; the first file that defines a context"
    " gives all its keys.\n\nPrecedence of a setting: flag, PYCONNECT_* variable,"
    " ./pyconnect.toml, context, user, system.\nSeveral addresses are tried in"
    " order. An address that does not answer takes --request-timeout"
    " (10s);\n--timeout is for the whole command. `pyconnect config view` shows"
    " where each value comes from.\n\nSecrets are references: --password-file,"
    " --password-command, or PYCONNECT_PASSWORD_ENV naming a\nvariable. They are"
    " never printed or logged. A file that holds a secret and that other users"
    " can read is\nrefused.\n\n./pyconnect.toml belongs to the directory, not to"
    " you. It may set `current` and how results are\nprinted: output, columns,"
    " no_headers, color, no_color, quiet, verbose. A file that sets anything else,"
    " such\nas an address, a credential or `yes`, is refused (exit 2) until you"
    " trust it. Trust ends when the\nfile changes. The Tab key follows the same"
    " rule, and it reads no secret.\n\n  pyconnect config trust          # this"
    " directory's file, after you have read it\n  pyconnect config untrust\n"
)

SELECTORS = (
    "Verbs that act on connectors take names, and conditions that must all"
    " hold:\n\n  NAME…                 these connectors\n  --all                "
    " every connector\n  -e, --regex REGEX     the whole name matches\n  -l,"
    " --selector K=V    a config value; also K!=V and K (is set); several with"
    " commas\n  --state STATE         RUNNING, PAUSED, STOPPED, FAILED,"
    " UNASSIGNED, RESTARTING\n  --type source|sink    --class CLASS    --worker"
    " HOST:PORT\n  --failed              the connector or one of its tasks is"
    " FAILED\n\nAn empty selection is exit 3 unless --allow-empty. Destructive"
    " verbs show the set first and ask;\nwithout a terminal they need --yes."
    " --dry-run only prints, with --exit-code it exits 1 when\nsomething would"
    " change. --parallel N works on N at once, --max-failures N stops starting"
    " more.\n\nEvery run reports every object: done, failed, not tried, or unknown"
    " (a change was sent and not\nanswered, and the state does not show it). After"
    " --timeout no further object is started.\n\n  pyconnect connectors restart"
    " --failed --include-tasks --only-failed\n  pyconnect connectors pause -l"
    " team=orders --type sink --dry-run\n"
)

OUTPUT = (
    "-o table (default), wide (more columns, nothing cut), json, yaml, ndjson"
    " (an object a line), name.\n\njson and yaml are the shapes of Connect's REST"
    " interface; their fields are stable, tables are not.\nData goes to stdout,"
    " everything else to stderr. --columns NAME,STATE chooses and orders"
    " columns,\n--no-headers leaves the first line out. Colours are used on"
    " terminals only; NO_COLOR and\n--color never switch them off, --color always is for a"
    " pager.\n--jq PROGRAM selects from the JSON, as in --jq '.failed[].name' (extra [jq]).\n\n"
    "Tables fit the"
    " terminal: prose is wrapped and other texts are cut. If the columns would be"
    " too\nnarrow, each item is a block of lines. Nothing is cut with -o wide, in"
    " a pipe or in a file.\n\nIf the reader of stdout leaves (`| head`), the"
    " command continues without an error. If output cannot\nbe written, as on a"
    " full disk, the command finishes its work and exits with 2.\n\nValues of"
    " secret keys are masked; ${provider:path:key} references are shown as they"
    " are.\n-v shows each HTTP exchange, -vv with bodies, secrets masked. --debug"
    " shows Python's traceback.\n"
)

CRON = """\
For unattended runs every verb that acts takes:

  --yes             no questions
  -q                silent on success
  --lock NAME       a second run with the same lock exits 6 at once
  --jitter 30s      first wait a random time up to this
  --deadline 10m    end the run after this, exit 124
  --summary-json    one line of JSON on stdout instead of results
  --textfile FILE   result for Prometheus' textfile collector, replaced whole

The summary, the textfile and -o json agree, also when a signal or the deadline ends the run: each
object is done, failed, unknown or not-tried. Metrics of the textfile have the labels noun, verb,
context and selection, so that jobs do not overwrite each other's; without a context the label holds
the addresses. Running a verb twice does no harm. In a crontab:

  */5 * * * *  pyconnect --context prod connectors restart --failed --include-tasks --only-failed \\
               --allow-empty -q --lock restart-failed --jitter 20s --deadline 4m \\
               --textfile /var/lib/node_exporter/textfile/pyconnect_restart.prom
"""

OFFSETS = (
    "Offsets record the progress of a connector: a source has its own positions,"
    " a sink has the offsets\nof its consumer group. They can be read at any time"
    " and changed only while the connector is STOPPED (KIP-875):\nreading needs"
    " Kafka 3.5, changing 3.6.\n\n  pyconnect offsets get orders\n  pyconnect"
    " offsets reset orders --stop --resume --wait\n  pyconnect offsets alter"
    ' orders --set \'{"filename":"a.txt"}={"position":30}\'\n  pyconnect offsets'
    " alter my-sink --set orders:0=1000 --set orders:1=null\n  pyconnect offsets"
    " get orders -o json > saved.json; pyconnect offsets alter orders -f"
    " saved.json\n\nEvery change shows its plan (states, each partition before and"
    " after), asks, backs up, sends, reads\nback, and prints the command that"
    " undoes it. A connector is never stopped without --stop; without\nit a"
    " running one is exit 9. The offset null deletes the offset of one"
    " partition.\n\nBackups are files in $XDG_STATE_HOME/pyconnect/offsets (else"
    " ~/.local/state), for their owner only,\nkept for 90 days; they hold offsets"
    " and their origin, no configuration. `history` lists them. `undo`\nrestores"
    " the newest or a named one; it makes a backup itself. --no-backup makes"
    " none.\n\nSinks can be moved within their topics, given --kafka-bootstrap or"
    " kafka.bootstrap in the context;\noffsets outside the topics are then refused"
    " everywhere:\n\n  pyconnect offsets lag my-sink\n  pyconnect offsets seek"
    " my-sink --to-datetime 2026-01-31T12:00:00Z --stop --resume\n\n`export` and"
    " `import` move offsets through files, `copy` from one connector to another."
    " Offsets that\ndo not seem to fit (unknown partitions, other types, another"
    " class or cluster) need --force.\n"
)

TOPICS: dict[str, Callable[[], str]] = {
    "exit-codes": exit_codes,
    "contexts": lambda: CONTEXTS.rstrip("\n"),
    "selectors": lambda: SELECTORS.rstrip("\n"),
    "offsets": lambda: OFFSETS.rstrip("\n"),
    "output": lambda: OUTPUT.rstrip("\n"),
    "cron": lambda: CRON.rstrip("\n"),
}
SUMMARIES = {
    "exit-codes": "Exit codes, the same for every command.",
    "contexts": "Names of clusters, and the origin of settings and credentials.",
    "selectors": "Acting on many connectors: conditions, batches, dry runs.",
    "offsets": "Reading, changing and restoring offsets, with examples.",
    "output": "Formats, columns, colours, secrets, traces of HTTP.",
    "cron": "Unattended runs: locks, deadlines, summaries, an example.",
}


def _topic_command(topic: str) -> None:
    text = TOPICS[topic]

    @app.command(topic, help=SUMMARIES[topic])
    def show(context: typer.Context) -> None:
        session_of(context).output.line(text())


for _topic in TOPICS:
    _topic_command(_topic)


@app.callback()
def help_topic(context: typer.Context) -> None:
    """Explain a topic, such as exit codes."""
    if context.invoked_subcommand is None:
        for line in key_value_lines(SUMMARIES):
            session_of(context).output.line(line)
        session_of(context).output.line("\neach: pyconnect help TOPIC")
