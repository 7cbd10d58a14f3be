"""The help page of a command: a value, and its layout on a terminal.

`pyconnect --help` is made from tables only, because importing the parser takes 70 ms.
"""

import re
import shutil
import textwrap
from collections.abc import Iterable
from dataclasses import dataclass

from pyconnect_cli.parsing.nouns import NOUNS
from pyconnect_cli.parsing.options import GLOBAL_OPTIONS, OptionSpec

SUMMARY = (
    "Operate Kafka Connect clusters: Apache's workers and pyconnect agents alike, over their REST"
    " interface."
)
FIRST_LINES = (
    ("pyconnect context set NAME --url URL --use", "name your cluster"),
    ("pyconnect status", "states, causes of failures, lag"),
    ("pyconnect connectors list", "connectors with their states"),
    ("pyconnect connectors describe NAME", "one of them, with its errors"),
    ("pyconnect top", "the live view"),
    ("pyconnect sandbox up", "a Kafka for trials"),
)
EPILOG = (
    "Every option may also follow the verb: `pyconnect connectors list -o json`.\n"
    "Topics: pyconnect help exit-codes|contexts|selectors|offsets|output|cron"
)


def root_help(width: int | None = None) -> str:
    """Return the help of the command itself, wrapped to `width` columns (the terminal's)."""
    columns = min(width or shutil.get_terminal_size().columns, 100)
    nouns = [(noun.name, noun.help) for noun in NOUNS]
    own = [("--version", "version of this command"), ("-h, --help", "help page")]
    options = [
        (flags, f"{text} [{option.env}]")
        for option in GLOBAL_OPTIONS
        for flags, text in (describe_option(option),)
    ]
    return "\n".join(
        [
            "Usage: pyconnect [OPTIONS] NOUN VERB [ARGUMENTS]…",
            "",
            *wrapped(SUMMARY, columns - 2, indent="  "),
            "",
            "Nouns:",
            *definition_lines(nouns, columns),
            "",
            "Options:",
            *definition_lines([*options, *own], columns),
            "",
            EPILOG,
        ]
    )


def first_screen(width: int | None = None) -> str:
    """Return the output of the command without words: it fits a terminal of 24 lines."""
    columns = min(width or shutil.get_terminal_size().columns, 100)
    nouns = ", ".join(noun.name for noun in NOUNS)
    return "\n".join(
        [
            "Usage: pyconnect [OPTIONS] NOUN VERB [ARGUMENTS]…",
            "",
            *wrapped(SUMMARY, columns - 2, indent="  "),
            "",
            "Begin with:",
            *definition_lines(FIRST_LINES, columns),
            "",
            *wrapped(f"Nouns: {nouns}", columns - 2, first="", indent="  "),
            "",
            "All nouns and options: pyconnect --help; verbs of a noun: pyconnect NOUN --help",
        ]
    )


def describe_option(option: OptionSpec) -> tuple[str, str]:
    """Return an option's flags with its value, and its help."""
    flags = ", ".join(sorted(option.flags, key=len))
    return (f"{flags} {option.metavar}".rstrip(), option.text)


def definition_lines(rows: Iterable[tuple[str, str]], width: int, most: int = 32) -> list[str]:
    """Lay out terms and their explanations in two columns; `most`: the widest indentation."""
    entries = list(rows)
    indent = min(max(len(term) for term, _ in entries) + 4, most)
    lines: list[str] = []
    for term, text in entries:
        head = f"  {term}".ljust(indent)
        if len(term) + 4 > indent or not text:
            lines.append(f"  {term}")
            head = " " * indent
        if text:
            first, *below = wrapped(text, max(width - indent, 30))
            lines += [head + first, *(" " * indent + line for line in below)]
    return lines


def wrapped(text: str, width: int, *, indent: str = "", first: str | None = None) -> list[str]:
    """Return the lines of a paragraph; options and paths are not broken at their hyphens."""
    return textwrap.wrap(
        text,
        width,
        initial_indent=indent if first is None else first,
        subsequent_indent=indent,
        break_on_hyphens=False,
    )


Rows = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class HelpPage:
    """One page. `sections`: titles with terms and their explanations, which examples lack.

    `more`: the pointer to more help.
    """

    path: str
    arguments: str
    text: str
    sections: tuple[tuple[str, Rows], ...]
    more: str = ""

    @property
    def paragraphs(self) -> list[str]:
        return [" ".join(part.split()) for part in re.split(r"\n\s*\n", self.text.strip())]


def help_text(page: HelpPage) -> str:
    width = max(min(shutil.get_terminal_size().columns, 100) - 2, 50)
    usage = f"Usage: {page.path} "
    if width >= len(usage) + 20:
        lines = wrapped(page.arguments, width, first=usage, indent=" " * len(usage))
    else:
        lines = [usage, *wrapped(page.arguments, width, indent=" " * 11)]
    for paragraph in page.paragraphs:
        lines += ["", *wrapped(paragraph, width, indent="  ")]
    for title, rows in page.sections:
        lines += ["", f"{title}:", *definition_lines(rows, width, most=34)]
    return "\n".join([*lines, *(["", *wrapped(page.more, width)] if page.more else [])])


EXAMPLES: dict[str, tuple[str, ...]] = {
    "connectors list": ("connectors list --failed", "connectors list -l team=orders -o wide"),
    "connectors get": ("connectors get orders -o json > orders.json",),
    "connectors wait": ("connectors wait orders --for RUNNING --timeout 5m",),
    "connectors create": (
        "connectors create orders -f orders.json --wait",
        "connectors create in -s connector.class=FileStreamSource -s file=/tmp/in -s topic=lines",
    ),
    "connectors apply": (
        "connectors apply -f connectors/ --dry-run",
        "connectors apply -f connectors/ --prune -l team=orders --yes",
    ),
    "connectors diff": (
        "connectors diff -f connectors/",
        "connectors diff orders --to-context prod",
    ),
    "connectors promote": (
        "connectors promote orders --to-context prod --dry-run",
        "connectors promote -l team=orders --to-context prod --map file:/run/dev=file:/run/prod",
    ),
    "connectors patch": ("connectors patch orders --set tasks.max=4 --unset errors.tolerance",),
    "connectors validate": ("connectors validate -f orders.json",),
    "connectors export": ("connectors export --all --dir backup/",),
    "connectors pause": ("connectors pause -l team=orders --type sink --dry-run",),
    "connectors stop": ("connectors stop orders --wait",),
    "connectors restart": (
        "connectors restart orders --wait",
        "connectors restart --failed --only-failed",
    ),
    "connectors delete": ("connectors delete -e 'trial-.*' --dry-run",),
    "tasks list": ("tasks list --state FAILED",),
    "tasks restart": ("tasks restart orders/0", "tasks restart --failed"),
    "tasks kill": ("tasks kill orders/0",),
    "offsets get": ("offsets get orders -o json > saved.json", "offsets get --type sink"),
    "offsets export": (
        "offsets export orders -f orders.offsets.json",
        "offsets export --all --dir offsets/",
    ),
    "offsets diff": ("offsets diff orders -f saved.json",),
    "offsets reset": (
        "offsets reset orders --stop --resume --wait",
        "offsets reset my-sink -p orders:0 --dry-run",
    ),
    "offsets alter": (
        """offsets alter orders --set '{"filename":"a.txt"}={"position":30}'""",
        "offsets alter my-sink --set orders:0=1000 --set orders:1=null",
        "offsets alter orders -f saved.json",
    ),
    "offsets seek": (
        "offsets seek my-sink --to-datetime 2026-01-31T12:00:00Z --stop --resume",
        "offsets seek my-source --to-start --stop --resume",
    ),
    "offsets undo": ("offsets history orders", "offsets undo --stop --resume"),
    "offsets import": (
        "offsets export orders -f orders.offsets.json",
        "offsets import orders -f orders.offsets.json --stop --resume",
    ),
    "offsets copy": ("offsets copy orders orders-2 --to-context staging",),
    "offsets orphans purge": (
        "offsets orphans purge old-import",
        "offsets orphans purge old-import -t connect-offsets --confirm-topic connect-offsets",
    ),
    "connectors dlq": ("connectors dlq to-db", "connectors dlq to-db --max 3 -o json"),
    "dlq replay": (
        "dlq replay to-db --group 3f2a91c0 --dry-run",
        "dlq replay to-db --all-groups --to-topic orders-replay --rate 500",
        """dlq replay to-db --group 3f2a91c0 --mend '.price |= tonumber'""",
    ),
    "dlq undo": ("dlq history to-db", "dlq undo 20260131T120000000000Z-3f2a91"),
    "topics reset": ("topics reset orders",),
    "topics read": ("topics read lines --from-beginning", "topics read orders --max 100 -o json"),
    "acls check": ("acls check --phase enabled", "acls check --worker-config worker.properties"),
    "acls explain": ("acls explain 'Failed to perform zombie fencing'",),
    "acls generate": ("acls generate --phase enabled -o strimzi --strimzi-cluster kafka",),
    "transactions list": ("transactions list --open",),
    "transactions find-hanging": ("transactions find-hanging --connector orders",),
    "plugins describe": ("plugins describe FileStreamSource --search file",),
    "plugins test": ("plugins test DirectorySource -f source.json",),
    "loggers set": ("loggers set org.apache.kafka.connect DEBUG --for 15m --scope cluster",),
    "reconcile sequence": ("reconcile sequence orders --sequence json:id --per json:shop",),
    "reconcile duplicates": ("reconcile duplicates orders --since 1d",),
    "reconcile source-topic": ("reconcile source-topic my-source --report report",),
    "reconcile topic-topic": (
        "reconcile topic-topic orders orders --right-bootstrap other:9092",
        "reconcile topic-topic orders copy --upsert --key key --value json",
        "reconcile topic-topic orders copy --since-last",
    ),
    "reconcile repair": ("reconcile repair audit/sink", "reconcile repair audit/sink --dry-run"),
    "upgrade": (
        "upgrade plan --phase preparing",
        "upgrade run --phase preparing",
        "upgrade status",
    ),
    "backup": (
        "backup /var/backups/connect --keep 14",
        "backup backups/ -l team=orders --show-secrets",
    ),
    "restore": (
        "restore /var/backups/connect --dry-run",
        "restore /var/backups/connect orders --wait",
        "restore backups/ --context staging --force --map file:/run/prod=file:/run/staging",
    ),
    "agent drain": ("agent drain http://connect-1:8083",),
    "status": ("status", "status -o json"),
    "fleet": ("fleet", "fleet eu us --watch", "fleet -o json --jq '.[] | select(.failed != [])'"),
    "top": ("top --context prod",),
    "context set": (
        "context set prod --url https://connect-1:8083 --url https://connect-2:8083 --use",
        "context set prod --username ops --password-command 'pass connect/prod'",
    ),
    "config trust": ("config trust",),
    "sandbox up": ("sandbox up --agent --use", "sandbox up --name trial --port 9092"),
    "sandbox demo": ("sandbox demo",),
    "sandbox logs": ("sandbox logs --server agent --follow",),
}
