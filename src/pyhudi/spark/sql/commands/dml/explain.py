"""EXPLAIN of statements that change a table: what they would read and write. Nothing is written."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession

from pyhudi.config import Options, options
from pyhudi.config.enums import TableType
from pyhudi.spark.dml.merge.merge_builder import planned_join, upserted_rows
from pyhudi.spark.dml.target_snapshot import TargetSnapshot
from pyhudi.spark.dml.target_table import read_target
from pyhudi.spark.execution.temporary_views import plan_text
from pyhudi.spark.sql.catalog import CatalogTable
from pyhudi.spark.sql.commands.command_target import write_options
from pyhudi.spark.sql.commands.dml.insert import plan_insert
from pyhudi.spark.sql.commands.dml.merge import plan_merge
from pyhudi.spark.sql.commands.dml.update_delete import plan_change
from pyhudi.spark.sql.spark_statements import result_frame
from pyhudi.spark.sql.sql_table import SqlTable
from pyhudi.sql.statements import Delete, ExplainChange, Insert, Merge, Update

_IN_PLACE = {
    TableType.COPY_ON_WRITE: "base files with such rows are written again",
    TableType.MERGE_ON_READ: "log files are added to file groups with such rows",
}


def explain_change(spark: SparkSession, table: CatalogTable, statement: ExplainChange) -> DataFrame:
    """Run EXPLAIN of a statement that changes a table.

    Returns:
        One row with the text, as of Spark's EXPLAIN: what is written, the file slices that are read, and Spark's plan
        of the rows.
    """
    match statement.change:
        case Insert():
            lines, rows = _insert(spark, table, statement.change)
        case Merge():
            lines, rows = _merge(spark, table, statement.change)
        case Update() | Delete():
            lines, rows = _change(spark, table, statement.change)
    plan = _plan_of_rows(statement.head, rows)
    title = f"== Hudi {type(statement.change).__name__.upper()} of {table.sql} =="
    text = "\n".join([title, *lines, "", "== Rows ==", plan])
    return result_frame(spark, "plan string", [(text,)])


def _insert(spark: SparkSession, table: CatalogTable, statement: Insert) -> tuple[Sequence[str], DataFrame]:
    planned = plan_insert(spark, table, statement)
    operation = planned.operation[options.OPERATION.key]
    replaced = [f"replaces    {', '.join(planned.replaced)}"] if planned.replaced else []
    config = SqlTable.from_catalog(spark, table).config
    return [f"table       {config.table_type}", f"operation   {operation}", *replaced], planned.rows


def _change(spark: SparkSession, table: CatalogTable, statement: Update | Delete) -> tuple[Sequence[str], DataFrame]:
    target, rows = plan_change(spark, table, statement, _pinned(spark, table))
    table_type = target.client.config.table_type
    return [f"table       {table_type}", f"writes      {_IN_PLACE[table_type]}", target.plan.explain()], rows


def _merge(spark: SparkSession, table: CatalogTable, statement: Merge) -> tuple[Sequence[str], DataFrame]:
    merge, pinned = plan_merge(spark, table, statement), _pinned(spark, table)
    table_type = pinned.client.config.table_type
    rows = upserted_rows(merge, pinned)
    if rows is not None:
        index = pinned.opts.get_typed(options.INDEX_TYPE)
        how = f"upsert of the source, whose keys are looked up by the index {index}; a join if this is not equivalent"
        return [f"table       {table_type}", f"executes    {how}"], rows
    target = read_target(spark, pinned)
    lines = [
        f"table       {table_type}",
        f"executes    {planned_join(merge, target).describe()}",
        f"writes      {_IN_PLACE[table_type]}",
        target.plan.explain(),
    ]
    return lines, merge.source


def _pinned(spark: SparkSession, table: CatalogTable) -> TargetSnapshot:
    return TargetSnapshot.pin(spark, table.location, Options.parse(write_options(spark, table)))


def _plan_of_rows(head: str, rows: DataFrame) -> str:
    """Return the plan of rows that Spark's EXPLAIN shows; ``head``: EXPLAIN with its mode."""
    names = [name.lower() for name in rows.columns]  # of which a view has none twice
    distinct = rows if len(set(names)) == len(names) else rows.toDF(*(f"_{n}" for n in range(len(names))))
    return plan_text(distinct, head[len("EXPLAIN") :])
