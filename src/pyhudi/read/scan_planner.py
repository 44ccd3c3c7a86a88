"""Planning of scans without reading data.

The plan is public (``HudiTable.scan(…).plan()``) and the interface between planning and reading: Spark and the local
reader execute the same plan. Its tasks are an Arrow table with one row per file slice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.config import Options, options
from pyhudi.config.enums import InvalidText
from pyhudi.errors import QueryError, UnsupportedTableError
from pyhudi.merge.key_filter import KeyFilter
from pyhudi.metadata.reader.metadata_table import MAX_READ_ATTEMPTS
from pyhudi.read.bound_columns import BoundColumns, columns_of_snapshot
from pyhudi.read.execution.file_slice_reader import slice_context
from pyhudi.read.filters.filter_warnings import warn_of_path_texts
from pyhudi.read.filters.row_filter import Filter, RowFilter
from pyhudi.read.planning_context import FilterSession, PlanningContext
from pyhudi.read.pruning.indexes.bucket_pruning import prune_buckets
from pyhudi.read.pruning.indexes.record_index_pruner import selected_keys
from pyhudi.read.pruning.key_condition import key_condition
from pyhudi.read.pruning.metadata_pruner import MetadataPruner
from pyhudi.read.pruning.partition_pruning import prune_paths
from pyhudi.read.pruning.pruner_protocol import Predicate
from pyhudi.read.query.query import Query
from pyhudi.read.scan_plan import FileReading, LogMerging, PruningReport, ScanPlan
from pyhudi.read.schema.partition_values import decode_paths
from pyhudi.read.schema.table_columns import project, resolve_table_schema
from pyhudi.read.selection.selected_slices import PartitionPruning, Selection
from pyhudi.read.selection.slice_selection import Prune, select_slices
from pyhudi.read.selection.table_files import TableFiles
from pyhudi.table.schema_history import ColumnNamesByInstant
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline.instant import Action

_DELETING = (Action.CLEAN, Action.RESTORE)
"""Actions that delete files of completed writes."""


def plan_scan(
    table: TableSnapshot,
    query: Query | None = None,
    *,
    filter: Filter | RowFilter | None = None,
    columns: Sequence[str] | None = None,
    opts: Options | None = None,
    session: FilterSession | None = None,
) -> ScanPlan:
    """Plan a query, by default of the latest snapshot.

    Args:
        table: The table.
        query: The query.
        filter: Condition on rows.
        columns: Top-level columns of the result, by default all.
        opts: Options of the read.
        session: Session in which the filter is written.

    Raises:
        QueryError: The query is not possible, or refers to unknown columns.
        UnsupportedTableError: The table has an unsupported feature, or has log files and its merger is not registered.
    """
    query = query or Query()
    _check_supported(table)
    context = PlanningContext(query, opts or Options.parse({}), session or FilterSession())
    row_filter = RowFilter.parse(filter)
    for _ in range(MAX_READ_ATTEMPTS):
        plan = _planned(table, context, row_filter, columns)
        if plan is not None:
            return plan
        table = table.reload()
    raise QueryError(
        f"the table at {table.storage.uri()} was cleaned or restored each time that its files were listed; repeat the "
        "query"
    )


def prune_scan(
    table: TableSnapshot,
    plan: ScanPlan,
    *,
    filter: Filter | RowFilter | None,
    columns: Sequence[str] | None = None,
    opts: Options | None = None,
    session: FilterSession | None = None,
) -> ScanPlan:
    """Prune the slices of a plan without a filter. No files are listed, so that the result is of the same snapshot,
    whatever has happened to the table since.

    Args:
        table: The table, as it was planned.
        plan: The plan.
        filter: Condition on rows.
        columns: Top-level columns of the result, by default all.
        opts: Options of the read.
        session: Session in which the filter is written.

    Raises:
        QueryError: The filter or the columns refer to unknown columns.
    """
    context = PlanningContext(plan.query, opts or Options.parse({}), session or FilterSession())
    pruned = _planned(table, context, RowFilter.parse(filter), columns, plan)
    assert pruned is not None, "only a listing can lack files"
    return pruned


def _planned(
    table: TableSnapshot,
    context: PlanningContext,
    row_filter: RowFilter | None,
    columns: Sequence[str] | None,
    earlier: ScanPlan | None = None,
) -> ScanPlan | None:
    """Return the plan, with slices of the earlier one if there is one; None if files of the pinned table may have been
    deleted before they were listed."""
    query = context.query
    files = TableFiles(table, context.opts, may_reload=earlier is None)
    table = files.table
    table_schema = None if query.is_incremental else columns_of_snapshot(table, query.as_of)
    bound = BoundColumns.bind(table, context, table_schema, row_filter)
    # prunes nothing for an incremental query, whose schema is not known yet
    pruner = MetadataPruner(files, bound.predicate())
    selection = _select(context, pruner, earlier, prunes=bound.row_filter is not None)
    if selection is None:
        return None
    bounds = selection.bounds
    if query.is_incremental:
        # its columns are those as of its last commit
        bound = BoundColumns.bind(table, context, resolve_table_schema(table, bounds.schema), bound.row_filter)
    if bound.table_schema is None and selection.slices.num_rows:
        raise QueryError("no write to this table has recorded its columns, so it cannot be read")
    projected = project(bound.schema, list(columns) if columns is not None else None)
    warn_of_path_texts(table.config, bound.schema, bound.row_filter)
    tasks, partitions, report = _prune(bound, selection, pruner)
    names = bound.names(bounds.schema)
    renamed = {} if names is None else names.for_instants(pc.unique(tasks["base_instant"]).to_pylist())
    plan = ScanPlan(
        query=query,
        tasks=tasks,
        schema=bound.schema,
        columns=tuple(projected.names),
        filter=bound.row_filter,
        reading=FileReading(bounds, renamed, context.opts.get_typed(options.READ_INVALID_TEXT)),
        partition_columns=context.path_values(table, bound.schema, partitions),
        pruning=PruningReport(
            slices=selection.slices.num_rows if earlier is None else earlier.tasks.num_rows,
            partitions=len(selection.partitions) if earlier is None else earlier.pruning.partitions,
            files_from=files.source if not query.is_incremental else "the commits of the range",
            skipped=report,
        ),
        keys=bound.key_columns,
    )
    return _with_merging(bound, plan, pruner.predicate, names) if plan.num_slices_with_logs else plan


def _select(
    context: PlanningContext, pruner: MetadataPruner, earlier: ScanPlan | None, *, prunes: bool
) -> Selection | None:
    """Return the slices of the query in partitions that may have its rows; None if files may have been deleted before
    they were listed."""

    def prune(paths: list[str]) -> PartitionPruning:
        return pruner.prune_partitions(context.prune_by_path(pruner.predicate, paths), len(paths))

    if earlier is not None:
        return _selection_of(earlier, prune if prunes else None)
    files = pruner.files
    selection = select_slices(files.table, context.query, files, prune if prunes else None)
    return None if files.metadata is None and _deletes_since(files.table) else selection


def _prune(
    bound: BoundColumns, selection: Selection, pruner: MetadataPruner
) -> tuple[pa.Table, pa.Table, tuple[str, ...]]:
    """Return the slices that may have rows of the query, the path values of their partitions, and the report on the
    indexes that have pruned either."""
    table, context, schema, row_filter = bound.table, bound.context, bound.schema, bound.pruning_filter
    tasks = selection.slices
    values = decode_paths(table.config, schema, sorted(pc.unique(tasks["partition"]).to_pylist()))
    pruned = values
    if row_filter is not None and context.uses_path_values(context.path_columns(table, schema)):
        pruned = prune_paths(table.config, schema, values, row_filter)
    if pruned.num_rows < values.num_rows:
        tasks = tasks.filter(pc.is_in(tasks["partition"], value_set=pruned["partition"].combine_chunks()))
    tasks = prune_buckets(table, schema, tasks, row_filter=row_filter, opts=context.opts, query=context.query)
    partitions = selection.pruning or PartitionPruning([], len(selection.partitions))
    tasks, report = pruner.prune_slices(tasks, partitions.num_partitions)
    remaining = pruned.filter(pc.is_in(pruned["partition"], value_set=pc.unique(tasks["partition"])))
    return tasks, remaining, tuple(dict.fromkeys((*partitions.report, *report)))  # each reason once


def _with_merging(
    bound: BoundColumns, plan: ScanPlan, predicate: Predicate, names: ColumnNamesByInstant | None
) -> ScanPlan:
    """Return a plan with the settings by which its slices with log files are merged."""
    merging = slice_context(
        bound.table,
        plan.schema,
        path_columns=plan.partition_columns.required,
        bounds=plan.reading.bounds,
        names=names,
        opts=bound.context.opts,
    )
    return replace(plan, merging=LogMerging(merging, _key_rows(plan, predicate, bound.pruning_filter)))


def _selection_of(plan: ScanPlan, prune: Prune | None) -> Selection:
    """Return the selection of a plan without a filter, without the partitions that ``prune`` excludes."""
    slices, partitions, pruning = plan.tasks, plan.partitions, None
    if prune is not None and not plan.query.is_incremental:
        pruning = prune(partitions)
        slices = slices.filter(pc.is_in(slices["partition"], value_set=pa.array(pruning.paths, pa.string())))
    return Selection(slices, partitions, plan.reading.bounds, pruning)


def _deletes_since(table: TableSnapshot) -> bool:
    """Return True if a clean or a restore has begun since a table was pinned: it may have deleted files that the pinned
    timeline shows, and a listing cannot distinguish these from file groups that never existed."""
    before = {instant.requested for instant in table.active.timeline if instant.action in _DELETING}
    now = table.active.reload().timeline
    return any(instant.action in _DELETING and instant.requested not in before for instant in now)


def _key_rows(plan: ScanPlan, predicate: Predicate, row_filter: RowFilter | None) -> KeyFilter | None:
    """Return the condition on record keys that a filter implies; None if there is none.

    Values in files may differ from those of paths, and stored keys from those that are read if invalid bytes are
    replaced.
    """
    if row_filter is None or not row_filter.anyof or plan.reading.invalid_text is InvalidText.REPLACE:
        return None
    by_path = {*plan.partition_columns.values, *plan.partition_columns.required}
    condition = key_condition(
        row_filter, plan.schema, plan.keys.difference(by_path, predicate.conditions.non_file_columns)
    )
    if condition is None:
        return None
    keys = None if by_path.intersection(predicate.table.config.record_keys) else selected_keys(predicate)
    return KeyFilter(condition, None if keys is None else tuple(keys.to_pylist()))


def _check_supported(table: TableSnapshot) -> None:
    if table.config.is_metadata_table:
        raise UnsupportedTableError(
            f"{table.storage.root} is the metadata table of a Hudi table, which cannot be queried. Open the table "
            "itself"
        )
