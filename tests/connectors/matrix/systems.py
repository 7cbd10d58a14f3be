"""The sources and targets of the matrix, and the paths between them."""

from collections.abc import Iterator
from pathlib import Path as FilePath

from tests.connectors.matrix.columns import Cell
from tests.connectors.matrix.databases import MariaDb, Postgres, Sqlite
from tests.connectors.matrix.document import CATALOG
from tests.connectors.matrix.files import FileSource, LakeTarget
from tests.connectors.matrix.fitting import Columns, DatabaseColumns, IcebergColumns
from tests.connectors.matrix.outcomes import Outcome, Path
from tests.connectors.matrix.paths import DatabaseSource, DatabaseTarget, Source, Target
from tests.connectors.matrix.rules import unsupported
from tests.connectors.matrix.topics import Topic
from tests.support.servers.mariadb import MariaDbServer
from tests.support.servers.postgres import PostgresServer


class Systems:
    """Databases and directories of one run."""

    def __init__(self, postgres: PostgresServer, mariadb: MariaDbServer, scratch: FilePath) -> None:
        self.databases = {
            each.name: each
            for each in (Postgres(postgres), MariaDb(mariadb), Sqlite(scratch / "matrix.db"))
        }
        self.databases["PostgreSQL"].execute(
            *(column.setup for column in CATALOG["PostgreSQL"] if column.setup)
        )
        self.sources: dict[str, Source] = {
            **{name: DatabaseSource(database) for name, database in self.databases.items()},
            "Parquet": FileSource("parquet", scratch),
            "JSON": FileSource("json", scratch),
            "CSV": FileSource("csv", scratch),
        }
        self.columns: dict[str, Columns] = {
            **{name: DatabaseColumns(database) for name, database in self.databases.items()},
            "Iceberg": IcebergColumns(scratch),
        }
        self._scratch = scratch
        self._refused: dict[str, dict[Cell, Outcome]] = {name: {} for name in self.sources}

    def close(self) -> None:
        for database in self.databases.values():
            database.close()

    def targets(self, source: str) -> list[Target]:
        """Return the targets of a source; tables with the source's own types come first."""
        same = self.databases.get(source)
        formats = ("parquet", "json", "csv", "iceberg")
        return [
            *([DatabaseTarget(same, same_types=True)] if same is not None else []),
            *map(DatabaseTarget, self.databases.values()),
            *(LakeTarget(each, self._scratch) for each in formats),
        ]

    def paths(self, source: str) -> Iterator[Path]:
        """Yield the supported paths from a source."""
        for topic in Topic:
            for target in self.targets(source):
                if not unsupported(source, topic, target.name):
                    found = self.sources[source]
                    yield Path(found, topic, target, self._refused[source])


def cells_of(source: str) -> list[Cell]:
    """Return the values of all columns of a source."""
    return [Cell(column, value) for column in CATALOG[source] for value in column.values]
