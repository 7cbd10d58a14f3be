"""The commands of tutorials and how-tos and the examples of references run as they are written.

Only addresses, directories, waits and ids of backups are replaced. A terminal answers questions.
Pages with tests of their own: upgrade-to-exactly-once (`test_upgrade`), write-a-connector
(`tests/packaging/test_connector_authors`), move-a-java-cluster (`tests/java/test_move_cluster`),
audit-after-an-incident (`tests/spark/test_command`), deploy (`tests/kafka/test_deployment`).
"""

import json
import os
import pty
import re
import selectors
import sqlite3
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from pyconnect_sandbox.server import free_port
from tests.support.agents.agent import Agent, Agents
from tests.support.eventually import eventually
from tests.support.names import unique_name
from tests.support.servers.kafka import SharedBroker
from tests.support.servers.topics import create_topics, produce

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(800)]

DOCS = Path(__file__).resolve().parents[2] / "docs"
BLOCK = re.compile(r"^ *```sh\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
QUESTION = "[y/N]: "
PAGE_S = 240
ENDLESS = re.compile(r"^(pyconnect (?:top|.* --(?:follow|watch))\b[^#\n]*)", re.MULTILINE)


class Terminal:
    """A terminal with bash that runs blocks of pages, with a home directory of its own."""

    def __init__(self, directory: Path, variables: Mapping[str, str]) -> None:
        self.directory = directory
        self._environment = {
            **os.environ,
            "HOME": str(directory),
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "TERM": "xterm-256color",
            **variables,
        }
        for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR"):
            self._environment.pop(name, None)
        # The jars in the cache are used again.
        self._environment.setdefault("XDG_CACHE_HOME", str(Path.home() / ".cache"))
        (directory / "examples").symlink_to(DOCS.parent / "examples")

    def run(self, program: str) -> str:
        """Return what the program printed; each of its commands must succeed."""
        # Endless commands of a page are ended as a reader ends them, by Ctrl-C.
        program = ENDLESS.sub(
            r"timeout --foreground -s INT 5 \1 || [ $? = 124 ] || [ $? = 130 ] ", program
        )
        master, slave = pty.openpty()
        bash = subprocess.Popen(
            ["bash", "-ec", program],
            cwd=self.directory,
            env=self._environment,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
        )
        os.close(slave)
        printed = self._answer(master, bash)
        assert bash.wait(10) == 0, f"{program}\n{printed}"
        return printed

    def _answer(self, master: int, bash: subprocess.Popen[bytes]) -> str:
        printed, answered, ends = b"", 0, time.monotonic() + PAGE_S
        with selectors.DefaultSelector() as selector:
            selector.register(master, selectors.EVENT_READ)
            while bash.poll() is None or selector.select(0):
                assert time.monotonic() < ends, printed.decode(errors="replace")
                if not selector.select(0.2):
                    continue
                try:
                    printed += os.read(master, 65536)
                except OSError:  # all other ends are closed
                    break
                if printed.count(QUESTION.encode()) > answered:
                    answered += 1
                    os.write(master, b"y\n")
        os.close(master)
        return printed.decode(errors="replace")


def blocks(page: str, replaced: Mapping[str, str]) -> list[str]:
    """Return the code blocks of a page, without indentation and with texts replaced."""
    text = (DOCS / page).read_text("utf-8")
    found = [textwrap.dedent(code) for code in BLOCK.findall(text)]
    assert found, page
    for old, new in replaced.items():
        assert any(old in code for code in found), f"{page} does not show {old}"
        found = [code.replace(old, new) for code in found]
    return found


@pytest.fixture
def group(agents: Agents) -> Sequence[Agent]:
    return [agents.start(), agents.start()]


@pytest.fixture
def terminal(group: Sequence[Agent], kafka_broker: SharedBroker, tmp_path: Path) -> Terminal:
    """A terminal with the contexts `new` and `old`, which is the current one."""
    home = tmp_path / "home"
    home.mkdir()
    terminal = Terminal(home, {})
    for name, agent in zip(("new", "old"), group, strict=True):
        terminal.run(
            f"pyconnect context set {name} --url {agent.url}"
            f" --kafka-bootstrap {kafka_broker.bootstrap_servers} --use"
        )
    return terminal


def test_your_first_connector(tmp_path: Path) -> None:
    """The page uses a sandbox with an agent, then a broker and a worker of the reader's own."""
    terminal = Terminal(tmp_path, {})
    broker, rest = free_port(), free_port()
    lines = str(tmp_path / "lines.txt")
    (tmp_path / "lines").symlink_to(lines)
    example = (DOCS.parent / "examples" / "file-source.json").read_text()
    (tmp_path / "examples").unlink()
    (tmp_path / "examples").mkdir()
    (tmp_path / "examples" / "file-source.json").write_text(
        example.replace("/tmp/lines.txt", lines)
    )
    page = blocks(
        "tutorial/first-connector.md",
        {
            "/tmp/lines.txt": lines,
            "--port 9092": f"--port {broker}",
            "localhost:9092": f"localhost:{broker}",
            "127.0.0.1:8083": f"127.0.0.1:{rest}",
            "localhost:8083": f"localhost:{rest}",
        },
    )
    end = "\nkill %1\nwait\npyconnect sandbox down --remove-data --yes"
    try:
        printed = terminal.run("\n".join(page) + end)
    finally:
        terminal.run("pyconnect sandbox down --remove-data --yes || true")
    assert "1001" in printed
    assert QUESTION in printed


@pytest.mark.long(only=True)
def test_a_task_failed(
    group: Sequence[Agent], terminal: Terminal, kafka_broker: SharedBroker
) -> None:
    """The page's source has a failing transformation, and its sink a dead letter queue."""
    agent = group[1]
    topic, lines = unique_name("failed"), terminal.directory / "lines"
    lines.write_text("no number\n")
    wrong = {
        "transforms": "cast",
        "transforms.cast.type": "org.apache.kafka.connect.transforms.Cast$Value",
        "transforms.cast.spec": "int32",
    }
    source = {"connector.class": "FileStreamSource", "file": str(lines), "topic": topic}
    agent.create("orders", source | wrong)
    eventually(lambda: "FAILED" in agent.states("orders"), 60)
    find, logs, restart, policy, letters = blocks(
        "how-to/a-task-failed.md", {"--stable 30s": "--stable 1s"}
    )
    assert "no number" not in terminal.run(find + logs)
    agent.do("PUT", "/connectors/orders/config", source)
    terminal.run(restart + policy)
    dead = unique_name("dead")
    create_topics(kafka_broker.bootstrap_servers, [dead])
    agent.create(
        "my-sink",
        {
            "connector.class": "FileStreamSink",
            "file": str(terminal.directory / "out"),
            "topics": topic,
            "value.converter": "org.apache.kafka.connect.json.JsonConverter",
            "errors.tolerance": "all",
            "errors.deadletterqueue.topic.name": dead,
            "errors.deadletterqueue.topic.replication.factor": "1",
            "errors.deadletterqueue.context.headers.enable": "true",
        },
    )
    terminal.run("until pyconnect connectors dlq my-sink | grep -q .; do sleep 0.2; done")
    printed = terminal.run(letters)
    assert "VALUE_CONVERTER" in printed, printed


def test_replay_dead_letters(
    group: Sequence[Agent], terminal: Terminal, kafka_broker: SharedBroker
) -> None:
    """A sink refuses records whose price is not a number until the records are mended."""
    topic, again, dead = (unique_name(each) for each in ("orders", "again", "dead"))
    create_topics(kafka_broker.bootstrap_servers, [topic, again, dead])
    produce(kafka_broker.bootstrap_servers, topic, b'{"price": "12 EUR"}', b'{"price": 7}')
    out = terminal.directory / "out"
    group[1].create(
        "orders-to-db",
        {
            "connector.class": "FileStreamSink",
            "file": str(out),
            "topics": f"{topic},{again}",
            "key.converter": "org.apache.kafka.connect.storage.StringConverter",
            "value.converter": "org.apache.kafka.connect.json.JsonConverter",
            "value.converter.schemas.enable": "false",
            "transforms": "cast",
            "transforms.cast.type": "org.apache.kafka.connect.transforms.Cast$Value",
            "transforms.cast.spec": "price:int32",
            "errors.tolerance": "all",
            "errors.deadletterqueue.topic.name": dead,
            "errors.deadletterqueue.topic.replication.factor": "1",
            "errors.deadletterqueue.context.headers.enable": "true",
        },
    )
    terminal.run("until pyconnect connectors dlq orders-to-db | grep -q .; do sleep 0.2; done")
    listed = terminal.run("pyconnect connectors dlq orders-to-db -o name")
    replaced = {"3f2a91c0": listed.strip(), "orders-replay": again}
    look, plan, send, after, more, _, _ = blocks("how-to/replay-dead-letters.md", replaced)
    assert '"stage": "TRANSFORMATION"' in terminal.run(look)
    assert topic in terminal.run(plan)
    terminal.run(send)
    eventually(lambda: "12" in out.read_text(), 60)
    printed = terminal.run(after)
    identity = terminal.run("pyconnect dlq history -o name").strip()
    assert "finished" in printed, printed
    terminal.run(more)
    *_, resume, undo = blocks(
        "how-to/replay-dead-letters.md", {"20260131T120000000000Z-3f2a91": identity}
    )
    terminal.run(resume)
    assert topic in terminal.run(undo)


@pytest.mark.long(only=True)
def test_move_a_connector(group: Sequence[Agent], terminal: Terminal) -> None:
    """The connector continues in the other cluster, and `promote` creates it there too."""
    new, old = group
    lines = terminal.directory / "lines"
    lines.write_text("one\ntwo\n")
    config = {
        "connector.class": "FileStreamSource",
        "file": str(lines),
        "topic": unique_name("moved"),
    }
    old.create("orders", config)
    eventually(lambda: old.get("/connectors/orders/offsets")["offsets"], 60)
    page = blocks("how-to/move-a-connector.md", {})
    terminal.run("\n".join(page[:-1]))
    moved = new.get("/connectors/orders/offsets")["offsets"]
    assert [each["offset"] for each in moved] == [{"position": 8}]
    assert "orders" not in old.get("/connectors")

    old.create("orders", config)
    terminal.run(f"pyconnect context set prod --url {new.url}")
    # `diff` exits with 0 because there is no difference.
    terminal.run(page[-1])
    assert new.get("/connectors/orders")["config"]["topic"] == config["topic"]


@pytest.mark.long(only=True)
def test_operate_several_clusters(
    group: Sequence[Agent], terminal: Terminal, kafka_broker: SharedBroker
) -> None:
    """The commands for several clusters work with two agents as the page's contexts."""
    eu, us = group
    (terminal.directory / "inventory.toml").write_text(f'[[workers]]\nurl = "{eu.url}"\n')
    (terminal.directory / "connectors").mkdir()
    (terminal.directory / "connectors" / "lines.json").write_text(
        '{"name": "lines", "config": {"connector.class": "FileStreamSource",'
        f' "file": "/dev/null", "topic": "{unique_name("several")}"}}}}'
    )
    page = blocks(
        "how-to/operate-several-clusters.md",
        {
            "https://eu-1:8083": eu.url,
            "https://eu-2:8083": eu.url,
            "https://us-1:8083": us.url,
            "pass connect/eu": "echo secret",
            "eu-kafka:9092": kafka_broker.bootstrap_servers,
            "us-kafka:9092": kafka_broker.bootstrap_servers,
        },
    )
    printed = terminal.run("\n".join(page))
    assert "secret" not in printed
    assert "lines" in printed


@pytest.mark.long(only=True)
def test_replay_a_day(
    group: Sequence[Agent], terminal: Terminal, kafka_broker: SharedBroker
) -> None:
    """One sink delivers all records again, a second one too, and a source starts again."""
    agent = group[1]
    lines, out = terminal.directory / "lines", terminal.directory / "out"
    lines.write_text("one\ntwo\n")
    topic = unique_name("orders")
    agent.create(
        "orders-import", {"connector.class": "FileStreamSource", "file": str(lines), "topic": topic}
    )
    sink = {"connector.class": "FileStreamSink", "file": str(out), "topics": topic}
    agent.create("orders-to-db", sink)
    replayed = terminal.directory / "replayed"
    (terminal.directory / "orders-replay.json").write_text(
        f'{{"connector.class": "FileStreamSink", "file": "{replayed}", "topics": "{topic}"}}'
    )
    eventually(lambda: out.exists() and out.read_text() == "one\ntwo\n", 60)
    eventually(lambda: agent.get("/connectors/orders-to-db/offsets")["offsets"], 90)
    page = blocks(
        "how-to/replay-a-day.md", {"topics read orders ": f"topics read {topic} ", "BACKUP-ID": ""}
    )
    terminal.run("\n".join(page))
    assert replayed.read_text() == "one\ntwo\n"
    eventually(lambda: out.read_text().count("one") >= 2, 60)


@pytest.mark.long(only=True)
def test_back_up_a_cluster(group: Sequence[Agent], terminal: Terminal) -> None:
    """A connector lost after the backup continues at its offset."""
    agent = group[1]
    lines = terminal.directory / "lines"
    lines.write_text("one\ntwo\n")
    config = {
        "connector.class": "FileStreamSource",
        "file": str(lines),
        "topic": unique_name("saved"),
    }
    agent.create("orders", config)
    eventually(lambda: agent.get("/connectors/orders/offsets")["offsets"], 60)
    saved, by_cron, plan, restore = blocks("how-to/back-up-a-cluster.md", {})
    terminal.run(saved + by_cron)
    agent.do("DELETE", "/connectors/orders")
    agent.create("orders", {**config, "topic": unique_name("other")})
    terminal.run(plan + restore)
    assert agent.get("/connectors/orders")["config"]["topic"] == config["topic"]
    assert agent.get("/connectors/orders/offsets")["offsets"][0]["offset"] == {"position": 8}


@pytest.mark.long(only=True)
def test_watch_a_cluster(group: Sequence[Agent], terminal: Terminal) -> None:
    """The commands of the view work; its installation is left out."""
    agent = group[1]
    out = terminal.directory / "out"
    agent.create(
        "my-sink",
        {"connector.class": "FileStreamSink", "file": str(out), "topics": unique_name("watch")},
    )
    page = blocks("how-to/watch-a-cluster.md", {"pip install": "true"})
    assert "1 of 1 worker healthy" in terminal.run("\n".join(page))


def example(page: str, directory: Path) -> Callable[[str], list[str]]:
    """Return a function from a language to the page's blocks, with `directory` and new topics."""
    text = (DOCS / "reference" / page).read_text("utf-8").replace("/tmp/shop", str(directory))
    text = text.replace("shop-", f"{unique_name('shop')}-")
    return lambda language: re.findall(
        rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL
    )


def test_the_example_of_lakes_fills_files_and_a_table(agents: Agents, tmp_path: Path) -> None:
    """docs/reference/connectors-lake.md works as written."""
    blocks_of = example("connectors-lake.md", tmp_path)
    prepare, look = blocks_of("python")
    subprocess.run([sys.executable, "-c", prepare], check=True)
    agent = agents.start()
    for number, config in enumerate(map(json.loads, blocks_of("json"))):
        agent.create(f"orders-{number}", config)

    def found() -> str:
        done = subprocess.run(
            [sys.executable, "-c", look], check=False, capture_output=True, text=True
        )
        return done.stdout or done.stderr

    eventually(lambda: [found()] == blocks_of("text"), describe=found)


def test_the_example_of_sql_copies_its_table(agents: Agents, tmp_path: Path) -> None:
    """docs/reference/connectors-sql.md works as written."""
    blocks_of = example("connectors-sql.md", tmp_path)
    (program,), (query,), (answer,) = map(blocks_of, ("python", "sql", "text"))
    subprocess.run([sys.executable, "-c", program], check=True)
    agent = agents.start()
    for number, config in enumerate(map(json.loads, blocks_of("json"))):
        agent.create(f"orders-{number}", config)

    def copied() -> str:
        with closing(sqlite3.connect(tmp_path / "copy.db")) as connection:
            try:
                found = connection.execute(query).fetchall()
            except sqlite3.OperationalError:
                return "there is no table yet\n"
        return "".join("|".join(map(str, row)) + "\n" for row in found)

    eventually(lambda: copied() == answer, describe=copied)
