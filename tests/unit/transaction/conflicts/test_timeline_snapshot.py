"""A plan is made again when a service that it knew as pending has completed."""

from __future__ import annotations

import pyarrow as pa
import pytest

from pyhudi.errors import CorruptInstantError
from pyhudi.format.file_names import base_file_name
from pyhudi.storage import Storage
from pyhudi.table.config.table_config import TableConfig
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.table.view.file_slicing import SLICE_SCHEMA
from pyhudi.table.view.file_system_view import FileSystemView
from pyhudi.table.view.pending_file_groups import pending_compaction_groups
from pyhudi.timeline.action_avro import encode_record, requested_replace
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.commit_metadata import REPLACED_SCHEMA, CommitMetadata, write_stats
from pyhudi.timeline.instant import Action, State
from pyhudi.timeline.plans.compaction_plan import CompactionPlan
from pyhudi.timeline.time_generator import TimeGenerator
from pyhudi.timeline.timeline import Timeline
from pyhudi.timeline.timeline_layout import LAYOUT_1, LAYOUT_2, Layout
from pyhudi.transaction.commit_outcome import Committed, Conflicted
from pyhudi.transaction.conflicts.timeline_snapshot import TimelineSnapshot
from pyhudi.write.settings.log_settings import log_slices
from tests.unit.transaction.tables import OPTIONS, SCHEMA, Write, active, make_table

DONE, SERVICE, LATER = "20260101000000000", "20260101000100000", "20260101000200000"
GROUP = "00000000-x-0"


def timeline(layout: Layout, *names: str) -> Timeline:
    return Timeline.from_files(filter(None, map(layout.parse, names)))


@pytest.mark.parametrize(
    ("layout", "write", "action", "completed"),
    [
        (LAYOUT_2, f"{DONE}_{DONE}.commit", "clustering", f"{SERVICE}_{LATER}.replacecommit"),
        (LAYOUT_2, f"{DONE}_{DONE}.commit", "compaction", f"{SERVICE}_{LATER}.commit"),
        (LAYOUT_2, f"{DONE}_{DONE}.deltacommit", "logcompaction", f"{SERVICE}_{LATER}.deltacommit"),
        (LAYOUT_1, f"{DONE}.commit", "compaction", f"{SERVICE}.commit"),
        (LAYOUT_1, f"{DONE}.commit", "replacecommit", f"{SERVICE}.replacecommit"),
    ],
)
def test_a_service_that_completes_changes_it(layout: Layout, write: str, action: str, completed: str):
    requested, inflight = f"{SERVICE}.{action}.requested", f"{SERVICE}.{action}.inflight"
    planned = TimelineSnapshot.from_timeline(timeline(layout, write, requested))
    begun = TimelineSnapshot.from_timeline(timeline(layout, write, requested, inflight))
    done = TimelineSnapshot.from_timeline(timeline(layout, write, requested, inflight, completed))
    assert planned == begun, "nothing has changed yet"
    assert done != begun
    assert planned != TimelineSnapshot.from_timeline(timeline(layout, write))


def test_what_others_have_only_announced_does_not_count():
    before = TimelineSnapshot.from_timeline(timeline(LAYOUT_2, f"{DONE}_{DONE}.commit"))
    beside = (f"{SERVICE}.commit.requested", f"{SERVICE}.inflight", f"{LATER}_{LATER}.clean")
    assert TimelineSnapshot.from_timeline(timeline(LAYOUT_2, f"{DONE}_{DONE}.commit", *beside)) == before
    assert TimelineSnapshot.from_timeline(None) == TimelineSnapshot.from_timeline(Timeline())


def view(storage: Storage, now: ActiveTimeline) -> pa.Table:
    return FileSystemView.load(TableSnapshot(storage, TableConfig.load(storage), now)).latest_slices()


def test_an_overwrite_beside_a_clustering(storage: Storage, version: int):
    """Apache Hudi completes a clustering between the plan and its announcement."""
    storage.write("a/.hoodie_partition_metadata", b"x")
    Write(("a",), file_ids={"a": "g1-0"}).run(storage)
    generator, now = TimeGenerator(storage, OPTIONS, "UTC"), active(storage)
    entry = now.create_requested(Action.CLUSTERING, generator.next(), requested_replace(version))
    entry = now.to_inflight(entry)
    planned = active(storage)
    slices = view(storage, planned)
    path = f"a/{base_file_name('h-0', '0-9-9', entry.requested)}"
    storage.write(path, b"data")
    stat = {"fileId": "h-0", "path": path, "partitionPath": "a", "numInserts": 1, "numWrites": 1}
    replaced = pa.table([["a"], ["g1-0"]], schema=REPLACED_SCHEMA)
    done = CommitMetadata("CLUSTER", write_stats([stat]), {"schema": SCHEMA}, replaced=replaced)
    active(storage).complete(entry, done.encode(version, Action.CLUSTERING), generator.next())
    write = Write(("a",), "replacecommit", "INSERT_OVERWRITE", file_ids={"a": "new-0"})
    tx = write.begin(storage)
    assert TimelineSnapshot.from_timeline(tx.timeline) != TimelineSnapshot.from_timeline(planned.timeline)
    assert slices["file_id"].to_pylist() == ["g1-0"]
    slices = view(storage, tx.active)
    write.replaced = tuple(("a", file_id) for file_id in slices["file_id"].to_pylist())
    assert isinstance(tx.commit(write.write_files(tx)), Committed)
    assert view(storage, active(storage))["file_id"].to_pylist() == ["new-0"]


def plan_compaction(storage: Storage, requested: str) -> None:
    operation = {"partitionPath": "a", "fileId": GROUP, "deltaFilePaths": [], "dataFilePath": None, "metrics": {}}
    content = encode_record("compaction", State.REQUESTED, {"operations": [operation]}, 6)
    active(storage).create_requested("compaction", requested, content)


@pytest.mark.parametrize("version", [6], indirect=True)
def test_logs_of_version_6_go_to_the_slice_that_a_compaction_has_opened(storage: Storage):
    """As long as slices and plans are of one moment: a plan that has gone, beside slices from before, says the old
    one."""
    plan_compaction(storage, SERVICE)
    pinned = active(storage)
    piece = {"partition": "a", "file_id": GROUP, "base_instant": DONE, "log_paths": [], "log_sizes": []}
    slices = pa.Table.from_pylist([piece], schema=SLICE_SCHEMA)
    before = TimelineSnapshot.from_timeline(pinned.timeline)
    entry = pinned.timeline.find(SERVICE)
    assert entry is not None
    now = active(storage)
    now.complete(now.to_inflight(entry), CommitMetadata("COMPACT").encode(6, "commit"))
    assert TimelineSnapshot.from_timeline(now.timeline) != before
    for seen, opened in ((pinned, SERVICE), (now, DONE)):
        logs = log_slices(slices, slices, pending_compaction_groups(seen), named_by_slice=True)
        assert logs["base_instant"].to_pylist() == [opened]


@pytest.mark.parametrize("version", [6], indirect=True)
@pytest.mark.parametrize("completes", [False, True])
def test_a_compaction_that_a_write_of_version_6_did_not_know(storage: Storage, completes: bool):
    """Its instant may be the older one, where who planned it had lost the lock."""
    make_table(storage, 6, {"hoodie.table.type": "MERGE_ON_READ"})
    write = Write(("a",), "deltacommit", file_ids={"a": GROUP})
    tx = write.begin(storage)
    metadata = write.write_files(tx)
    plan_compaction(storage, SERVICE)
    if completes:
        now = active(storage)
        entry = now.timeline.find(SERVICE)
        assert entry is not None
        stat = {"fileId": GROUP, "path": "a/x.parquet", "partitionPath": "a"}
        done = CommitMetadata("COMPACT", write_stats([stat]), {"schema": SCHEMA}, compacted=True)
        now.complete(now.to_inflight(entry), done.encode(6, "commit"))
    assert isinstance(tx.commit(metadata), Conflicted)


def test_a_plan_is_parsed_once(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each write asks several times for the file groups of all pending plans."""
    parsed: list[str] = []

    def decode(action: str, instant: str, state: State, data: bytes) -> CompactionPlan:
        parsed.append(instant)
        return original(action, instant, state, data)

    original = CompactionPlan.decode
    monkeypatch.setattr(CompactionPlan, "decode", decode)
    plan_compaction(storage, SERVICE)
    groups = [pending_compaction_groups(active(storage)).to_pylist() for _ in range(3)]
    assert groups == 3 * [[{"partition": "a", "file_id": GROUP, "instant": SERVICE}]]
    assert len(parsed) <= 1  # none if another test has the same plan
    changed = active(storage)
    path = changed.path(next(iter(changed.timeline)))
    storage.write(path, storage.read(path)[:-20])
    with pytest.raises(CorruptInstantError):
        pending_compaction_groups(active(storage))
