"""Every job on random topics, against plain Python: no false verdict, no wrong count, no error.

Five fixed topics reach every job; `scripts/test --long` takes two hundred.
"""

import itertools
import json
import random
import re
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from pyconnect_reconcile.findings import Verdict
from tests.support.audits.audits import Answer, Audit
from tests.support.audits.seeding import Record
from tests.support.chaos.random_histories import (
    ABORTED,
    COMMITTED,
    OPEN,
    History,
    Written,
    fill,
    histories,
    partition_count,
    random_records,
)
from tests.support.seeds import LONG, chosen

pytestmark = [pytest.mark.spark, pytest.mark.long, pytest.mark.timeout(800)]

FAULT_SEEDS = range(500 if LONG else 20)
SEEDS = range(200) if LONG else (0, 4, 5, 7, 9)
MOST = 2**62 - 1
HOUR_MS = 3_600_000


@dataclass(frozen=True, slots=True)
class Expected:
    """The expected answer of a job; `totals` without zeros."""

    verdict: Verdict
    totals: dict[str, int]


def check(answer: Answer, expected: Expected) -> None:
    found = {kind: count for kind, count in answer.outcome.totals.items() if count}
    assert (answer.verdict, found) == (expected.verdict, expected.totals), answer.outcome


def judged(
    totals: dict[str, int], *, doubted: Iterable[str] = (), unknown: bool = False
) -> Expected:
    """Return the expected answer; a certain difference outweighs an unknown part."""
    found = {kind: count for kind, count in totals.items() if count}
    if found.keys() - set(doubted):
        return Expected(Verdict.DIFFER, found)
    return Expected(Verdict.UNKNOWN if found or unknown else Verdict.AGREE, found)


# -- jobs over one topic ---------------------------------------------------------------------------


def transactions(audit: Audit, history: History) -> None:
    answer = audit.run("transactions", topics=[history.seed.topic])
    stable = Counter(each.partition for each in history.stable())
    visible = Counter(each.partition for each in history.visible())
    found = {
        each.partition: (each.rows_committed, each.rows_uncommitted, each.markers)
        for each in answer.outcome.partitions
    }
    assert found == {
        partition: (visible[partition], stable[partition], part.length - stable[partition])
        for partition, part in history.ranges.items()
    }
    aborted = stable.total() - visible.total()
    verdict = Verdict.UNKNOWN if history.open or not history.length else Verdict.AGREE
    check(answer, Expected(verdict, {"aborted": aborted} if aborted else {}))


def duplicates(audit: Audit, history: History) -> None:
    answer = audit.run("duplicates", topics=[history.seed.topic])
    everywhere, visible = (
        {row for row, count in Counter(each.row for each in records).items() if count > 1}
        for records in (history.stable(), history.visible())
    )
    totals = {"duplicate": len(visible), "benign-duplicate": len(everywhere - visible)}
    expected = judged(totals, doubted=["benign-duplicate"])
    if expected.verdict is Verdict.UNKNOWN:
        expected = Expected(Verdict.AGREE, expected.totals)
    if expected.verdict is Verdict.AGREE and (history.open or not history.length):
        expected = Expected(Verdict.UNKNOWN, expected.totals)
    check(answer, expected)


def sequence(audit: Audit, history: History) -> None:
    answer = audit.run("sequence", topics=[history.seed.topic], sequence="json:n", group="json:s")
    numbers: dict[str, list[int]] = defaultdict(list)
    lanes: dict[tuple[str, int], list[int]] = defaultdict(list)
    highest: dict[tuple[str, int], int] = {}
    seen: set[tuple[str, int, int]] = set()
    late: set[frozenset[tuple[int, int]]] = set()
    wrong = 0
    for each in history.visible():
        group, number = source_of(each), number_of(each)
        if group is None or number is None:
            wrong += 1
            continue
        numbers[group].append(number)
        at = (group, each.partition)
        lanes[at].append(number)
        if (*at, number) not in seen and number < highest.get(at, number):
            late.add(frozenset({(each.partition, each.offset)}))
        seen.add((*at, number))
        highest[at] = max(highest.get(at, number), number)
    lost, perhaps = missing_of(history, numbers, lanes)
    totals = {
        "missing": lost,
        "perhaps-missing": perhaps,
        "repeated": sum(len(n) - len(set(n)) for n in numbers.values()),
        "disordered": len(late),
    }
    doubted = ["perhaps-missing"]
    unknown = not history.length or wrong > 0 or history.expired or history.open
    expected = judged(totals, doubted=doubted, unknown=unknown)
    strange = {"unparsable": wrong} if wrong else {}
    check(answer, Expected(expected.verdict, expected.totals | strange))
    assert answer.places("disorder") == late
    counted = {(group, n): count for group, own in numbers.items() for n, count in twice(own)}
    assert {(each.group, each.first): each.count for each in answer.of("repeated")} == counted


def twice(numbers: Sequence[int]) -> list[tuple[int, int]]:
    return [(number, count) for number, count in Counter(numbers).items() if count > 1]


def missing_of(
    history: History, numbers: dict[str, list[int]], lanes: dict[tuple[str, int], list[int]]
) -> tuple[int, int]:
    """Return the count of lost numbers, and of those that may be outside of the range.

    A number is lost if it lies between the ends of all cut partitions of its source. Partitions
    without a number hide any numbers, but at most as many as their offsets.
    """
    late = {number for number, part in history.ranges.items() if part.earliest > 0}
    early = {number for number, part in history.ranges.items() if part.open_tail > 0}
    read = {partition for _, partition in lanes}
    hidden = sum(
        part.start + max(part.high_watermark - part.end, 0)
        for number, part in history.ranges.items()
        if number not in read
    )
    lost = perhaps = 0
    for group, present in numbers.items():
        there = set(present)
        mine = {partition: lane for (name, partition), lane in lanes.items() if name == group}
        low = max((bucket_of(mine[p], 0, min) for p in late & mine.keys()), default=None)
        high = min((bucket_of(mine[p], -1, max) for p in early & mine.keys()), default=None)
        # Numbers have any size: count gaps, not single numbers.
        ordered = sorted(there)
        for before, after in itertools.pairwise(ordered):
            begin = before + 1 if low is None else max(before + 1, low + 1)
            end = after - 1 if high is None else min(after - 1, high - 1)
            crossed = low is not None and high is not None and low >= high
            known = 0 if crossed else max(end - begin + 1, 0)
            lost += known
            perhaps += after - before - 1 - known
    more = min(lost, hidden)
    return lost - more, perhaps + more


def bucket_of(lane: list[int], at: int, choose: Callable[[Iterable[int]], int]) -> int:
    """Return the number that `choose` takes from the 64 numbers around the record `at`."""
    return choose(number for number in lane if number >> 6 == lane[at] >> 6)


def member(each: Written, name: str) -> object:
    try:
        document = json.loads(each.record.value or b"", parse_int=str, parse_float=str)
    except ValueError:
        return None
    return document.get(name) if isinstance(document, dict) else None


def source_of(each: Written) -> str | None:
    source = member(each, "s")
    return source if isinstance(source, str) else None


def number_of(each: Written) -> int | None:
    text = member(each, "n")
    if not isinstance(text, str) or not re.fullmatch(r"\s*[+-]?\d+(\.0*)?\s*", text):
        return None
    number = int(text.strip().partition(".")[0])
    return number if -MOST <= number <= MOST else None


# -- jobs over two sides ---------------------------------------------------------------------------

Row = object


def difference(
    left: Sequence[Row], left_tail: Sequence[Row], right: Sequence[Row], right_tail: Sequence[Row]
) -> dict[str, int]:
    """Return the difference that no choice among the rows of the tails removes."""
    certain, possible, there, unsettled = map(Counter, (left, left_tail, right, right_tail))
    totals = {"missing": 0, "extra": 0, "repeated": 0}
    for row in {*certain, *there}:
        totals["missing"] += max(certain[row] - there[row] - unsettled[row], 0)
        known = certain[row] + possible[row]
        totals["repeated" if known else "extra"] += max(there[row] - known, 0)
    return totals


def mutated(randomness: random.Random, records: Sequence[Record]) -> list[Record]:
    """Return the records unchanged, or with some lost, repeated and added."""
    kept = list(records)
    if randomness.random() < 0.4:
        return kept
    for _ in range(randomness.randint(1, 4)):
        at = randomness.randrange(len(kept) + 1)
        match randomness.choice(("lose", "repeat", "add")):
            case "lose" if at < len(kept):
                del kept[at]
            case "repeat" if at < len(kept):
                kept.insert(randomness.randrange(len(kept)), kept[at])
            case _:
                kept.insert(at, Record(b"foreign %d" % at, key=b"k1"))
    return kept


def moved(randomness: random.Random, records: Sequence[Record], partitions: int) -> list[Record]:
    return [
        Record(each.value, key=each.key, partition=randomness.randrange(partitions))
        for each in records
    ]


def topic_topic(audit: Audit, left: History, randomness: random.Random) -> None:
    partitions = partition_count(randomness)
    with histories(audit.bootstrap, partitions) as [right]:
        copies = mutated(randomness, [each.record for each in left.visible()])
        fill(right, randomness, moved(randomness, copies, partitions))
        if randomness.random() < 0.1:
            right.expire(randomness)
        answer = audit.run("topic-topic", left=left.side, right=right.side)
        totals = difference(
            *([each.row for each in rows] for rows in (left.visible(), left.beyond())),
            *([each.row for each in rows] for rows in (right.visible(), right.beyond())),
        )
        doubted = {"extra", "repeated"} if left.expired else set()
        doubted |= {"missing"} if right.expired else set()
        nothing = not left.visible() and not right.visible()
        unknown = nothing or left.open or right.open or left.expired or right.expired
        check(answer, judged(totals, doubted=doubted, unknown=unknown))


def topic_sink(audit: Audit, left: History, randomness: random.Random) -> None:
    """Compare with a file sink that is ahead of its committed offsets and is writing a line."""
    until = {
        partition: randomness.randint(part.earliest, part.last_stable)
        for partition, part in left.ranges.items()
        if randomness.random() < 0.9
    }
    certain, beyond = left.visible(until), left.beyond(until)
    ahead = [each for each in beyond if randomness.random() < 0.5]
    written = mutated(randomness, [each.record for each in (*certain, *ahead)])
    content = b"".join(b"null\n" if r.value is None else r.value + b"\n" for r in written)
    half = randomness.choice((b"", b"", b"half of a li"))
    file = audit.directory / "sink.txt"
    file.write_bytes(content + half)
    answer = audit.run(
        "topic-sink",
        left=left.side,
        right={"kind": "files", "paths": [str(file)], "format": "text"},
        until={left.seed.topic: until},
    )
    lines = lines_of(content)
    totals = difference(
        *([line for each in rows for line in lines_of(text(each))] for rows in (certain, beyond)),
        lines,
        [half] if half else [],
    )
    doubted = {"extra", "repeated"} if left.expired else set()
    # An open transaction is beyond the sink's bounds, so it does not make the answer unknown.
    unknown = (not certain and not lines) or left.expired
    check(answer, judged(totals, doubted=doubted, unknown=unknown))
    counts = answer.outcome.counts
    assert (counts["buckets_differing"] > 0) == any(totals.values())
    if answer.verdict is Verdict.AGREE and counts["rows_right"] != counts["rows_left"]:
        assert answer.of("under-way")


def text(each: Written) -> bytes:
    return (b"null" if each.record.value is None else each.record.value) + b"\n"


def lines_of(content: bytes) -> list[bytes]:
    return re.split(rb"\r\n|\r|\n", content)[:-1]


def source_topic(audit: Audit, right: History, randomness: random.Random) -> None:
    """Compare a file with its topic, up to a committed offset; the topic has some further lines."""
    sent = [each.record.value for each in right.visible() if each.record.value is not None]
    lines = [value for value in sent if randomness.random() < 0.97]
    lines += [b"line %d" % number for number in range(randomness.choice((0, 0, 0, 1)))]
    committed = randomness.randint(0, len(lines))
    head = b"".join(line + b"\n" for line in lines[:committed])
    file = audit.directory / "source.txt"
    file.write_bytes(head + b"".join(line + b"\n" for line in lines[committed:]) + b"half of a")
    answer = audit.run(
        "source-topic",
        left={"kind": "files", "paths": [str(file)], "format": "text", "limit_bytes": len(head)},
        right=right.side,
    )
    totals = difference(
        lines[:committed],
        [*lines[committed:], b"half of a"],
        [each.record.value for each in right.visible()],
        [each.record.value for each in right.beyond()],
    )
    doubted = {"missing"} if right.expired else set()
    nothing = not committed and not right.visible()
    unknown = nothing or right.open or right.expired
    check(answer, judged(totals, doubted=doubted, unknown=unknown))


def upsert(audit: Audit, randomness: random.Random) -> None:
    """Compare the last versions of keys, which keep their partition."""
    sizes = partition_count(randomness), partition_count(randomness)
    with histories(audit.bootstrap, *sizes) as [left, right]:
        records = random_records(randomness, sizes[0], keyed=True)
        fill(left, randomness, records)
        copies = mutated(randomness, [each.record for each in left.visible()])
        fill(right, randomness, [Record(each.value, key=each.key, partition=0) for each in copies])
        answer = audit.run("topic-topic", left=left.side, right=right.side, mode="upsert")
        before, after = possible_versions(left), possible_versions(right)
        totals: Counter[str] = Counter()
        for key in {*before, *after}:
            old, new = before.get(key, [None]), after.get(key, [None])
            if old[0] == new[0] or set(old) & set(new):
                continue
            totals["missing" if new[0] is None else "extra" if old[0] is None else "different"] += 1
        alive = any(each[0] is not None for each in (*before.values(), *after.values()))
        check(answer, judged(dict(totals), unknown=not alive or left.open or right.open))


def possible_versions(history: History) -> dict[bytes | None, list[bytes | None]]:
    """Return by key the last version, then others that may count as well; None: removed."""
    last: dict[bytes | None, tuple[int, int, bytes | None]] = {}
    for each in history.visible():
        key, position = each.record.key, (each.offset, each.partition)
        if key not in last or last[key][:2] < position:
            last[key] = (*position, each.record.value)
    versions = {key: [found[2]] for key, found in last.items()}
    for each in history.beyond():
        versions.setdefault(each.record.key, [None]).append(each.record.value)
    return versions


def completeness(audit: Audit, randomness: random.Random) -> None:
    """Compare a topic and a file by event time, in hours that have ended and one that has not."""
    now = int(time.time() * 1000)
    hours = [now - 5 * HOUR_MS, now - 3 * HOUR_MS, now + HOUR_MS // 2]
    times = [
        randomness.choice(hours[: randomness.randint(1, 3)])
        for _ in range(randomness.choice((0, 1, 5, 40)))
    ]
    kept = [at for at in times if randomness.random() < randomness.choice((1.0, 1.0, 0.9))]
    with histories(audit.bootstrap, partition_count(randomness)) as [first]:
        partitions = len(first.ranges) or 1
        fill(
            first,
            randomness,
            [
                Record(b"x", partition=randomness.randrange(partitions), timestamp_ms=at)
                for at in times
            ],
        )
        visible = [each.record.timestamp_ms for each in first.visible()]
        file = audit.directory / "tier.jsonl"
        strange = [10**30, "x", None, -(2**63)][: randomness.randint(0, 4)]
        file.write_text("".join(json.dumps({"at": at}) + "\n" for at in (*kept, *strange)))
        side = {"kind": "files", "paths": [str(file)], "format": "json"}
        tiers = [
            {"name": "topic", "side": first.side},
            {"name": "lake", "side": side, "event_time": "json:at"},
        ]
        answer = audit.run("completeness", tiers=tiers, bucket_minutes=60)
    spans = [Counter(at // HOUR_MS for at in tier) for tier in (visible, kept)]
    differing = {span for span in {*spans[0], *spans[1]} if spans[0][span] != spans[1][span]}
    ended = {span for span in {*spans[0], *spans[1]} if (span + 1) * HOUR_MS <= now}
    totals = {"difference": len(differing), "unparsable": len(strange)}
    found = {kind: count for kind, count in totals.items() if count}
    # Rows that an open transaction holds back may explain why the topic has fewer.
    certain = {span for span in differing if not first.open or spans[0][span] > spans[1][span]}
    verdict = Verdict.AGREE if ended and not strange and not first.open else Verdict.UNKNOWN
    check(answer, Expected(Verdict.DIFFER if certain & ended else verdict, found))


# -- histories with known faults -------------------------------------------------------------------


def with_faults(randomness: random.Random, source: str, partitions: int) -> list[Record]:
    """Return the numbers of a source, some dropped, repeated, swapped, delayed or moved."""
    home, start = randomness.randrange(partitions), randomness.randint(-70, 70)
    spread = randomness.random() < 0.2
    told = [
        (number, randomness.randrange(partitions) if spread else home)
        for number in range(start, start + randomness.randint(2, 90))
    ]
    for fault in randomness.choices(FAULTS, k=randomness.randint(0, 3)):
        at = randomness.randrange(len(told))
        later = randomness.randint(at, len(told) - 1)
        match fault:
            case "drop" if len(told) > 1:
                del told[at]
            case "repeat":
                told.insert(later + 1, told[at])
            case "swap":
                told[at], told[at - 1] = told[at - 1], told[at]
            case "delay":
                told.insert(later, told.pop(at))
            case "move":
                told[at] = (told[at][0], randomness.randrange(partitions))
    return [
        Record(b'{"s":"%s","n":%d}' % (source.encode(), n), key=source.encode(), partition=at)
        for n, at in told
    ]


FAULTS = ("drop", "repeat", "swap", "delay", "move")


def by_turns(randomness: random.Random, sources: Sequence[Sequence[Record]]) -> list[Record]:
    """Return the records of all sources in random turns, each source in its order."""
    turns = [number for number, records in enumerate(sources) for _ in records]
    randomness.shuffle(turns)
    rest = [iter(records) for records in sources]
    return [next(rest[number]) for number in turns]


@pytest.mark.parametrize("opened", chosen([True], long=[False]), ids=str)
def test_known_faults_are_found_as_the_reference_finds_them(audit: Audit, opened: bool) -> None:
    """All faults of many sources in one topic are found, also with aborted transactions."""
    sources = [with_faults(random.Random(seed), f"seed-{seed}", 3) for seed in FAULT_SEEDS]
    randomness = random.Random(len(sources))
    with histories(audit.bootstrap, 3) as [history]:
        rest = by_turns(randomness, sources)
        for _ in range(5):
            batch, rest = rest[: (cut := len(rest) // 3 or len(rest))], rest[cut:]
            if aborted := batch[: randomness.randint(0, 5)]:
                history.write(aborted, ABORTED)
            history.write(batch, COMMITTED)
        if opened:
            history.write([*rest[:1], *sources[0][:1]], OPEN)
            history.write(rest[1:], COMMITTED)
        else:
            history.write(rest, COMMITTED)
        history.settle()
        sequence(audit, history)
        duplicates(audit, history)


# -- the tests -------------------------------------------------------------------------------------

Scan = Callable[[Audit, History], None]
Compare = Callable[[Audit, History, random.Random], None]
SCANS: tuple[Scan, ...] = (transactions, duplicates, sequence)
SIDES: tuple[Compare, ...] = (topic_topic, topic_sink, source_topic)
OTHERS: tuple[Callable[[Audit, random.Random], None], ...] = (upsert, completeness)


@pytest.mark.parametrize("seed", SEEDS)
def test_jobs_answer_as_the_reference_does(audit: Audit, tmp_path: Path, seed: int) -> None:
    """Every job answers as the reference does on topics with all kinds of records and faults."""
    randomness = random.Random(seed)
    if seed % 5 == 4:
        OTHERS[seed // 5 % 2](audit, randomness)
        return
    partitions = partition_count(randomness)
    with histories(audit.bootstrap, partitions) as [history]:
        fill(history, randomness, random_records(randomness, partitions, keyed=False))
        if randomness.random() < 0.15:
            history.expire(randomness)
        SCANS[seed % 3](audit, history)
        SIDES[seed // 3 % 3](audit, history, randomness)
