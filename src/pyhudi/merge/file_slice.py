"""File slices and the settings for reading them: plain values that are sent to tasks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from pyhudi.config.enums import InvalidText
from pyhudi.keygen.key_spec import KeySpec
from pyhudi.merge.base_file_rows import Condition
from pyhudi.merge.batch_sizes import MergeMemory
from pyhudi.merge.key_filter import KeyFilter
from pyhudi.merge.logs.valid_log_blocks import BlockView
from pyhudi.merge.modes.delete_marker import DeleteMarker
from pyhudi.merge.modes.merge_rules import MergeRules
from pyhudi.schema.evolution.schema_projection import FileNames
from pyhudi.storage import Storage
from pyhudi.table.view.file_group_keys import FileGroupId

_BATCH_ROWS = 1024


@dataclass(frozen=True, slots=True)
class FileSlice:
    """One file slice. Paths are relative to the root of the table; ``log_paths`` are in merge order.

    ``base_path`` None: the slice has only logs. ``values`` are constants of columns that override those in files.
    """

    partition: str
    file_id: str
    base_instant: str
    base_path: str | None
    log_paths: tuple[str, ...] = ()
    log_sizes: tuple[int, ...] = ()
    values: Mapping[str, Any] = field(default_factory=dict)

    @property
    def group(self) -> FileGroupId:
        """Identity of the file group."""
        return FileGroupId(self.partition, self.file_id)

    def __str__(self) -> str:
        return f"slice {self.base_instant} of file group {self.file_id} in partition {self.partition!r}"

    @classmethod
    def from_row(cls, row: Mapping[str, Any], values: Mapping[str, Any] | None = None) -> FileSlice:
        """Create a slice from a row of a slice table (:data:`pyhudi.table.view.file_slicing.SLICE_SCHEMA`)."""
        return cls(
            row["partition"],
            row["file_id"],
            row["base_instant"],
            row["base_path"],
            tuple(row["log_paths"] or ()),
            tuple(row["log_sizes"] or ()),
            values or {},
        )


def file_slices(slices: pa.Table, values: Mapping[str, Mapping[str, Any]] | None = None) -> Iterator[FileSlice]:
    """Yield the rows of a slice table (:data:`pyhudi.table.view.file_slicing.SLICE_SCHEMA`), with few objects at a
    time. ``values`` are those of partitions."""
    for batch in slices.to_batches(max_chunksize=_BATCH_ROWS):
        for row in batch.to_pylist():
            yield FileSlice.from_row(row, values and values.get(row["partition"]))


@dataclass(frozen=True, slots=True)
class StoredColumns:
    """Differences of the columns that files have from those of the table.

    Attributes:
        constant: Columns that are in no file, but in `FileSlice.values`.
        keys: Specification of record keys that files do not store; None: they do.
        names_at: Returns, for an instant, the names in its files of columns that were renamed since.
    """

    constant: tuple[str, ...] = ()
    keys: KeySpec | None = None
    names_at: Callable[[str], FileNames] | None = None

    def names(self, instant: str) -> FileNames:
        """Return the names of columns in files of that instant, where they differ."""
        return {} if self.names_at is None else self.names_at(instant)


@dataclass(frozen=True, slots=True)
class RecordSelection:
    """Records that take part in a read.

    Attributes:
        base_rows: Condition on the rows of base files (incremental queries). Where merged rows may have values of
            several versions, it does not hold: rows that do not meet it are returned, too.
        key_rows: Records by their keys; None: all. Others may be returned, too, and are not merged then.
    """

    base_rows: Condition | None = None
    key_rows: KeyFilter | None = None

    @property
    def is_all(self) -> bool:
        """True if all records take part."""
        return self.base_rows is None and self.key_rows is None

    @property
    def columns(self) -> frozenset[str]:
        """Columns that the conditions need."""
        conditions = (one for one in (self.base_rows, self.key_rows) if one is not None)
        return frozenset().union(*(condition.columns for condition in conditions))

    def base_condition(self) -> Condition | None:
        """Return the condition on the rows of base files that take part."""
        by_key = None if self.key_rows is None else self.key_rows.condition
        return self.base_rows if by_key is None else by_key.and_(self.base_rows)


@dataclass(frozen=True, slots=True)
class SliceContext:
    """Settings for reading slices, created once and sent to every task. Immutable.

    Attributes:
        storage: Storage of the table.
        schema: All columns of the table as of the query.
        columns: Columns of the result, in order.
        rules: Merging of the versions of a record.
        deletes: Marks of records that are deletes.
        view: The log blocks that are valid.
        stored: Differences of the columns of files.
        selection: Records that take part.
        use_positions: Base rows are found by the positions in log blocks, if all blocks of a slice have them.
        memory: Limits of the memory of a merge.
        invalid_text: Treatment of text that is not UTF-8.
    """

    storage: Storage
    schema: pa.Schema
    columns: tuple[str, ...]
    rules: MergeRules = field(default_factory=MergeRules)
    deletes: DeleteMarker = field(default_factory=DeleteMarker)
    view: BlockView = field(default_factory=BlockView)
    stored: StoredColumns = field(default_factory=StoredColumns)
    selection: RecordSelection = field(default_factory=RecordSelection)
    use_positions: bool = True
    memory: MergeMemory = field(default_factory=MergeMemory)
    invalid_text: InvalidText = InvalidText.FAIL

    @property
    def output_schema(self) -> pa.Schema:
        """Columns of the result."""
        return pa.schema([self.schema.field(name) for name in self.columns])

    @property
    def key_rows(self) -> KeyFilter | None:
        """Records that take part, by their keys; None: all."""
        return self.selection.key_rows
