"""Plans of change data queries: for each commit and file group, the files with its changes, and how to read them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.arrow.arrays import contiguous
from pyhudi.config import Options
from pyhudi.config.enums import CdcMode
from pyhudi.errors import QueryError
from pyhudi.read.cdc.cdc_context import CdcContext
from pyhudi.read.cdc.cdc_inference import CHANGED_FILES, CdcInferenceCase, cdc_files
from pyhudi.read.cdc.cdc_slices import TASKS_SCHEMA, with_slices
from pyhudi.read.execution.file_slice_reader import column_names, slice_context
from pyhudi.read.query.query import Query
from pyhudi.read.schema.partition_values import PathColumns, decode_paths, partition_column_values
from pyhudi.read.schema.table_columns import path_columns, query_columns, resolve_table_schema
from pyhudi.read.selection.completed_writes import CompletedWrite, data_writes
from pyhudi.schema.meta_columns import is_meta_column
from pyhudi.table.config.table_config import TableConfig
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.table.view.file_slicing import has_logs_named_by_slice
from pyhudi.timeline.archive.archived_timeline import completions_after

CHANGES_SCHEMA = pa.schema([(name, pa.string()) for name in ("op", "ts_ms", "before", "after")])
"""Rows of a change data query: ``i``, ``u`` or ``d``; instant of the commit; the record before and after as JSON."""


@dataclass(frozen=True, slots=True)
class CdcPlan:
    """Plan of a change data query.

    Attributes:
        tasks: One row per file group that a commit changed (TASKS_SCHEMA).
        context: How they are read.
    """

    tasks: pa.Table
    context: CdcContext

    @property
    def output_schema(self) -> pa.Schema:
        """Columns of the result."""
        return CHANGES_SCHEMA

    def explain(self) -> str:
        """Describe the files to read in a few lines of text."""
        counts = pc.value_counts(self.tasks["case"]).to_pylist()
        return "\n".join(f"{count['values']:<18}{count['counts']}" for count in counts) or "no changes"


def plan_cdc(table: TableSnapshot, query: Query, opts: Options | None = None) -> CdcPlan:
    """Plan the files with the changes of a range of commits; ``opts`` are those of the read.

    Raises:
        QueryError: The table logs no changes, files of the range no longer exist, or a commit of it logged none.
    """
    opts = opts or Options.parse({})
    config = table.config
    _check_supported(config, query)
    writes = sorted(data_writes(table, query), key=lambda write: write.time)
    tasks = _changed_files(writes, query)
    schema = resolve_table_schema(table, None)
    columns = pa.schema([]) if schema is None else query_columns(table, schema.schema, partitions_from_path=False)
    from_path = path_columns(table, columns, partitions_from_path=False)
    read_context = slice_context(table, columns, path_columns=from_path, names=column_names(table, columns), opts=opts)
    images = tuple(name for name in columns.names if not is_meta_column(name))
    context = CdcContext(config.cdc_mode, read_context, images, {}, query.instants.by_completion)
    if not tasks.num_rows:
        return CdcPlan(TASKS_SCHEMA.empty_table(), context)
    values = decode_paths(config, columns, pc.unique(tasks["partition"]).to_pylist())
    by_partition = PathColumns(
        values, from_path, partition_column_values(config, columns, values, from_path)
    ).by_partition()
    _check_meta_fields(context, tasks, populated=config.populate_meta_fields)
    tasks = with_slices(table, context, tasks, writes, opts)
    completions = _completions(table, tasks) if context.by_completion else None
    return CdcPlan(tasks, replace(context, values=by_partition, completions=completions))


def _check_supported(config: TableConfig, query: Query) -> None:
    """Refuse tables without change data capture, and restrictions of a query that these queries do not have."""
    if not config.cdc_enabled:
        raise QueryError(
            "the table logs no changes (hoodie.table.cdc.enabled=false), so change data queries are not "
            "supported; leave out hoodie.datasource.query.incremental.format for the latest state of changed "
            "records"
        )
    if query.incremental.path_glob or query.incremental.sql_filters:
        raise QueryError("a change data query supports neither a path glob nor SQL filters; filter its rows instead")


def _changed_files(writes: Sequence[CompletedWrite], query: Query) -> pa.Table:
    """Return the file groups of the query that the writes changed (CHANGED_FILES), in the order of the writes."""
    changed = (cdc_files(write.requested, write.read()) for write in writes)
    return pa.concat_tables([CHANGED_FILES.empty_table(), *(_within(files, query) for files in changed)])


def _completions(table: TableSnapshot, tasks: pa.Table) -> dict[str, str] | None:
    """Return the completion times by which log blocks are selected; None: all blocks of the slices are read."""
    slices = [contiguous(tasks[name]).drop_null() for name in ("before", "after")]
    if not any(has_logs_named_by_slice(pa.Table.from_struct_array(rows)) for rows in slices):
        return None
    return completions_after(table.active, min(tasks["earlier"].to_pylist()))


def _within(files: pa.Table, query: Query) -> pa.Table:
    if not query.subpath:
        return files
    return files.filter(pc.starts_with(pc.binary_join_element_wise(files["partition"], "", "/"), query.subpath + "/"))


def _check_meta_fields(context: CdcContext, tasks: pa.Table, *, populated: bool) -> None:
    cases = set(pc.unique(tasks["case"]).to_pylist())
    by_key = CdcInferenceCase.LOG_FILE in cases or (
        CdcInferenceCase.AS_IS in cases and context.mode is not CdcMode.DATA_BEFORE_AFTER
    )
    if by_key and not populated:
        raise QueryError(
            "these changes are identified by record key, which the files of the table do not store "
            "(hoodie.populate.meta.fields=false)"
        )
    if CdcInferenceCase.INSERTED_ROWS in cases and not populated:
        raise QueryError(
            "a commit has inserted rows into files with other rows without logging them, and the files do not store "
            "the commits of rows (hoodie.populate.meta.fields=false). Begin after this commit"
        )
