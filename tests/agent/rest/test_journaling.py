"""The journal of changing requests and the keys of passwords, with fake herders."""

import asyncio
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from pyconnect_agent.core.errors import KafkaError, NotFoundError, NotLeaderError, WorkerConfigError
from pyconnect_agent.core.herder import requests
from pyconnect_agent.core.internal_topics.config_snapshot import SessionKey
from pyconnect_agent.core.rest_access import token_hash
from pyconnect_agent.rest.access import AdminAccess, RestAccess
from pyconnect_agent.rest.app import ADMIN_ROUTES, MAIN_ROUTES
from pyconnect_agent.rest.exchange import AdminServices
from pyconnect_agent.rest.forwarding import WorkerClient, WorkerResponse
from pyconnect_agent.rest.journaling import ASKED_AGAIN_AFTER_S, ChangeJournal, PasswordKeys
from pyconnect_agent.stores.journal import ChangesFile
from tests.support.agents.rest_client import Answer, acall_app, call_app
from tests.support.cases import cases
from tests.support.fakes.fake_admin import FakeAdmin
from tests.support.fakes.fake_herder import SOURCE_CLASS, FakeHerder
from tests.support.fakes.rest_services import application

CONFIG = {"connector.class": SOURCE_CLASS, "topic": "t", "name": "c"}
SECRET = "planted-hunter2"
USERS = "\n".join(
    f'[{name}]\nrole = "{role}"\nconnectors = {patterns}\ntokens = ["{token_hash(name)}"]'
    for name, role, patterns in (
        ("anna", "admin", ["*"]),
        ("viewer", "viewer", ["*"]),
        ("limited", "viewer", ["orders-*"]),
    )
)


class Records:
    """A journal in memory; `failing`: writes fail."""

    def __init__(self) -> None:
        self.written: list[bytes] = []
        self.failing = False

    shared = True

    def start(self) -> None: ...

    def write(self, connector: str | None, record: bytes) -> None:
        if self.failing:
            raise KafkaError("no broker")
        assert json.loads(record)["connector"] == connector
        self.written.append(record)

    def read(self, since_ms: int, timeout_ms: int) -> Iterator[tuple[int, bytes]]:
        assert (since_ms, timeout_ms > 0) == (0, True)
        yield from enumerate(self.written)

    def stop(self) -> None: ...

    @property
    def all(self) -> list[dict[str, Any]]:
        return [json.loads(record) for record in self.written]


class World:
    """An agent with users and a journal; `client` reaches other workers."""

    def __init__(self, client: WorkerClient | None = None) -> None:
        self.herder = FakeHerder()
        self.herder.session_key = SessionKey(key=b"k" * 32, algorithm="HmacSHA256", created_ms=0)
        self.records = Records()
        self.app = application(
            self.herder,
            client=client,
            access=RestAccess(None, USERS),
            admin=AdminServices(worker=FakeAdmin(), access=AdminAccess()),
            journal=ChangeJournal(self.records, "http://worker:8083/"),
        )

    def call(self, method: str, path: str, body: object = None, user: str = "anna") -> Answer:
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {user}"}
        text = None if body is None else json.dumps(body)
        return call_app(self.app, method, path, text, headers)


@pytest.fixture
def world() -> World:
    return World()


def test_a_record_says_who_has_changed_what_from_where(world: World) -> None:
    """A record has the configs before and after, the target states and the answer."""
    world.call("POST", "/connectors", {"name": "c", "config": CONFIG})
    world.call("PUT", "/connectors/c/config?forward=x", {**CONFIG, "topic": "u"})
    world.call("PUT", "/connectors/c/pause")
    world.call("POST", "/connectors/c/restart?includeTasks=true")
    world.call("DELETE", "/connectors/c")
    world.call("PUT", "/admin/loggers/root", {"level": "DEBUG"})
    found = world.records.all
    assert [(each["method"], each["path"], each["status"]) for each in found] == [
        ("POST", "/connectors", 201),
        ("PUT", "/connectors/c/config", 200),
        ("PUT", "/connectors/c/pause", 202),
        ("POST", "/connectors/c/restart?includeTasks=true", 202),
        ("DELETE", "/connectors/c", 204),
        ("PUT", "/admin/loggers/root", 200),
    ]
    assert {each["user"] for each in found} == {"anna"}
    assert {each["address"] for each in found} == {"127.0.0.1"}
    changed = {**CONFIG, "topic": "u"}
    assert [(each["before"], each["after"]) for each in found] == [
        (None, CONFIG),
        (CONFIG, changed),
        (changed, changed),
        (changed, changed),
        (changed, None),
        (None, None),
    ]
    assert (found[2]["before_state"], found[2]["after_state"]) == (None, "PAUSED")
    assert [each["body"] for each in found] == [None] * 5 + [{"level": "DEBUG"}]
    assert [each["connector"] for each in found] == ["c"] * 5 + [None]


def test_refused_changes_are_recorded_and_reads_are_not(world: World) -> None:
    """A refused config is recorded with its error, and so is a user without the needed role."""
    assert world.call("PUT", "/connectors/c/config", {"topic": "t"}).status == 400
    assert world.call("PUT", "/connectors/c/config", CONFIG, user="viewer").status == 403
    assert world.call("GET", "/connectors").status == 200
    path = "/connector-plugins/FileStreamSource/config/validate"
    assert world.call("PUT", path, CONFIG).status == 200
    wrong, refused = world.records.all
    assert (wrong["status"], wrong["body"]) == (400, {"topic": "t"})
    assert "contains no connector type" in wrong["error"]
    assert (refused["status"], refused["user"]) == (403, "viewer")
    assert (refused["connector"], refused["before"], refused["after"]) == ("c", None, None)


def test_no_record_contains_a_secret(world: World) -> None:
    """Secrets are hidden by name, in addresses, in refused bodies, and in errors."""
    secret = {
        **CONFIG,
        "db.password": SECRET,
        "url": f"jdbc:postgresql://u:{SECRET}@host/db",
        "reference": "${file:/run/secrets:token}",
    }
    world.herder.plugin_keys = {"pin": "PASSWORD"}
    secret["pin"] = "4711" + SECRET
    world.herder.failures = {requests.DeleteConnector: KafkaError(f"cannot log in with {SECRET}")}
    assert world.call("PUT", "/connectors/c/config", secret).status == 201
    assert world.call("PUT", "/connectors/c/config", {**secret, "db.password": "new"}).status == 200
    refused = {"name": "d", "config": {"db.password": SECRET, "note": f"it is {SECRET}"}}
    assert world.call("POST", "/connectors", refused).status == 400
    assert world.call("DELETE", "/connectors/c").status == 500
    text = b"".join(world.records.written).decode()
    assert SECRET not in text
    assert world.records.all[1]["after"]["db.password"] == "[hidden]"
    assert world.records.all[1]["before"]["pin"] == "[hidden]"
    assert world.records.all[1]["after"]["reference"] == secret["reference"]


def test_a_change_that_cannot_be_recorded_is_answered_and_logged(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """The change has happened, so the log holds the record that the journal lacks."""
    world.records.failing = True
    assert world.call("PUT", "/connectors/c/config", CONFIG).status == 201
    (logged,) = [r for r in caplog.records if "not in the journal" in r.getMessage()]
    assert json.loads(vars(logged)["record"])["after"] == CONFIG


def test_changes_of_a_connector_link_to_each_other(world: World) -> None:
    """Each record begins where the one before ended, also with many clients at once."""

    async def change(number: int) -> None:
        await acall_app(
            world.app,
            "PUT",
            "/connectors/c/config",
            json.dumps({**CONFIG, "topic": str(number)}),
            {"Content-Type": "application/json", "Authorization": "Bearer anna"},
        )

    async def change_all() -> None:
        await asyncio.gather(*(change(number) for number in range(50)))

    asyncio.run(change_all())
    found = world.records.all
    assert len(found) == 50
    assert [each["before"] for each in found[1:]] == [each["after"] for each in found[:-1]]
    assert found[-1]["after"] == world.herder.configs["c"]


class Leader(WorkerClient):
    """Another worker: an agent that records, or a Java worker that does not."""

    def __init__(self, *, journaled: bool) -> None:
        super().__init__()
        self.journaled = journaled

    async def send(
        self,
        method: str,
        url: str,
        *,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> WorkerResponse:
        assert method == "PUT"
        assert headers is not None
        assert headers["Authorization"] == "Bearer anna"
        return WorkerResponse(
            200, {"name": "c", "config": json.loads(body or b"{}")}, self.journaled
        )


@cases("journaled", True, False)
def test_the_worker_that_carries_out_a_change_records_it(*, journaled: bool) -> None:
    """An agent as leader records its change, and a forwarding agent that of a Java leader."""
    world = World(Leader(journaled=journaled))
    world.herder.configs = {"c": CONFIG}
    world.herder.failures = {
        requests.PutConnectorConfig: NotLeaderError("no", target_url="http://leader:8083/")
    }
    assert world.call("PUT", "/connectors/c/config", {**CONFIG, "topic": "u"}).status == 200
    found = [(each["before"]["topic"], each["after"]["topic"]) for each in world.records.all]
    assert found == ([] if journaled else [("t", "u")])


def test_the_journal_is_read_by_what_a_user_may_see(world: World) -> None:
    """Records are selected by connector, user and number; the worker's are for unlimited users."""
    for name in ("orders-1", "stock"):
        world.call("PUT", f"/connectors/{name}/config", {**CONFIG, "name": name})
    world.call("PUT", "/admin/loggers/root", {"level": "DEBUG"})

    def seen(query: str = "", user: str = "viewer") -> list[tuple[int, str | None]]:
        found = world.call("GET", f"/agent/journal{query}", user=user).json()["records"]
        return [(record["number"], record["connector"]) for record in found]

    assert seen() == [(0, "orders-1"), (1, "stock"), (2, None)]
    assert seen("?connector=stock") == [(1, "stock")]
    assert seen("?user=nobody") == []
    assert seen("?limit=1") == [(2, None)]
    assert seen(user="limited") == [(0, "orders-1")]
    assert world.call("GET", "/agent/journal?sinc_ms=1").status == 400


def test_every_changing_route_is_recorded(world: World) -> None:
    """All changing routes are recorded, but for validation and requests of workers."""
    values = {"connector": "c", "task": "0", "plugin": "p", "logger": "root"}
    unrecorded = []
    for route in (*MAIN_ROUTES, *ADMIN_ROUTES):
        if route.method == "GET":
            continue
        before = len(world.records.written)
        world.call(route.method, route.template.format_map(values), {})
        if len(world.records.written) == before:
            unrecorded.append((route.method, route.template))
    assert unrecorded == [
        ("PUT", "/connector-plugins/{plugin}/config/validate"),
        ("POST", "/connectors/{connector}/tasks"),
        ("PUT", "/connectors/{connector}/fence"),
    ]


def test_a_journal_in_a_file_survives_a_cut_line(tmp_path: Path) -> None:
    """The file is readable by its owner only, and a cut line spoils no other line."""
    path = tmp_path / "journal"
    journal = ChangesFile(path)
    journal.start()
    journal.write("c", b'{"id":1}')
    with path.open("ab") as file:
        file.write(b'{"id":')
    journal.write("c", b'{"id":2}')
    expected = [(0, b'{"id":1}\n'), (1, b'{"id":\n'), (2, b'{"id":2}\n')]
    assert list(journal.read(0, 0)) == expected
    assert path.stat().st_mode & 0o777 == 0o600
    with pytest.raises(WorkerConfigError, match=r"agent\.journal\.file"):
        ChangesFile(tmp_path / "none" / "journal").start()


def numbers_of(journal: ChangesFile) -> list[int]:
    """Return the numbers of the records that are found."""
    found = list(journal.read(0, 0))
    assert all(int(record) == number for number, record in found)
    return [number for number, _ in found]


def test_records_keep_their_numbers_when_full_files_are_renamed_and_deleted(tmp_path: Path) -> None:
    """The newest five files and the current one are read, and numbers go on in another process."""
    path = tmp_path / "journal"
    for number in range(20):
        journal = ChangesFile(path, full_bytes=6)
        journal.start()
        # Three records fill a file, later two.
        journal.write("c", b"%d" % number)
    assert numbers_of(journal) == list(range(6, 20))
    expected = ["journal", *sorted(f"journal.from-{first}" for first in (6, 9, 12, 14, 16))]
    assert sorted(file.name for file in tmp_path.iterdir()) == expected
    assert {file.stat().st_mode & 0o777 for file in tmp_path.iterdir()} == {0o600}


def test_a_reader_sees_a_file_that_is_renamed_meanwhile(tmp_path: Path) -> None:
    """While a file is renamed, no record is left out or read twice."""
    journal = ChangesFile(tmp_path / "journal", full_bytes=6)
    for number in range(3):
        journal.write("c", b"%d" % number)
    reading = journal.read(0, 0)
    assert next(reading) == (0, b"0\n")
    for number in range(3, 30):
        journal.write("c", b"%d" % number)
    assert [number for number, _ in reading] == [1, 2]


def test_a_file_that_cannot_be_renamed_grows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """If a file cannot be renamed, a warning is logged, and no record is lost."""
    (tmp_path / "journal.from-1.gz").touch()
    (tmp_path / "journal.1").write_bytes(b"100\n")

    def refuse(path: Path, target: Path) -> None:
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patched:
        patched.setattr(Path, "rename", refuse)
        journal = ChangesFile(tmp_path / "journal", full_bytes=6)
        for number in range(10):
            journal.write("c", b"%d" % number)
    assert numbers_of(journal) == list(range(10))
    assert "full file of the journal is not renamed" in caplog.text
    journal.write("c", b"10")
    assert numbers_of(journal) == list(range(11))
    assert len(list(tmp_path.iterdir())) == 4


PINNED = {"connector.class": SOURCE_CLASS, "pin": "planted-hunter2"}


class Describing(FakeHerder):
    """A herder that describes classes, or fails; `asked` lists the classes in order."""

    def __init__(self) -> None:
        super().__init__()
        self.plugin_keys = {"pin": "PASSWORD", "topic": "STRING"}
        self.fails = True
        self.asked: list[str] = []

    async def plugin_config(self, plugin: str, version: str | None) -> tuple[dict[str, Any], ...]:
        self.asked.append(plugin)
        if self.fails:
            raise NotFoundError(f"Unknown plugin {plugin}.")
        return await super().plugin_config(plugin, version)


class KeysWorld:
    def __init__(self) -> None:
        self.now_s = 1_000.0
        self.herder = Describing()
        self.keys = PasswordKeys(lambda: self.now_s)

    def secrets(self) -> set[str]:
        return set(asyncio.run(self.keys.secrets(self.herder)))

    def of(self, connector_class: str) -> frozenset[str]:
        return asyncio.run(self.keys.of(self.herder, {"connector.class": connector_class}))


@pytest.fixture
def keys() -> KeysWorld:
    return KeysWorld()


def test_a_class_that_cannot_be_described_is_asked_about_again_after_a_wait(
    keys: KeysWorld,
) -> None:
    """The wait is one for all answers and all connectors of the class."""
    for count in range(1, 4):
        keys.herder.configs = {f"c{number}": PINNED for number in range(count)}
        assert keys.secrets() == set()
        assert keys.of(SOURCE_CLASS) == frozenset()
    assert keys.herder.asked == [SOURCE_CLASS]
    keys.now_s += ASKED_AGAIN_AFTER_S
    keys.secrets()
    assert keys.herder.asked == [SOURCE_CLASS] * 2


def test_a_described_class_counts_for_the_next_answer(keys: KeysWorld) -> None:
    """The description counts although another request has asked for it."""
    keys.herder.configs = {"c": PINNED, "d": {**PINNED, "connector.class": "other"}}
    assert keys.secrets() == set()
    keys.herder.fails = False
    keys.now_s += ASKED_AGAIN_AFTER_S
    assert keys.of(SOURCE_CLASS) == {"pin"}
    assert keys.of("other") == frozenset()
    assert keys.secrets() == {"planted-hunter2"}
    assert keys.secrets() == {"planted-hunter2"}
    assert keys.herder.asked == [SOURCE_CLASS, "other", SOURCE_CLASS, "other"]


def test_classes_that_cannot_be_described_do_not_pile_up(keys: KeysWorld) -> None:
    """Each class is forgotten after its wait."""
    for number in range(100):
        keys.of(f"class-{number}")
        keys.now_s += ASKED_AGAIN_AFTER_S / 2
    assert len(keys.keys._unknown_until_s) <= 2
