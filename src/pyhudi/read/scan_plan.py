"""Scan plans: the file slices that a query reads, with its columns and conditions, to be executed by readers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.config.enums import InvalidText
from pyhudi.merge.file_slice import SliceContext
from pyhudi.merge.key_filter import KeyFilter
from pyhudi.read.filters.row_filter import RowFilter
from pyhudi.read.query.query import Query
from pyhudi.read.schema.partition_values import PathColumns
from pyhudi.read.selection.commit_time_filter import CommitTimes
from pyhudi.read.selection.selected_slices import InstantBounds
from pyhudi.schema.evolution.schema_projection import FileNames
from pyhudi.table.bootstrap_index import METADATA_BOOTSTRAP
from pyhudi.table.view.file_slicing import has_log_files


@dataclass(frozen=True, slots=True)
class PruningReport:
    """Effect of pruning on a query.

    Attributes:
        slices: Number of slices of the query before pruning.
        partitions: Number of partitions of the query before pruning.
        files_from: Source of the names of the files.
        skipped: What each index pruned, or why it was not used.
    """

    slices: int
    partitions: int
    files_from: str
    skipped: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FileReading:
    """Conversion of rows of files to rows of the table.

    Attributes:
        bounds: Bounds on the instants of rows, log blocks and schema.
        renamed: Base instants whose files have other names for some columns (see
            :mod:`pyhudi.schema.evolution.schema_projection`).
        invalid_text: What becomes of text that is not UTF-8.
    """

    bounds: InstantBounds
    renamed: Mapping[str, FileNames]
    invalid_text: InvalidText


@dataclass(frozen=True, slots=True)
class LogMerging:
    """Settings for merging slices with log files.

    Attributes:
        context: Settings for all records.
        key_rows: Records that the filter asks for, as far as it names keys; None: any.
    """

    context: SliceContext
    key_rows: KeyFilter | None


@dataclass(frozen=True, slots=True)
class ScanPlan:
    """Plan of a query: the file slices to read and how.

    Attributes:
        query: The query.
        tasks: File slices (:data:`pyhudi.table.view.file_slicing.SLICE_SCHEMA`), with paths relative to the root of
            the table.
        schema: All columns of the table as of the query.
        columns: The requested top-level columns, in order.
        filter: Condition that the rows must satisfy; files may have other rows, too.
        reading: How rows of files become rows of the table.
        partition_columns: Columns whose values come from the paths of the partitions of ``tasks``.
        pruning: Report of the pruning.
        keys: Columns that are the same in all versions of a record.
        merging: How slices with log files are merged; None: there are none.
    """

    query: Query
    tasks: pa.Table
    schema: pa.Schema
    columns: tuple[str, ...]
    filter: RowFilter | None
    reading: FileReading
    partition_columns: PathColumns
    pruning: PruningReport
    keys: frozenset[str]
    merging: LogMerging | None = None

    @property
    def output_schema(self) -> pa.Schema:
        """Columns of the result."""
        return pa.schema([self.schema.field(c) for c in self.columns])

    @property
    def partitions(self) -> list[str]:
        """Partition paths that are read."""
        paths: list[str] = self.partition_columns.paths.to_pylist()
        return paths

    @property
    def path_columns(self) -> tuple[str, ...]:
        """Columns whose values must come from the path, because files omit them, or as the query requests."""
        return self.partition_columns.required

    @property
    def commit_times(self) -> CommitTimes | None:
        """Condition on the commit times of the rows; files may have other rows, too."""
        return self.reading.bounds.commit_times

    @property
    def key_rows(self) -> KeyFilter | None:
        """Records that the filter asks for, as far as it names keys (of slices with log files); None: any."""
        return None if self.merging is None else self.merging.key_rows

    @property
    def partitions_before_pruning(self) -> int:
        """Number of partitions of the query."""
        return self.pruning.partitions

    @property
    def files_from(self) -> str:
        """Source of the names of the files."""
        return self.pruning.files_from

    @property
    def skipped(self) -> tuple[str, ...]:
        """Effect of each index, or the reason why it was not used."""
        return self.pruning.skipped

    @property
    def size_bytes(self) -> int:
        """Total size in bytes of all files of the tasks."""
        base = pc.sum(self.tasks["base_size"]).as_py() or 0
        return int(base + (pc.sum(pc.list_flatten(self.tasks["log_sizes"])).as_py() or 0))

    @property
    def num_slices_with_logs(self) -> int:
        """Number of tasks that have log files."""
        return int(pc.sum(has_log_files(self.tasks)).as_py() or 0)

    def with_logs(self) -> ScanPlan:
        """Return the part of the plan whose slices have log files."""
        return replace(self, tasks=self.tasks.filter(has_log_files(self.tasks)))

    def without_logs(self) -> ScanPlan:
        """Return the part whose slices have only base files."""
        return replace(self, tasks=self.tasks.filter(pc.invert(has_log_files(self.tasks))), merging=None)

    def bootstrapped(self) -> tuple[ScanPlan, ScanPlan]:
        """Return the part whose base files have their data columns in bootstrapped source files, and the rest."""
        skeletons = pc.equal(self.tasks["base_instant"], METADATA_BOOTSTRAP)
        rest = replace(self, tasks=self.tasks.filter(pc.invert(skeletons)))
        return replace(self, tasks=self.tasks.filter(skeletons)), rest

    def select_slices(self, numbers: pa.Array) -> ScanPlan:
        """Return the part of the plan with these slices and only their partitions."""
        tasks = self.tasks.take(numbers)
        partitions = pc.unique(tasks["partition"])
        return replace(self, tasks=tasks, partition_columns=self.partition_columns.select_partitions(partitions))

    def select_partitions(self, partitions: Iterable[str]) -> ScanPlan:
        """Return the part of the plan with these partitions, given by path."""
        is_selected = pc.is_in(self.tasks["partition"], pa.array(list(partitions), pa.string()))
        return self.select_slices(pc.indices_nonzero(is_selected))

    def explain(self) -> str:
        """Describe the files to read and the effect of pruning in a few lines of text."""
        lines = [
            f"query       {self.query}",
            f"partitions  {len(self.partitions)} of {self.partitions_before_pruning}",
            f"slices      {self.tasks.num_rows} of {self.pruning.slices}"
            + (f", {self.num_slices_with_logs} with log files" if self.num_slices_with_logs else ""),
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

    def __repr__(self) -> str:
        return self.explain()
