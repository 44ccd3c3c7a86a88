"""Slices of file groups before and after a write."""

from __future__ import annotations

import pyarrow as pa
import pytest

from pyhudi.merge.file_slice import FileSlice
from pyhudi.metadata.indexes.file_slice_changes import GroupChange, SliceChanges
from pyhudi.table.view.file_slicing import SLICE_SCHEMA
from pyhudi.timeline.commit_metadata import REPLACED_SCHEMA, CommitMetadata, write_stats

BASE, LOG, NEW_BASE, NEW_LOG, LATER_LOG = (
    "p/f-0_0-1-0_001.parquet",
    "p/.f-0_002.log.1_0-2-0",
    "p/f-0_0-3-0_003.parquet",
    "p/.f-0_003.log.1_0-3-0",
    "p/.f-0_004.log.1_0-4-0",
)
OF_VERSION_6 = ["p/.f-0_001.log.1_0-2-0", "p/.f-0_001.log.2_0-3-0"]
OTHER = FileSlice("p", "other-0", "001", "p/other-0_0-1-0_001.parquet")


def sliced(base: str | None, *logs: str) -> FileSlice:
    instant = (base or logs[0]).rpartition("_")[2][:3] if base else logs[0].partition("_")[2][:3]
    return FileSlice("p", "f-0", instant, base, logs, tuple(range(1, len(logs) + 1)))


def table_of(*slices: FileSlice) -> pa.Table:
    rows = [
        {name: getattr(one, name, None) for name in SLICE_SCHEMA.names} | {"base_size": 9 if one.base_path else None}
        for one in slices
    ]
    return pa.Table.from_pylist(rows, SLICE_SCHEMA)


@pytest.mark.parametrize(
    ("before", "paths", "after"),
    [
        pytest.param(None, [NEW_BASE], sliced(NEW_BASE), id="new-base-file"),
        pytest.param(None, [NEW_LOG], sliced(None, NEW_LOG), id="new-log-file"),
        pytest.param(sliced(BASE), [NEW_LOG], sliced(BASE, NEW_LOG), id="log-file-of-a-base-file"),
        pytest.param(sliced(BASE, LOG), [NEW_LOG], sliced(BASE, LOG, NEW_LOG), id="another-log-file"),
        pytest.param(
            sliced(NEW_BASE, LOG), [LATER_LOG], sliced(NEW_BASE, LOG, LATER_LOG), id="log-file-requested-earlier"
        ),
        pytest.param(sliced(None, LOG), [NEW_LOG], sliced(None, LOG, NEW_LOG), id="log-files-only"),
        pytest.param(sliced(BASE, LOG), [NEW_BASE], sliced(NEW_BASE), id="next-base-file"),
        pytest.param(
            sliced(BASE, *OF_VERSION_6), OF_VERSION_6[1:], sliced(BASE, *OF_VERSION_6), id="log-file-that-was-listed"
        ),
    ],
)
def test_slices_after_a_write(before: FileSlice | None, paths: list[str], after: FileSlice) -> None:
    stats = [
        {
            "partitionPath": "p",
            "fileId": "f-0",
            "path": path,
            "fileSizeInBytes": len(after.log_paths),
            "logVersion": 1 if ".log." in path else None,
        }
        for path in paths
    ]
    slices = table_of(*([] if before is None else [before]), OTHER)
    assert changes(SliceChanges.from_commit(slices, CommitMetadata("UPSERT", write_stats(stats)))) == [
        GroupChange(before, after)
    ]


def test_replaced_file_groups_have_no_slice_after_a_write() -> None:
    ids = [{"partition": "p", "file_id": name} for name in ("f-0", "unknown-0", None)]
    replaced = pa.Table.from_pylist(ids, REPLACED_SCHEMA)
    made = {"partitionPath": "p", "fileId": "g-0", "path": "p/g-0_0-3-0_003.parquet", "fileSizeInBytes": 5}
    metadata = CommitMetadata("INSERT_OVERWRITE", write_stats([made]), replaced=replaced)
    assert changes(SliceChanges.from_commit(table_of(sliced(BASE, LOG), OTHER), metadata)) == [
        GroupChange(sliced(BASE, LOG), None),
        GroupChange(None, FileSlice("p", "g-0", "003", made["path"])),
    ]


def changes(found: SliceChanges) -> list[GroupChange]:
    before, after = (side.to_pylist() for side in found.sides())
    return [GroupChange.from_row({"before": b, "after": a}) for b, a in zip(before, after, strict=True)]
