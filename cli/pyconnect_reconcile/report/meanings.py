"""The meaning of each kind of finding in one sentence, and the next command. Pure."""

from __future__ import annotations

from typing import NamedTuple


class Meaning(NamedTuple):
    """`next` is a command, or empty; {topic}, {topics} and {target} stand for names of the run."""

    sentence: str
    next: str = ""


READ = "pyconnect topics read {topic} --max 100"
HANGING = "pyconnect transactions find-hanging --topic {topic}"
OPEN = "pyconnect transactions list --open"
SINCE = "pyconnect reconcile {job} {target} --since TIME"
OFFSETS = "pyconnect offsets get {target}"
TASKS = "pyconnect tasks list"
UNPARSED = "pyconnect reconcile {job} {target} --fail-unparsable"

MEANINGS = {
    "missing": Meaning("It should be there, and no committed record or row has it.", READ),
    "perhaps-missing": Meaning(
        "Numbers that are not in the range that was read, but may be among records that were"
        " removed or not asked for.",
        SINCE,
    ),
    "repeated": Meaning("Readers of committed records see it more often than once.", READ),
    "duplicate": Meaning("Readers of committed records see the record more than once.", READ),
    "benign-duplicate": Meaning(
        "The record was written again after an abort: readers of committed records see it once.",
        "pyconnect reconcile transactions {topics}",
    ),
    "disorder": Meaning("A record comes after one that should follow it.", READ),
    "unordered-keys": Meaning(
        "Records of one key are in several partitions, which have no order between them.", READ
    ),
    "keyless": Meaning("Records without a key have no order and no last version to check.", READ),
    "extra": Meaning("It is on the right side, and the left side does not have it.", READ),
    "different": Meaning("The last version of the key differs between the sides.", READ),
    "not-representable": Meaning(
        "The type of the sink cannot hold the value, so the sink has another value or none.", READ
    ),
    "not-compared": Meaning(
        "Columns that no record has hold values: name the columns that are to be compared."
    ),
    "aborted": Meaning(
        "Offsets of aborted transactions: readers of committed records never see them."
    ),
    "open-transaction": Meaning(
        "A transaction has not ended, and the records behind its first offset were not audited.",
        OPEN,
    ),
    "hanging-transaction": Meaning(
        "A transaction is open for longer than brokers allow and blocks committed readers.",
        HANGING,
    ),
    "retention-loss": Meaning(
        "Retention removed offsets since the saved run.", "pyconnect reconcile ranges {topics}"
    ),
    "expired": Meaning(
        "Retention removed the beginning of a partition, so nothing is known about it.", SINCE
    ),
    "cut-range": Meaning(
        "The range that was asked for reaches beyond the records that are there.",
        "pyconnect reconcile ranges {topics}",
    ),
    "recreated-topic": Meaning(
        "The topic was deleted and created again: its earlier records are gone.", OFFSETS
    ),
    "truncated": Meaning("The partition ends before the end of the saved run: records were lost."),
    "regression": Meaning(
        "A source offset went back, so records were read again.",
        "pyconnect reconcile duplicates TOPIC",
    ),
    "two-writers": Meaning("Two positions of one source partition take turns.", TASKS),
    "double-run": Meaning("Two workers held one task at the same time.", TASKS),
    "split-offset": Meaning("A source partition's offset is kept in two places.", OFFSETS),
    "topics-disagree": Meaning(
        "The connector's offsets topic and that of the workers have different offsets.", OFFSETS
    ),
    "overlapping-tasks": Meaning("Several tasks are configured with one source partition.", TASKS),
    "altered": Meaning(
        "The offset was written while the connector was stopped.", "pyconnect offsets history"
    ),
    "reset": Meaning("The offset was deleted.", "pyconnect offsets history"),
    "orphan": Meaning(
        "Offsets are left of a connector that does not exist.", "pyconnect offsets orphans list"
    ),
    "difference": Meaning(
        "A span of event time has another number of rows than in the first tier.",
        "pyconnect reconcile topic-topic LEFT RIGHT",
    ),
    "under-way": Meaning("Rows beyond the compared offsets may still arrive."),
    "unfinished": Meaning("Rows whose end is not written yet count only where they are expected."),
    "written-meanwhile": Meaning(
        "Rows were written while they were compared, so differences prove nothing.",
        "pyconnect reconcile {job} {target}",
    ),
    "too-many-spans": Meaning("Only the first spans of event time were compared."),
    "unparsable": Meaning(
        "The value that the check needs is not in the record, so the record was left out.",
        UNPARSED,
    ),
    "unknown-schema": Meaning("The schema of a value is not known, so it was left out."),
    "empty-range": Meaning("There was nothing to read.", "pyconnect reconcile ranges {topics}"),
    "file-changed": Meaning(
        "A file changed while it was compared.", "pyconnect reconcile {job} {target}"
    ),
    "removed-while-read": Meaning("Retention removed records before they were read.", SINCE),
    "unknown-policy": Meaning(
        "It is not known whether the topic is compacted: its configuration is not readable.",
        "pyconnect acls check",
    ),
    "compacted": Meaning(
        "Compaction removes records, and leaves offsets that look like markers of transactions.",
        "pyconnect reconcile ranges {topics}",
    ),
    "failed": Meaning(
        "The run ended before it had an answer: the message says why.",
        "pyconnect reconcile {job} {target}",
    ),
    "not-audited": Meaning("The job cannot answer its question for this data."),
}
NO_MEANING = Meaning("")
