"""Iceberg catalogs through pyiceberg: tables, offsets in their snapshots, errors as Connect's."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout, suppress
from io import StringIO
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa
import pyiceberg.io.pyarrow
from pyiceberg import exceptions
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.io.pyarrow import (
    ArrowProjectionVisitor,
    UnsupportedPyArrowTypeException,
    _check_pyarrow_schema_compatible,
    _dataframe_to_data_files,
)
from pyiceberg.manifest import DataFile
from pyiceberg.schema import Schema, assign_fresh_schema_ids, index_by_name, sanitize_column_names
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.transforms import parse_transform
from pyiceberg.types import StringType
from pyiceberg.utils.truncate import truncate_upper_bound_text_string
from requests import RequestException
from sqlalchemy.exc import DBAPIError, IntegrityError, OperationalError, SQLAlchemyError

from pyconnect_api import ConnectException, RetriableException
from pyconnect_connectors.lake.settings import PARTITION_BY, TableSettings
from pyconnect_connectors.lake.storage import reason

COMMIT_KEY = "pyconnect.commit-id"
OFFSETS_KEY = "pyconnect.offsets."
"""The connector's name follows; the value in a summary is JSON: `{"topic-0": 17}`."""
_PASSING = (
    exceptions.CommitFailedException,
    exceptions.CommitStateUnknownException,
    OperationalError,
    RequestException,
    exceptions.ServerError,
    exceptions.ServiceUnavailableError,
    exceptions.TooManyRequestsError,
)
_PERMANENT = (
    FileNotFoundError,
    exceptions.NoSuchNamespaceError,
    exceptions.NoSuchTableError,
    exceptions.NotInstalledError,
    PermissionError,
    exceptions.RESTError,
    SQLAlchemyError,
    ValueError,
    pa.ArrowException,
)


def open_catalog(settings: TableSettings) -> Catalog:
    """Return the catalog of a config; create a local warehouse's directory if it is missing."""
    warehouse = urlsplit(settings.properties.get("warehouse", ""))
    if warehouse.scheme == "file" and settings.properties["type"] == "sql":
        Path(warehouse.path).mkdir(parents=True, exist_ok=True)
    return load_catalog(settings.catalog, **settings.properties)


def load_table(catalog: Catalog, name: str) -> Table | None:
    """Return the current table, None if it does not exist."""
    try:
        return catalog.load_table(name)
    except (exceptions.NoSuchTableError, exceptions.NoSuchNamespaceError):
        return None


def new_table(catalog: Catalog, name: str, schema: Any, partition_by: Sequence[str]) -> Table:
    """Create a table with an Arrow schema's columns, all optional, unless another task does so."""
    identifier = tuple(name.split("."))
    # The SQL catalog looks for a namespace before it adds the row: another task may be first.
    with suppress(exceptions.NamespaceAlreadyExistsError, IntegrityError):
        catalog.create_namespace_if_not_exists(identifier[:-1])
    columns = pa.schema([field.with_nullable(True) for field in schema])
    with (
        suppress(exceptions.TableAlreadyExistsError, exceptions.CommitFailedException),
        catalog.create_table_transaction(identifier, schema=columns) as transaction,
        transaction.update_spec() as spec,
    ):
        for text in partition_by:
            transform, field = _partitioning(text)
            spec.add_field(field, parse_transform(transform))
    return catalog.load_table(identifier)


def _partitioning(text: str) -> tuple[str, str]:
    """Return the transform and the field of an entry of the partitioning."""
    found = re.fullmatch(r"(\w+)\((.+)\)", text)
    return ("identity", text) if found is None else (found[1], found[2])


def check_new_table(rows: Any, partition_by: Sequence[str]) -> None:
    """Raise ValueError if no table can have an Arrow schema, or be partitioned in this way."""
    schema = assign_fresh_schema_ids(Catalog._convert_schema_if_needed(rows))  # noqa: SLF001
    # In files, characters of names are replaced, after which two names may be equal.
    index_by_name(sanitize_column_names(schema))
    for text in partition_by:
        transform, name = _partitioning(text)
        try:
            kind = schema.find_type(name)
        except ValueError:
            raise ValueError(f"{PARTITION_BY} names {name}, which the rows lack") from None
        if not parse_transform(transform).can_transform(kind):
            raise ValueError(f"{PARTITION_BY} has {text}, and the field is {kind}")


def add_columns(table: Table, schema: Any) -> None:
    """Add the columns that a table lacks, and widen those that are too narrow."""
    with table.update_schema() as update:
        update.union_by_name(_wanted(table, schema))


def evolved(table: Table, schema: Any) -> Schema:
    """Return the schema that `add_columns` would give a table; ValueError if it would fail."""
    return table.update_schema().union_by_name(_wanted(table, schema))._apply()  # noqa: SLF001


def _wanted(table: Table, schema: Any) -> Any:
    known = {column.name for column in table.schema().columns}
    # pyiceberg would also change a column's scale, and thereby the values of stored rows.
    kinds = fitting_types(table.schema().as_arrow(), schema, widens=True)
    fields = [field.with_type(kinds[field.name]) for field in schema]
    return pa.schema([f if f.name in known else f.with_nullable(True) for f in fields])


def fitting_types(held: Any, rows: Any, *, widens: bool) -> Mapping[str, Any]:
    """Return, by field of the rows, the Arrow type in which each value has to fit.

    Both schemas are Arrow's. A decimal gets the table's scale. Unless the table `widens`, numbers
    also get the table's type if that has fewer digits.
    """
    types = {field.name: field.type for field in held}
    return {f.name: _fitted(types.get(f.name, f.type), f.type, widens=widens) for f in rows}


def _fitted(held: Any, given: Any, *, widens: bool) -> Any:
    def fitted(field: Any, other: Any) -> Any:
        return field.with_type(_fitted(other, field.type, widens=widens))

    if isinstance(held, pa.Decimal128Type) and isinstance(given, pa.Decimal128Type):
        return pa.decimal128(given.precision, held.scale) if widens else held
    if pa.types.is_struct(given) and pa.types.is_struct(held):
        types = {field.name: field.type for field in held}
        return pa.struct([fitted(field, types.get(field.name, field.type)) for field in given])
    if pa.types.is_list(given) and hasattr(held, "value_field"):
        return pa.list_(fitted(given.value_field, held.value_type))
    if pa.types.is_map(given) and pa.types.is_map(held):
        return pa.map_(given.key_field, fitted(given.item_field, held.item_type))
    is_narrower = given == pa.int64() and held == pa.int32() and not widens
    return held if is_narrower else given


def merged(schemas: Sequence[Any]) -> Any:
    """Return the Arrow schema of a new table for the rows of all these schemas.

    Raise ArrowException or ValueError if no schema keeps all of their values.
    """
    found = pa.unify_schemas(schemas, promote_options="permissive")
    for schema in schemas:
        for field in schema:
            kind = found.field(field.name).type
            if _changes_numbers(field.type, kind):
                raise ValueError(f"Column {field.name} has the types {field.type} and {kind}")
    try:
        Catalog._convert_schema_if_needed(found)  # noqa: SLF001  as to create the table
    except UnsupportedPyArrowTypeException as error:
        raise ValueError(str(error)) from None
    return found


def _changes_numbers(given: Any, wanted: Any) -> bool:
    """Return whether whole numbers would become floats, also within lists, maps and structs."""
    if pa.types.is_nested(given):
        pairs = zip(_parts(given), _parts(wanted), strict=False)
        return any(_changes_numbers(*pair) for pair in pairs)
    return bool(pa.types.is_integer(given) and pa.types.is_floating(wanted))


def _parts(kind: Any) -> Sequence[Any]:
    if pa.types.is_map(kind):
        return kind.key_type, kind.item_type
    return [kind.field(index).type for index in range(kind.num_fields)]


def misfit(schema: Schema, rows: Any) -> str:
    """Return why rows of an Arrow schema do not fit a table's columns, or an empty text."""
    missing = [c.name for c in schema.fields if c.required and c.name not in rows.names]
    if missing:
        return f"the rows lack the required columns {', '.join(missing)}"
    kinds = fitting_types(schema.as_arrow(), rows, widens=True)
    for field in rows:
        column = schema.find_field(field.name)
        try:
            if kinds[field.name] != field.type or (
                pa.types.is_binary(field.type) and isinstance(column.field_type, StringType)
            ):
                # The library would take another scale, and bytes that may not be a text.
                raise ValueError
            # The library prints its findings to the standard output.
            with redirect_stdout(StringIO()):
                _check_pyarrow_schema_compatible(Schema(column), pa.schema([field]))
        except ValueError:
            given = f"{'' if field.nullable or not column.required else 'optional '}{field.type}"
            return f"column {column.name} is {column.field_type}, and the rows have {given}"
    return ""


def stored_offsets(table: Table, connector: str) -> dict[str, int]:
    """Return a connector's offsets by `topic-partition`, from the newest snapshot that has any."""
    snapshot = table.current_snapshot()
    while snapshot is not None:
        summary = snapshot.summary
        text = None if summary is None else summary.get(f"{OFFSETS_KEY}{connector}")
        if text is not None:
            return {str(name): int(offset) for name, offset in json.loads(text).items()}
        parent = snapshot.parent_snapshot_id
        snapshot = None if parent is None else table.snapshot_by_id(parent)
    return {}


def is_commit(snapshot: Snapshot, commit_id: str) -> bool:
    return snapshot.summary is not None and snapshot.summary.get(COMMIT_KEY) == commit_id


class _Projection(ArrowProjectionVisitor):
    """pyiceberg's projection, but a null list or map of structs does not become empty."""

    def list(self, list_type: Any, list_array: Any, value_array: Any) -> Any:
        return _null_as(list_array, super().list(list_type, list_array, value_array))

    def map(self, map_type: Any, map_array: Any, key_result: Any, value_result: Any) -> Any:
        return _null_as(map_array, super().map(map_type, map_array, key_result, value_result))


def _null_as(found: Any, made: Any) -> Any:
    if made is None or made.null_count == found.null_count:
        return made
    parts = (made.keys, made.items) if isinstance(made, pa.MapArray) else (made.values,)
    # Arrow's functions would drop the fields' ids, and no mask is taken beside sliced offsets.
    offsets = pa.array(made.offsets.to_numpy())
    return type(made).from_arrays(offsets, *parts, type=made.type, mask=found.is_null())


def _upper_bound(value: str, trunc_length: int | None) -> str | None:
    """Return the library's bound with U+E000 in place of U+D800, which UTF-8 cannot encode."""
    found = truncate_upper_bound_text_string(value, trunc_length)
    return None if found is None else found.replace("\ud800", "\ue000")


pyiceberg.io.pyarrow.truncate_upper_bound_text_string = _upper_bound  # type: ignore[attr-defined]
pyiceberg.io.pyarrow.ArrowProjectionVisitor = _Projection  # type: ignore[misc]


def data_files(table: Table, rows: Any) -> list[DataFile]:
    """Write an Arrow table to data files that no snapshot of the table has yet.

    Raise ConnectException if the files do not have each row once, as when -0.0 or NaN is a
    partition.
    """
    files: list[DataFile] = []
    # pyiceberg divides by 0, the number of rows that it finds in a NaN partition.
    with suppress(ZeroDivisionError):
        files += _dataframe_to_data_files(table.metadata, rows, table.io)
    if (count := sum(file.record_count for file in files)) != rows.num_rows:
        raise ConnectException(
            f"{rows.num_rows} rows became {count} in the files of {'.'.join(table.name())}: does a "
            "field that it is partitioned by have NaN or -0.0?"
        )
    return files


def append_once(
    table: Table,
    files: Sequence[DataFile],
    connector: str,
    offsets: Mapping[str, int],
    commit_id: str,
) -> None:
    """Add a snapshot with files and the offsets of a connector, as `commit_once` does."""
    kept = {f"{OFFSETS_KEY}{connector}": json.dumps(offsets, sort_keys=True)}
    commit_once(table, files, commit_id, kept)


def commit_once(
    table: Table,
    added: Sequence[DataFile],
    commit_id: str,
    properties: Mapping[str, str] = MappingProxyType({}),
    removed: Sequence[DataFile] = (),
) -> None:
    """Add a snapshot after the loaded one; raise CommitFailedException if a newer one exists.

    `removed`: data files that the snapshot drops, each as often as the table names it. pyiceberg
    itself would repeat the commit without a look at the offsets that came between.
    """
    once = {**table.metadata.properties, "commit.retry.num-retries": "0"}
    table.metadata = table.metadata.model_copy(update={"properties": once})
    summary = {**properties, COMMIT_KEY: commit_id}
    with table.transaction() as transaction:
        update = transaction.update_snapshot(snapshot_properties=summary)
        snapshot: Any
        with update.overwrite() if removed else update.fast_append() as snapshot:
            for data_file in added:
                snapshot.append_data_file(data_file)
            if removed:
                # pyiceberg's set would count a file once that the table names twice.
                snapshot._deleted_data_files = [*removed]  # noqa: SLF001


@contextmanager
def catalog_errors(action: str) -> Iterator[None]:
    """Raise the library's errors as RetriableException or ConnectException."""
    try:
        yield
    except _PASSING as error:
        raise RetriableException(f"{action}: {_reason(error)}") from None
    except _PERMANENT as error:
        raise ConnectException(f"{action}: {_reason(error)}") from None
    except OSError as error:
        raise RetriableException(f"{action}: {reason(error)}") from None


def _reason(error: Exception) -> str:
    # SQLAlchemy's text would show the statement's parameters.
    cause = error.orig if isinstance(error, DBAPIError) and error.orig is not None else error
    return reason(cause) if isinstance(cause, Exception) else type(cause).__name__
