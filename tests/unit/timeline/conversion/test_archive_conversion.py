"""The archived timeline in the other layout."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from pyhudi.storage import open_storage
from pyhudi.timeline.archive.archive_log_reader import archive_files, archive_records
from pyhudi.timeline.archive.archived_timeline import read_archived_timeline
from pyhudi.timeline.archive.lsm_timeline_writer import LSM_SCHEMA, ROW_VERSION, LsmTimelineWriter
from pyhudi.timeline.commit_metadata import CommitMetadata
from pyhudi.timeline.conversion.archive_conversion import archive_to_log
from pyhudi.timeline.instant import Action
from pyhudi.timeline.timeline_layout import LAYOUT_1, LAYOUT_2


def test_inserts_that_overwrite(tmp_path: Path) -> None:
    """Apache Hudi 1.2.0 archives their inflight file as the plan: commit metadata, not a plan of a clustering."""
    storage = open_storage(tmp_path)
    commit = CommitMetadata("INSERT_OVERWRITE")
    row = {
        "instantTime": "20260101000000000",
        "completionTime": "20260101000001000",
        "action": Action.REPLACE_COMMIT,
        "metadata": commit.encode(8, Action.REPLACE_COMMIT),
        "plan": commit.encode(8, Action.COMMIT),
        "version": ROW_VERSION,
    }
    LsmTimelineWriter(storage, LAYOUT_2).append([pa.Table.from_pylist([row], schema=LSM_SCHEMA)])
    archive_to_log(storage, LAYOUT_2, LAYOUT_1)
    (path,) = archive_files(storage, LAYOUT_1)
    inflight, completed = archive_records(storage, path)
    assert (inflight["actionState"], completed["actionState"]) == ("INFLIGHT", "COMPLETED")
    assert inflight["HoodieInflightReplaceMetadata"]["operationType"] == "INSERT_OVERWRITE"
    assert inflight["hoodieRequestedReplaceMetadata"] is None
    assert read_archived_timeline(storage, LAYOUT_1)["action"].to_pylist() == [Action.REPLACE_COMMIT]
