"""Dead letters on a broker: grouped by cause, and replayed exactly once despite kills."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Message, Producer
from confluent_kafka import TopicPartition as KafkaTopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from pyconnect_cli.acls.plan.grants import Grant
from pyconnect_cli.errors import Conflict
from pyconnect_cli.kafka.model import TopicPartition, TopicRecord
from pyconnect_cli.kafka.writer import ReplaySender
from pyconnect_clients.acls.model import GrantOperation, Pattern, Resource, ResourceType
from tests.support.commands import killed_command
from tests.support.commands.killed_command import KILLED_AT
from tests.support.commands.processes import python_environment, run_python
from tests.support.commands.pyconnect_command import Pyconnect
from tests.support.eventually import eventually
from tests.support.fakes.connect_server import FakeConnect, FakeConnector, serve
from tests.support.names import unique_name
from tests.support.servers.kafka import SharedBroker
from tests.support.servers.secured import SecuredBroker, sasl
from tests.support.servers.topics import committed_offset, create_topics, read_topic

pytestmark = pytest.mark.kafka

RUN_S = 120
CAUSES = (
    ("VALUE_CONVERTER", "DataException", "cannot read byte {n} of 'x{n}'", "JsonConverter"),
    ("KEY_CONVERTER", "DataException", "cannot read byte {n} of 'x{n}'", "JsonConverter"),
    ("TRANSFORMATION", "DataException", "field 'f{n}' of record {n} is missing", "Cast$Value"),
    ("TRANSFORMATION", "DataException", "field 'f{n}' of record {n} is missing", "Flatten$Value"),
    ("TASK_PUT", "RetriableException", "row {n} was refused", "SinkTask"),
)
PACKAGES = {"exception.class.name": "org.apache.kafka.connect.errors.", "class.name": "org.x."}


class Letters:
    """A dead letter queue with two partitions, and the topic of its letters."""

    def __init__(self, bootstrap_servers: str, directory: Path) -> None:
        self.bootstrap_servers = bootstrap_servers
        self.queue, self.origin = unique_name("dead"), unique_name("orders")
        create_topics(bootstrap_servers, [self.queue], partitions=2)
        create_topics(bootstrap_servers, [self.origin], partitions=3)
        self.command = Pyconnect(directory, "http://127.0.0.1:1", bootstrap_servers)
        self.now_ms = round(time.time() * 1000)

    def write(self, count: int, *, connector: str = "sink", first: int = 0, **kept: Any) -> None:
        """Write `count` letters with all causes in turn; their values are their numbers."""
        producer = Producer({"bootstrap.servers": self.bootstrap_servers})
        for number in range(first, first + count):
            stage, exception, message, processor = CAUSES[number % len(CAUSES)]
            context = {
                "topic": self.origin,
                "partition": str(number % 3),
                "offset": str(number),
                "connector.name": connector,
                "task.id": "0",
                "stage": stage,
                "class.name": PACKAGES["class.name"] + processor,
                "exception.class.name": PACKAGES["exception.class.name"] + exception,
                "exception.message": message.format(n=number),
                "exception.stacktrace": f"x: y\n\tat z({number})\nCaused by: java.io.EOFException",
            }
            headers: list[tuple[str, str | bytes | None]] = [("h", str(number)), ("h", b"\xff")]
            headers += [(f"__connect.errors.{name}", value) for name, value in context.items()]
            while True:
                try:
                    producer.produce(
                        self.queue,
                        kept.get("value", str(number)),
                        f"key {number}",
                        number % 2,
                        timestamp=self.now_ms + number,
                        headers=headers,
                    )
                    break
                except BufferError:
                    producer.poll(1)
        assert producer.flush(RUN_S) == 0

    def document(self, *arguments: str) -> Any:
        """Return the JSON that a command prints."""
        done = self.command(*arguments, "-o", "json")
        assert done.code == 0, done.err
        return json.loads(done.out)

    def groups(self) -> list[Any]:
        return list(self.document("connectors", "dlq", "--topic", self.queue))

    def replay(self, *arguments: str) -> Any:
        return self.document("dlq", "replay", "--topic", self.queue, "--yes", *arguments)

    def arrived(self, topic: str | None = None) -> list[Message]:
        return read_topic(self.bootstrap_servers, topic or self.origin, committed=True)

    def numbers(self, topic: str | None = None) -> list[int]:
        """Return the numbers of the letters in a topic, sorted."""
        return sorted(int(message.value() or b"-1") for message in self.arrived(topic))

    def killed(self, point: str, *arguments: str) -> None:
        """Run a command that kills itself at a point of its journal."""
        done = run_python(
            ["-m", killed_command.__name__, *arguments],
            {**os.environ, **self.command.environ, KILLED_AT: point},
            RUN_S,
        )
        assert done.returncode == -signal.SIGKILL, done.stdout + done.stderr

    def transactions(self) -> int:
        """Return the number of transactions in the journal; the last may not be committed."""
        state = Path(self.command.environ["XDG_STATE_HOME"])
        texts = [path.read_text() for path in state.glob("pyconnect/replays/*.jsonl")]
        return sum(text.count('"entry": "ReplayBatch"') for text in texts)

    def ended(
        self, arguments: Sequence[str], transactions: int, pause_s: float, number: int = 0
    ) -> int | None:
        """Run a command, signal it after `transactions` more, and kill it if it does not end.

        Return the exit code, None if it was killed.
        """
        end = self.transactions() + transactions
        process = subprocess.Popen(
            [sys.executable, "-m", "pyconnect_cli", *arguments],
            env=python_environment({**os.environ, **self.command.environ}),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            eventually(lambda: self.transactions() >= end or process.poll() is not None, RUN_S)
            process.send_signal(number)
            return process.wait(pause_s)
        except subprocess.TimeoutExpired:
            return None
        finally:
            process.kill()
            process.wait()

    def only_replay(self) -> Any:
        (found,) = self.document("dlq", "history", "--topic", self.queue)
        return found


@pytest.fixture
def letters(kafka_broker: SharedBroker, tmp_path: Path) -> Letters:
    return Letters(kafka_broker.bootstrap_servers, tmp_path)


def check_kept(letters: Letters, messages: Sequence[Message]) -> None:
    """Check that partition, key, headers and timestamp are those of the original record."""
    for message in messages:
        number = int(message.value() or b"-1")
        assert message.partition() == number % 3
        assert message.key() == f"key {number}".encode()
        assert message.headers() == [("h", str(number).encode()), ("h", b"\xff")]
        assert message.timestamp()[1] == letters.now_ms + number


def test_letters_are_grouped_by_cause_with_an_example(letters: Letters) -> None:
    """A group has a stage, an exception, a class, a topic and a message without its numbers."""
    letters.write(53)
    found = letters.groups()
    assert [group["count"] for group in found] == [11, 11, 11, 10, 10]
    causes = {(group["stage"], group["processor"]): group for group in found}
    cast = causes["TRANSFORMATION", "org.x.Cast$Value"]
    assert cast["message"] == "field '…' of record N is missing"
    assert cast["exception"] == "org.apache.kafka.connect.errors.DataException"
    assert (cast["root"], cast["topic"]) == ("java.io.EOFException", letters.origin)
    example = cast["example"]
    assert (example["topic"], example["partition"], example["offset"]) == (letters.queue, 0, 1)
    assert example["error"]["exception.message"] == "field 'f2' of record 2 is missing"
    assert sum(place["count"] for group in found for place in group["places"]) == 53


def test_a_replay_survives_kills_at_every_point(letters: Letters) -> None:
    """Each letter of the chosen groups arrives once, as it was before it failed."""
    letters.write(5_000)
    kept_back = "TASK_PUT"
    chosen = [group["group"] for group in letters.groups() if group["stage"] != kept_back]
    options = [word for name in chosen for word in ("-g", name)]
    plan = ("dlq", "replay", "--topic", letters.queue, "--yes", *options)
    letters.killed("ReplayBatch before 1", *plan)
    identity = letters.only_replay()["replay"]
    resume = ("dlq", "replay", "--resume", identity, "--yes")
    refused = letters.command(*plan)
    assert (refused.code, identity in refused.err) == (9, True), refused.err
    for point in ("ReplayBatch after 1", "ReplayBatch after 2"):
        letters.killed(point, *resume)
    letters.killed("ReplayEnded before 1", *resume)
    done = letters.command(*resume)
    assert done.code == 0, done.err
    expected = [number for number in range(5_000) if number % 5 != 4]
    arrived = letters.arrived()
    assert sorted(int(message.value() or b"-1") for message in arrived) == expected
    check_kept(letters, arrived)
    history = letters.only_replay()
    assert (history["state"], history["sent"]) == ("finished", 4_000)
    assert sum(place["count"] for place in history["places"]) == 4_000
    assert letters.command(*resume).code == 0
    assert {group["stage"] for group in letters.groups() if group["left"]} == {kept_back}
    assert len(letters.numbers()) == 4_000


def test_letters_are_replayed_once_until_the_replay_is_undone(letters: Letters) -> None:
    """A later replay sends newer letters only; after an undo the letters go out again."""
    letters.write(20)
    assert letters.replay("--all-groups", "--limit", "7")["sent"] == 7
    assert letters.replay("--all-groups")["sent"] == 13
    letters.write(10, first=20)
    last = letters.replay("--all-groups")
    assert letters.numbers() == list(range(30))
    nothing = letters.command("dlq", "replay", "--topic", letters.queue, "--all-groups", "--yes")
    assert (nothing.code, "no letter is left" in nothing.err) == (0, True), nothing.err
    places = letters.document("dlq", "undo", last["replay"], "--yes")
    assert sum(place["count"] for place in places) == 10
    offsets = {place["partition"]: place["first"] for place in places}
    assert set(offsets) == {0, 1, 2}
    assert letters.document("dlq", "history")[0]["state"] == "undone"
    assert letters.replay("--all-groups")["sent"] == 10
    assert letters.numbers() == sorted([*range(30), *range(20, 30)])
    late = letters.command("dlq", "replay", "--resume", last["replay"], "--yes")
    assert (late.code, "a later replay" in late.err) == (6, True), late.err


def test_an_undone_replay_can_be_resumed(letters: Letters) -> None:
    """The resumed replay sends the letters of its plan again from the beginning."""
    letters.write(6)
    first = letters.replay("--all-groups")["replay"]
    assert letters.command("dlq", "undo", first, "--yes").code == 0
    assert letters.command("dlq", "undo", first, "--yes").code == 0
    assert letters.document("dlq", "replay", "--resume", first, "--yes")["sent"] == 6
    assert letters.numbers() == sorted([*range(6), *range(6)])
    assert letters.only_replay()["sent"] == 6


def test_letters_that_retention_removes_meanwhile_are_a_conflict(letters: Letters) -> None:
    """A resumed replay reports the letters that it cannot send; a new plan warns about them."""
    letters.write(40)
    plan = ("dlq", "replay", "--topic", letters.queue, "--all-groups", "--yes")
    letters.killed("ReplayBatch before 1", *plan)
    admin = AdminClient({"bootstrap.servers": letters.bootstrap_servers})
    (removal,) = admin.delete_records([KafkaTopicPartition(letters.queue, 0, 5)]).values()
    removal.result(RUN_S)
    identity = letters.only_replay()["replay"]
    done = letters.command("dlq", "replay", "--resume", identity, "--yes")
    assert done.code == 6
    assert "5 of 40 planned letters are no longer in" in done.err
    assert len(letters.numbers()) == 35
    history = letters.only_replay()
    assert (history["state"], history["missing"], history["sent"]) == ("incomplete", 5, 35)
    listed = letters.command("connectors", "dlq", "--topic", letters.queue)
    assert "begins at offset 5: retention has removed 5 offsets" in listed.err
    assert letters.command("dlq", "replay", "--resume", identity, "--yes").code == 6


def test_forgotten_offsets_are_a_conflict(letters: Letters) -> None:
    """A replay without its offsets is a conflict: what it has sent is unknown."""
    letters.write(40)
    plan = ("dlq", "replay", "--topic", letters.queue, "--all-groups", "--yes")
    letters.killed("ReplayEnded before 1", *plan)
    found = letters.only_replay()
    admin = AdminClient({"bootstrap.servers": letters.bootstrap_servers})
    admin.delete_consumer_groups([f"pyconnect-replay-{found['replay']}"])[
        f"pyconnect-replay-{found['replay']}"
    ].result(RUN_S)
    done = letters.command("dlq", "replay", "--resume", found["replay"], "--yes")
    assert (done.code, "are not those of the journal" in done.err) == (6, True), done.err
    assert letters.numbers() == list(range(40))
    undone = letters.document("dlq", "undo", found["replay"], "--yes")
    assert sum(place["count"] for place in undone) == 40


def test_values_are_mended_and_other_bytes_stay(letters: Letters) -> None:
    """Mended values keep their other bytes, and keys decide about missing partitions."""
    letters.write(5, value=b'{"n": 1.50, "s": "\\u00e9"}')
    letters.write(5, first=5, value=b'{ "n": 2 }')
    target = unique_name("again")
    create_topics(letters.bootstrap_servers, [target], partitions=2)
    program = "if .n == 2 then .n = 3 else . end"
    done = letters.replay("--all-groups", "--to-topic", target, "--mend", program)
    assert done["sent"] == 10
    arrived = letters.arrived(target)
    assert Counter(message.value() for message in arrived) == {
        b'{"n": 1.50, "s": "\\u00e9"}': 5,
        b'{"n":3}': 5,
    }
    for message in arrived:
        original = int(bytes(message.key() or b"").split()[1]) % 3
        assert original == 2 or message.partition() == original
    assert letters.arrived() == []


def test_a_value_that_cannot_be_mended_stops_the_plan(letters: Letters) -> None:
    """A value that cannot be mended stops the plan with the letter's name."""
    letters.write(5, value=b"{bad")
    plan = ("dlq", "replay", "--topic", letters.queue, "--all-groups", "--yes", "--mend", ".")
    done = letters.command(*plan)
    assert done.code == 2
    assert f"{letters.queue}-0@0" in done.err or f"{letters.queue}-1@0" in done.err
    assert letters.arrived() == []
    assert letters.document("dlq", "history") == []


def test_a_dry_run_shows_the_plan_and_changes_nothing(letters: Letters) -> None:
    """A dry run shows groups, and offsets and counts for each partition of the queue."""
    letters.write(20)
    (first, *_) = letters.groups()
    plan = ("dlq", "replay", "--topic", letters.queue, "-g", first["group"], "--dry-run")
    document = letters.document(*plan)
    spans = [(span["partition"], span["count"]) for span in document["spans"]]
    assert spans == [(0, 2), (1, 2)]
    assert document["targets"] == [letters.origin]
    assert letters.command(*plan, "--exit-code").code == 1
    asked = letters.command("dlq", "replay", "--topic", letters.queue, "--all-groups")
    assert (asked.code, "a confirmation is needed" in asked.err) == (9, True), asked.err
    assert letters.arrived() == []
    unknown = letters.command("dlq", "replay", "--topic", letters.queue, "-g", "00000000", "-y")
    assert (unknown.code, "no dead letter belongs to" in unknown.err) == (3, True), unknown.err


def test_a_replay_sends_at_its_rate(letters: Letters) -> None:
    """With --rate a replay sends at most so many letters a second."""
    letters.write(30)
    began_s = time.monotonic()
    assert letters.replay("--all-groups", "--rate", "20")["sent"] == 30
    assert time.monotonic() - began_s >= 1.5


def test_an_interrupted_replay_says_how_it_is_resumed(letters: Letters) -> None:
    """A signal ends the replay with exit 130, and --timeout with exit 124."""
    letters.write(20)
    plan = ["dlq", "replay", "--topic", letters.queue, "--all-groups", "--yes", "--rate", "2"]
    assert letters.ended(plan, 1, RUN_S, signal.SIGINT) == 130
    identity = letters.only_replay()["replay"]
    resume = ("dlq", "replay", "--resume", identity, "--yes")
    late = letters.command(*resume, "--rate", "2", "--timeout", "4s")
    assert late.code == 124, late.err
    assert "of 20 letters are sent" in late.err
    assert f"dlq replay --resume {identity}" in late.err
    assert letters.document(*resume)["sent"] == 20
    assert letters.numbers() == list(range(20))


def test_a_connectors_letters_are_its_own(letters: Letters) -> None:
    """Letters of other connectors in the same topic are neither listed nor replayed."""
    letters.write(10)
    letters.write(10, connector="other", first=10)
    other = unique_name("again")
    create_topics(letters.bootstrap_servers, [other])
    config = {"errors.deadletterqueue.topic.name": letters.queue, "topics": letters.origin}
    connect = FakeConnect(connectors={"sink": FakeConnector(config={**config}, type="sink")})
    with serve(connect) as url:
        letters.command.environ["PYCONNECT_URL"] = url
        listed = letters.command("connectors", "dlq", "sink")
        done = letters.command(
            "dlq", "replay", "sink", "--all-groups", "--to-topic", other, "--yes"
        )
    assert "left out: 10 records of other connectors" in listed.err
    assert done.code == 0, done.err
    assert f"sink does not read {other}" in done.err
    assert "sink may get letters twice if the replay is killed: it reads uncommitted" in done.err
    assert letters.numbers(other) == list(range(10))


def test_a_process_that_was_taken_over_commits_nothing(letters: Letters) -> None:
    """A replay that another process has taken over commits neither records nor offsets."""
    settings = {"bootstrap.servers": letters.bootstrap_servers}
    places, name = [TopicPartition(letters.queue, 0)], unique_name("replay")
    at: dict[str, Any] = {"topic": letters.origin, "partition": 0, "offset": 7}
    record = TopicRecord(**at, timestamp_ms=letters.now_ms, key=None, value=b"1")
    first, second = (ReplaySender(settings, name, places) for _ in range(2))

    def overtaken() -> None:
        with first.transaction([8]):
            first.write([record])
            assert second.take_over() == [None]

    with closing(first), closing(second):
        assert first.take_over() == [None]
        with pytest.raises(Conflict, match="taken"):
            overtaken()
        with second.transaction([8]):
            assert second.write([record])[0][0] == TopicPartition(letters.origin, 0)
    assert committed_offset(letters.bootstrap_servers, name, letters.queue) == 8
    assert letters.numbers() == [1]


def test_a_letter_that_its_target_refuses_is_named(letters: Letters) -> None:
    """The error names a letter that its target refuses, and the replay can be undone."""
    letters.write(5, value=b"x" * 10_000)
    target = unique_name("small")
    admin = AdminClient({"bootstrap.servers": letters.bootstrap_servers})
    small = NewTopic(target, 1, 1, config={"max.message.bytes": "1000"})
    admin.create_topics([small])[target].result(RUN_S)
    plan = ("dlq", "replay", "--topic", letters.queue, "--all-groups", "--to-topic", target)
    done = letters.command(*plan, "--yes")
    assert done.code == 10
    assert f"of its queue to {target}: Broker: Message size too large" in done.err
    found = letters.only_replay()
    assert (found["state"], found["sent"]) == ("unfinished", 0)
    assert letters.document("dlq", "undo", found["replay"], "--yes") == []
    assert letters.arrived(target) == []


def test_the_documented_grants_are_enough(secured: SecuredBroker, tmp_path: Path) -> None:
    """The documented grants allow replay and undo; without one, the error names the missing id."""
    letters, user = Letters(secured.plaintext, tmp_path), secured.user()
    letters.write(6)
    file = tmp_path / "client.properties"
    file.write_text("".join(f"{key}={value}\n" for key, value in sasl(user).items()))
    letters.command.environ |= {
        "PYCONNECT_KAFKA_BOOTSTRAP": secured.sasl,
        "PYCONNECT_KAFKA_PROPERTIES": str(file),
    }

    def grant(kind: ResourceType, name: str, pattern: Pattern, operation: GrantOperation) -> None:
        secured.grant([Grant("", f"User:{user}", Resource(kind, name), pattern, operation)])

    grant(ResourceType.TOPIC, letters.queue, Pattern.LITERAL, GrantOperation.READ)
    grant(ResourceType.TOPIC, letters.origin, Pattern.LITERAL, GrantOperation.WRITE)
    grant(ResourceType.GROUP, "pyconnect-replay-", Pattern.PREFIXED, GrantOperation.READ)
    plan = ("dlq", "replay", "--topic", letters.queue, "--all-groups", "--yes")
    denied = letters.command(*plan)
    assert (denied.code, "begin transactions of pyconnect-replay-" in denied.err) == (5, True)
    identity = letters.only_replay()["replay"]
    for operation in (GrantOperation.WRITE, GrantOperation.DESCRIBE):
        grant(ResourceType.TRANSACTIONAL_ID, "pyconnect-replay-", Pattern.PREFIXED, operation)
    resume = ("dlq", "replay", "--resume", identity, "--yes")
    assert letters.document(*resume)["sent"] == 6
    assert letters.command("dlq", "undo", identity, "--yes").code == 0
    assert letters.document(*resume)["sent"] == 6
    assert letters.numbers() == sorted([*range(6), *range(6)])


def test_letters_without_headers_need_a_topic(letters: Letters) -> None:
    """Letters without headers need --to-topic, because their origin is unknown."""
    producer = Producer({"bootstrap.servers": letters.bootstrap_servers})
    producer.produce(letters.queue, "7", "key", headers=[("h", None)])
    assert producer.flush(RUN_S) == 0
    listed = letters.command("connectors", "dlq", "--topic", letters.queue)
    assert "does not say why" in listed.err
    plan = ("dlq", "replay", "--topic", letters.queue, "--all-groups", "--yes")
    refused = letters.command(*plan)
    assert (refused.code, "--to-topic" in refused.err) == (2, True), refused.err
    assert letters.replay("--all-groups", "--to-topic", letters.origin)["sent"] == 1
    (message,) = letters.arrived()
    assert message.headers() == [("h", None)]


@pytest.mark.long(only=True)
@pytest.mark.timeout(1000)
def test_a_hundred_thousand_letters_land_once_under_kills(letters: Letters) -> None:
    """Each of 100,000 letters arrives once although the process is killed again and again."""
    count, kills, moments = 100_000, 0, random.Random(7)
    letters.write(count)
    arguments = ["dlq", "replay", "--topic", letters.queue, "--all-groups", "--yes"]
    while (code := letters.ended(arguments, moments.randint(2, 12), moments.uniform(0, 0.1))) != 0:
        assert code is None
        kills += 1
        arguments = ["dlq", "replay", "--resume", letters.only_replay()["replay"], "--yes"]
    assert kills >= 5
    assert letters.numbers() == list(range(count))
    check_kept(letters, letters.arrived())
