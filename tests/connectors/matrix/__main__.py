"""Run the matrix and print what is not equal: `python -m tests.connectors.matrix [source] …`."""

from __future__ import annotations

import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path as FilePath

from tests.connectors.matrix import fitting
from tests.connectors.matrix.columns import Cell
from tests.connectors.matrix.databases import MariaDb, Postgres, Sqlite
from tests.connectors.matrix.file_columns import CSV, JSON, PARQUET
from tests.connectors.matrix.files import FileSource, LakeTarget
from tests.connectors.matrix.mariadb_columns import MARIADB
from tests.connectors.matrix.outcomes import Outcome, Path
from tests.connectors.matrix.paths import DatabaseSource, DatabaseTarget
from tests.connectors.matrix.postgres_columns import POSTGRES
from tests.connectors.matrix.rules import unsupported
from tests.connectors.matrix.sqlite_columns import SQLITE
from tests.connectors.matrix.topics import Topic
from tests.support.mariadb import running_mariadb
from tests.support.postgres import running_postgres


def main() -> None:
    import logging
    logging.disable(logging.CRITICAL)
    wanted = sys.argv[1:]
    with ExitStack() as stack:
        scratch = FilePath(stack.enter_context(tempfile.TemporaryDirectory()))
        postgres = Postgres(stack.enter_context(running_postgres()))
        mariadb = MariaDb(stack.enter_context(running_mariadb()))
        sqlite = Sqlite(scratch / "matrix.db")
        if wanted[:1] == ["fits"]:
            for database in (postgres, mariadb, sqlite):
                for fault in fitting.faults(database):
                    print(database.name, fault[:330], flush=True)
            return
        columns = {"PostgreSQL": POSTGRES, "MariaDB": MARIADB, "SQLite": SQLITE, "Parquet": PARQUET, "JSON": JSON, "CSV": CSV}
        for column in POSTGRES:
            if column.setup:
                postgres.execute(column.setup)
        sources = [DatabaseSource(d) for d in (postgres, mariadb, sqlite)]
        sources += [FileSource(f, scratch) for f in ("parquet", "json", "csv")]
        for source in sources:
            database = getattr(source, "database", None)
            targets = [
                *([DatabaseTarget(database, same_types=True)] if database else []),
                *(DatabaseTarget(each) for each in (postgres, mariadb, sqlite)),
                *(LakeTarget(each, scratch) for each in ("parquet", "json", "csv", "iceberg")),
            ]
            refused: dict[Cell, Outcome] = {}
            cells = [Cell(c, v) for c in columns[source.name] for v in c.values]
            for topic in Topic:
                for target in targets:
                    name = f"{source.name} -> {topic} -> {target.name}"
                    if any(word not in name for word in wanted):
                        continue
                    if unsupported(source.name, topic, target.name):
                        continue
                    began = time.monotonic()
                    path = Path(source, topic, target, refused)
                    faults = path.faults(cells)
                    print(f"## {name} {len(faults)} faults {time.monotonic() - began:.1f} s", flush=True)
                    for fault in faults:
                        print(f"  {fault}")


main()
