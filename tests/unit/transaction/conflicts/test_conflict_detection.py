from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import pyarrow as pa
import pytest

from pyhudi.errors import CorruptInstantError
from pyhudi.storage import Storage
from pyhudi.table.view.pending_file_groups import is_clustering, pending_clustering_groups, pending_compaction_groups
from pyhudi.timeline.action_avro import encode_record, requested_replace
from pyhudi.timeline.commit_metadata import REPLACED_SCHEMA, CommitMetadata, write_stats
from pyhudi.timeline.instant import Instant, State
from pyhudi.timeline.timeline import Timeline
from pyhudi.transaction.conflicts.changed_groups import touched_groups
from pyhudi.transaction.conflicts.conflict_detection import AllowedConflicts, find_conflict
from tests.unit.transaction.tables import active

ME = "20240101000000005"
EARLIER, LATER = "20240101000000001", "20240101000000009"


def metadata(groups: Sequence[str], operation: str = "UPSERT") -> CommitMetadata:
    """A write to file groups given as ``partition:file id``, with ``:log`` for log files."""
    rows = [group.split(":") for group in groups]
    log = {"logVersion": 1, "baseFile": "", "logFiles": ["log"]}
    stats = [
        {"partitionPath": row[0], "fileId": row[1], "path": f"{row[0]}/{row[1]}", **(log if len(row) > 2 else {})}
        for row in rows
    ]
    return CommitMetadata(operation, write_stats(stats))


def completed(
    storage: Storage, requested: str, groups: Sequence[str], operation: str = "UPSERT", action: str = "commit"
) -> Instant:
    now = active(storage)
    version = 6 if now.layout.version == 1 else 9
    inflight = now.to_inflight(now.create_requested(action, requested, b"" if action == "commit" else b"plan"))
    return now.complete(inflight, metadata(groups, operation).encode(version, action), requested[:-2] + "99")


def plan(storage: Storage, action: str, requested: str, group: str) -> Instant:
    partition, file_id = group.split(":")
    entry = {"partitionPath": partition, "fileId": file_id, "dataFilePath": "x", "deltaFilePaths": []}
    if action in ("compaction", "logcompaction"):
        record: dict[str, object] = {"operations": [entry | {"baseInstantTime": EARLIER}]}
    else:
        record = {"operationType": "CLUSTER", "clusteringPlan": {"inputGroups": [{"slices": [entry]}]}}
    return active(storage).create_requested(action, requested, encode_record(action, State.REQUESTED, record, 9))


def against(storage: Storage, groups: Sequence[str], version: int, begun: Timeline | None = None) -> Instant | None:
    conflict = find_conflict(metadata(groups), ME, begun or Timeline(), active(storage), version=version)
    return None if conflict is None else conflict.other


def test_touched_groups():
    rows = [
        {"partitionPath": "a", "fileId": "1", "path": "a/1"},
        {"partitionPath": "a", "fileId": "1", "path": "a/1b"},
        {"partitionPath": "b", "fileId": "", "numInserts": 5},
    ]
    replaced = pa.Table.from_pylist([{"partition": "c", "file_id": "9"}, {"partition": "d"}], schema=REPLACED_SCHEMA)
    groups = touched_groups(CommitMetadata("INSERT_OVERWRITE", write_stats(rows), replaced=replaced))
    assert sorted(groups.to_pylist(), key=str) == [
        {"partition": "a", "file_id": "1"},
        {"partition": "c", "file_id": "9"},
    ]


def test_a_bucket_is_one_file_group(storage: Storage, version: int):
    first = "00000003-63b9-435b-8b8d-18c2684745c2-0"
    other = completed(storage, LATER, [f"a:{first}"])
    tail = "-0000-4000-8000-000000000000-0"
    assert against(storage, [f"a:00000003{tail}"], version) == other, "both have opened it"
    assert against(storage, [f"a:00000004{tail}", f"b:00000003{tail}", f"a:0000000a{tail}"], version) is None


@pytest.mark.parametrize(
    ("mine", "theirs", "stands_against"),
    [
        ("a:00000001-x:log", "a:00000001-x:log", False),
        ("a:00000001-x:log", "a:00000001-y:log", False),
        ("a:00000001-x:log", "a:00000001-x", True),
        ("a:00000001-x", "a:00000001-x:log", True),
        ("a:00000001-x:log", "a:00000001-y", True),
        ("a:00000001-x", "a:00000001-y:log", True),
        ("a:00000001-x", "a:00000002-x:log", False),
    ],
)
def test_log_files_of_non_blocking_writers(storage: Storage, mine: str, theirs: str, stands_against: bool):
    completed(storage, LATER, [theirs, "b:1:log"], action="deltacommit")
    find = partial(find_conflict, metadata([mine, "b:1:log"]), ME, Timeline(), active(storage), version=9)
    assert find() is not None
    assert (find(exceptions=AllowedConflicts(appends=True)) is not None) == stands_against


@pytest.mark.parametrize("is_done", [False, True])
@pytest.mark.parametrize(("planned", "stands_against"), [(EARLIER, False), (LATER, True)])
def test_log_compactions_beside_non_blocking_writers(
    storage: Storage, planned: str, stands_against: bool, is_done: bool
):
    """A merged block takes the place of the newest one in it."""
    if is_done:
        completed(storage, planned, ["a:1:log"], "LOG_COMPACT", "deltacommit")
    else:
        plan(storage, "logcompaction", planned, "a:1")
    find = partial(find_conflict, metadata(["a:1:log"]), ME, Timeline(), active(storage), version=9)
    assert (find(exceptions=AllowedConflicts(appends=True)) is not None) == stands_against
    assert find() is None


@pytest.mark.parametrize("is_done", [False, True])
@pytest.mark.parametrize(
    ("begun", "written", "planned", "stands_against"),
    [
        (LATER, "a:1:log", "20240101000000200", True),
        (EARLIER, "a:1:log", "20240101000000200", False),
        (LATER, "a:2:log", "20240101000000200", False),
        (LATER, "a:1:log", "20240101000000008", False),  # both writes complete after the compaction was planned
    ],
)
def test_compactions_between_log_files_of_non_blocking_writers(
    storage: Storage, begun: str, written: str, planned: str, stands_against: bool, is_done: bool
):
    """Without ordering values, the compaction would turn the order of the two writes around."""
    completed(storage, begun, [written], action="deltacommit")
    if is_done:
        completed(storage, planned, ["a:1"], "COMPACT", "compaction")
    else:
        plan(storage, "compaction", planned, "a:1")
    find = partial(find_conflict, metadata(["a:1:log"]), ME, Timeline(), active(storage), version=9)
    in_order = AllowedConflicts(appends=True, appends_in_order=True)
    assert (find(exceptions=in_order) is not None) == stands_against
    assert find(exceptions=AllowedConflicts(appends=True)) is None


@pytest.mark.parametrize(("mine", "theirs"), [("DELETE", "UPSERT"), ("UPSERT", "DELETE"), ("UPSERT", "UPSERT")])
def test_deletes_by_keys_of_non_blocking_writers_have_no_ordering_values(storage: Storage, mine: str, theirs: str):
    completed(storage, LATER, ["a:1:log"], theirs, action="deltacommit")
    other = plan(storage, "compaction", "20240101000000200", "a:1")
    find = partial(find_conflict, metadata(["a:1:log"], mine), ME, Timeline(), active(storage), version=9)
    found = find(exceptions=AllowedConflicts(appends=True))
    assert (None if found is None else found.other) == (other if "DELETE" in (mine, theirs) else None)


def test_only_the_same_group_of_the_same_partition(storage: Storage, version: int):
    other = completed(storage, LATER, ["a:1", "b:2"])
    assert against(storage, ["b:1", "c:2"], version) is None
    assert against(storage, ["c:2", "b:2"], version) == other
    assert against(storage, [], version) is None


def test_what_was_there_at_the_start_does_not_count(storage: Storage, version: int):
    completed(storage, EARLIER, ["a:1"])
    begun = active(storage).timeline
    assert find_conflict(metadata(["a:1"]), ME, begun, active(storage), version=version) is None
    assert find_conflict(metadata(["a:1"]), ME, Timeline(), active(storage), version=version) is not None


@pytest.mark.parametrize(("planned", "stands_against"), [(EARLIER, False), (LATER, True)])
def test_a_compaction_that_completed(storage: Storage, version: int, planned: str, stands_against: bool):
    other = completed(storage, planned, ["a:1"], "COMPACT", "compaction")
    assert other.action == "commit"
    known = Timeline([Instant(EARLIER, "compaction", State.REQUESTED, None, "")])
    assert against(storage, ["a:1"], version, known) == (other if stands_against else None)


@pytest.mark.parametrize("planned", [EARLIER, LATER])
def test_a_compaction_that_is_pending(storage: Storage, version: int, planned: str):
    """Version 6 assigns log files to slices by name, so a write must have known of the compaction."""
    other = plan(storage, "compaction", planned, "a:1")
    assert pending_compaction_groups(active(storage)).to_pylist() == [
        {"partition": "a", "file_id": "1", "instant": planned}
    ]
    assert against(storage, ["a:1"], version) == (other if version < 8 else None)
    assert against(storage, ["a:1"], version, active(storage).timeline) is None, "the write has known of it"
    assert against(storage, ["a:2"], version) is None


@pytest.mark.parametrize("planned", [EARLIER, LATER])
def test_a_clustering_that_is_pending(storage: Storage, version: int, planned: str):
    other = plan(storage, "clustering", planned, "a:1")
    assert is_clustering(active(storage), other)
    assert pending_clustering_groups(active(storage)).num_rows == 1
    assert against(storage, ["a:1"], version) == other
    conflict = find_conflict(metadata(["a:1"]), ME, Timeline(), active(storage), version=version)
    assert conflict is not None
    assert f"call services.run_clustering('{planned}') first; the write was rolled back" in str(conflict.error())
    assert against(storage, ["a:2"], version) is None


def test_an_insert_overwrite_is_no_clustering(storage: Storage, version: int):
    now = active(storage)
    modern = now.create_requested("replacecommit", EARLIER, requested_replace(version))
    empty = now.create_requested("replacecommit", LATER)
    assert not is_clustering(now, modern)
    assert not is_clustering(now, empty)
    assert not is_clustering(now, now.create_requested("commit", ME))
    assert pending_clustering_groups(now).num_rows == 0


def test_a_broken_plan(storage: Storage):
    now = active(storage)
    broken = now.create_requested("replacecommit", EARLIER, b"Obj\x01half")
    with pytest.raises(CorruptInstantError, match="requested"):
        pending_clustering_groups(now)
    with pytest.raises(CorruptInstantError, match="no other writer is active"):
        is_clustering(now, broken)
