"""SqlSink on a warm pyconnect agent beside Debezium's JDBC sink on a warm Java worker.

    scripts/benchmark sql_beside_java [--rows N] [--runs N] [--mode insert|upsert]

Both read one topic, JSON with schemas, and write to one PostgreSQL, in turn, each run into a table
of its own with a primary key. A row has an integer key, a text of 40 characters, a number, a
timestamp and an integer. A rate is counted from the first rows in the table until the last. In a
round SqlSink runs with each guarantee, and Debezium's sink once; the first two rounds of a mode are
not measured. The ratios are those of rounds. Debezium's sink is at-least-once, and has the driver's
option that joins inserts. All other settings are the defaults of each. PostgreSQL's processor time
is part of none. It writes a checkpoint before each run, and does not vacuum the tables.
"""

import argparse
import contextlib
import json
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import psycopg
from confluent_kafka import Producer

from benchmarks.beside_java import JSON_VALUES, WORKER, in_turn
from benchmarks.file_stream import find_runtime
from benchmarks.sides import Process, Side, both, print_head, print_rates
from tests.support.names import unique_name
from tests.support.plugins.maven_plugins import JDBC_SINK
from tests.support.servers.kafka import Servers
from tests.support.servers.postgres import PASSWORD, USER, PostgresServer, running_postgres
from tests.support.servers.topics import create_topics

COLUMNS = "id bigint PRIMARY KEY, note text, price double precision, changed timestamp, amount int"
SCHEMA = {
    "type": "struct",
    "optional": False,
    "fields": [
        {"field": "id", "type": "int64", "optional": False},
        {"field": "note", "type": "string", "optional": True},
        {"field": "price", "type": "double", "optional": True},
        {
            "field": "changed",
            "type": "int64",
            "optional": True,
            "name": "org.apache.kafka.connect.data.Timestamp",
            "version": 1,
        },
        {"field": "amount", "type": "int32", "optional": True},
    ],
}
START_MS = 1_704_067_200_000
FLUSH_ROWS = 50_000
"""Fewer records than a producer's queue holds."""


MODES = ("insert", "upsert")
GUARANTEES = ("exactly-once", "at-least-once")
PEER = "peer"
WARM_UP = 2
"""The Java worker needs more than one run of 100,000 rows until its code is compiled."""


def fill(bootstrap_servers: str, topic: str, rows: int) -> None:
    """Write the records that all runs read."""
    producer = Producer({"bootstrap.servers": bootstrap_servers, "linger.ms": 100})
    head = json.dumps({"schema": SCHEMA})[:-1]
    for n in range(1, rows + 1):
        row = {
            "id": n,
            "note": f"order number {n:>20} note",
            "price": n / 7,
            "changed": START_MS + n,
            "amount": n % 100,
        }
        producer.produce(topic, f'{head}, "payload": {json.dumps(row)}}}')
        if n % FLUSH_ROWS == 0:
            producer.flush()
    producer.flush()


def java_sink(server: PostgresServer, mode: str, database: str, table: str) -> dict[str, str]:
    key = {"primary.key.mode": "record_value", "primary.key.fields": "id"}
    return {
        "connector.class": "io.debezium.connector.jdbc.JdbcSinkConnector",
        "connection.url": (
            f"jdbc:postgresql://127.0.0.1:{server.port}/{database}?reWriteBatchedInserts=true"
        ),
        "connection.username": USER,
        "connection.password": PASSWORD,
        "collection.name.format": table,
        "insert.mode": mode,
        "schema.evolution": "none",
        **(key if mode == "upsert" else {"primary.key.mode": "none"}),
    }


def our_sink(server: PostgresServer, mode: str, database: str, table: str) -> dict[str, str]:
    key = {"pk.mode": "record_value", "pk.fields": "id"}
    return {
        "connector.class": "SqlSink",
        **server.settings(database),
        "table.name.format": table,
        "insert.mode": mode,
        **(key if mode == "upsert" else {}),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    server: PostgresServer
    database: str
    topic: str
    rows: int

    def measure(self, mode: str, processes: Mapping[str, Process], runs: int) -> None:
        """Print a row for each guarantee, beside the same runs of Debezium's sink."""
        sides = {name: Side(processes["ours"]) for name in GUARANTEES}
        sides[PEER] = Side(processes[PEER])
        rates = in_turn(
            tuple(sides), lambda name: self._rate(mode, name, sides[name]), runs, warm_up=WARM_UP
        )
        for name in GUARANTEES:
            print_rates(f"{mode}, {name}", rates[PEER], rates[name], sides[PEER], sides[name])

    def _rate(self, mode: str, name: str, side: Side) -> float:
        with self._table() as (connection, table):
            if name == PEER:
                sink = java_sink(self.server, mode, self.database, table)
            else:
                sink = our_sink(self.server, mode, self.database, table)
                sink["delivery.guarantee"] = name
            config = {
                "name": unique_name("sink"),
                "topics": self.topic,
                "tasks.max": "1",
                **sink,
                **JSON_VALUES,
            }
            # One task writes the rows in order, and the index answers this query at once.
            last = partial(_number, connection, f"SELECT coalesce(max(id), 0) FROM {table}")
            found = side.rate(config, last, last, self.rows)
            written = _number(connection, f"SELECT count(*) FROM {table}")
            if written != self.rows:
                raise AssertionError(f"{written} rows, not {self.rows}")
            return found

    @contextlib.contextmanager
    def _table(self) -> Iterator[tuple[psycopg.Connection, str]]:
        table = unique_name("rows").replace("-", "_")
        with self.server.connect(self.database) as connection:
            # A vacuum of a side's table would slow down the run of the other side.
            connection.execute(
                f"CREATE TABLE {table} ({COLUMNS}) WITH (autovacuum_enabled = false)".encode()
            )
            connection.execute("CHECKPOINT")
            yield connection, table
            connection.execute(f"DROP TABLE {table}".encode())


def _number(connection: psycopg.Connection, statement: str) -> int:
    ((found,),) = connection.execute(statement.encode())
    return int(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--mode", choices=MODES, action="append", help="both by default")
    options = parser.parse_args()
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(running_postgres())
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        servers = stack.enter_context(contextlib.closing(Servers(find_runtime(), directory)))
        address = servers.broker().bootstrap_servers
        bench = Bench(
            server=server,
            database=server.new_database(),
            topic=unique_name("rows"),
            rows=options.rows,
        )
        create_topics(address, [bench.topic])
        fill(address, bench.topic, bench.rows)
        processes = stack.enter_context(both(servers, address, JDBC_SINK, WORKER))
        print_head(f"{options.runs} runs of {options.rows} rows")
        for mode in options.mode or MODES:
            bench.measure(mode, processes, options.runs)


if __name__ == "__main__":
    main()
