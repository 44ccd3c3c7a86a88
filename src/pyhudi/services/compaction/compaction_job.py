"""Input of the tasks of a compaction: created once from a plan and the table, immutable."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.arrow.arrays import contiguous
from pyhudi.config import Options, options
from pyhudi.config.enums import Operation
from pyhudi.merge.file_slice import FileSlice, SliceContext
from pyhudi.read.execution.file_slice_reader import column_names, slice_context
from pyhudi.read.schema.table_columns import stored_columns
from pyhudi.schema.converters.arrow_avro import to_avro
from pyhudi.services.service_runner import attempt_task, service_context, service_options
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.table.view.compaction_operations import list_names, slices_of
from pyhudi.table.view.file_group_keys import group_keys, in_groups
from pyhudi.table.view.file_group_state import replaced_groups
from pyhudi.table.view.file_listing import list_files
from pyhudi.table.view.file_slicing import slice_sizes
from pyhudi.table.view.file_system_view import FileSystemView
from pyhudi.timeline.commit_metadata import CommitMetadata, WriteStat
from pyhudi.timeline.instant import Action
from pyhudi.timeline.operation_types import COMPACT, LOG_COMPACT
from pyhudi.timeline.plans.compaction_plan import CompactionPlan
from pyhudi.write.handles.compaction_handle import compact_slice
from pyhudi.write.handles.log_compaction_handle import compact_logs
from pyhudi.write.settings.log_settings import LogSettings
from pyhudi.write.settings.write_context import TaskId, WriteContext


@dataclass(frozen=True, slots=True)
class CompactionJob:
    """A compaction as seen by its tasks.

    Attributes:
        read_context: Settings for reading slices.
        context: Settings for writing files.
        slices: The slices (`pyhudi.table.view.file_slicing.SLICE_SCHEMA`), the largest first.
        schema_text: Columns of the table (Avro JSON) for commit metadata.
        logs: Settings of log files, for log compactions.
        attempt: Number of the attempt (`attempt_task`).
        schema_properties: Version of the schema, for commit metadata.
    """

    read_context: SliceContext
    context: WriteContext
    slices: pa.Table
    schema_text: str
    logs: LogSettings | None
    attempt: int
    schema_properties: Mapping[str, str]

    @classmethod
    def from_plan(
        cls, table: TableSnapshot, plan: CompactionPlan, opts: Options, *, attempt: int | None = None
    ) -> CompactionJob:
        """Create the job that executes a plan on the current table; ``attempt`` is a random number by default.

        Raises:
            UnsupportedTableError: The table has no columns yet, or its merger is not registered.
            ConfigError: Options of the files are invalid.
        """
        assert plan.instant is not None
        opts = service_options(opts)
        stored, table_schema = stored_columns(table, "compact", plan.instant)
        names = column_names(table, stored, plan.instant or None)
        read_context = slice_context(table, stored, names=names, opts=opts)
        budget = opts.get_typed(options.COMPACTION_MEMORY)
        if budget is not None:
            read_context = replace(read_context, memory=replace(read_context.memory, budget=budget))
        if plan.is_log:
            read_context = replace(read_context, view=replace(read_context.view, latest=plan.instant))
        attempt = secrets.randbits(31) if attempt is None else attempt
        context = service_context(
            table, Operation.UPSERT, plan.instant, schema=table_schema, opts=opts, attempt=attempt
        )
        return cls(
            read_context,
            context,
            _slices(table, plan),
            to_avro(table_schema, table.config.name),
            context.logs if plan.is_log else None,
            attempt,
            {} if names is None else names.recorded(),
        )

    def metadata(self, stats: pa.Table) -> CommitMetadata:
        """Return the metadata of the commit."""
        schema = {"schema": self.schema_text, **self.schema_properties}
        return CommitMetadata(self.operation, stats, schema, compacted=True)

    @property
    def operation(self) -> str:
        """Operation in commit metadata."""
        return operation_type(Action.COMPACTION if self.logs is None else Action.LOG_COMPACTION)

    def run(self, one: FileSlice, task: TaskId) -> list[WriteStat]:
        """Compact one of the slices. Return the stats of the files."""
        task = attempt_task(task, self.attempt)
        if self.logs is not None:
            return compact_logs(self.read_context, self.context, task, one, self.logs)
        return [compact_slice(self.read_context, self.context, task, one)]


def job_without_slices(table: TableSnapshot, opts: Options, *, action: str) -> CompactionJob:
    """Return the job of an empty plan, with which a plan is checked before it is made.

    Raises:
        UnsupportedTableError, ConfigError: As `CompactionJob.from_plan`.
    """
    return CompactionJob.from_plan(table, CompactionPlan(action=action, instant=""), opts)


def operation_type(action: str) -> str:
    """Return the operation of compactions or log compactions in commit metadata."""
    return LOG_COMPACT if action == Action.LOG_COMPACTION else COMPACT


def _slices(table: TableSnapshot, plan: CompactionPlan) -> pa.Table:
    """Return the slices of a plan with the sizes of their files, the largest first, so that the last task is a short
    one.

    File groups that were replaced since are omitted: they are invisible, and the cleaner may have deleted their files.
    """
    operations = plan.operations
    operations = operations.filter(
        pc.invert(in_groups(operations, replaced_groups(table.active, table.active.timeline)))
    )
    if table.config.version < 8:
        view = FileSystemView.load(table, partitions=plan.partitions)
        files, operations = view.files, _with_all_logs(operations, view)
    else:
        files, _ = list_files(table.storage, plan.partitions)
    slices = slices_of(operations, files.filter(in_groups(files, operations)))
    return slices.take(pa.array(np.argsort(-slice_sizes(slices), kind="stable")))


def _with_all_logs(operations: pa.Table, view: FileSystemView) -> pa.Table:
    """Return the operations with all current log files of their slices. In version 6 a write that began before the plan
    was made still adds to them, and so does the rollback of a failed one."""
    slices = view.all_slices()
    slices = slices.filter(in_groups(slices, operations))
    at = contiguous(pc.index_in(_slice_keys(operations), value_set=_slice_keys(slices)))
    planned = contiguous(operations["log_files"])
    rows = pc.coalesce(pc.add(at, len(planned)), pa.array(np.arange(len(planned), dtype=np.int32)))
    logs = pa.concat_arrays([planned, list_names(slices["log_paths"])]).take(rows)
    return operations.set_column(operations.column_names.index("log_files"), "log_files", logs)


def _slice_keys(table: pa.Table) -> pa.Array:
    return contiguous(pc.binary_join_element_wise(group_keys(table), table["base_instant"], "\0"))
