"""Scan plans: what a query will read, worked out without reading any of it.

The plan is public (``HudiTable.scan(…).plan()``) and the seam between planning and reading: Spark and the local reader
run the same one. Its tasks are an Arrow table, one row per file slice.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.config import Options
from pyhudi.errors import QueryError, UnsupportedTableError
from pyhudi.keygen.paths import partition_fields
from pyhudi.read.buckets import prune_buckets
from pyhudi.read.commit_times import CommitTimes
from pyhudi.read.conditions import Conditions
from pyhudi.read.filters import Filter, RowFilter
from pyhudi.read.listing import TableFiles
from pyhudi.read.merged import RenamedSince, slice_context
from pyhudi.read.pathpruning import path_values, prune_paths
from pyhudi.read.query import Query
from pyhudi.read.renames import Names, SchemaHistory
from pyhudi.read.selection import select_slices
from pyhudi.read.skipping import Skipping
from pyhudi.read.table_schema import TableSchema, project, table_schema
from pyhudi.schema.columns import RECORD_KEY
from pyhudi.schema.types import as_nullable

if TYPE_CHECKING:
    from pyhudi.merge.filegroup import SliceContext
    from pyhudi.read.pinned import PinnedTable


@dataclass(frozen=True, slots=True)
class ScanPlan:
    """What a query reads.

    ``tasks``: file slices (:data:`pyhudi.table.fsview.SLICE_SCHEMA`), paths relative to the table's root.
    ``schema``: all columns of the table as of the query. ``columns``: the top-level columns asked for, in order.
    ``filter`` and ``commit_times``: conditions that the rows must meet (files are not free of other rows).
    ``partition_values``: one row per partition of ``tasks``: ``partition`` and, for each partition field, its value by
    the path and ``exact_<i>`` (see :func:`pyhudi.keygen.paths.decode_partition_paths`).
    ``path_columns``: columns whose values must come from the path: files do not hold them, or the query wants it so.
    ``renamed``: base instants whose files have other names for some columns (see :mod:`pyhudi.read.renames`).
    ``files_from``: where the names of the files come from. ``skipped``: what each index left out, or why it did not.
    ``merging``: how slices with log files are merged (None: there are none). ``keys``: columns that are the same in all
    versions of a record.
    """

    query: Query
    tasks: pa.Table
    schema: pa.Schema
    columns: tuple[str, ...]
    filter: RowFilter | None
    commit_times: CommitTimes | None
    partition_values: pa.Table
    path_columns: tuple[str, ...]
    renamed: Mapping[str, Names]
    slices_before_pruning: int
    partitions_before_pruning: int
    files_from: str = ""
    skipped: tuple[str, ...] = ()
    merging: SliceContext | None = None
    keys: frozenset[str] = frozenset()

    @property
    def output_schema(self) -> pa.Schema:
        """The columns of the result."""
        return pa.schema([self.schema.field(c) for c in self.columns])

    @property
    def partitions(self) -> list[str]:
        """The partition paths that are read."""
        paths: list[str] = self.partition_values["partition"].to_pylist()
        return paths

    @property
    def size_bytes(self) -> int:
        """Bytes of all files of the tasks."""
        base = pc.sum(self.tasks["base_size"]).as_py() or 0
        return int(base + (pc.sum(pc.list_flatten(self.tasks["log_sizes"])).as_py() or 0))

    @property
    def needs_merging(self) -> int:
        """How many tasks have log files."""
        return int(pc.sum(self._has_logs()).as_py() or 0)

    def with_logs(self) -> ScanPlan:
        """The part of the plan whose slices have log files."""
        return replace(self, tasks=self.tasks.filter(self._has_logs()))

    def without_logs(self) -> ScanPlan:
        """The part whose slices are base files alone."""
        return replace(self, tasks=self.tasks.filter(pc.invert(self._has_logs())), merging=None)

    def _has_logs(self) -> pa.ChunkedArray:
        return pc.greater(pc.list_value_length(self.tasks["log_paths"]), 0)

    def explain(self) -> str:
        """What is read and what was left out, in a few lines of text."""
        lines = [
            f"query       {self.query}",
            f"partitions  {len(self.partitions)} of {self.partitions_before_pruning}",
            f"slices      {self.tasks.num_rows} of {self.slices_before_pruning}"
            + (f", {self.needs_merging} with log files" if self.needs_merging else ""),
            f"files from  {self.files_from}",
            f"bytes       {self.size_bytes:,}",
            f"columns     {len(self.columns)} of {len(self.schema)}",
        ]
        if self.commit_times is not None:
            lines.append(f"rows        {self.commit_times}")
        if self.filter is not None:
            lines.append(f"filter      {self.filter}")
        lines += [f"skipping    {line}" for line in self.skipped]
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.explain()


def plan_scan(
    table: PinnedTable,
    query: Query | None = None,
    *,
    filter: Filter | RowFilter | None = None,
    columns: Sequence[str] | None = None,
    opts: Options | None = None,
    hidden_functions: Collection[str] = (),
) -> ScanPlan:
    """Work out what a query reads; ``query`` defaults to the latest snapshot. ``opts`` are those of the read.
    ``hidden_functions``: names of functions in the filter that mean something else to who evaluates it.

    Raises:
        QueryError: the query cannot be answered, or names unknown columns.
        UnsupportedTableError: the table uses something that cannot be read, or has log files and merges them by a
            merger that is not registered.
    """
    query = query or Query(by_completion=table.config.version >= 8)
    _check_supported(table)
    files = TableFiles(table, opts)
    rows = filter if isinstance(filter, RowFilter) or filter is None else RowFilter.parse(filter)
    found = None if query.is_incremental else table_schema(table, query.as_of)
    history = _history(table, found)
    skipping = _skipping(table, query, found, history, rows, files, opts)
    skipping.hidden_functions = hidden_functions

    def prune(paths: list[str]) -> list[str]:
        return skipping.partitions(paths, lambda known: _by_path(table, skipping.schema, known, skipping.rows))

    selection = select_slices(table, query, files, None if rows is None else prune)
    if query.is_incremental:
        found = table_schema(table, selection.schema_as_of)
    if found is None and selection.slices.num_rows:
        raise QueryError("no write of this table has recorded its columns; nothing can be read")
    schema = as_nullable(found.schema) if found is not None else pa.schema([])
    wanted = project(schema, list(columns) if columns is not None else None)
    values = path_values(table.config, schema, sorted(pc.unique(selection.slices["partition"]).to_pylist()))
    pruning = None if rows is None else rows.for_pruning(schema)
    kept = values if pruning is None else prune_paths(table.config, schema, values, pruning)
    tasks = selection.slices
    if kept.num_rows < values.num_rows:
        tasks = tasks.filter(pc.is_in(tasks["partition"], value_set=kept["partition"].combine_chunks()))
    tasks = prune_buckets(table, schema, tasks, pruning, opts)
    skipping.known_partitions = skipping.known_partitions or len(selection.partitions)
    tasks = skipping.slices(tasks)
    left = pc.is_in(kept["partition"], value_set=pc.unique(tasks["partition"]))
    kept = kept.filter(left)
    has_logs = bool(pc.any(pc.greater(pc.list_value_length(tasks["log_paths"]), 0)).as_py())
    history = _history(table, found) if query.is_incremental else history
    path_columns = _path_columns(table, query, schema)
    return ScanPlan(
        query=query,
        tasks=tasks,
        schema=schema,
        columns=tuple(wanted.names),
        filter=rows,
        commit_times=selection.commit_times,
        partition_values=kept,
        path_columns=path_columns,
        renamed={} if history is None else _renamed(history, schema, selection.schema_as_of, tasks),
        slices_before_pruning=selection.slices.num_rows,
        partitions_before_pruning=len(selection.partitions),
        skipped=tuple(skipping.report),
        files_from=files.source if not query.is_incremental else "the commits of the range",
        merging=slice_context(
            table,
            schema,
            path_columns=path_columns,
            commit_times=selection.commit_times,
            latest=selection.latest,
            renamed=None if history is None else RenamedSince(history, tuple(schema.names), selection.schema_as_of),
            opts=opts,
        )
        if has_logs
        else None,
        keys=frozenset((*table.config.record_keys, RECORD_KEY)) & frozenset(schema.names),
    )


def _history(table: PinnedTable, found: TableSchema | None) -> SchemaHistory | None:
    return SchemaHistory.load(table.storage, table.active.layout) if found is not None and found.has_history else None


def _unchanged(found: TableSchema | None, history: SchemaHistory | None) -> frozenset[str] | None:
    """The columns that all files have under the name that they have now; None: all."""
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
) -> Skipping:
    """What leaves out partitions and slices; of an incremental query none, as its schema is not known yet."""
    schema = as_nullable(found.schema) if found is not None else pa.schema([])
    return Skipping(
        table,
        files,
        query,
        Conditions(table.config, schema, _path_columns(table, query, schema), _unchanged(found, history)),
        rows,
        opts or Options.parse({}),
    )


def _by_path(table: PinnedTable, schema: pa.Schema, paths: list[str], rows: RowFilter | None) -> list[str]:
    """The partitions, of those given by path, that can hold rows of the filter by their paths."""
    if rows is None or rows.sql is not None or not schema.names:
        return paths
    values = path_values(table.config, schema, paths)
    kept: list[str] = prune_paths(table.config, schema, values, rows)["partition"].to_pylist()
    return kept


def _check_supported(table: PinnedTable) -> None:
    if table.config.is_metadata_table:
        raise UnsupportedTableError(
            f"{table.storage.root} is the metadata table of a Hudi table; it is not queried. Open the table itself"
        )


def _path_columns(table: PinnedTable, query: Query, schema: pa.Schema) -> tuple[str, ...]:
    if not table.config.drop_partition_columns and not query.partitions_from_path:
        return ()
    return tuple(f.name for f in partition_fields(table.config) if f.name in schema.names)


def _renamed(history: SchemaHistory, schema: pa.Schema, as_of: str | None, tasks: pa.Table) -> dict[str, Names]:
    return history.names_in_files(schema.names, as_of, pc.unique(tasks["base_instant"]).to_pylist())
