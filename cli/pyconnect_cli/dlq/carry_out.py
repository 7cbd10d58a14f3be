"""Carries a replay out: transactions of letters and positions, from any position to the end.

Each transaction is journaled before its commit. After a kill the committed offsets of the replay's
group decide where it continues, and which of the journaled transactions took place.

A jq program may mend the values of letters: JSON, texts, and those of a schema registry.

    00 | schema id, 4 bytes big-endian | JSON, or Avro

A mended value keeps its schema. The program gets Avro in Avro's own JSON: a member of a union is
`{"string": "x"}`, bytes are characters up to U+00FF, a logical type is its number or bytes.
"""

import io
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pyconnect_cli.dlq.dead_letters import HISTORY, ReplayJournal
from pyconnect_cli.dlq.plan import (
    Letters,
    Replay,
    ReplayBatch,
    ReplayEnded,
    ReplayPlanned,
    ReplayUndone,
    SentSpan,
    as_sent,
    cause_of,
    context_of,
    group_id,
    is_letter_of,
    sent_counts,
    sent_places,
)
from pyconnect_cli.errors import (
    Conflict,
    Interrupted,
    NotFound,
    PreconditionFailed,
    UsageError,
    WaitTimedOut,
)
from pyconnect_cli.kafka.admin import KafkaAdmin
from pyconnect_cli.kafka.model import TopicPartition, TopicRecord
from pyconnect_cli.kafka.reader import records_between
from pyconnect_cli.kafka.writer import ReplaySender
from pyconnect_cli.parsing.values import parse_json
from pyconnect_cli.render.output import jq_program
from pyconnect_cli.render.step_line import StepLine
from pyconnect_cli.render.styles import counted, json_text
from pyconnect_cli.session import Session
from pyconnect_cli.settings.resolved import NO_ORIGIN
from pyconnect_clients.installation import install_command
from pyconnect_reconcile.errors import ReconcileError
from pyconnect_reconcile.spec import Registry
from pyconnect_reconcile.values.schemas import RegisteredSchema, open_registry

Mend = Callable[[TopicRecord], bytes | None]

HEAD_BYTES = 5
_UNFIT = (ArithmeticError, AttributeError, EOFError, LookupError, TypeError, ValueError)
"""The exceptions that fastavro raises for bytes and values that do not fit a schema."""


def mender(expression: str | None, *, text: bool = False, registry: Registry | None = None) -> Mend:
    """Return a function from a letter to its value, mended by a jq program if there is one.

    `text`: the program gets each value as a string. The bytes stay as they are if the program
    changes nothing; a null stays a null. UsageError names the letter whose value cannot be read,
    has numbers that jq would round, does not have one result, or one that its schema does not hold.
    """
    if expression is None:
        return lambda letter: letter.value
    program, same = jq_program(expression, "--mend"), jq_program(".", "--mend")
    forms = _Forms(registry)

    def mended(value: bytes) -> bytes:
        form = _TEXT if text else forms.of(value)
        document = form.read(value)
        json_text(parse_json(document, "the value", exact=True)).encode()
        results = [json_text(result) for result in program(document)]
        if len(results) != 1:
            raise UsageError(
                f"the program has {len(results)} results, not one",
                hint="use `if … then … else . end` to keep other values as they are",
            )
        if results == [json_text(result) for result in same(document)]:
            return value
        return form.write(results[0])

    def mended_letter(letter: TopicRecord) -> bytes | None:
        try:
            return None if letter.value is None else mended(letter.value)
        except (UsageError, UnicodeError) as exc:
            place = f"--mend: {letter.topic}-{letter.partition}@{letter.offset}"
            if isinstance(exc, UnicodeError):
                raise UsageError(f"{place}: the value is not UTF-8") from exc
            message = exc.message.removeprefix("--mend: ")
            raise UsageError(f"{place}: {message}", hint=exc.hint) from exc

    return mended_letter


def registry_for(
    config: Mapping[str, str | None], url: str | None, properties: str | None
) -> Registry | None:
    """Return the schema registry for --mend: the given one, else the connector's if it is known."""
    found = url or config.get("value.converter.schema.registry.url")
    if not found or "${" in found:
        return None
    if "@" in found:
        raise UsageError(
            "the address of the schema registry has a user, and the journal would keep it",
            hint="give --registry URL without a user, and --registry-properties FILE with"
            " basic.auth.user.info",
        )
    return Registry(url=found, properties=properties and str(Path(properties).resolve()))


@dataclass(frozen=True, slots=True)
class _Form:
    """A form of values: `read` returns the JSON of a value, `write` the value of JSON."""

    read: Callable[[bytes], str]
    write: Callable[[str], bytes]


def _text_of(document: str) -> bytes:
    value = json.loads(document)
    if not isinstance(value, str):
        raise UsageError("the result is not a string", hint="use `tostring` or `tojson`")
    return value.encode()


_JSON = _Form(bytes.decode, str.encode)
_TEXT = _Form(lambda value: json.dumps(value.decode()), _text_of)


@dataclass(frozen=True, slots=True)
class _Forms:
    """The forms of values; `framed` has those of the schemas that the registry returned."""

    registry: Registry | None
    framed: dict[bytes, _Form] = field(default_factory=dict)

    def of(self, value: bytes) -> _Form:
        """Return the form of a value. Raises UsageError and PreconditionFailed."""
        if not value.startswith(b"\0"):
            return _JSON
        head = value[:HEAD_BYTES]
        if head not in self.framed:
            if self.registry is None or len(head) < HEAD_BYTES:
                raise UsageError(
                    "the value is not JSON: it begins like those of a schema registry",
                    hint="give --registry URL; --mend-text takes the value as a text",
                )
            number = int.from_bytes(head[1:])
            try:
                with open_registry(self.registry) as registry:
                    schema = registry.schema(number)
            except ReconcileError as exc:
                raise PreconditionFailed(f"--mend: {exc.message}", hint=exc.hint) from exc
            match schema and schema.kind:
                case None:
                    raise UsageError(
                        f"its schema {number} is not in the registry", hint="check --registry"
                    )
                case "JSON":
                    self.framed[head] = _Form(
                        lambda value: value[HEAD_BYTES:].decode(), lambda text: head + text.encode()
                    )
                case "AVRO":
                    assert schema is not None
                    self.framed[head] = avro_form(head, schema)
                case kind:
                    raise UsageError(
                        f"its schema {number} is {kind}: --mend takes Avro and JSON",
                        hint="send the letters without --mend, and let a transformation of the"
                        " connector mend them",
                    )
        return self.framed[head]


def avro_form(head: bytes, registered: RegisteredSchema) -> _Form:
    """Return the form of values with a schema."""
    try:
        import fastavro
    except ImportError as missing:
        raise PreconditionFailed(
            "--mend needs fastavro for Avro, which is not installed",
            hint=f"install the extra [avro]: {install_command('avro')}",
        ) from missing
    known: dict[str, Any] = {}
    schema: Any = None
    for text in (*registered.references, registered.text):
        schema = fastavro.parse_schema(_without_logical(json.loads(text)), known)

    def read(value: bytes) -> str:
        body, document = io.BytesIO(value[HEAD_BYTES:]), io.StringIO()
        try:
            fastavro.json_writer(document, schema, [fastavro.schemaless_reader(body, schema, None)])
        except _UNFIT as exc:
            raise UsageError(f"the value is not of its schema: {exc}") from exc
        if body.read(1):
            raise UsageError("the value is not of its schema: bytes follow it")
        return document.getvalue()

    def write(document: str) -> bytes:
        body = io.BytesIO()
        body.write(head)
        try:
            (value,) = fastavro.json_reader(io.StringIO(document), schema)
            fastavro.schemaless_writer(body, schema, value)
            held = json.loads(read(body.getvalue())) == json.loads(document)
        except _UNFIT as exc:
            raise UsageError(f"the result is not of the value's schema: {exc}") from exc
        if not held:
            raise UsageError(
                "the value's schema does not hold the program's result as it is",
                hint="members and types must be those of the schema; members of unions are"
                ' {"string": "x"}',
            )
        return body.getvalue()

    return _Form(read, write)


def _without_logical(schema: Any) -> Any:
    """Return a schema whose values are read as they are written."""
    if isinstance(schema, list):
        return [_without_logical(each) for each in schema]
    if isinstance(schema, dict):
        return {
            name: _without_logical(each) for name, each in schema.items() if name != "logicalType"
        }
    return schema


MOST_LETTERS = 1_000
MOST_BYTES = 8_000_000
"""A transaction ends with the letter that reaches one of these limits."""


@dataclass(slots=True)
class _Batch:
    """Letters of the next transaction: the group of each, and the record to write."""

    groups: list[str] = field(default_factory=list)
    records: list[TopicRecord] = field(default_factory=list)
    size: int = 0

    def add(self, group: str, record: TopicRecord) -> None:
        self.groups.append(group)
        self.records.append(record)
        self.size += len(record.key or b"") + len(record.value or b"")


@dataclass(slots=True, kw_only=True)
class ReplayRun:
    """One process's part of a replay, whose journal it has locked.

    `targets`: the number of partitions of each target topic. `rate`: letters a second.
    """

    session: Session
    settings: Mapping[str, str]
    journal: ReplayJournal
    replay: Replay
    targets: Mapping[str, int]
    mend: Mend
    rate: int | None = None

    @property
    def planned(self) -> ReplayPlanned:
        return self.replay.planned

    def run(self) -> Replay:
        """Send the letters that were not sent; return the replay with its end.

        Raises Conflict at the end if the queue no longer has letters of the plan.
        """
        planned = self.planned
        sender = _sender(self.settings, planned)
        with closing(sender), StepLine(self.session.output) as steps:
            sent = self._batches_so_far(sender)
            total = sum(sent_counts(sent).values())
            try:
                for batch in self._transactions(sender, sent):
                    sent = (*sent, batch)
                    total += sum(place.count for place in batch.sent)
                    steps.count("letters", total, planned.total)
                    timed = self.session.settings.origins["timeout"] != NO_ORIGIN
                    if timed and self.session.budget.spent:
                        raise WaitTimedOut(
                            f"the time of --timeout is over: {total} of {planned.total} letters"
                            " are sent",
                            hint=f"send the others: pyconnect dlq replay --resume {planned.replay}",
                        )
            except KeyboardInterrupt:
                raise Interrupted(
                    f"interrupted: {total} of {planned.total} letters are sent",
                    hint=f"send the others: pyconnect dlq replay --resume {planned.replay}",
                ) from None
        missing = planned.total - total
        self.journal.append(ReplayEnded(replay=planned.replay, missing=missing))
        require_complete(planned, missing)
        return replace(self.replay, batches=sent, missing=0, undone=False)

    def _batches_so_far(self, sender: ReplaySender) -> tuple[ReplayBatch, ...]:
        """Return the transactions that took place; a new group begins at the first letters."""
        positions = sender.take_over()
        if not self.replay.batches and positions == [None] * len(positions):
            with sender.transaction(self.planned.starts):
                pass
            return ()
        known = [each for each in positions if each is not None]
        sent = self.replay.sent_until(known) if len(known) == len(positions) else None
        if sent is None:
            raise Conflict(
                f"the committed offsets of the group {self.planned.group} are not those of the"
                f" journal {self.journal.path}: it is not known which letters were sent",
                hint="brokers forget offsets after offsets.retention.minutes; compare the topics,"
                f" then: pyconnect dlq undo {self.planned.replay}",
            )
        return sent

    def _transactions(
        self, sender: ReplaySender, sent: Sequence[ReplayBatch]
    ) -> Iterator[ReplayBatch]:
        """Send letters from the position behind the last transaction; yield each committed one."""
        planned = self.planned
        before = sent[-1].after if sent else planned.starts
        positions = dict(zip(planned.partitions, before, strict=True))
        ends = dict(zip(planned.partitions, planned.ends, strict=True))
        places = {
            TopicPartition(planned.topic, number): (position, ends[number])
            for number, position in positions.items()
        }
        letters = Letters(planned.spans)
        most = min(MOST_LETTERS, self.rate or MOST_LETTERS)
        batch, began_s, count = _Batch(), time.monotonic(), 0

        def committed(after: Mapping[int, int]) -> ReplayBatch:
            nonlocal before, batch, count
            reached = tuple(after.values())
            with sender.transaction(reached):
                written = sender.write(batch.records)
                single = ReplayBatch(
                    replay=planned.replay,
                    before=before,
                    after=reached,
                    sent=tuple(
                        SentSpan(group=group, **at._asdict(), first=offset, last=offset, count=1)
                        for group, (at, offset) in zip(batch.groups, written, strict=True)
                    ),
                )
                done = replace(single, sent=tuple(sent_places([single])))
                self.journal.append(done)
            count += len(batch.records)
            before, batch = reached, _Batch()
            if self.rate is not None:
                time.sleep(max(began_s + count / self.rate - time.monotonic(), 0.0))
            return done

        for record in records_between(self.settings, places):
            positions[record.partition] = record.offset + 1
            known = context_of(record)
            group = group_id(cause_of(known))
            if not letters.include(group, record.partition, record.offset):
                continue
            if not is_letter_of(known, planned.connector):
                continue
            value = self.mend(record)
            written = as_sent(record, known, planned.to_topic, self.targets, value)
            batch.add(group, written)
            if len(batch.records) >= most or batch.size >= MOST_BYTES:
                yield committed(positions)
        if before != planned.ends:
            yield committed(ends)


def require_complete(planned: ReplayPlanned, missing: int) -> None:
    """Raise Conflict if the queue did not have all letters of the plan."""
    if missing:
        raise Conflict(
            f"{planned.replay}: {missing} of {counted(planned.total, 'planned letter')} are no"
            f" longer in {planned.topic}: retention has removed them; the others are sent",
            hint=HISTORY,
        )


def take_back(
    settings: Mapping[str, str], journal: ReplayJournal, replay: Replay
) -> tuple[ReplayBatch, ...]:
    """Set the group of a replay back to the beginning of its plan; return the sent batches.

    The journal alone decides which were sent if the brokers have forgotten the offsets.
    """
    with closing(_sender(settings, replay.planned)) as sender:
        positions = [each for each in sender.take_over() if each is not None]
        with sender.transaction(replay.planned.starts):
            pass
    journal.append(ReplayUndone(replay=replay.planned.replay))
    sent = replay.sent_until(positions)
    return replay.batches if sent is None else sent


def target_partitions(admin: KafkaAdmin, topics: Sequence[str]) -> dict[str, int]:
    """Return the number of partitions of each topic; NotFound for one that does not exist."""
    found = admin.partitions(topics)
    counts = {topic: sum(at.topic == topic for at in found) for topic in topics}
    if missing := [topic for topic in topics if not counts[topic]]:
        raise NotFound(
            f"topic {', '.join(missing)} does not exist or is not visible",
            hint="create it first, or name another one: --to-topic TOPIC",
        )
    return counts


def _sender(settings: Mapping[str, str], planned: ReplayPlanned) -> ReplaySender:
    places = [TopicPartition(planned.topic, number) for number in planned.partitions]
    return ReplaySender(settings, planned.group, places)
