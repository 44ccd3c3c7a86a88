"""What tells the changes of a commit, by its metadata."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from pyhudi.errors import QueryError
from pyhudi.read.cdc.cdc_inference import cdc_files
from pyhudi.timeline.commit_metadata import REPLACED_SCHEMA, CommitMetadata, write_stats

LOG = ".f_20260101000000000.log.1_0-1-2"


def stat(path: str = "p/f_0-1-2_20260101000000000.parquet", **more: Any) -> dict[str, Any]:
    return {"partitionPath": "p", "fileId": "f", "path": path, "fileSizeInBytes": 9, **more}


@pytest.mark.parametrize(
    ("operation", "found", "case"),
    [
        ("UPSERT", stat(numWrites=3, numInserts=3), "BASE_FILE_INSERT"),
        ("UPSERT", stat(numWrites=3, numUpdateWrites=1, cdcStats={f"p/{LOG}.cdc": 7}), "AS_IS"),
        ("INSERT", stat(numWrites=3, numInserts=1), "INSERTED_ROWS"),
        ("DELETE", stat(numWrites=0, numDeletes=3), "BASE_FILE_DELETE"),
        ("DELETE_PREPPED", stat(numWrites=0, numDeletes=3), "BASE_FILE_DELETE"),
        ("UPSERT", stat(f"p/{LOG}", numWrites=3, numUpdateWrites=3), "LOG_FILE"),
    ],
)
def test_cases(operation: str, found: dict[str, Any], case: str) -> None:
    (row,) = cdc_files("1", CommitMetadata(operation, write_stats([found]))).to_pylist()
    assert (row["instant"], row["case"], row["partition"], row["file_id"]) == ("1", case, "p", "f")
    is_base = found["path"].endswith("parquet")
    assert row["written"] == (found["path"] if is_base else None)
    log = {"AS_IS": [f"p/{LOG}.cdc"], "LOG_FILE": [f"p/{LOG}"]}
    assert (row["paths"] or []) == log.get(case, [])
    assert row["logged_bytes"] == (7 if case == "AS_IS" else None)


def test_log_files_of_a_group_are_one_change_and_empty_ones_none() -> None:
    stats = [
        stat(f"p/{LOG}", numWrites=1),
        stat("p/.f_20260101000000000.log.2_0-1-2", numDeletes=1),
        {**stat("p/.g_20260101000000000.log.1_0-1-2"), "fileId": "g", "fileSizeInBytes": 0},
    ]
    (row,) = cdc_files("1", CommitMetadata("UPSERT", write_stats(stats))).to_pylist()
    assert row["paths"] == [f"p/{LOG}", "p/.f_20260101000000000.log.2_0-1-2"]


def test_replaced_groups_and_services() -> None:
    replaced = pa.Table.from_pylist([{"partition": "p", "file_id": "old"}], REPLACED_SCHEMA)
    stats = write_stats([stat(numWrites=1, numInserts=1)])
    rows = cdc_files("1", CommitMetadata("INSERT_OVERWRITE", stats, replaced=replaced)).to_pylist()
    assert [(row["case"], row["file_id"]) for row in rows] == [("BASE_FILE_INSERT", "f"), ("REPLACE_COMMIT", "old")]
    assert not cdc_files("1", CommitMetadata("CLUSTER", stats, replaced=replaced)).num_rows


@pytest.mark.parametrize("counts", [{"numUpdateWrites": 1}, {"numInserts": 1, "numDeletes": 1}, {}])
def test_a_rewritten_file_without_a_log_is_refused(counts: dict[str, int]) -> None:
    with pytest.raises(QueryError, match="without logging its changes"):
        cdc_files("1", CommitMetadata("UPSERT", write_stats([stat(numWrites=3, **counts)])))
