"""Execution of scan plans as Spark DataFrames.

Spark's own readers read base files, with column pruning, filter push-down and vectorized decoding. Files with narrower
types than the table are read with their own types and cast. If Spark cannot read files, because its Hadoop has no file
system for them or because it cannot provide a column, pyhudi's Arrow reader reads them on the executors. Slices with
log files are merged on the executors, too (`pyhudi.spark.read.merge_on_read.merge_strategy`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from pyhudi.config import Options
from pyhudi.config.enums import ReadEngine
from pyhudi.merge.log_changed_rows import NO_BASE_ROW
from pyhudi.read.cdc.cdc_plan import plan_cdc
from pyhudi.read.execution.base_file_tasks import TaskReader
from pyhudi.read.filters.row_filter import Filter, RowFilter
from pyhudi.read.query.query import Query
from pyhudi.read.scan_plan import ScanPlan
from pyhudi.read.scan_planner import plan_scan, prune_scan
from pyhudi.spark.column_names import select_names
from pyhudi.spark.execution.local_relations import empty_frame, union
from pyhudi.spark.execution.slice_tasks import SlicePieces, parallelism, run_on_slices
from pyhudi.spark.helper_columns import SCANNED_ROW
from pyhudi.spark.merger_pickling import check_picklable
from pyhudi.spark.read.base_files.base_file_scan import ScanExtras, can_number_rows, read_natively
from pyhudi.spark.read.cdc_frame import cdc_frame
from pyhudi.spark.read.filter_columns import filter_column, with_conditions, with_sql_conditions
from pyhudi.spark.read.merge_on_read.merge_strategy import is_key_lookup, merged_rows
from pyhudi.spark.read.merge_on_read.single_scan import single_scan
from pyhudi.spark.read.pruning.dataframe_pruning import FrameOrigin, remember_origin, remember_read
from pyhudi.spark.read.pruning.filter_session import filter_session
from pyhudi.spark.read.spark_scan import SparkScan
from pyhudi.spark.read.table_lineage import with_snapshot_id
from pyhudi.spark.session_settings import is_connect
from pyhudi.spark.spark_types import spark_schema
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.table.table_snapshot import TableSnapshot, with_snapshot


def read(
    spark: SparkSession,
    client: TableMetaClient,
    query: Query | None = None,
    *,
    filter: Filter | RowFilter | None = None,
    columns: Sequence[str] | None = None,
    opts: Options | None = None,
) -> DataFrame:
    """Return the rows of a query. Lazy.

    Args:
        spark: The session.
        client: The table.
        query: The query; None: a snapshot query.
        filter: Condition of the rows.
        columns: Columns to return; None: all.
        opts: Read options.

    Returns:
        The rows.

    Raises:
        QueryError: The query is not supported.
        UnsupportedTableError: The table has an unsupported feature, or has log files and a merger that is not
            registered.
    """
    if query is not None and query.changes:
        return _changes(spark, client, query, opts)
    opts = opts or Options.parse({})
    row_filter = RowFilter.parse(filter)
    table, plan = _planned(spark, client, query, row_filter, columns, opts)
    loaded = remember_read(with_snapshot_id(dataframe(SparkScan(spark, table, plan, opts)), table), plan)
    # Spark Connect reports missing columns only when rows are fetched.
    if row_filter is not None or is_connect(spark):
        return loaded

    def frame_of(again: ScanPlan) -> DataFrame:
        # The slices were counted as read when the DataFrame was loaded.
        return dataframe(SparkScan(spark, table, replace(again, filter=None), opts), merges=False)

    def pruned_by(condition: RowFilter | None) -> ScanPlan:
        session = filter_session(spark, table.config, condition)
        return prune_scan(table, plan, filter=condition, columns=columns, opts=opts, session=session)

    merged = None if plan.merging is None else loaded
    return remember_origin(loaded, FrameOrigin(plan.schema, plan.tasks.num_rows, pruned_by, frame_of, merged))


def read_pruned(spark: SparkSession, client: TableMetaClient, query: Query, predicate: str, opts: Options) -> DataFrame:
    """Return the rows of a query, without files that cannot contain rows that meet a condition. Lazy.

    Args:
        spark: The session.
        client: The table.
        query: The query.
        predicate: SQL condition by which files are pruned; rows that do not meet it may be returned.
        opts: Read options.

    Raises:
        QueryError: The query is not supported.
        UnsupportedTableError: As of `read`.
    """
    if query.changes:
        return _changes(spark, client, query, opts)
    table, plan = _planned(spark, client, query, RowFilter(sql=predicate), None, opts)
    plan = replace(plan, filter=None)
    return remember_read(with_snapshot_id(dataframe(SparkScan(spark, table, plan, opts)), table), plan)


def _changes(spark: SparkSession, client: TableMetaClient, query: Query, opts: Options | None) -> DataFrame:
    """Return the rows of a query of changes."""
    table, plan = with_snapshot(partial(TableSnapshot.load, client), lambda now: plan_cdc(now, query, opts))
    return with_snapshot_id(cdc_frame(spark, plan), table)


def _planned(
    spark: SparkSession,
    client: TableMetaClient,
    query: Query | None,
    condition: RowFilter | None,
    columns: Sequence[str] | None,
    opts: Options,
) -> tuple[TableSnapshot, ScanPlan]:
    """Pin the table of a query, and plan its scan."""

    def planned(table: TableSnapshot) -> ScanPlan:
        session = filter_session(spark, table.config, condition)
        return plan_scan(table, query, filter=condition, columns=columns, opts=opts, session=session)

    return with_snapshot(partial(TableSnapshot.load, client), planned)


def dataframe(scan: SparkScan, *, merges: bool = True) -> DataFrame:
    """Return the rows of a scan. Lazy, except that logs may be merged.

    Args:
        scan: The scan.
        merges: Log files may be merged now, so that later queries are faster.

    Returns:
        The rows, with the columns of the plan.

    Raises:
        ConfigError: There are log files, and the merger of the table cannot be pickled.
    """
    plan = scan.plan
    if plan.merging is not None:
        check_picklable(plan.merging.context.rules)
    if plan.tasks.num_rows == 0:
        return select_names(empty_frame(scan.spark, spark_schema(plan.schema)), plan.columns)
    skeletons, others = plan.bootstrapped()
    if skeletons.tasks.num_rows and others.tasks.num_rows:
        return union([dataframe(scan.with_plan(part), merges=merges) for part in (skeletons, others)])
    with_logs = plan.with_logs()
    if not with_logs.tasks.num_rows:
        return _from_base_files(scan)
    return _with_log_files(scan, with_logs, merges=merges)


def positioned_rows(scan: SparkScan) -> DataFrame | None:
    """Return the rows of a scan with their positions in base files. Lazy, except that logs may be merged.

    Returns:
        The columns of the plan and `SCANNED_ROW`. Rows of log files have the position of the base row that they
        replace; `NO_BASE_ROW` if there is none, or if it is not known. None if Spark cannot number the rows.

    Raises:
        ConfigError: As of `dataframe`.
    """
    plan = scan.plan
    if not plan.tasks.num_rows or plan.bootstrapped()[0].tasks.num_rows or scan.engine is ReadEngine.ARROW:
        return None
    if not can_number_rows(plan.tasks["base_path"], plan.schema.names):
        return None
    with_logs = plan.with_logs()
    if with_logs.tasks.num_rows:
        if plan.merging is not None:
            check_picklable(plan.merging.context.rules)
        return _with_log_files(scan, with_logs, positions=True)
    rows = read_natively(scan, required=False, extras=ScanExtras(positions=True))
    return None if rows is None else _selected(with_conditions(rows, plan), plan, positions=True)


def _with_log_files(scan: SparkScan, with_logs: ScanPlan, *, merges: bool = True, positions: bool = False) -> DataFrame:
    """Return the rows of slices some of which have log files.

    Args:
        scan: The scan.
        with_logs: The plan for those that have.
        merges: As of `dataframe`.
        positions: Add `SCANNED_ROW`, as `positioned_rows` does.
    """
    plan = scan.plan
    if plan.filter is not None and scan.engine is not ReadEngine.ARROW:
        filter_column(plan.filter, plan.schema)  # Accept the same filters with and without log files.
    if is_key_lookup(plan) and scan.engine is not ReadEngine.SPARK:
        return union(_merged(scan, positions=positions))
    rows = single_scan(scan, merges=merges, positions=positions)
    if rows is not None:
        return _selected(with_conditions(rows, plan), plan, positions=positions)
    parts = _merged(scan.with_plan(with_logs), positions=positions)
    if with_logs.tasks.num_rows < plan.tasks.num_rows:
        parts = [_from_base_files(scan.with_plan(plan.without_logs()), positions=positions), *parts]
    return union(parts)


def _from_base_files(scan: SparkScan, *, positions: bool = False) -> DataFrame:
    """Return the rows of slices without log files; with ``positions`` also `SCANNED_ROW`."""
    native = None
    if scan.engine is not ReadEngine.ARROW:
        extras = ScanExtras(positions=positions)
        native = read_natively(scan, required=scan.engine is ReadEngine.SPARK, extras=extras)
    if native is None:
        rows = _with_arrow(scan)
        return _with_unknown_positions(rows) if positions else rows
    return _selected(with_conditions(native, scan.plan), scan.plan, positions=positions)


def _merged(scan: SparkScan, *, positions: bool = False) -> list[DataFrame]:
    """Return the rows of slices with log files, in parts; with ``positions`` also `SCANNED_ROW`."""
    plan = scan.plan
    base, rows = merged_rows(scan, positions=positions)
    rows = with_sql_conditions(rows, plan)
    if base is None and positions:
        rows = _with_unknown_positions(rows)
    names = _names(plan, positions=positions)
    if rows.columns != names:
        rows = select_names(rows, names)
    return [rows] if base is None else [_selected(with_conditions(base, plan), plan, positions=positions), rows]


def _with_unknown_positions(rows: DataFrame) -> DataFrame:
    return rows.withColumn(SCANNED_ROW, sf.lit(NO_BASE_ROW).cast("bigint"))


def _with_arrow(scan: SparkScan) -> DataFrame:
    """Return the rows of slices without log files, read by tasks."""
    plan, storage = scan.plan, scan.table.storage
    if plan.filter is None or plan.filter.sql is None:
        reader = TaskReader.from_plan(plan, storage)
    else:  # Spark evaluates the SQL text, which may refer to any column.
        columns = tuple(plan.schema.names)
        reader = replace(TaskReader.from_plan(plan, storage), columns=columns, filter=None)
    pieces = SlicePieces.from_plan(plan, parallelism(scan.spark))
    rows = run_on_slices(scan.spark, pieces, reader.read_base_file, reader.output_schema)
    return _selected(with_sql_conditions(rows, plan), plan)


def _selected(rows: DataFrame, plan: ScanPlan, *, positions: bool = False) -> DataFrame:
    """Select the columns of a plan from all columns of the table; with ``positions`` from these and `SCANNED_ROW`."""
    names = _names(plan, positions=positions)
    return rows if list(plan.columns) == plan.schema.names else select_names(rows, names)


def _names(plan: ScanPlan, *, positions: bool) -> list[str]:
    return [*plan.columns, *([SCANNED_ROW] if positions else [])]
