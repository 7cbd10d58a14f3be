"""Debezium's PostgreSQL source on a warm pyconnect agent beside the same on a warm Java worker.

    scripts/benchmark debezium [--rows N] [--runs N] [--case TEXT] [--busy] [--filter class]

Both run one jar and snapshot the same table, in turn, each into a topic of its own. On the agent
the task has a Java process beside its Python process. A row has an integer key, a text of 40
characters, a number, a timestamp and an integer; keys and values are JSON without schemas. A rate
is counted from the first records that arrive, committed or not, until the last one is committed.
The ratio is that of two runs that follow each other. The settings are the defaults of each. With
`--busy` another process uses a processor all the time. With `--filter` both sides are one agent,
and the connector of the second has a filter in Python that looks at a field of each record and
keeps all: a `class`, or an `expression` in CEL. The first side has no filter.
"""

import argparse
import contextlib
import tempfile
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from confluent_kafka import Consumer, TopicPartition

from benchmarks.beside_java import busy
from benchmarks.file_stream import find_runtime
from benchmarks.sides import Side, both, print_head, print_row
from tests.support.names import unique_name
from tests.support.plugins.maven_plugins import DEBEZIUM, location_of
from tests.support.servers.kafka import Servers
from tests.support.servers.postgres import PASSWORD, USER, PostgresServer, running_postgres
from tests.support.servers.topics import create_topics

JSON = "org.apache.kafka.connect.json.JsonConverter"
WORKER = {
    "key.converter": JSON,
    "key.converter.schemas.enable": "false",
    "value.converter": JSON,
    "value.converter.schemas.enable": "false",
}
TABLE = (
    "CREATE TABLE snapped AS SELECT n::bigint AS id,"
    " 'order number ' || lpad(n::text, 22) || ' note' AS note, n / 7.0::double precision AS price,"
    " timestamp '2024-01-01' + n * interval '1 ms' AS changed, n % 100 AS amount"
    " FROM generate_series(1, {}) n"
)
SUPPORT = {"exactly-once": "enabled", "at-least-once": "disabled"}


FILTER = """
from pyconnect_api import ConfigDef, Transformation

class Keep(Transformation):
    def config(self):
        return ConfigDef()

    def apply(self, record):
        return record if record.value.get_struct("after").get_int64("id") > 0 else None
"""
ENTRY = "[pyconnect.transforms]\nKeep = keep_filter:Keep\n"
FILTERS = {
    "class": {"transforms.keep.type": "Keep"},
    "expression": {
        "transforms.keep.type": "Expression",
        "transforms.keep.filter": "value.after.id > 0",
    },
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    server: PostgresServer
    database: str
    bootstrap_servers: str
    rows: int
    filter: str | None = None

    def rate(self, name: str, side: Side) -> float:
        prefix = unique_name("pg").replace("-", "_")
        topic = f"{prefix}.public.snapped"
        create_topics(self.bootstrap_servers, [topic])
        with (
            contextlib.closing(self._reader("read_uncommitted")) as arriving,
            contextlib.closing(self._reader("read_committed")) as committing,
        ):
            arrived, committed = (partial(_end, r, topic) for r in (arriving, committing))
            config = self._config(prefix)
            if self.filter and name == "ours":
                config |= {"transforms": "keep", **FILTERS[self.filter]}
            return side.rate(config, arrived, committed, self.rows)

    def _reader(self, isolation: str) -> Consumer:
        return Consumer(
            {
                "bootstrap.servers": self.bootstrap_servers,
                "group.id": "meter",
                "isolation.level": isolation,
            }
        )

    def _config(self, prefix: str) -> dict[str, str]:
        return {
            "name": unique_name("debezium"),
            "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
            "plugin.name": "pgoutput",
            "database.hostname": "127.0.0.1",
            "database.port": str(self.server.port),
            "database.user": USER,
            "database.password": PASSWORD,
            "database.dbname": self.database,
            "topic.prefix": prefix,
            # This mode makes no replication slot; a server has few of them.
            "snapshot.mode": "initial_only",
        }


def _write_plugin(directory: Path) -> None:
    """Write a plugin directory with the filter."""
    information = directory / "keep" / "keep_filter-1.0.dist-info"
    information.mkdir(parents=True)
    (directory / "keep" / "keep_filter.py").write_text(FILTER)
    (information / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: keep_filter\nVersion: 1.0\n"
    )
    (information / "entry_points.txt").write_text(ENTRY)


def _end(consumer: Consumer, topic: str) -> int:
    return int(consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=30)[1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=500_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--case", default="", help="only the cases whose title holds this text")
    parser.add_argument("--busy", action="store_true")
    parser.add_argument("--filter", choices=FILTERS)
    options = parser.parse_args()
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(running_postgres())
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        servers = stack.enter_context(contextlib.closing(Servers(find_runtime(), directory)))
        bench = Bench(
            server=server,
            database=server.new_database(),
            bootstrap_servers=servers.broker().bootstrap_servers,
            rows=options.rows,
            filter=options.filter,
        )
        with server.connect(bench.database) as connection:
            connection.execute(TABLE.format(bench.rows).encode())
            connection.execute(b"ALTER TABLE snapped ADD PRIMARY KEY (id)")
        if options.busy:
            stack.enter_context(busy())
        machine = "a busy machine" if options.busy else "an idle machine"
        print_head(f"{options.runs} runs of {options.rows} rows, {machine}")
        for guarantee, support in SUPPORT.items():
            if options.case not in guarantee:
                continue
            properties = {**WORKER, "exactly.once.source.support": support}
            if options.filter:
                plugins = directory / support
                _write_plugin(plugins)
                path = f"{plugins},{location_of(DEBEZIUM).parent}"
                agent = servers.agent(
                    bench.bootstrap_servers,
                    unique_name("ours"),
                    properties={**properties, "plugin.path": path},
                )
                sides = {"peer": agent, "ours": agent}
                title = f"snapshot with a filter ({options.filter}), {guarantee}"
                print_row(title, sides, bench.rate, options.runs)
                agent.stop()
                continue
            with both(servers, bench.bootstrap_servers, DEBEZIUM, properties) as processes:
                print_row(f"snapshot, {guarantee}", processes, bench.rate, options.runs)


if __name__ == "__main__":
    main()
