"""File groups that a write has changed, with their slices before and after it: tables, without an object per file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.format.file_names import BASE
from pyhudi.merge.file_slice import FileSlice
from pyhudi.table.view.file_group_keys import group_keys, in_groups
from pyhudi.table.view.file_listing import files_of_listing
from pyhudi.table.view.file_slicing import SLICE_SCHEMA, fold_slices
from pyhudi.timeline.commit_metadata import CommitMetadata

_GROUP = ["partition", "file_id"]


@dataclass(frozen=True, slots=True)
class GroupChange:
    """File slice of a file group before and after a write; None if there is none."""

    before: FileSlice | None
    after: FileSlice | None

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> GroupChange:
        """Return the change of a row with the columns before and after: structs of the rows of `SliceChanges.sides`."""
        sides = (row["before"], row["after"])
        return cls(*(None if one is None or one["file_id"] is None else FileSlice.from_row(one) for one in sides))


@dataclass(frozen=True, slots=True)
class SliceChanges:
    """Slices (`pyhudi.table.view.file_slicing.SLICE_SCHEMA`) of file groups that a write has changed or replaced.

    Attributes:
        before: The slices before the write, of the groups that had one.
        after: Those after it, of the groups that have one.
    """

    before: pa.Table
    after: pa.Table

    @classmethod
    def from_commit(cls, slices: pa.Table, metadata: CommitMetadata) -> SliceChanges:
        """Return the changes of a write. ``slices`` are those of its partitions before it, one of each file group."""
        stats = metadata.stats.filter(pc.is_valid(metadata.stats["path"]))
        written = stats.select(["partitionPath", "fileId", "path", "fileSizeInBytes", "logVersion"])
        written = written.rename_columns([*_GROUP, "path", "size", "log_version"])
        before = slices.filter(in_groups(slices, written))
        after = _slices_after(before, written)
        if metadata.replaced is not None:
            gone = pc.and_(in_groups(slices, metadata.replaced), pc.invert(in_groups(slices, written)))
            before = pa.concat_tables([before, slices.filter(gone)])
        return cls(before.combine_chunks(), after.combine_chunks())

    def __len__(self) -> int:
        return len(self.before) + len(self.after)

    def sides(self) -> tuple[pa.Table, pa.Table]:
        """Return the slices before and after the write, one file group in each row; nulls if there is none."""
        groups = pa.concat_tables([self.before.select(_GROUP), self.after.select(_GROUP)])
        groups = groups.group_by(_GROUP, use_threads=False).aggregate([])
        before, after = (
            side.take(pc.index_in(group_keys(groups), value_set=group_keys(side))) for side in (self.before, self.after)
        )
        return before, after


def _slices_after(before: pa.Table, written: pa.Table) -> pa.Table:
    """Return the slices of file groups after files were written: a base file begins a slice, log files are added to the
    one before."""
    before = before.filter(pc.invert(in_groups(before, written.filter(pc.is_null(written["log_version"])))))
    parts = [
        [before["base_path"], before["base_size"]],
        [pc.list_flatten(before[name]) for name in ("log_paths", "log_sizes")],
        [written["path"], written["size"]],
    ]
    listed = pa.concat_tables([pa.table(part, names=["path", "size"]) for part in parts])
    # before version 8 the name of a log file does not tell its writer: one of this write may be among those before it
    listed = listed.group_by("path", use_threads=False).aggregate([("size", "first")]).rename_columns(["path", "size"])
    files = files_of_listing(listed.filter(pc.is_valid(listed["path"])))
    # a log file whose commit was requested before the compaction, and completed after it, belongs to its base file, too
    key = pc.if_else(pc.equal(files["kind"], BASE), "", files["instant"])
    return fold_slices(files.append_column("key", key)) if files.num_rows else SLICE_SCHEMA.empty_table()
