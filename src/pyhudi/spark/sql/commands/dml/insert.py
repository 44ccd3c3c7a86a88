"""INSERT INTO, INSERT OVERWRITE and INSERT … REPLACE WHERE."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.types import StructType

from pyhudi.config import Options, options
from pyhudi.config.enums import Operation
from pyhudi.errors import QueryError
from pyhudi.spark.dml.assignments.column_assignments import column_of
from pyhudi.spark.dml.replace_where import replace_where_pinned
from pyhudi.spark.dml.target_snapshot import TargetSnapshot
from pyhudi.spark.read.table_lineage import snapshot_ids
from pyhudi.spark.session import spark_sql
from pyhudi.spark.session_settings import is_case_sensitive
from pyhudi.spark.sql.catalog import CatalogTable
from pyhudi.spark.sql.commands.command_target import (
    own_schema,
    with_write_options,
    without_meta_columns,
    write_options,
)
from pyhudi.spark.sql.commands.dml.column_qualifiers import with_target_qualifiers
from pyhudi.spark.sql.commands.dml.insert_columns import InsertColumns
from pyhudi.spark.sql.commands.dml.insert_operations import (
    insert_into_options,
    is_dynamic_overwrite,
    overwrite_operation,
)
from pyhudi.spark.sql.commands.dml.repeated_query import RepeatedQuery
from pyhudi.spark.sql.commands.static_partitions import matching_partitions, partition_values
from pyhudi.spark.sql.queries.query_rewriting import rewrite_query
from pyhudi.spark.sql.sql_table import SqlTable
from pyhudi.spark.write.dataframe_writer import append_once
from pyhudi.spark.write.write_preparation import partition_path_spec
from pyhudi.sql.parsers.insert_defaults import with_null_items, with_null_values
from pyhudi.sql.rewriting.alias_rewriting import unqualified
from pyhudi.sql.statements import Delete, Insert, PartitionSpec
from pyhudi.sql.table_references import find_references
from pyhudi.storage import open_storage
from pyhudi.table.config.table_config import TableConfig
from pyhudi.write.conflict_retries import with_retries
from pyhudi.write.write_operations import type_name
from pyhudi.write.write_result import WriteResult


def run_insert(spark: SparkSession, table: CatalogTable, statement: Insert) -> None:
    """Run INSERT INTO or OVERWRITE with the rows of a query, which each attempt runs again."""
    condition = None if statement.replace_where is None else _replace_condition(spark, table, statement)
    table = with_write_options(table, statement.options)
    write_opts = write_options(spark, table)
    opts = Options.parse(write_opts)
    query = RepeatedQuery(spark, _inserted_query(spark, statement.query), open_storage(table.location, opts))
    insertion = _Insertion.of_statement(statement)

    def attempt() -> WriteResult:
        if condition is not None:
            pinned = TargetSnapshot.pin(spark, table.location, opts)  # first: the query never reads an older one
            return insertion.replace(spark, table, query.rows(), pinned, condition)
        if statement.if_not_exists and _partition_exists(spark, table, statement, write_opts):
            return WriteResult(table.location, type_name(Operation.INSERT_OVERWRITE))
        return insertion.run(spark, table, query.rows(), write_opts)

    with_retries(query.storage, opts, attempt, query.reads_same_snapshot)


def plan_insert(spark: SparkSession, table: CatalogTable, statement: Insert) -> PlannedInsert:
    """Return what INSERT would write. Nothing is written; values of PARTITION are evaluated."""
    table = with_write_options(table, statement.options)
    write_opts = write_options(spark, table)
    storage = open_storage(table.location, Options.parse(write_opts))
    rows = RepeatedQuery(spark, _inserted_query(spark, statement.query), storage).rows()
    insertion = _Insertion.of_statement(statement)
    if statement.replace_where is None:
        return insertion.planned(spark, table, rows, write_opts)
    condition = _replace_condition(spark, table, statement)
    return PlannedInsert(insertion.aligned(spark, table, rows), {options.OPERATION.key: f"replace where {condition}"})


def _inserted_query(spark: SparkSession, text: str) -> str:
    """Return a query with NULL in place of DEFAULT. In a select list, columns of that name come first, as in Spark."""
    query = with_null_values(text)
    without_default = with_null_items(query)
    if without_default == query:
        return query
    try:
        spark_sql(spark, rewrite_query(spark, query).text).schema  # noqa: B018 - analyses it
    except AnalysisException as error:
        if "[UNRESOLVED_COLUMN" not in str(error):
            raise
        return without_default
    return query


def _partition_exists(
    spark: SparkSession, table: CatalogTable, statement: Insert, write_opts: Mapping[str, str]
) -> bool:
    """Return True if the table has the partition of INSERT OVERWRITE … IF NOT EXISTS.

    Raises:
        QueryError: The statement does not specify one partition.
    """
    schema = own_schema(spark, table)
    spec = _resolved_names(statement.partition, schema, sensitive=is_case_sensitive(spark))
    handle = SqlTable.at(spark, table.location, write_opts)
    fields = [field.name for field in handle.config.partition_fields]
    if set(spec) != set(fields):
        raise QueryError(f"IF NOT EXISTS needs a value of each partition column: {', '.join(fields)}")
    client = handle.client
    keys = partition_path_spec(client.storage, client.config, handle.opts)
    path = partition_values(spark, spec, schema, keys).path
    return path in handle.inspect.partitions()["partition"].to_pylist()


def _replace_condition(spark: SparkSession, table: CatalogTable, statement: Insert) -> str:
    """Return the condition of REPLACE WHERE without qualifiers of its columns.

    Raises:
        QueryError: It has a subquery.
    """
    where = with_target_qualifiers(spark, table, Delete(statement.name, where=statement.replace_where)).where
    assert where is not None
    if len(find_references(f"SELECT 1 FROM _pyhudi_nothing WHERE {where}") or ()) > 1:
        raise QueryError(
            f"REPLACE WHERE {where} has a subquery, which is not supported, as in Spark; run the query first, and put "
            "its value into the condition"
        )
    return unqualified(where, statement.name[-1]) or where


def replace_rows(table: CatalogTable, rows: DataFrame, condition: Column) -> None:
    """Replace the rows of a table that meet a condition by others, whose columns are matched by name.

    Args:
        table: The table.
        rows: The new rows, which must meet the condition.
        condition: The condition, on columns of the table.

    Raises:
        QueryError: A new row does not meet the condition.
        SchemaMismatchError: A column does not exist, or a type is incompatible with that of its column.
    """
    spark = rows.sparkSession
    opts = Options.parse(write_options(spark, table))
    storage = open_storage(table.location, opts)
    insertion = _Insertion(overwrite=False, columns=InsertColumns(by_name=True))
    with_retries(
        storage,
        opts,
        lambda: insertion.replace(spark, table, rows, TargetSnapshot.pin(spark, table.location, opts), condition),
        lambda: bool(snapshot_ids(rows, storage)),
    )


def insert_rows(table: CatalogTable, rows: DataFrame, *, overwrite: bool = False, by_name: bool = False) -> None:
    """Insert rows. Their columns are matched by name if they have the names of the table's columns, or with
    ``by_name``; otherwise by position. Meta columns of another table are omitted.

    Raises:
        SchemaMismatchError: The number of columns differs, or a type is incompatible with that of its column.
    """
    spark = rows.sparkSession
    insertion = _Insertion(overwrite, InsertColumns(by_name=by_name))
    write_opts = write_options(spark, table)
    opts = Options.parse(write_opts)
    storage = open_storage(table.location, opts)
    with_retries(
        storage,
        opts,
        lambda: insertion.run(spark, table, rows, write_opts),
        lambda: bool(snapshot_ids(rows, storage)),
    )


@dataclass(frozen=True, slots=True)
class PlannedInsert:
    """An INSERT that has not been run.

    Attributes:
        rows: The rows, with the columns of the table.
        operation: Options of the operation.
        replaced: Paths of the partitions that are replaced, if they do not depend on the rows.
    """

    rows: DataFrame
    operation: Mapping[str, str]
    replaced: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Insertion:
    """Options of an INSERT.

    Attributes:
        overwrite: The rows replace existing ones.
        columns: Columns of the table that are inserted.
        partition: SQL text of static values by partition column; None: the rows have the column.
    """

    overwrite: bool
    columns: InsertColumns
    partition: PartitionSpec = field(default_factory=dict)

    @classmethod
    def of_statement(cls, statement: Insert) -> _Insertion:
        """Return the options of a statement."""
        columns = InsertColumns(statement.columns, by_name=statement.by_name)
        return cls(statement.overwrite, columns, statement.partition)

    def run(
        self, spark: SparkSession, table: CatalogTable, rows: DataFrame, write_opts: Mapping[str, str]
    ) -> WriteResult:
        """Insert rows once, into the current snapshot. ``write_opts``: the result of `write_options`, which queries
        settings of the session."""
        planned = self.planned(spark, table, rows, write_opts)
        options_of_write = {**write_opts, **planned.operation}
        return append_once(planned.rows, table.location, options_of_write, partitions=planned.replaced)

    def planned(
        self, spark: SparkSession, table: CatalogTable, rows: DataFrame, write_opts: Mapping[str, str]
    ) -> PlannedInsert:
        """Return what `run` writes. Arguments and errors as there."""
        handle = SqlTable.at(spark, table.location, write_opts)
        client, opts, schema = handle.client, handle.opts, without_meta_columns(handle.load_sql_schema())
        partition = _resolved_names(self.partition, schema, sensitive=is_case_sensitive(spark))
        _check_partition_columns(table, partition, client.config)
        static = {name: value for name, value in partition.items() if value is not None}
        values = None
        if static:
            whole = self.overwrite and set(static) == {field.name for field in client.config.partition_fields}
            keys = partition_path_spec(client.storage, client.config, opts) if whole else None
            values = partition_values(spark, static, schema, keys)
        aligned = self.columns.aligned(rows, schema, static, values)
        replaced: list[str] = []
        if not self.overwrite:
            operation = insert_into_options(client.config, opts)
        else:
            operation = {options.OPERATION.key: overwrite_operation(spark, client.config, opts, static)}
            if values is not None and values.path is not None:
                replaced = [values.path]
            elif static and not is_dynamic_overwrite(spark, opts):
                replaced = matching_partitions(spark, table, static, values)
        return PlannedInsert(aligned, operation, tuple(replaced))

    def replace(
        self,
        spark: SparkSession,
        table: CatalogTable,
        rows: DataFrame,
        pinned: TargetSnapshot,
        condition: str | Column,
    ) -> WriteResult:
        """Replace the rows of a snapshot that meet a condition by others."""
        return replace_where_pinned(spark, pinned, self.aligned(spark, table, rows), condition)

    def aligned(self, spark: SparkSession, table: CatalogTable, rows: DataFrame) -> DataFrame:
        """Return the rows with the table's columns."""
        return self.columns.aligned(rows, own_schema(spark, table), {}, None)


def _check_partition_columns(table: CatalogTable, partition: PartitionSpec, config: TableConfig) -> None:
    """Check that PARTITION names all partition columns and no others, as Apache Hudi does.

    Raises:
        QueryError: It does not.
    """
    fields = [field.name for field in config.partition_fields]
    if not partition or set(partition) == set(fields):
        return
    if not fields:
        raise QueryError(f"{table.sql} is not partitioned; leave PARTITION out")
    raise QueryError(
        f"{table.sql} is partitioned by ({', '.join(fields)}), and PARTITION has ({', '.join(partition)}): name all of "
        "its columns, and no others; the query gives the values of those without a value"
    )


def _resolved_names(partition: PartitionSpec, schema: StructType, *, sensitive: bool) -> dict[str, str | None]:
    return {column_of(name, schema, case_sensitive=sensitive): value for name, value in partition.items()}
