"""File groups that a write has changed, with their slices before and after it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.merge.file_slice import FileSlice

if TYPE_CHECKING:
    from pyhudi.timeline.commit_metadata import CommitMetadata


@dataclass(frozen=True, slots=True)
class GroupChange:
    """File slice of a file group before and after a write; None if there is none."""

    before: FileSlice | None
    after: FileSlice | None


def slice_changes(slices: pa.Table, metadata: CommitMetadata, instant: str) -> list[GroupChange]:
    """Return the file groups that a write has changed or replaced."""
    ids = [metadata.stats["fileId"], *([] if metadata.replaced is None else [metadata.replaced["file_id"]])]
    touched = pa.chunked_array([chunk for column in ids for chunk in column.chunks], pa.string())
    slices = slices.filter(pc.is_in(slices["file_id"], value_set=touched.drop_null().combine_chunks()))
    before = {(row["partition"], row["file_id"]): FileSlice.from_row(row) for row in slices.to_pylist()}
    after: dict[tuple[str, str], FileSlice | None] = {}
    if metadata.replaced is not None:
        replaced_groups = metadata.replaced.filter(pc.is_valid(metadata.replaced["file_id"])).to_pylist()
        after |= {(row["partition"], row["file_id"]): None for row in replaced_groups}
    stats = metadata.stats.select(["partitionPath", "fileId", "path", "fileSizeInBytes", "logVersion"])
    for stat in stats.filter(pc.is_valid(stats["path"])).to_pylist():
        group = (stat["partitionPath"], stat["fileId"])
        if stat["logVersion"] is None:
            after[group] = FileSlice(*group, instant, stat["path"])
            continue
        file_slice = after.get(group) or before.get(group) or FileSlice(*group, instant, None)
        if stat["path"] in file_slice.log_paths:  # before version 8 the file name does not identify the writer
            after[group] = file_slice
            continue
        after[group] = replace(
            file_slice,
            log_paths=(*file_slice.log_paths, stat["path"]),
            log_sizes=(*file_slice.log_sizes, stat["fileSizeInBytes"]),
        )
    return [GroupChange(before.get(group), new) for group, new in after.items()]
