"""Writes of DataFrames to tables by name: ``saveAsTable`` and ``insertInto``, and the creation of tables by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from pyhudi.config import options
from pyhudi.errors import QueryError, SchemaMismatchError, SqlSyntaxError, TableExistsError
from pyhudi.spark.column_names import quoted
from pyhudi.spark.sql.catalog import CatalogTable, default_location, find_table, full_name, qualified_location
from pyhudi.spark.sql.commands.command_target import with_write_options
from pyhudi.spark.sql.commands.ddl.create_table import create_new, create_table, creation_lock, replace_table
from pyhudi.spark.sql.commands.dml.insert import insert_rows
from pyhudi.spark.sql.spark_statements import columns_text
from pyhudi.spark.sql.sql_table import SqlTable
from pyhudi.spark.sql.tables_by_name import parse_name, read_table, table_of_name
from pyhudi.spark.write.dataframe_writer import APPEND, ERROR, IGNORE, OVERWRITE, parse_mode
from pyhudi.sql.statements import CreateTable, Name


@dataclass(frozen=True, slots=True)
class TableSpec:
    """Definition of a table by a writer.

    Attributes:
        partitioned_by: Partition columns; empty: those in `options`, or of the existing table.
        options: Options of the write. ``path`` makes a new table external, others become its properties.
    """

    partitioned_by: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def path(self) -> str | None:
        """Location of an external table."""
        return self.options.get("path")

    @property
    def properties(self) -> dict[str, str]:
        """Properties of a new table."""
        return {key: value for key, value in self.options.items() if key != "path"}


def save_as_table(
    rows: DataFrame, text: str, spec: TableSpec, *, is_hudi: bool | None, mode: str, redefine: bool = False
) -> bool:
    """Save rows as a Hudi table.

    Args:
        rows: The rows. For an existing table, their columns are matched by name.
        text: The table's name.
        spec: Partition columns and options.
        is_hudi: The format is hudi; None: the writer has no format.
        mode: Spark's save mode.
        redefine: An overwritten table gets only the specified properties and partition columns; otherwise it keeps
            those that are not specified.

    Returns:
        True if it is a Hudi table.

    Raises:
        TableExistsError: The table exists and the mode is error, or the format is not hudi.
    """
    spark, name = rows.sparkSession, parse_name(text)
    if name is None:
        return False
    if len(name) == 1:
        name = full_name(spark, name)  # a temporary view is not a table
    table = find_table(spark, name)
    if is_hudi is False:
        if table is not None and parse_mode(mode) != IGNORE:
            raise TableExistsError(
                f"{table.sql} is a Hudi table, and cannot be written in another format; omit format(), or use "
                "format('hudi')"
            )
        return False
    if table is None and not is_hudi:
        return False
    chosen = parse_mode(mode)
    if table is not None:
        _save_to_existing(rows, table, spec, chosen, redefine=redefine)
        return True
    location = spec.path or default_location(spark, full_name(spark, name))
    with creation_lock(spark, location, spec.options):
        table = find_table(spark, name)  # another thread may have created it
        if table is not None:
            _save_to_existing(rows, table, spec, chosen, redefine=redefine)
        elif spark.catalog.tableExists(quoted(name)):
            if chosen == IGNORE:
                return True
            raise TableExistsError(f"{quoted(name)} is a table or view, but not a Hudi table; drop it first")
        else:
            _create_from(rows, name, spec, chosen)
    return True


def _save_to_existing(rows: DataFrame, table: CatalogTable, spec: TableSpec, chosen: str, *, redefine: bool) -> None:
    """Save rows to an existing table with the save mode ``chosen``. Other arguments and errors as of
    `save_as_table`."""
    spark = rows.sparkSession
    if chosen == ERROR:
        raise TableExistsError(f"the table {table.sql} already exists; use mode('append') or mode('overwrite')")
    if chosen == APPEND:
        _check_partition_columns(spark, table, spec.partitioned_by)
        insert_rows(with_write_options(table, spec.options), rows, by_name=True)
    elif chosen == OVERWRITE:
        statement = _statement(spark, table.name, spec) if redefine else _replacement_statement(spark, table, spec)
        if statement.location is None and not table.managed:
            statement = replace(statement, location=table.location)
        replace_table(spark, table, rows, statement)


def _check_partition_columns(spark: SparkSession, table: CatalogTable, partition_by: tuple[str, ...]) -> None:
    """Check that the partition columns of a write equal those of the table.

    Raises:
        SchemaMismatchError: They differ.
    """
    fields = tuple(field.name for field in SqlTable.from_catalog(spark, table).config.partition_fields)
    if partition_by and [name.lower() for name in partition_by] != [name.lower() for name in fields]:
        raise SchemaMismatchError(
            f"{table.sql} is partitioned by ({', '.join(fields)}), not by ({', '.join(partition_by)}); omit "
            "partitionBy, or overwrite the table"
        )


def _create_from(rows: DataFrame, name: Name, spec: TableSpec, mode: str) -> None:
    """Create a table from rows. If its path has a Hudi table that is not in the catalog, the mode applies to that
    table, which is registered, except with the mode ignore.

    Raises:
        TableExistsError: The table exists, and the mode is error, or append without a path.
    """
    spark = rows.sparkSession
    name = full_name(spark, name)
    statement = _statement(spark, name, spec)
    location = statement.location or default_location(spark, name)
    table = CatalogTable(name, location, dict(statement.properties), managed=statement.location is None)
    if not SqlTable.exists(spark, location, spec.options):
        create_new(spark, table, statement, rows)
    elif mode == ERROR:
        raise TableExistsError(
            f"there is a Hudi table at {location!r} already; use mode('append') to add to it, mode('overwrite') or "
            "createOrReplace() to replace it, or CREATE TABLE … LOCATION to register it"
        )
    elif mode == OVERWRITE:
        replace_table(spark, table, rows, statement)
    elif mode == APPEND:
        create_table(spark, statement)
        registered = find_table(spark, name)
        assert registered is not None
        insert_rows(with_write_options(registered, spec.options), rows, by_name=True)


def create_for_stream(rows: DataFrame, text: str, spec: TableSpec) -> CatalogTable | None:
    """Create a table with the columns of a stream.

    Returns:
        The table; None if the text is not a table name.
    """
    spark, name = rows.sparkSession, parse_name(text)
    if name is None:
        return None
    statement = _statement(spark, full_name(spark, name), spec)
    create_table(spark, replace(statement, columns=columns_text(rows.schema)))
    return find_table(spark, name)


def create_by_name(
    spark: SparkSession, text: str, schema: StructType | None, properties: Mapping[str, str], comment: str | None
) -> DataFrame:
    """Create an empty table, or register the one at a path, and return its rows.

    Args:
        spark: The session.
        text: The table's name.
        schema: Its columns; None: those of the table at the path.
        properties: Properties; ``path`` makes the table external.
        comment: Comment of the table.

    Raises:
        SqlSyntaxError: The text is not a table name.
    """
    name = parse_name(text)
    if name is None:
        raise SqlSyntaxError(f"{text!r} is not the name of a table")
    statement = _statement(spark, full_name(spark, name), TableSpec(options=properties))
    columns = "" if schema is None else columns_text(schema)
    create_table(spark, replace(statement, columns=columns, comment=comment))
    rows = read_table(spark, text)
    assert rows is not None
    return rows


def insert_into(
    rows: DataFrame,
    text: str,
    *,
    overwrite: bool,
    writer_options: Mapping[str, str] | None,
    partition_by: tuple[str, ...],
) -> bool:
    """Insert rows into a table and return True if it is a Hudi table; otherwise do nothing. Columns are matched by name
    if they have the names of the table's columns, otherwise by position.

    Raises:
        QueryError: Partition columns are given, which only a new table can have.
    """
    table = table_of_name(rows.sparkSession, text)
    if table is None:
        return False
    if partition_by:
        raise QueryError(
            f"insertInto writes to the partitions of {table.sql}; leave out partitionBy({', '.join(partition_by)})"
        )
    insert_rows(with_write_options(table, writer_options), rows, overwrite=overwrite)
    return True


def _statement(spark: SparkSession, name: Name, spec: TableSpec) -> CreateTable:
    """Return the statement that creates a table."""
    fields = spec.properties.get(options.PARTITIONPATH_FIELD.key, "")
    named = tuple(part.split(":")[0].strip() for part in fields.split(",") if part.strip())
    location = None if spec.path is None else qualified_location(spark, full_name(spark, name), spec.path)
    columns = spec.partitioned_by or named
    return CreateTable(name, partitioned_by=columns, properties=spec.properties, location=location)


def _replacement_statement(spark: SparkSession, table: CatalogTable, spec: TableSpec) -> CreateTable:
    """Return a CREATE TABLE statement for an existing table; settings that the writer omits are kept."""
    columns = spec.partitioned_by
    if not columns:
        columns = tuple(one.name for one in SqlTable.from_catalog(spark, table).config.partition_fields)
    properties = {key: value for key, value in table.properties.items() if key != "path"}
    return _statement(spark, table.name, TableSpec(columns, {**properties, **spec.options}))
