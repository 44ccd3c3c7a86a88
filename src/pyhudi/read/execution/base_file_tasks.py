"""Tasks of a scan plan, each of which reads one base file, in this process or on Spark's executors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.config.enums import InvalidText
from pyhudi.errors import NotFoundError, QueryError
from pyhudi.format.base_file import orc
from pyhudi.format.base_file.filtered_parquet_file import FilteredFile
from pyhudi.format.corruption_errors import as_corruption
from pyhudi.merge.file_slice import FileSlice
from pyhudi.merge.skeleton_file import open_skeleton
from pyhudi.read.filters.row_filter import RowFilter
from pyhudi.read.scan_plan import ScanPlan
from pyhudi.read.selection.commit_time_filter import CommitTimes
from pyhudi.schema.evolution.schema_projection import conform, nested_columns, with_table_names
from pyhudi.schema.meta_fields import COMMIT_TIME
from pyhudi.schema.timestamp_units import with_actual_types
from pyhudi.storage import Storage
from pyhudi.table.bootstrap_index import is_skeleton

BATCH_ROWS = 65_536


@dataclass(frozen=True, slots=True)
class ReadTask:
    """One base file: its path, values of columns that override those in the file, and names of columns that differ in
    the file (None: the file has a different column of that name)."""

    path: str
    values: Mapping[str, Any]
    names: Mapping[str, str | None]


@dataclass(frozen=True, slots=True)
class TaskReader:
    """Reads base files into batches of the requested columns. Can be pickled, so that it can be sent to executors.

    ``schema`` are all columns of the table, ``columns`` those of the result. ``invalid_text``: treatment of text that
    is not valid UTF-8. ``renamed`` are the `ReadTask.names` of files by the instants of these.
    """

    storage: Storage
    schema: pa.Schema
    columns: tuple[str, ...]
    filter: RowFilter | None = None
    commit_times: CommitTimes | None = None
    invalid_text: InvalidText = InvalidText.FAIL
    renamed: Mapping[str, Mapping[str, str | None]] = field(default_factory=dict)

    @classmethod
    def from_plan(cls, plan: ScanPlan, storage: Storage) -> TaskReader:
        """Return the reader for the tasks of a plan."""
        reading = plan.reading
        return cls(
            storage,
            plan.schema,
            plan.columns,
            plan.filter,
            plan.commit_times,
            reading.invalid_text,
            reading.renamed,
        )

    @property
    def output_schema(self) -> pa.Schema:
        return pa.schema([self.schema.field(c) for c in self.columns])

    def read_base_file(self, one: FileSlice) -> Iterator[pa.RecordBatch]:
        """Yield the rows of the base file of a slice, which has one, as `read`."""
        assert one.base_path is not None
        return self.read(ReadTask(one.base_path, one.values, self.renamed.get(one.base_instant, {})))

    def read(self, task: ReadTask) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one base file that satisfy the conditions.

        Older files may lack columns or have narrower types; rows are returned in the table's schema.

        Raises:
            QueryError: The file no longer exists.
            FormatError: The file is corrupt.
        """
        try:
            damage = as_corruption(f"cannot read {self.storage.uri(task.path)}")
            if is_skeleton(task.path):
                with damage:
                    yield from self._read_skeleton(task)
                return
            with damage, self.storage.open_input(task.path) as source:
                yield from self._read(source, task)
        except NotFoundError as error:
            raise QueryError(
                f"{self.storage.uri(task.path)} no longer exists: a cleaner has removed it since the query was "
                "planned. Plan the query again, or retain more versions (hoodie.clean.commits.retained)"
            ) from error

    def _read(self, source: Any, task: ReadTask) -> Iterator[pa.RecordBatch]:
        if task.path.endswith(".orc"):
            yield from self._read_orc(source, task)
            return
        file = FilteredFile(source, self.invalid_text)
        needed, stored = self._needed(), file.schema
        by_file = {name: column for name, column in self._columns_by_name_in_file(task).items() if name in stored.names}
        nested = nested_columns(task.names)
        same = [column for name, column in by_file.items() if column == name and column not in nested]
        like = {c for c in same if stored.field(c).type == self.schema.field(c).type}
        pushed, later = self._split_conditions(like & file.comparable, task)
        as_is = not later and set(needed) == like
        condition = reduce(lambda a, b: a & b, pushed) if pushed else None
        target = pa.schema([self.schema.field(c) for c in needed])
        for batch in file.batches(self.columns if as_is else list(by_file), condition, BATCH_ROWS):
            if batch.num_rows == 0:
                continue
            if not as_is:
                named = with_table_names(batch, by_file, task.names)
                typed = named if file.has_int96 else with_actual_types(named, target)
                batch = self._finished(typed, target, task, later)
            yield batch

    def _read_skeleton(self, task: ReadTask) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a bootstrapped file, whose data columns are in its source."""
        needed, by_file = self._needed(), self._columns_by_name_in_file(task)
        target = pa.schema([self.schema.field(c) for c in needed])
        stored = pa.schema([self.schema.field(column).with_name(name) for name, column in by_file.items()])
        _, conditions = self._split_conditions(set(), task)
        with open_skeleton(self.storage, task.path, self.invalid_text) as file:
            for batch in file.batches(stored, BATCH_ROWS):
                if not needed:  # Rows are only counted.
                    yield batch
                    continue
                named = with_table_names(batch, by_file, task.names)
                yield self._finished(named, target, task, conditions)

    def _read_orc(self, source: Any, task: ReadTask) -> Iterator[pa.RecordBatch]:
        """Read by pyhudi's reader, because Arrow's ignores the time zone of the file."""
        needed, by_file = self._needed(), self._columns_by_name_in_file(task)
        target = pa.schema([self.schema.field(c) for c in needed])
        _, conditions = self._split_conditions(set(), task)
        for batch in orc.read_batches(source, list(by_file), invalid_text=self.invalid_text):
            if not needed:  # Rows are only counted.
                yield batch
                continue
            named = with_table_names(batch, by_file, task.names)
            for start in range(0, batch.num_rows, BATCH_ROWS):
                yield self._finished(named.slice(start, BATCH_ROWS), target, task, conditions)

    def _finished(
        self, batch: pa.RecordBatch, target: pa.Schema, task: ReadTask, conditions: list[pc.Expression]
    ) -> pa.RecordBatch:
        """Return the rows that satisfy the conditions, with the requested columns in the table's types."""
        batch = self._completed(batch, target, task.values)
        for condition in conditions:
            batch = batch.filter(condition)
        return batch.select(list(self.columns))

    def _needed(self) -> list[str]:
        """Return output columns first, then those that only conditions need."""
        needed = list(self.columns)
        more = self.filter.columns(self.schema) if self.filter is not None else []
        if self.commit_times is not None:
            more = [*more, COMMIT_TIME]
        return needed + [c for c in dict.fromkeys(more) if c not in needed]

    def _columns_by_name_in_file(self, task: ReadTask) -> dict[str, str]:
        """Return the needed columns that a file may have, by their names in it."""
        names = {column: task.names.get(column, column) for column in self._needed() if column not in task.values}
        return {name: column for column, name in names.items() if name is not None}

    def _split_conditions(self, like: set[str], task: ReadTask) -> tuple[list[pc.Expression], list[pc.Expression]]:
        """Split conditions into those that the file can evaluate (row groups by statistics first), and those for
        later."""
        pushed: list[pc.Expression] = []
        later: list[pc.Expression] = []
        if self.commit_times is not None:
            (pushed if COMMIT_TIME in like else later).append(self.commit_times.arrow())
        rows = self.filter and self.filter.residual(task.values, self.schema)
        if isinstance(rows, RowFilter):
            fits = set(rows.columns(self.schema)) <= like and rows.is_for_row_groups(self.schema)
            (pushed if fits else later).append(rows.arrow(self.schema))
        elif rows is False:
            pushed.append(pc.scalar(False))
        return pushed, later

    def _completed(self, batch: pa.RecordBatch, target: pa.Schema, values: Mapping[str, Any]) -> pa.RecordBatch:
        for name, value in values.items():
            if name in target.names:
                data_type = target.field(name).type
                column = pa.repeat(pa.scalar(value, data_type), batch.num_rows)
                batch = batch.append_column(pa.field(name, data_type), column)
        return conform(batch, target)
