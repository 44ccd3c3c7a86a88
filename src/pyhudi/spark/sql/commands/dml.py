"""INSERT, UPDATE, DELETE and MERGE."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StructType

from pyhudi.config import Options, options
from pyhudi.config.enums import DuplicatePolicy, Operation, SqlInsertMode, TableType
from pyhudi.errors import QueryError, SchemaMismatchError
from pyhudi.schema.meta_columns import is_meta_column
from pyhudi.schema.name_resolution import resolve_name
from pyhudi.spark.dml.assignments import column_of, has_same_names, stored_as
from pyhudi.spark.dml.merge_builder import MergeBuilder
from pyhudi.spark.dml.merge_clauses import Clause, MergeAction
from pyhudi.spark.dml.target_table import TargetSnapshot
from pyhudi.spark.dml.update import delete_pinned, update_pinned
from pyhudi.spark.keys.key_generator import jvm_zone, partition_path
from pyhudi.spark.keys.key_text import quoted
from pyhudi.spark.read.load_table import session_settings
from pyhudi.spark.read.table_lineage import snapshots_read
from pyhudi.spark.session_settings import is_case_sensitive
from pyhudi.spark.sql.catalog import SESSION_CATALOG, CatalogTable, full_name, location_key
from pyhudi.spark.sql.commands.static_partitions import StaticValues, matching_partitions, partition_values
from pyhudi.spark.sql.passthrough_statements import spark_sql
from pyhudi.spark.sql.queries.query_rewriting import rewrite_query
from pyhudi.spark.sql.queries.temporary_views import folded, is_temporary
from pyhudi.spark.sql.session_config import session_options
from pyhudi.spark.sql.table_handle import TableHandle
from pyhudi.spark.write.dataframe_writer import key_spec, write
from pyhudi.sql.alias_rewriting import source_alias, source_name, unqualified, with_short_qualifiers
from pyhudi.sql.statements import ClauseKind, Delete, Insert, Merge, Name, PartitionSpec, Update
from pyhudi.storage import Storage, open_storage
from pyhudi.table.config.table_config import TableConfig
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.write.conflict_retries import with_retries
from pyhudi.write.write_operations import type_name
from pyhudi.write.write_result import ChangeResult, WriteResult

_Change = TypeVar("_Change", Update, Delete, Merge)
_SOURCE, _TARGET = "_pyhudi_source", "_pyhudi_target"
_WHERE = "SELECT 1 FROM _pyhudi_nothing WHERE "

_OVERWRITE_MODE = "spark.sql.sources.partitionOverwriteMode"


def write_options(spark: SparkSession, table: CatalogTable) -> dict[str, str]:
    """Return the options of a write: the session's settings for the object store, the table's properties, and the
    session's settings of Apache Hudi over them."""
    return {**session_settings(spark, table.location), **table.options, **session_options(spark)}


def own_schema(spark: SparkSession, table: CatalogTable) -> StructType:
    """Return a table's own columns in the order in which SQL lists them."""
    schema = TableHandle.of(spark, table).load_sql_schema()
    return StructType([field for field in schema.fields if not is_meta_column(field.name)])


# --- insert ----------------------------------------------------------------------------------------------------------


def run_insert(spark: SparkSession, table: CatalogTable, statement: Insert) -> None:
    """Run INSERT INTO or OVERWRITE with the rows of a query, which each attempt reads anew."""
    given = write_options(spark, table)
    opts = Options.parse(given)
    query = _RepeatedQuery(spark, statement.query, open_storage(table.location, opts))
    insertion = _Insertion(statement.overwrite, statement.partition, statement.columns, statement.by_name)

    def attempt() -> WriteResult:
        if statement.if_not_exists and _partition_exists(spark, table, statement, given):
            return WriteResult(table.location, type_name(Operation.INSERT_OVERWRITE))
        return insertion.run(spark, table, query.rows(), given)

    with_retries(query.storage, opts, attempt, query.is_fixed)


class _RepeatedQuery:
    """A query in the attempts to run a statement: each reads Hudi tables as they are then."""

    def __init__(self, spark: SparkSession, text: str, storage: Storage) -> None:
        self._spark = spark
        self._text = text
        self._rows: DataFrame | None = None
        self.storage = storage

    def rows(self) -> DataFrame:
        """Return the rows, from the latest snapshots."""
        self._rows = _latest_rows(self._spark, self._text)
        return self._rows

    def is_fixed(self) -> bool:
        """Return True if the query still reads the table of the statement as the last attempt did."""
        return self._rows is not None and _is_fixed(self._spark, self._text, self.storage, self._rows)


def _partition_exists(spark: SparkSession, table: CatalogTable, statement: Insert, given: Mapping[str, str]) -> bool:
    """Return True if the table has the partition of INSERT OVERWRITE … IF NOT EXISTS.

    Raises:
        QueryError: It is not one partition that is given.
    """
    schema = own_schema(spark, table)
    spec = _named(statement.partition, schema, is_case_sensitive(spark))
    handle = TableHandle.at(spark, table.location, given)
    fields = [field.name for field in handle.load_config().partition_fields]
    if set(spec) != set(fields):
        raise QueryError(f"IF NOT EXISTS needs a value of each partition column: {', '.join(fields)}")
    path = partition_values(spark, spec, schema, _path(spark, handle.client(), handle.opts)).path
    return path in handle.inspect.partitions()["partition"].to_pylist()


def insert_rows(
    spark: SparkSession,
    table: CatalogTable,
    rows: DataFrame,
    *,
    overwrite: bool = False,
    partition: PartitionSpec | None = None,
    columns: tuple[str, ...] = (),
    by_name: bool = False,
) -> None:
    """Insert rows. Their columns are taken by name if they have the names of the table's or ``by_name`` says so, else
    in the order of the table's, or of ``columns``. Meta columns of another table are left out.

    Raises:
        SchemaMismatchError: there are too many columns or too few, or one's type does not go with the table's.
    """
    insertion = _Insertion(overwrite, partition or {}, columns, by_name)
    given = write_options(spark, table)
    opts = Options.parse(given)
    storage = open_storage(table.location, opts)
    with_retries(
        storage,
        opts,
        lambda: insertion.run(spark, table, rows, given),
        lambda: bool(snapshots_read(rows, storage)),
    )


@dataclass(frozen=True, slots=True)
class _Insertion:
    """What `insert_rows` does with its rows. Attributes as its arguments."""

    overwrite: bool
    partition: PartitionSpec
    columns: tuple[str, ...]
    by_name: bool

    def run(self, spark: SparkSession, table: CatalogTable, rows: DataFrame, given: Mapping[str, str]) -> WriteResult:
        """Insert rows once, into the table as it is now. ``given``: its options (`write_options`), which take a query
        of the session's settings."""
        schema = own_schema(spark, table)
        partition = _named(self.partition, schema, is_case_sensitive(spark))
        opts = Options.parse(given)
        client = TableMetaClient.open(table.location, opts)
        static = {name: value for name, value in partition.items() if value is not None}
        values = None
        if static:
            whole = self.overwrite and set(static) == {field.name for field in client.config.partition_fields}
            values = partition_values(spark, static, schema, _path(spark, client, opts) if whole else None)
        aligned = _aligned(spark, rows, schema, static, values, self.columns, self.by_name)
        replaced: list[str] = []
        if not self.overwrite:
            operation = _insert_into(opts, client.config)
        else:
            operation = {options.OPERATION.key: _overwrite(spark, opts, client.config, static)}
            if values is not None and values.path is not None:
                replaced = [values.path]
            elif static and not _is_dynamic(spark, opts):
                replaced = matching_partitions(spark, table, static, values)
        return write(aligned, table.location, {**given, **operation}, "append", partitions=replaced, retries=False)


def _overwrite(spark: SparkSession, opts: Options, config: TableConfig, static: PartitionSpec) -> str:
    """Return the operation of INSERT OVERWRITE, as Apache Hudi decides it: the partitions that match the static values
    are replaced, without such values the whole table, or in dynamic mode the partitions that rows are for."""
    if config.partition_fields and (static or _is_dynamic(spark, opts)):
        return "insert_overwrite"
    return "insert_overwrite_table"


def _is_dynamic(spark: SparkSession, opts: Options) -> bool:
    mode = opts.get_typed(options.OVERWRITE_MODE) or str(spark.conf.get(_OVERWRITE_MODE, "static"))
    return mode.upper() == "DYNAMIC" or opts.text(options.OPERATION) == "insert_overwrite"


def _insert_into(opts: Options, config: TableConfig) -> dict[str, str]:
    """Return the options of INSERT INTO. The settings that 0.14 deprecated count where the operation is not given."""
    operation = options.OPERATION.key
    given = opts.get_typed(options.SQL_INSERT_INTO_OPERATION) or opts.text(options.OPERATION)
    if given:
        return {operation: given}
    if opts.get_typed(options.SQL_BULK_INSERT_ENABLE):
        return {operation: "bulk_insert"}
    mode = opts.get_typed(options.SQL_INSERT_MODE) if config.record_keys else None
    if mode is SqlInsertMode.STRICT and config.table_type is TableType.COPY_ON_WRITE:
        return {operation: "insert", options.INSERT_DUP_POLICY.key: str(DuplicatePolicy.FAIL)}
    upserts = mode in (SqlInsertMode.UPSERT, SqlInsertMode.STRICT)
    return {operation: "upsert" if upserts else "insert"}


def _path(spark: SparkSession, client: TableMetaClient, opts: Options) -> Callable[[StructType], Column]:
    """Return what makes the partition path of columns."""
    spec = key_spec(client, opts)
    zone = jvm_zone(spark) if spec.timestamp is not None else "UTC"
    return lambda schema: partition_path(schema, spec, zone)


def _named(partition: PartitionSpec, schema: StructType, sensitive: bool) -> dict[str, str | None]:
    return {column_of(name, schema, sensitive): value for name, value in partition.items()}


def _aligned(
    spark: SparkSession,
    rows: DataFrame,
    schema: StructType,
    static: Mapping[str, str],
    static_values: StaticValues | None,
    columns: tuple[str, ...],
    by_name: bool,
) -> DataFrame:
    """The rows with the table's columns."""
    if not columns:
        rows = rows.drop(*(name for name in rows.columns if is_meta_column(name)))
    sensitive = is_case_sensitive(spark)
    if columns or by_name:
        wanted = [column_of(name, schema, sensitive) for name in columns or rows.columns]
    else:
        own = StructType([field for field in schema.fields if field.name not in static])
        named = _named_columns(rows.schema, own, sensitive)
        by_name, wanted = bool(named), named or own.names
    if len(rows.columns) != len(wanted):
        raise SchemaMismatchError(
            f"the query has {len(rows.columns)} columns ({', '.join(rows.columns)}), and {len(wanted)} are inserted: "
            f"{', '.join(wanted)}"
        )
    numbered = rows.toDF(*(f"_c{n}" for n in range(len(wanted))))
    values: dict[str, Column] = {}
    for number, name in enumerate(wanted):
        if name in values:
            raise SchemaMismatchError(f"the column {name!r} is inserted twice")
        kind = numbered.schema.fields[number].dataType
        values[name] = stored_as(
            F.col(f"_c{number}"), kind, schema[name].dataType, name, by_position=not (columns or by_name)
        )
    if static_values is not None:
        values |= {name: static_values.column(name, text, schema[name].dataType) for name, text in static.items()}
    for field in schema.fields:
        values.setdefault(field.name, F.lit(None).cast(field.dataType))
    return numbered.select(*(values[field.name].alias(field.name) for field in schema.fields))


def _named_columns(given: StructType, wanted: StructType, sensitive: bool) -> list[str]:
    """Return the table's columns that the columns of a query are called as; none if the query does not have the names
    of all columns, and of all fields in them. Then columns and fields are taken by position, as Apache Hudi does."""
    names = [resolve_name(name, wanted.names, case_sensitive=sensitive) for name in given.names]
    found = [name for name in names if name is not None]
    if len(found) < len(names) or sorted(found) != sorted(wanted.names):
        return []
    same = (has_same_names(own.dataType, wanted[name].dataType) for own, name in zip(given.fields, found, strict=True))
    return found if all(same) else []


# --- update, delete, merge -------------------------------------------------------------------------------------------


def run_update(spark: SparkSession, table: CatalogTable, statement: Update) -> None:
    """Run UPDATE."""
    statement = _with_short_qualifiers(spark, table, statement)
    alias = statement.alias or statement.name[-1]
    opts = Options.parse(write_options(spark, table))
    subqueries = _Subqueries(spark, table, open_storage(table.location, opts))

    def attempt() -> ChangeResult:
        pinned = TargetSnapshot.pin(spark, table.location, opts)
        assigned = {name: subqueries.shown(value) for name, value in statement.assigned.items()}
        where = None if statement.where is None else subqueries.shown(statement.where)
        plain = {unqualified(name, alias) or name: unqualified(value, alias) for name, value in assigned.items()}
        if len(plain) < len(assigned):
            raise QueryError(f"a column is assigned twice: {', '.join(assigned)}")
        condition = None if where is None else unqualified(where, alias)
        whole = subqueries.read_the_table
        if None in plain.values() or (where is not None and condition is None):
            return update_pinned(spark, pinned, assigned, where, alias, reads_whole_table=whole)
        return update_pinned(spark, pinned, plain, condition, reads_whole_table=whole)

    with_retries(subqueries.storage, opts, attempt, subqueries.are_fixed)


def run_delete(spark: SparkSession, table: CatalogTable, statement: Delete) -> None:
    """Run DELETE."""
    statement = _with_short_qualifiers(spark, table, statement)
    alias = statement.alias or statement.name[-1]
    opts = Options.parse(write_options(spark, table))
    subqueries = _Subqueries(spark, table, open_storage(table.location, opts))

    def attempt() -> ChangeResult:
        pinned = TargetSnapshot.pin(spark, table.location, opts)
        where = None if statement.where is None else subqueries.shown(statement.where)
        whole, condition = subqueries.read_the_table, None if where is None else unqualified(where, alias)
        if where is not None and condition is None:
            return delete_pinned(spark, pinned, where, alias, reads_whole_table=whole)
        return delete_pinned(spark, pinned, condition, reads_whole_table=whole)

    with_retries(subqueries.storage, opts, attempt, subqueries.are_fixed)


def run_merge(spark: SparkSession, table: CatalogTable, statement: Merge) -> None:
    """Run MERGE."""
    names = _MergeNames.of(spark, table, statement)
    statement = names.with_short_qualifiers(spark, table, statement)
    clauses = tuple(
        Clause(clause.kind, MergeAction[clause.action], clause.values, clause.condition) for clause in statement.clauses
    )
    for clause in clauses:
        if (clause.action is MergeAction.INSERT) != (clause.kind is ClauseKind.NOT_MATCHED):
            raise QueryError(f"WHEN {clause.kind.value} cannot {clause.action.name}")
        if (
            clause.kind is ClauseKind.NOT_MATCHED_BY_SOURCE
            and clause.action is MergeAction.UPDATE
            and clause.values is None
        ):
            raise QueryError("WHEN NOT MATCHED BY SOURCE has no source row to UPDATE SET * from")
    opts = Options.parse(write_options(spark, table))

    query = _RepeatedQuery(spark, f"SELECT * FROM {statement.source}", open_storage(table.location, opts))

    def attempt() -> ChangeResult:
        pinned = TargetSnapshot.pin(spark, table.location, opts)
        source = query.rows()
        builder = MergeBuilder(
            table.location,
            opts,
            names.target,
            source if names.source is None else source.alias(names.source),
            statement.on,
            source_alias=names.source,
        )
        for clause in clauses:
            builder = builder.with_clause(clause)
        return builder.execute_pinned(pinned)

    with_retries(query.storage, opts, attempt, query.is_fixed)


def _with_short_qualifiers(
    spark: SparkSession, table: CatalogTable, statement: _Change, alias: str | None = None
) -> _Change:
    """Return a statement whose columns are qualified by the table's last name, or an alias that is given, where they
    are by its full name, unless the table has a column that is called as the database: its fields are written alike."""
    if statement.alias is not None:
        return statement
    changed = _with_qualifiers(statement, (SESSION_CATALOG, *table.name), alias)
    if changed == statement or resolve_name(table.name[0], own_schema(spark, table).names) is not None:
        return statement
    return changed


def _with_qualifiers(statement: _Change, name: Name, alias: str | None) -> _Change:
    """Return a statement with the last part of a name, or an alias, where columns are qualified by the whole."""

    def short(text: str | None) -> str | None:
        return None if text is None else with_short_qualifiers(text, name, alias)

    def all_short(values: Mapping[str, str]) -> dict[str, str]:
        return {str(short(name)): str(short(value)) for name, value in values.items()}

    match statement:
        case Update():
            return replace(statement, assigned=all_short(statement.assigned), where=short(statement.where))
        case Delete():
            return replace(statement, where=short(statement.where))
        case Merge():
            clauses = tuple(
                replace(
                    clause,
                    condition=short(clause.condition),
                    values=None if clause.values is None else all_short(clause.values),
                )
                for clause in statement.clauses
            )
            return replace(statement, on=str(short(statement.on)), clauses=clauses)


@dataclass(frozen=True, slots=True)
class _MergeNames:
    """What the sides of a MERGE are called in its condition and clauses.

    Args:
        target: Alias of the target.
        source: Alias of the source; None: it has none.
        source_name: The source's full name if it is a table without an alias.
        alike: Whether the last names of both are the same, so that they have aliases that nothing else has.
    """

    target: str
    source: str | None
    source_name: Name | None = None
    alike: bool = False

    @classmethod
    def of(cls, spark: SparkSession, table: CatalogTable, statement: Merge) -> _MergeNames:
        """Return the names in a statement. Two tables of the same last name are told apart by their databases."""
        target = statement.alias or statement.name[-1]
        name = source_name(statement.source)
        if name is None:
            return cls(target, source_alias(statement.source))
        name = name if len(name) > 2 else (SESSION_CATALOG, *full_name(spark, name))
        own = (SESSION_CATALOG, *table.name)
        alike = statement.alias is None and folded(name) != folded(own) and folded(name[-1:]) == folded(own[-1:])
        return cls(_TARGET, _SOURCE, name, True) if alike else cls(target, source_alias(statement.source), name)

    def with_short_qualifiers(self, spark: SparkSession, table: CatalogTable, statement: Merge) -> Merge:
        """Return the statement with the names of both sides where columns are qualified by full names, unless one of
        them has a column that is called as the source's database."""
        short = _with_short_qualifiers(spark, table, statement, self.target if self.alike else None)
        if self.source_name is None:
            return short
        changed = _with_qualifiers(short, self.source_name, self.source if self.alike else None)
        if changed == short:
            return short
        columns = spark_sql(spark, rewrite_query(spark, f"SELECT * FROM {statement.source}").text).columns
        taken = resolve_name(self.source_name[-2], [*columns, *own_schema(spark, table).names])
        return changed if taken is None else short


class _Subqueries:
    """The subqueries of the attempts to run a statement. The table is pinned before they are made, so that they never
    show it as it was before."""

    def __init__(self, spark: SparkSession, table: CatalogTable, storage: Storage) -> None:
        self._spark = spark
        self._location = location_key(table.location)
        self._views: set[Name] = set()
        self.storage = storage
        self.read_the_table = False

    def shown(self, expression: str) -> str:
        """Return an expression with the Hudi tables of its subqueries by names that Spark knows."""
        prepared = rewrite_query(self._spark, _WHERE + expression)
        self.read_the_table |= any(location_key(location) == self._location for location in prepared.locations)
        self._views.update(prepared.views)
        return prepared.text[len(_WHERE) :]

    def are_fixed(self) -> bool:
        """Return True if one reads the table of the statement by a temporary view that still shows it as before."""
        views = (quoted(name) for name in self._views if is_temporary(self._spark, name))
        return any(_is_fixed(self._spark, f"SELECT * FROM {view}", self.storage) for view in views)


def _is_fixed(spark: SparkSession, query: str, storage: Storage, last: DataFrame | None = None) -> bool:
    """Return True if a query reads a table as it was before: by a temporary view of a loaded DataFrame, or as files.

    Args:
        spark: The session.
        query: The query.
        storage: Storage of the table.
        last: The rows of the query that were read last; None: those that its views show without being brought up to
            date.
    """
    before = snapshots_read(spark_sql(spark, query) if last is None else last, storage)
    return bool(before) and not before.isdisjoint(snapshots_read(_latest_rows(spark, query), storage))


def _latest_rows(spark: SparkSession, query: str) -> DataFrame:
    """Return the rows of a query, of the latest snapshots of Hudi tables."""
    return spark_sql(spark, rewrite_query(spark, query).text)
