"""Topics with random records, and the records that their readers get, kept in memory."""

import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from confluent_kafka import Producer

from pyconnect_reconcile.errors import ReconcileError
from pyconnect_reconcile.spec import Cluster
from pyconnect_reconcile.topics.cluster_view import ClusterView
from pyconnect_reconcile.topics.snapshot import PartitionRange
from tests.support.audits.seeding import DEADLINE_S, Record, Seed, delete_before, seed_topic
from tests.support.eventually import eventually

COMMITTED, ABORTED, OPEN = "commit", "abort", "open"
KEYS = (None, b"", b"\xff\xfe", *(b"k%d" % number for number in range(5)))
JUNK = (None, None, b"", b"null", b"\xff\x00junk", b"{broken", b"[1", b"7", b'"text"')
# JSON texts that Python's encoder would not write.
NUMBERS = (
    "9223372036854775807", "-9223372036854775808", "9223372036854775808", "4611686018427387903",
    "-4611686018427387903", "4611686018427387904", "1180591620717411303424", "1.5", "3.0", '"4"',
    '" 5 "', '"x"', '""', "true", "null", "{}", "-7",
)  # fmt: skip
SOURCES = ('"a"', '"b"', "8", "null")


@dataclass(frozen=True, slots=True)
class Written:
    """A record with its offset and the outcome of its transaction."""

    record: Record
    partition: int
    offset: int
    outcome: str

    @property
    def row(self) -> tuple[bytes | None, bytes | None]:
        return (self.record.key, self.record.value)


class History:
    """A topic of one test, and the records that were written to it."""

    def __init__(self, bootstrap: str, partitions: int) -> None:
        self.seed: Seed = seed_topic(bootstrap, partitions=partitions)
        self.written: list[Written] = []
        self._opened: list[Producer] = []
        self.ranges: Mapping[int, PartitionRange] = {}

    @property
    def side(self) -> dict[str, object]:
        return {"kind": "topic", "topics": [self.seed.topic]}

    def write(self, records: Sequence[Record], outcome: str) -> None:
        """Write a batch that is committed, aborted or left open."""
        if not records:
            return
        if outcome == OPEN:
            producer, places = self.seed.open(records)
            self._opened.append(producer)
        else:
            places = self.seed.write(records, outcome=outcome)
        for record, (partition, offset) in zip(records, places, strict=True):
            self.written.append(Written(record, partition, offset, outcome))

    def settle(self) -> None:
        """Wait until the markers of all transactions are written, and note the ends."""
        first_open: dict[int, int] = {}
        for each in self.written:
            if each.outcome == OPEN:
                first_open.setdefault(each.partition, each.offset)

        def looked() -> bool:
            view = ClusterView(Cluster(bootstrap=self.seed.bootstrap))
            try:
                parts = view.snapshot([self.seed.topic]).partitions
            except ReconcileError:
                # A broker may not have loaded a topic without records yet.
                return False
            self.ranges = {part.partition: part for part in parts}
            return all(
                part.last_stable == first_open.get(part.partition, part.high_watermark)
                for part in parts
            )

        eventually(looked, DEADLINE_S)

    def expire(self, randomness: random.Random) -> None:
        """Remove the beginning of a partition."""
        part = randomness.choice([*self.ranges.values()])
        delete_before(self.seed, part.partition, randomness.randint(0, part.last_stable))
        self.settle()

    @property
    def expired(self) -> bool:
        return any(part.earliest > 0 for part in self.ranges.values())

    @property
    def open(self) -> bool:
        """Whether an open transaction hides records."""
        return any(part.open_tail > 0 for part in self.ranges.values())

    @property
    def length(self) -> int:
        return sum(part.length for part in self.ranges.values())

    def visible(self, until: Mapping[int, int] | None = None) -> list[Written]:
        """Return the records for readers of committed ones; `until`: end offsets by partition."""
        return [
            each
            for each in self.stable()
            if each.outcome == COMMITTED
            and (until is None or each.offset < until.get(each.partition, 0))
        ]

    def stable(self) -> list[Written]:
        """Return all records before the last stable offsets, aborted ones too."""
        return [each for each in self.there() if each.offset < self._part(each).last_stable]

    def beyond(self, until: Mapping[int, int] | None = None) -> list[Written]:
        """Return the records that the other side may or may not have.

        They are beyond given offsets, or beyond the last stable ones.
        """
        return [
            each
            for each in self.there()
            if each.offset >= self._part(each).last_stable
            or (
                until is not None
                and each.outcome == COMMITTED
                and each.offset >= until.get(each.partition, 0)
            )
        ]

    def there(self) -> list[Written]:
        """Return all records that were not removed, by partition and offset."""
        left = [each for each in self.written if each.offset >= self._part(each).earliest]
        return sorted(left, key=lambda each: (each.partition, each.offset))

    def _part(self, each: Written) -> PartitionRange:
        return self.ranges[each.partition]

    def close(self) -> None:
        """Abort the open transactions."""
        for producer in self._opened:
            producer.abort_transaction(DEADLINE_S)


@contextmanager
def histories(bootstrap: str, *partitions: int) -> Iterator[tuple[History, ...]]:
    """Make topics with so many partitions; their open transactions end with the block."""
    made = tuple(History(bootstrap, number) for number in partitions)
    try:
        yield made
    finally:
        for history in made:
            history.close()


def partition_count(randomness: random.Random) -> int:
    return randomness.choice((1, 1, 1, 2, 2, 3, 3, 5, 64))


def fill(
    history: History, randomness: random.Random, records: Sequence[Record], *, aborts: bool = True
) -> None:
    """Write records in batches; each is committed once, and some are aborted before that.

    Some transactions stay open.
    """
    rest = list(records)
    opened = randomness.random() < 0.2
    while rest:
        batch, rest = rest[: (cut := randomness.randint(1, 20))], rest[cut:]
        if aborts and randomness.random() < 0.3:
            history.write(batch[: randomness.randint(1, len(batch))], ABORTED)
        if opened and randomness.random() < 0.3:
            opened = False
            history.write(batch[:2], OPEN)
        history.write(batch, COMMITTED)
    history.settle()


def random_value(randomness: random.Random) -> bytes | None:
    """Return a JSON object with a number and a source, or a value of another form."""
    if randomness.random() < 0.15:
        return randomness.choice(JUNK)
    number = str(randomness.randint(-20, 60))
    if randomness.random() < 0.1:
        number = randomness.choice(NUMBERS)
    members = [f'"n":{number}', f'"s":{randomness.choice(SOURCES)}', '"p":"xxx"']
    if randomness.random() < 0.1:
        members.pop(randomness.randrange(2))
    return ("{" + ",".join(members) + "}").encode()


def random_records(randomness: random.Random, partitions: int, *, keyed: bool) -> list[Record]:
    """Return random records; `keyed`: each key has a partition of its own."""
    records = []
    for _ in range(randomness.choice((0, 1, 5, 20, 40))):
        key = randomness.choice(KEYS)
        partition = KEYS.index(key) % partitions if keyed else randomness.randrange(partitions)
        records.append(Record(random_value(randomness), key=key, partition=partition))
    return records
