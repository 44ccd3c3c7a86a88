"""The timeline as it will be once a pending write has been published."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyhudi.storage import open_storage
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.commit_metadata import CommitMetadata
from pyhudi.timeline.staged_timeline import StagedTimeline
from pyhudi.timeline.timeline_layout import LAYOUT_1, LAYOUT_2, Layout

T1, T2 = "20240101000000001", "20240101000000002"


@pytest.mark.parametrize("layout", [LAYOUT_1, LAYOUT_2])
def test_a_pending_write_counts_as_completed_after_a_reload_too(tmp_path: Path, layout: Layout):
    active = ActiveTimeline.load(open_storage(tmp_path), layout)
    pending = active.to_inflight(active.create_requested("commit", T2))
    staged = StagedTimeline(active, pending, CommitMetadata("UPSERT"))
    other = active.to_inflight(active.create_requested("commit", T1))
    active.complete(other, CommitMetadata("INSERT").encode(6 if layout.version == 1 else 9, "commit"), T1)
    for timeline, operations in ((staged, ["UPSERT"]), (staged.reload(), ["INSERT", "UPSERT"])):
        done = timeline.timeline.completed()
        assert [timeline.commit_metadata(instant).operation for instant in done] == operations
    assert [instant.requested for instant in active.reload().timeline.completed()] == [T1]
