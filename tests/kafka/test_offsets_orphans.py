"""Orphaned offsets in shared topics: transactions, foreign keys, other forms of keys."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from pyconnect_cli.app import run
from tests.support.fakes.connect_server import FakeConnect, FakeConnector, serve
from tests.support.servers.kafka import SharedBroker

pytestmark = pytest.mark.kafka

GONE = b'["gone",{"file":"a"}]'
SPACED = b'["gone", {"file": "a"}]'
KEPT = b'["kept",{"file":"a"}]'


class Orphans:
    """The command `pyconnect offsets orphans` with one connector, `kept`, and one offsets topic."""

    def __init__(
        self, url: str, broker: SharedBroker, topic: str, home: Path, capsys: object
    ) -> None:
        self.broker = broker
        self.topic = topic
        self.environ = {
            "PYCONNECT_URL": url,
            "PYCONNECT_KAFKA_BOOTSTRAP": broker.bootstrap_servers,
            "XDG_CONFIG_HOME": str(home / "config"),
            "XDG_STATE_HOME": str(home / "state"),
        }
        self.home = home
        self.capsys: pytest.CaptureFixture[str] = capsys  # type: ignore[assignment]
        self.out = ""
        self.err = ""

    def __call__(self, *arguments: str) -> int:
        code = run(["offsets", *arguments, "--timeout", "60s"], self.environ)
        self.out, self.err = self.capsys.readouterr()
        return int(code)

    def purge(self, *arguments: str) -> int:
        topic = ("--topic", self.topic, "--confirm-topic", self.topic)
        return self("orphans", "purge", *arguments, *topic, "--yes")

    def list(self) -> dict[str, object]:
        """Return the offsets of sources, by name."""
        assert self("orphans", "list", "--topic", self.topic, "-o", "json") == 0, self.err
        found = json.loads(self.out)
        return {one["name"]: one for one in found if one["type"] == "source"}

    def producer(self, **settings: str) -> Producer:
        return Producer({"bootstrap.servers": self.broker.bootstrap_servers, **settings})

    def write(self, *records: tuple[bytes, bytes | None], partition: int = 0) -> None:
        producer = self.producer()
        for key, value in records:
            producer.produce(self.topic, value, key, partition)
        assert producer.flush(30) == 0


@pytest.fixture
def orphans(
    kafka_broker: SharedBroker,
    unique_name: Callable[[str], str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> Iterator[Orphans]:
    topic = unique_name("offsets")
    admin = AdminClient({"bootstrap.servers": kafka_broker.bootstrap_servers})
    new = NewTopic(topic, 2, 1, config={"cleanup.policy": "compact"})
    admin.create_topics([new])[topic].result()
    connect = FakeConnect(connectors={"kept": FakeConnector(config={"name": "kept"})})
    with serve(connect) as url:
        yield Orphans(url, kafka_broker, topic, tmp_path, capsys)


def test_only_offsets_without_a_connector_are_listed(orphans: Orphans) -> None:
    """Existing connectors, tombstones and keys that are not Connect's are left out."""
    orphans.write(
        (KEPT, b'{"position":1}'),
        (GONE, b'{"position":1}'),
        (GONE, b'{"position":2}'),
        (b'["forgotten",{}]', b'{"position":1}'),
        (b'["forgotten",{}]', None),
        (b"no json", b"{}"),
        (b'{"an":"object"}', b"{}"),
    )
    found = orphans.list()
    assert list(found) == ["gone"]
    assert found["gone"]["offsets"] == [  # type: ignore[index]
        {"partition": {"file": "a"}, "offset": {"position": 2}}
    ]


def test_a_topic_of_records_is_refused(orphans: Orphans) -> None:
    """A topic with records and no offsets is refused; foreign keys beside offsets do no harm."""
    orphans.write((b"a key", b"a record"), (b'["not",1,"two"]', b"x"))
    for command in (("list",), ("purge", "--all", "--yes"), ("purge", "gone", "--yes")):
        assert orphans("orphans", *command, "--topic", orphans.topic) == 2
        assert f"{orphans.topic}: contains records, but no offsets" in orphans.err
    orphans.write((GONE, b'{"position":1}'))
    assert list(orphans.list()) == ["gone"]


def test_every_form_of_a_key_is_purged_where_it_was_found(orphans: Orphans) -> None:
    """Two workers may have stored one source partition under different bytes and partitions."""
    orphans.write((GONE, b'{"position":1}'), (KEPT, b'{"position":7}'))
    orphans.write((SPACED, b'{"position":2}'), (GONE, b'{"position":3}'), partition=1)
    assert orphans.list()["gone"]["count"] == 3  # type: ignore[index]
    assert orphans.purge("gone") == 0, orphans.err
    assert orphans.list() == {}
    assert orphans("undo", "--yes") == 0, orphans.err
    assert orphans.list()["gone"]["count"] == 3  # type: ignore[index]


def test_an_undo_of_a_purge_notices_offsets_that_came_after(orphans: Orphans) -> None:
    """A connector of that name may have run and been deleted again."""
    orphans.write((GONE, b'{"position":1}'))
    assert orphans.purge("gone") == 0, orphans.err
    orphans.write((GONE, b'{"position":9}'))
    assert orphans("undo", "--yes") == 9
    assert '- and is at {"position":9}' in orphans.err
    assert orphans("undo", "--yes", "--force") == 0, orphans.err
    assert orphans.list()["gone"]["offsets"][0]["offset"] == {"position": 1}  # type: ignore[index]
    assert orphans("undo", "--yes") == 0, orphans.err
    assert orphans.list()["gone"]["offsets"][0]["offset"] == {"position": 9}  # type: ignore[index]


def test_uncommitted_and_aborted_offsets_are_not_there(
    orphans: Orphans, unique_name: Callable[[str], str]
) -> None:
    """An open transaction hides later records of its partition; an aborted one leaves nothing."""
    orphans.write((GONE, b'{"position":1}'))
    producer = orphans.producer(**{"transactional.id": unique_name("writer")})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(orphans.topic, b'{"position":9}', GONE, 0)
    producer.produce(orphans.topic, b"{}", b'["other",{}]', 0)
    assert producer.flush(30) == 0
    stored = [{"partition": {"file": "a"}, "offset": {"position": 1}}]
    assert orphans.list()["gone"]["offsets"] == stored  # type: ignore[index]
    producer.abort_transaction(30)
    assert list(orphans.list()) == ["gone"]
    assert orphans.list()["gone"]["offsets"] == stored  # type: ignore[index]


def test_a_read_only_state_directory_stops_a_purge(orphans: Orphans) -> None:
    """The purge exits with 9, and every offset is still there."""
    orphans.write((GONE, b'{"position":1}'))
    # A file in the directory's place stops root as well.
    (orphans.home / "state").write_text("")
    assert orphans.purge("gone") == 9
    assert "a backup cannot be written" in orphans.err
    assert list(orphans.list()) == ["gone"]
    assert orphans.purge("gone", "--no-backup") == 0, orphans.err
    assert orphans.list() == {}


def test_a_name_without_offsets_and_a_topic_that_is_not_there_are_exit_3(orphans: Orphans) -> None:
    """An unknown name or topic exits with 3, and the error suggests similar names."""
    orphans.write((GONE, b'{"position":1}'))
    assert orphans.purge("gon") == 3
    assert "did you mean `gone`?" in orphans.err
    assert orphans("orphans", "list", "--topic", "no-such-topic") == 3
    assert "topic no-such-topic does not exist" in orphans.err


def test_a_worker_that_does_not_report_its_topic_is_exit_9(orphans: Orphans) -> None:
    """Without --topic the command exits with 9 if the worker does not report its topic."""
    assert orphans("orphans", "list") == 9
    assert "--topic" in orphans.err


def test_a_topic_that_may_be_another_clusters_is_not_purged(orphans: Orphans) -> None:
    """The other cluster's connectors may run, so the purge exits with 9 and writes nothing."""
    orphans.write((GONE, b'{"position":1}'))
    purge = ("orphans", "purge", "gone", "--topic", orphans.topic, "--yes")
    assert orphans(*purge) == 9
    assert "Java workers do not report whether" in orphans.err
    assert f"--confirm-topic {orphans.topic}" in orphans.err
    assert orphans(*purge, "--confirm-topic", "another") == 9
    properties = orphans.home / "worker.properties"
    properties.write_text("offset.storage.topic=another\n")
    assert orphans(*purge, "--worker-config", str(properties)) == 9
    assert f"store offsets in another, not in {orphans.topic}" in orphans.err
    assert list(orphans.list()) == ["gone"]
    properties.write_text(f"offset.storage.topic={orphans.topic}\n")
    assert orphans(*purge, "--worker-config", str(properties)) == 0, orphans.err
    assert orphans.list() == {}
