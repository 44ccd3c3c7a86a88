"""The file-system view: which files count as of which instant, and the slices they form."""

from __future__ import annotations

import random
import uuid

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyhudi.storage import open_storage
from pyhudi.table.view.file_listing import FILE_SCHEMA, list_files
from pyhudi.table.view.file_system_view import FileInstants, FileSystemView
from pyhudi.timeline.instant import Instant, State
from pyhudi.timeline.timeline import Timeline
from tests.properties import examples


def instant(requested: int, completion: int | None = None, action: str = "commit", state: State = State.COMPLETED):
    return Instant(t(requested), action, state, None if completion is None else t(completion), "")


def t(n: int) -> str:
    return f"202601010000{n:05d}"


def file(kind: str, group: str, at: int, *, partition: str = "p", version: int | None = None, token: str = "0-0-0"):
    name = f"{group}_{token}_{t(at)}.parquet" if kind == "base" else f".{group}_{t(at)}.log.{version}_{token}"
    return {
        "partition": partition,
        "path": f"{partition}/{name}",
        "size": 10 * at,
        "kind": kind,
        "file_id": group,
        "token": token,
        "instant": t(at),
        "log_version": version,
    }


def view(files, instants, **kwargs) -> FileSystemView:
    shuffled = list(files)
    random.Random(7).shuffle(shuffled)
    return FileSystemView(
        pa.Table.from_pylist(shuffled, schema=FILE_SCHEMA), FileInstants(Timeline(instants), **kwargs)
    )


def groups(rows, *values: tuple[str, str, int]) -> pa.Table:
    columns = ["partition", "file_id", "instant"]
    schema = pa.schema([(c, pa.string()) for c in columns])
    return pa.Table.from_pylist(
        [dict(zip(columns, (p, f, t(i)), strict=True)) for p, f, i in (rows, *values)], schema=schema
    )


def shown(slices: pa.Table) -> list[tuple]:
    def short(path):
        return None if path is None else path.rpartition("/")[2].replace("202601010000", "")

    return [
        (
            row["file_id"],
            int(row["base_instant"][-5:]),
            short(row["base_path"]),
            [short(p) for p in row["log_paths"]],
        )
        for row in slices.to_pylist()
    ]


def test_newest_committed_base_file_of_each_group():
    files = [file("base", "a", 1), file("base", "a", 3), file("base", "b", 1), file("base", "b", 4)]
    v = view(files, [instant(1, 2), instant(3, 5), instant(4, state=State.INFLIGHT)])
    assert shown(v.latest_slices()) == [("a", 3, "a_0-0-0_00003.parquet", []), ("b", 1, "b_0-0-0_00001.parquet", [])]
    assert v.latest_base_files()["path"].to_pylist() == [f"p/a_0-0-0_{t(3)}.parquet", f"p/b_0-0-0_{t(1)}.parquet"]
    assert v.latest_slices()["base_size"].to_pylist() == [30, 10]


def test_files_of_archived_instants_count_and_of_rolled_back_ones_do_not():
    files = [file("base", "a", 1), file("base", "b", 6)]
    v = view(files, [instant(5, 5), instant(8, 8)])
    assert v.base_files()["file_id"].to_pylist() == ["a"]


def test_time_travel_counts_requested_times():
    files = [file("base", "a", 1), file("base", "a", 3), file("base", "b", 3)]
    v = view(files, [instant(1, 2), instant(3, 5)])
    assert shown(v.latest_slices(t(1))) == [("a", 1, "a_0-0-0_00001.parquet", [])]
    assert v.latest_slices(t(3)).num_rows == 2
    assert v.latest_slices(t(0)).num_rows == 0


def test_cut_at_completion_time():
    files = [file("base", "a", 1), file("base", "a", 3), file("base", "b", 4)]
    v = view(files, [instant(1, 2), instant(3, 9), instant(4, 5)])
    assert shown(v.latest_slices(completed_by=t(5))) == [
        ("a", 1, "a_0-0-0_00001.parquet", []),
        ("b", 4, "b_0-0-0_00004.parquet", []),
    ]


def test_compactions_count_from_their_requested_time_where_a_completion_time_cuts():
    files = [file("base", "a", 12), file("log", "a", 13, version=1), file("log", "a", 15, version=1)]
    deltas = [instant(10, 11, "deltacommit"), instant(13, 14, "deltacommit"), instant(15, 16, "deltacommit")]
    v = view(files, [*deltas, instant(12, 20)], compactions=frozenset({t(12)}))
    (found,) = shown(v.latest_slices(completed_by=t(14)))
    assert found == ("a", 12, "a_0-0-0_00012.parquet", [".a_00013.log.1_0-0-0"])
    assert v.latest_slices(completed_by=t(11)).num_rows == 0


def test_replaced_groups_are_hidden_from_the_replacement_on():
    files = [file("base", "a", 1), file("base", "b", 3)]
    v = view(files, [instant(1, 2), instant(3, 5, "replacecommit")], replaced=groups(("p", "a", 3), ("q", "b", 3)))
    assert v.latest_slices()["file_id"].to_pylist() == ["b"]
    assert v.latest_slices(t(2))["file_id"].to_pylist() == ["a"]
    assert v.replaced_groups(t(2)).num_rows == 0


def test_version_6_logs_belong_to_the_base_instant_in_their_name():
    files = [
        file("base", "a", 1),
        file("log", "a", 1, version=2),
        file("log", "a", 1, version=10),
        file("log", "a", 1, version=1),
        file("base", "a", 5),
        file("log", "a", 5, version=1),
    ]
    timeline = [instant(1), instant(2, action="deltacommit"), instant(5), instant(6, action="deltacommit")]
    v = view(files, timeline, by_completion=False)
    assert shown(v.latest_slices()) == [("a", 5, "a_0-0-0_00005.parquet", [".a_00005.log.1_0-0-0"])]
    logs = [".a_00001.log.1_0-0-0", ".a_00001.log.2_0-0-0", ".a_00001.log.10_0-0-0"]
    assert shown(v.latest_slices(t(2))) == [("a", 1, "a_0-0-0_00001.parquet", logs)]
    assert [s[1] for s in shown(v.all_slices())] == [1, 5]


def test_version_6_logs_of_a_pending_compaction_are_merged_with_the_slice_before():
    files = [file("base", "a", 1), file("log", "a", 1, version=1), file("log", "a", 4, version=1)]
    timeline = [instant(1), instant(4, action="compaction", state=State.REQUESTED), instant(5, action="deltacommit")]
    v = view(files, timeline, by_completion=False, pending=groups(("p", "a", 4)))
    logs = [".a_00001.log.1_0-0-0", ".a_00004.log.1_0-0-0"]
    assert shown(v.latest_slices()) == [("a", 1, "a_0-0-0_00001.parquet", logs)]
    assert shown(v.all_slices()) == [
        ("a", 1, "a_0-0-0_00001.parquet", logs[:1]),
        ("a", 4, None, logs[1:]),
    ]


def test_logs_go_by_completion_time_from_version_8_on():
    files = [
        file("base", "a", 1),
        file("log", "a", 2, version=1),  # completes before the compaction at 5 is planned
        file("log", "a", 3, version=1),  # completes after it
        file("base", "a", 5),
        file("log", "a", 6, version=1),
        file("log", "a", 7, version=1),  # not completed
    ]
    timeline = [
        instant(1, 1),
        instant(2, 4, "deltacommit"),
        instant(3, 8, "deltacommit"),
        instant(5, 9),
        instant(6, 7, "deltacommit"),
        instant(7, action="deltacommit", state=State.INFLIGHT),
    ]
    v = view(files, timeline)
    assert shown(v.all_slices()) == [
        ("a", 1, "a_0-0-0_00001.parquet", [".a_00002.log.1_0-0-0"]),
        ("a", 5, "a_0-0-0_00005.parquet", [".a_00003.log.1_0-0-0", ".a_00006.log.1_0-0-0"]),
    ]
    assert shown(v.latest_slices()) == shown(v.all_slices())[1:]
    # as of 3 the compaction is not there: its logs follow the first base file
    assert shown(v.latest_slices(t(3))) == [
        ("a", 1, "a_0-0-0_00001.parquet", [".a_00002.log.1_0-0-0", ".a_00003.log.1_0-0-0"])
    ]


@pytest.mark.parametrize("by_completion", [False, True], ids=["version 6", "version 8"])
def test_log_files_of_several_writers_go_by_version_then_write_token(by_completion: bool):
    at = 2 if by_completion else 1  # from version 8 on the name has the writer's instant, before that the base file's
    tokens = [(1, "1-0-1"), (1, "10-0-1"), (1, "2-0-1"), (2, "0-0-0"), (10, "0-0-0")]
    files = [file("base", "a", 1), *(file("log", "a", at, version=n, token=token) for n, token in tokens)]
    v = view(files, [instant(1, 1), instant(2, 4, "deltacommit")], by_completion=by_completion)
    # tokens are opaque text, and compared as such
    expected = [f".a_0000{at}.log.{n}_{token}" for n, token in tokens]
    assert shown(v.latest_slices()) == [("a", 1, "a_0-0-0_00001.parquet", expected)]


def test_logs_without_a_base_file_form_a_slice():
    files = [file("log", "a", 2, version=1), file("log", "a", 3, version=1)]
    v = view(files, [instant(2, 4, "deltacommit"), instant(3, 5, "deltacommit")])
    assert shown(v.latest_slices()) == [("a", 2, None, [".a_00002.log.1_0-0-0", ".a_00003.log.1_0-0-0"])]
    assert v.latest_base_files().num_rows == 0


def test_of_two_attempts_at_one_base_file_one_counts():
    files = [file("base", "a", 1, token="1-0-1"), file("base", "a", 1, token="1-0-2")]
    v = view(files, [instant(1, 1)])
    assert shown(v.latest_slices()) == [("a", 1, "a_1-0-2_00001.parquet", [])]
    assert v.latest_base_files()["token"].to_pylist() == ["1-0-2"]


def test_an_empty_table_has_no_slices():
    v = view([], [])
    assert v.latest_slices().num_rows == v.base_files().num_rows == v.latest_base_files().num_rows == 0


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(1, 9), st.booleans()), unique=True, max_size=30))
@settings(max_examples=examples(60), deadline=None)
def test_slices_agree_with_a_plain_model(rows):
    """One dict per file group, files put in one by one, against the vectorised fold."""
    files = [
        file("log" if is_log else "base", f"g{group}", at, version=1 if is_log else None) for group, at, is_log in rows
    ]
    v = view(files, [instant(i, i, "deltacommit") for i in range(1, 10)])
    model: dict[str, list] = {}
    for row in sorted(files, key=lambda f: (f["file_id"], f["instant"], f["kind"])):
        slices = model.setdefault(row["file_id"], [])
        if row["kind"] == "base":
            slices.append([row["file_id"], row["instant"], row["path"], []])
        else:
            if not slices:
                slices.append([row["file_id"], row["instant"], None, []])
            slices[-1][3].append(row["path"])
    expected = [tuple(slices[-1]) for _, slices in sorted(model.items())]
    columns = v.latest_slices().select(["file_id", "base_instant", "base_path", "log_paths"]).to_pylist()
    assert [tuple(row.values()) for row in columns] == expected


@pytest.mark.parametrize("recursive", [True, False])
def test_listing_finds_partitions_by_their_metadata_file(tmp_path, recursive):
    group = f"{uuid.uuid4()}-0"
    for folder, marked in (("a/b", True), ("c", True), ("stray", False), (".hoodie", False)):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / f"{group}_0-0-0_{t(1)}.parquet").write_bytes(b"12345")
        (tmp_path / folder / f".{group}_{t(1)}.log.1_0-0-0").write_bytes(b"")
        (tmp_path / folder / f".{group}_{t(1)}.log.1_0-0-0.cdc").write_bytes(b"")
        if marked:
            (tmp_path / folder / ".hoodie_partition_metadata").write_text("")
    storage = open_storage(str(tmp_path))
    files, partitions = list_files(storage, None if recursive else ["c", "a/b", "gone"])
    assert partitions == (["a/b", "c"] if recursive else ["a/b", "c", "gone"])
    assert sorted((r["partition"], r["kind"], r["size"]) for r in files.to_pylist()) == [
        ("a/b", "base", 5),
        ("a/b", "log", 0),
        ("c", "base", 5),
        ("c", "log", 0),
    ]
    assert set(files["file_id"].to_pylist()) == {group}


def test_a_table_without_partitions_is_its_own_partition(tmp_path):
    (tmp_path / f"g_0-0-0_{t(1)}.parquet").write_bytes(b"1")
    (tmp_path / ".hoodie_partition_metadata").write_text("")
    files, partitions = list_files(open_storage(str(tmp_path)))
    assert partitions == [""]
    assert files["path"].to_pylist() == [f"g_0-0-0_{t(1)}.parquet"]
