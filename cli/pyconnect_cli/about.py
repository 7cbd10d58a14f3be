"""`pyconnect help TOPIC`, `version` and `completion SHELL`: facts about the command itself."""

import platform
from collections.abc import Callable
from functools import partial

import typer

from pyconnect_cli.errors import ExitCode, UsageError
from pyconnect_cli.render.output import key_value_lines
from pyconnect_cli.session import session_of

help_app = typer.Typer(help="Explain a topic, such as exit codes.", invoke_without_command=True)

EXIT_CODES = "\n".join(
    ["Exit codes, the same for every command:", ""]
    + [f"  {code.value:>3}  {code.meaning}" for code in ExitCode]
)

CONTEXTS = """\
A context names a cluster: its workers' addresses, credentials, and its Kafka.

  pyconnect context set prod --url https://connect-1:8083 --url https://connect-2:8083 \\
      --username ops --password-command 'pass connect/prod' --use
  pyconnect context list
  pyconnect --context staging connectors list

Contexts are read from ./pyconnect.toml, then $XDG_CONFIG_HOME/pyconnect/config.toml, then
/etc/xdg/pyconnect/config.toml; the first file that defines a context gives all its keys.

Precedence of a setting: flag, PYCONNECT_* variable, ./pyconnect.toml, context, user, system.
Several addresses are tried in order. An address that does not answer takes --request-timeout (10s);
--timeout is for the whole command. `pyconnect config view` shows where each value comes from.

Secrets are references: --password-file, --password-command, or PYCONNECT_PASSWORD_ENV naming a
variable. They are never printed or logged. A file that holds a secret and that other users can read
is refused.

./pyconnect.toml belongs to the directory, not to you. It may set `current` and how results are
printed: output, columns, no_headers, color, no_color, quiet, verbose. A file that sets anything
else, such as an address, a credential or `yes`, is refused (exit 2) until you trust it. Trust ends
when the file changes. The Tab key follows the same rule, and it reads no secret.

  pyconnect config trust          # this directory's file, after you have read it
  pyconnect config untrust
"""

SELECTORS = """\
Verbs that act on connectors take names, and conditions that must all hold:

  NAME…                 these connectors
  --all                 every connector
  -e, --regex REGEX     the whole name matches
  -l, --selector K=V    a config value; also K!=V and K (is set); several with commas
  --state STATE         RUNNING, PAUSED, STOPPED, FAILED, UNASSIGNED, RESTARTING
  --type source|sink    --class CLASS    --worker HOST:PORT
  --failed              the connector or one of its tasks is FAILED

Labels for -l are keys that no connector defines: `team`, and any key that begins with `label.`.

An empty selection is exit 3 unless --allow-empty. Destructive verbs show the set first and ask;
without a terminal they need --yes. --dry-run only prints, with --exit-code it exits 1 when
something would change. --parallel N works on N at once, --max-failures N stops starting more.

--wait returns when the connectors and their tasks have the state that the verb leads to, as PAUSED
after `pause`; --wait STATE waits for another one, --stable 10s until the state has lasted.

Every run reports every object: done, failed, not tried, or unknown (a change was sent and not
answered, and the state does not show it). After --timeout no further object is started.

  pyconnect connectors restart --failed --only-failed
  pyconnect connectors pause -l team=orders --type sink --dry-run
"""

OUTPUT = """\
-o table (default), wide (more columns, nothing cut), json, yaml, ndjson (an object a line), name.

json and yaml are the shapes of Connect's REST interface; their fields are stable, tables are not.
Data goes to stdout, everything else to stderr. --columns NAME,STATE chooses and orders columns,
--no-headers leaves the first line out. Colours are used on terminals only; NO_COLOR and
--color never switch them off, --color always is for a pager.
--jq PROGRAM selects from the JSON, as in --jq '.failed[].name' (extra [jq]).

Tables fit the terminal: prose is wrapped and other texts are cut. If the columns would be too
narrow, each item is a block of lines. Nothing is cut with -o wide, in a pipe or in a file.

If the reader of stdout leaves (`| head`), the command continues without an error. If output cannot
be written, as on a full disk, the command finishes its work and exits with 74.

Values of secret keys are masked; ${provider:path:key} references are shown as they are.
-v shows each HTTP exchange, -vv with bodies, secrets masked. --debug shows Python's traceback.
"""

CRON = """\
For unattended runs the verbs that act on connectors, audits, `backup`, `status`, `health`,
`acls check`, `transactions find-hanging`, and `export` of connectors and of offsets take:

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

  */5 * * * *  pyconnect --context prod connectors restart --failed --only-failed \\
               --allow-empty -q --lock restart-failed --jitter 20s --deadline 4m \\
               --textfile /var/lib/node_exporter/textfile/pyconnect_restart.prom
"""

OFFSETS = """\
Offsets record the progress of a connector: a source has its own positions, a sink has the offsets
of its consumer group. They can be read at any time and changed only while the connector is STOPPED
(KIP-875): reading needs Kafka 3.5, changing 3.6.

  pyconnect offsets get orders
  pyconnect offsets reset orders --stop --resume --wait
  pyconnect offsets alter orders --set '{"filename":"a.txt"}={"position":30}'
  pyconnect offsets alter my-sink --set orders:0=1000 --set orders:1=null
  pyconnect offsets get orders -o json > saved.json; pyconnect offsets alter orders -f saved.json

Every change shows its plan (states, each partition before and after), asks, backs up, sends, reads
back, and prints the command that undoes it. A connector is never stopped without --stop; without
it a running one is exit 9. The offset null deletes the offset of one partition.

Backups are files in $XDG_STATE_HOME/pyconnect/offsets (else ~/.local/state), for their owner only,
kept for 90 days; they hold offsets and their origin, no configuration. `history` lists them. `undo`
restores the newest or a named one; it makes a backup itself. --no-backup makes none.

Sinks can be moved within their topics, given --kafka-bootstrap or kafka.bootstrap in the context;
offsets outside the topics are then refused everywhere:

  pyconnect offsets lag my-sink
  pyconnect offsets seek my-sink --to-datetime 2026-01-31T12:00:00Z --stop --resume

`export` and `import` move offsets through files, `copy` from one connector to another. Offsets that
do not seem to fit (unknown partitions, other types, another class or cluster) need --force.
"""

TOPICS = {
    "exit-codes": EXIT_CODES,
    "contexts": CONTEXTS,
    "selectors": SELECTORS,
    "offsets": OFFSETS,
    "output": OUTPUT,
    "cron": CRON,
}
SUMMARIES = {
    "exit-codes": "Exit codes, the same for every command.",
    "contexts": "Names of clusters, and the origin of settings and credentials.",
    "selectors": "Acting on many connectors: conditions, batches, dry runs.",
    "offsets": "Reading, changing and restoring offsets, with examples.",
    "output": "Formats, columns, colours, secrets, traces of HTTP.",
    "cron": "Unattended runs: locks, deadlines, summaries, an example.",
}


def _printing(app: typer.Typer, name: str, explanation: str, text: Callable[[], str]) -> None:
    @app.command(name, help=explanation)
    def show(context: typer.Context) -> None:
        session_of(context).output.line(text().rstrip("\n"))


for _topic in TOPICS:
    _printing(help_app, _topic, SUMMARIES[_topic], partial(TOPICS.__getitem__, _topic))


@help_app.callback()
def help_topic(context: typer.Context) -> None:
    """Explain a topic, such as exit codes."""
    if context.invoked_subcommand is None:
        for line in key_value_lines(SUMMARIES):
            session_of(context).output.line(line)
        session_of(context).output.line("\nshow one: pyconnect help TOPIC")


version_app = typer.Typer(help="Show the version of this command.")


@version_app.command()
def version(context: typer.Context) -> None:
    """Show the version of this command."""
    from pyconnect_clients.installation import version as installed

    session = session_of(context)
    document = {"pyconnect": installed(), "python": platform.python_version()}
    text = f"pyconnect {document['pyconnect']} (Python {document['python']})"
    session.output.document(document, text=text)


completion_app = typer.Typer(
    help="Print the completion script of a shell.", invoke_without_command=True
)


def completion_script(shell: str) -> str:
    from importlib.resources import files

    return files("pyconnect_cli").joinpath("completions", f"pyconnect.{shell}").read_text("utf-8")


SHELLS = {
    "bash": "Print the script for bash: ~/.local/share/bash-completion/completions/pyconnect.",
    "zsh": "Print the script for zsh; save it as _pyconnect in a directory of $fpath.",
    "fish": "Print the script for fish; save it as ~/.config/fish/completions/pyconnect.fish.",
}
for _shell, _help in SHELLS.items():
    _printing(completion_app, _shell, _help, partial(completion_script, _shell))


@completion_app.callback()
def completion(context: typer.Context) -> None:
    """Print the completion script of a shell."""
    if context.invoked_subcommand is None:
        raise UsageError("name a shell", hint="pyconnect completion bash|zsh|fish")
