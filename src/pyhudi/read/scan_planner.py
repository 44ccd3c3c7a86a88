"""Planning of scans without reading data.

The plan is public (``HudiTable.scan(…).plan()``) and the interface between planning and reading: Spark and the local
reader execute the same plan. Its tasks are an Arrow table with one row per file slice.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.config import Options, options
from pyhudi.config.enums import InvalidText, PartitionValues
from pyhudi.errors import QueryError, UnsupportedTableError
from pyhudi.keygen.partition_path_values import as_formatted, partition_fields
from pyhudi.merge.key_rows import KeyRows
from pyhudi.metadata.reader.metadata_table import LOOKS
from pyhudi.read.execute.merged_reader import slice_context
from pyhudi.read.filter_hints import warn_of_path_texts
from pyhudi.read.filters.row_filter import Filter, RowFilter
from pyhudi.read.pruning.bucket_pruning import prune_buckets
from pyhudi.read.pruning.file_pruner import FilePruner
from pyhudi.read.pruning.key_condition import key_condition
from pyhudi.read.pruning.partition_pruning import PathValue, path_values, prune_paths, told_by_paths
from pyhudi.read.pruning.statistics_conditions import Conditions
from pyhudi.read.query import Query
from pyhudi.read.scan_plan import ScanPlan
from pyhudi.read.schema.table_columns import TableSchema, project, table_schema
from pyhudi.read.slice_selection import Prune, Selection, select_slices
from pyhudi.read.table_files import TableFiles
from pyhudi.schema.meta_fields import RECORD_KEY
from pyhudi.schema.table_types import as_nullable
from pyhudi.table.config.key_generator_type import KeyGenType
from pyhudi.table.pinned_table import PinnedTable
from pyhudi.table.schema_history import SchemaHistory
from pyhudi.timeline.instant import Action

_DELETING = (Action.CLEAN, Action.RESTORE)
"""Actions that delete files of completed writes."""


def plan_scan(
    table: PinnedTable,
    query: Query | None = None,
    *,
    filter: Filter | RowFilter | None = None,
    columns: Sequence[str] | None = None,
    opts: Options | None = None,
    overridden_functions: Collection[str] = (),
    zone: dt.tzinfo = dt.UTC,
    earlier: ScanPlan | None = None,
) -> ScanPlan:
    """Plan a query, by default of the latest snapshot.

    Args:
        table: The table.
        query: The query.
        filter: Condition on rows.
        columns: Top-level columns of the result, by default all.
        opts: Options of the read.
        overridden_functions: Names of functions in the filter that the session has redefined.
        zone: Time zone of dates and times in the filter that have none.
        earlier: A plan of the same query without a filter. Its slices are pruned; no files are listed, so that the plan
            is of the same snapshot, whatever has happened to the table since.

    Raises:
        QueryError: The query is not possible, or refers to unknown columns.
        UnsupportedTableError: The table has an unsupported feature, or has log files and its merger is not registered.
    """
    query = query or Query(by_completion=table.config.version >= 8)
    _check_supported(table)
    for _ in range(LOOKS):
        plan = _planned(table, query, filter, columns, opts, overridden_functions, zone, earlier)
        if plan is not None:
            return plan
        table = table.again()
    raise QueryError(
        f"the table at {table.storage.uri()} was cleaned or restored each time that its files were listed; repeat the "
        "query"
    )


def _planned(
    table: PinnedTable,
    query: Query,
    filter: Filter | RowFilter | None,
    columns: Sequence[str] | None,
    opts: Options | None,
    overridden_functions: Collection[str],
    zone: dt.tzinfo,
    earlier: ScanPlan | None,
) -> ScanPlan | None:
    """Return the plan; None if files of the pinned table may have been deleted before they were listed."""
    files = TableFiles(table, opts, moves=earlier is None)
    table = files.table
    rows = filter if isinstance(filter, RowFilter) or filter is None else RowFilter.parse(filter)
    columns_as_of = None if query.is_incremental else _columns_of_snapshot(table, query.as_of)
    if rows is not None and columns_as_of is not None:
        rows = rows.on(_columns(table, query, columns_as_of), zone)
    history = _history(table, columns_as_of)
    skipping = _skipping(table, query, columns_as_of, history, rows, files, opts)
    skipping.overridden_functions = overridden_functions

    def prune(paths: list[str]) -> list[str]:
        return skipping.partitions(paths, lambda known: _by_path(table, query, skipping, known, opts))

    if earlier is not None:
        selection = _selection_of(earlier, None if rows is None else prune)
    else:
        selection = select_slices(table, query, files, None if rows is None else prune)
        if files.metadata is None and _deletes_since(table):
            return None
    if query.is_incremental:
        columns_as_of = table_schema(table, selection.schema_as_of)
        if rows is not None and columns_as_of is not None:
            rows = rows.on(_columns(table, query, columns_as_of), zone)
    if columns_as_of is None and selection.slices.num_rows:
        raise QueryError("no write to this table has recorded its columns, so it cannot be read")
    schema = _columns(table, query, columns_as_of)
    wanted = project(schema, list(columns) if columns is not None else None)
    warn_of_path_texts(table.config, schema, rows)
    values = path_values(table.config, schema, sorted(pc.unique(selection.slices["partition"]).to_pylist()))
    pruning = None if rows is None else rows.for_pruning(schema)
    path_columns = _path_columns(table, query, schema)
    kept = values
    if pruning is not None and _paths_count(path_columns, opts):
        kept = prune_paths(table.config, schema, values, pruning)
    tasks = selection.slices
    if kept.num_rows < values.num_rows:
        tasks = tasks.filter(pc.is_in(tasks["partition"], value_set=kept["partition"].combine_chunks()))
    tasks = prune_buckets(table, schema, tasks, pruning, opts)
    skipping.known_partitions = skipping.known_partitions or len(selection.partitions)
    tasks = skipping.slices(tasks)
    left = pc.is_in(kept["partition"], value_set=pc.unique(tasks["partition"]))
    kept = kept.filter(left)
    has_logs = bool(pc.any(pc.greater(pc.list_value_length(tasks["log_paths"]), 0)).as_py())
    history = _history(table, columns_as_of) if query.is_incremental else history
    names = None if history is None else history.column_names(schema, selection.schema_as_of)
    told = _told(table, schema, kept, path_columns, opts)
    invalid_text = (opts or Options.parse({})).get_typed(options.READ_INVALID_TEXT)
    by_path, replaces_text = {*told, *path_columns}, invalid_text is InvalidText.REPLACE
    return ScanPlan(
        query=query,
        tasks=tasks,
        schema=schema,
        columns=tuple(wanted.names),
        filter=rows,
        commit_times=selection.commit_times,
        partition_values=kept,
        path_columns=path_columns,
        renamed={} if names is None else names.of(pc.unique(tasks["base_instant"]).to_pylist()),
        slices_before_pruning=selection.slices.num_rows if earlier is None else earlier.tasks.num_rows,
        partitions_before_pruning=len(selection.partitions) if earlier is None else earlier.partitions_before_pruning,
        skipped=tuple(skipping.report),
        files_from=files.source if not query.is_incremental else "the commits of the range",
        merging=slice_context(
            table,
            schema,
            path_columns=path_columns,
            commit_times=selection.commit_times,
            latest=selection.latest,
            names=names,
            opts=opts,
        )
        if has_logs
        else None,
        told=told,
        invalid_text=invalid_text,
        schema_as_of=selection.schema_as_of,
        latest=selection.latest,
        keys=_key_columns(table, schema),
        key_rows=_key_rows(table, schema, skipping, pruning, by_path, replaces_text=replaces_text)
        if has_logs
        else None,
    )


def _selection_of(plan: ScanPlan, prune: Prune | None) -> Selection:
    """Return what a plan without a filter has selected, without the partitions that ``prune`` leaves out."""
    slices, partitions = plan.tasks, plan.partitions
    if prune is not None and not plan.query.is_incremental:
        kept = pa.array(prune(partitions), pa.string())
        slices = slices.filter(pc.is_in(slices["partition"], value_set=kept))
    return Selection(slices, partitions, plan.commit_times, plan.schema_as_of, plan.latest)


def _deletes_since(table: PinnedTable) -> bool:
    """Return True if a clean or a restore has begun since a table was pinned: it may have deleted files that the pinned
    timeline shows, and a listing cannot tell this from file groups that have never been there."""
    known = {instant.requested for instant in table.active.timeline if instant.action in _DELETING}
    now = table.active.reload().timeline
    return any(instant.action in _DELETING and instant.requested not in known for instant in now)


def _columns_of_snapshot(table: PinnedTable, as_of: str | None) -> TableSchema | None:
    """Return the columns at that time; before the first write, when there are no rows, the current ones."""
    found = table_schema(table, as_of)
    return table_schema(table) if found is None and as_of is not None else found


def _key_columns(table: PinnedTable, schema: pa.Schema) -> frozenset[str]:
    return frozenset((*table.config.record_keys, RECORD_KEY)) & frozenset(schema.names)


def _key_rows(
    table: PinnedTable,
    schema: pa.Schema,
    skipping: FilePruner,
    rows: RowFilter | None,
    by_path: Collection[str],
    *,
    replaces_text: bool,
) -> KeyRows | None:
    """Return what a condition says of record keys. Files may have other values of columns than paths tell
    (``by_path``), and other keys than those that are read if invalid bytes are replaced (``replaces_text``)."""
    if rows is None or not rows.anyof or replaces_text:
        return None
    condition = key_condition(rows, schema, _key_columns(table, schema).difference(by_path, skipping.conditions.hidden))
    if condition is None:
        return None
    keys = None if set(table.config.record_keys).intersection(by_path) else skipping.keys.named()
    return KeyRows(condition, None if keys is None else tuple(keys.to_pylist()))


def _history(table: PinnedTable, found: TableSchema | None) -> SchemaHistory | None:
    return SchemaHistory.load(table.active) if found is not None and found.has_history else None


def _unchanged(found: TableSchema | None, history: SchemaHistory | None) -> frozenset[str] | None:
    """Return the columns that have their current name in all files; None: all."""
    if found is None or not found.has_history:
        return None
    return frozenset() if history is None else history.unchanged()


def _skipping(
    table: PinnedTable,
    query: Query,
    found: TableSchema | None,
    history: SchemaHistory | None,
    rows: RowFilter | None,
    files: TableFiles,
    opts: Options | None,
) -> FilePruner:
    """Return the pruner of partitions and slices, which prunes nothing for an incremental query, whose schema is not
    known yet."""
    schema = _columns(table, query, found)
    return FilePruner(
        table,
        files,
        query,
        Conditions(table.config, schema, _path_columns(table, query, schema), _unchanged(found, history)),
        rows,
        opts or Options.parse({}),
    )


def _by_path(
    table: PinnedTable, query: Query, skipping: FilePruner, paths: list[str], opts: Options | None
) -> list[str]:
    """Return those of the partitions, given by path, that may hold matching rows according to their paths."""
    rows, schema = skipping.rows, skipping.schema
    if rows is None or rows.sql is not None or not schema.names:
        return paths
    if not _paths_count(_path_columns(table, query, schema), opts):
        return paths
    values = path_values(table.config, schema, paths)
    kept: list[str] = prune_paths(table.config, schema, values, rows)["partition"].to_pylist()
    return kept


def _paths_count(path_columns: tuple[str, ...], opts: Options | None) -> bool:
    """Return True if partition columns have the values of paths if these determine them; otherwise files may have
    any."""
    wish = (opts or Options.parse({})).get_typed(options.READ_PARTITION_VALUES)
    return bool(path_columns) or wish is not PartitionValues.FILE


def _check_supported(table: PinnedTable) -> None:
    if table.config.is_metadata_table:
        raise UnsupportedTableError(
            f"{table.storage.root} is the metadata table of a Hudi table, which cannot be queried. Open the table "
            "itself"
        )


def _told(
    table: PinnedTable, schema: pa.Schema, values: pa.Table, path_columns: tuple[str, ...], opts: Options | None
) -> dict[str, PathValue]:
    """Return the partition columns whose values are taken from paths; none that files have if the read uses those of
    files."""
    return told_by_paths(table.config, schema, values, path_columns) if _paths_count(path_columns, opts) else {}


def _columns(table: PinnedTable, query: Query, found: TableSchema | None) -> pa.Schema:
    """Return all columns; that of a timestamp generator is a text if it is taken from paths."""
    schema = as_nullable(found.schema) if found is not None else pa.schema([])
    if table.config.keygen is KeyGenType.TIMESTAMP and _path_columns(table, query, schema):
        return as_formatted(table.config, schema)
    return schema


def _path_columns(table: PinnedTable, query: Query, schema: pa.Schema) -> tuple[str, ...]:
    if not table.config.drop_partition_columns and not query.partitions_from_path:
        return ()
    return tuple(f.name for f in partition_fields(table.config) if f.name in schema.names)
