from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from pyhudi.errors import CorruptInstantError, NotFoundError
from pyhudi.storage import Storage, open_storage
from pyhudi.timeline.archive.archived_instants import ARCHIVED_INSTANTS_SCHEMA, CACHE
from pyhudi.timeline.archive.archived_timeline import archived_completions, read_archived_timeline
from pyhudi.timeline.archive.lsm_timeline_writer import LSM_SCHEMA, LsmTimelineWriter
from pyhudi.timeline.commit_metadata import decode_commit
from pyhudi.timeline.timeline_layout import LAYOUT_1, LAYOUT_2, Layout
from tests.fault_injection import FaultyStorage
from tests.golden.expected import unpack

HISTORY = {
    "v6_cow_archived_replace": (LAYOUT_1, 10),
    "v6_to_v9_cow": (LAYOUT_2, 6),
    "v8_mor_rollback_lsm": (LAYOUT_2, 5),
    "v9_mor_compaction_lsm": (LAYOUT_2, 7),
}


@pytest.fixture(params=HISTORY)
def table(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Storage, Layout, int]:
    layout, rows = HISTORY[request.param]
    return open_storage(unpack(request.param, tmp_path).path.as_uri()), layout, rows


def test_all_of_it(table: tuple[Storage, Layout, int]):
    storage, layout, rows = table
    history = read_archived_timeline(storage, layout)
    assert history.schema == ARCHIVED_INSTANTS_SCHEMA
    assert history.num_rows == rows
    requested = history["requested"].to_pylist()
    assert requested == sorted(set(requested))
    assert history["metadata"].null_count == 0
    assert history["completion"].null_count == (rows if layout.version == 1 else 0)
    for row in history.to_pylist():
        if row["action"] in ("commit", "deltacommit", "replacecommit"):
            metadata = decode_commit(row["metadata"])
            assert metadata.schema_json
            assert metadata.stats.num_rows
            assert (metadata.replaced is not None) == (row["action"] == "replacecommit")
            assert (row["plan"] is not None) == (metadata.operation == "COMPACT")


def test_a_part_of_it(table: tuple[Storage, Layout, int]):
    storage, layout, rows = table
    whole = read_archived_timeline(storage, layout, metadata=False)
    assert whole["metadata"].null_count == rows
    requested = whole["requested"].to_pylist()
    part = read_archived_timeline(storage, layout, after=requested[1], up_to=requested[3], metadata=False)
    assert part["requested"].to_pylist() == requested[2:4]
    assert read_archived_timeline(storage, layout, after=requested[-1]).num_rows == 0


def test_completion_times(table: tuple[Storage, Layout, int]):
    storage, layout, _ = table
    history = read_archived_timeline(storage, layout, metadata=False)
    known = dict(zip(history["requested"].to_pylist(), history["completion"].to_pylist(), strict=True))
    wanted = [*[*known][:3], "20000101000000000"]
    expected = {} if layout.version == 1 else {i: known[i] for i in wanted[:3]}
    assert archived_completions(storage, layout, wanted) == expected
    assert archived_completions(storage, layout, []) == {}


@pytest.mark.parametrize("layout", [LAYOUT_1, LAYOUT_2])
def test_without_an_archive(tmp_path: Path, layout: Layout):
    assert read_archived_timeline(open_storage(tmp_path), layout) == ARCHIVED_INSTANTS_SCHEMA.empty_table()


@pytest.fixture
def lsm(tmp_path: Path) -> Storage:
    return open_storage(unpack("v8_mor_rollback_lsm", tmp_path).path.as_uri())


def test_files_that_the_manifest_does_not_name_are_garbage(lsm: Storage):
    version = lsm.read(f"{LAYOUT_2.history}/_version_").decode()
    files = json.loads(lsm.read(f"{LAYOUT_2.history}/manifest_{version}"))["files"]
    lsm.write(f"{LAYOUT_2.history}/manifest_9", json.dumps({"files": files[:1]}).encode())
    lsm.write(f"{LAYOUT_2.history}/_version_", b"9")
    assert read_archived_timeline(lsm, LAYOUT_2).num_rows == 2


@pytest.mark.parametrize("content", [None, b""])
def test_the_newest_manifest_counts_while_the_version_file_is_written_anew(lsm: Storage, content: bytes | None):
    """Apache Hudi deletes the file first; one that is empty, or missing, stays if its process ends there."""
    whole = read_archived_timeline(lsm, LAYOUT_2)
    lsm.delete(f"{LAYOUT_2.history}/_version_")
    if content is not None:
        lsm.write(f"{LAYOUT_2.history}/_version_", content)
    lsm.write(f"{LAYOUT_2.history}/manifest_99", b"")
    assert read_archived_timeline(lsm, LAYOUT_2) == whole
    row = {"instantTime": "20990101000000000", "completionTime": "20990101000000001", "action": "clean", "version": 1}
    LsmTimelineWriter(lsm, LAYOUT_2).append([pa.Table.from_pylist([row], schema=LSM_SCHEMA)])
    assert read_archived_timeline(lsm, LAYOUT_2).num_rows == whole.num_rows + 1


@pytest.mark.parametrize("content", [b"", b"{", b"{}", b'{"files": [1]}', b"[]"])
def test_a_broken_manifest(lsm: Storage, content: bytes):
    version = lsm.read(f"{LAYOUT_2.history}/_version_").decode()
    lsm.write(f"{LAYOUT_2.history}/manifest_{version}", content)
    with pytest.raises(CorruptInstantError, match=f"manifest_{version}"):
        read_archived_timeline(lsm, LAYOUT_2)


def test_a_broken_archive_file(lsm: Storage):
    name = next(p for p in lsm.list(LAYOUT_2.history)["path"].to_pylist() if p.endswith(".parquet"))
    lsm.write(name, b"PAR1nonsense")
    with pytest.raises(CorruptInstantError, match=r"not a Parquet file"):
        read_archived_timeline(lsm, LAYOUT_2)


def test_an_archive_file_with_other_bytes(lsm: Storage):
    names = [p for p in lsm.list(LAYOUT_2.history)["path"].to_pylist() if p.endswith(".parquet")]
    name, whole = max(((name, lsm.read(name)) for name in names), key=lambda file: len(file[1]))
    told = 0
    for at in range(0, len(whole), 23):
        lsm.write(name, whole[:at] + bytes((whole[at] ^ 0x80,)) + whole[at + 1 :])
        CACHE.clear()
        try:
            read_archived_timeline(lsm, LAYOUT_2, metadata=False)
        except CorruptInstantError:
            told += 1
    assert told > 20


def test_another_table_at_the_same_path(tmp_path: Path):
    """Names and lengths of its archive files may be those of the former table."""
    storage = open_storage(unpack("v6_cow_archived_replace", tmp_path).path.as_uri())
    before = read_archived_timeline(storage, LAYOUT_1, metadata=False)["requested"].to_pylist()
    for file in storage.list(LAYOUT_1.history).to_pylist():
        content = storage.read(file["path"])
        for number, instant in enumerate(before):
            content = content.replace(instant.encode(), f"{20990000000000000 + number}".encode())
        assert len(content) == file["size"]
        storage.write(file["path"], content)
        storage.set_modified(file["path"], file["mtime_ms"] + 1)
    after = read_archived_timeline(storage, LAYOUT_1, metadata=False)["requested"].to_pylist()
    assert after == [f"{20990000000000000 + number}" for number in range(len(before))]


class Racing:
    """A storage in which another writer replaces the manifest right after it was read for the first time."""

    def __init__(self, inner: Storage, times: int) -> None:
        self._inner = inner
        self._left = times

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def open_input(self, path: str) -> Any:
        if self._left:
            self._left -= 1
            raise NotFoundError(path)
        return self._inner.open_input(path)


def test_files_that_go_while_we_read(lsm: Storage):
    racing: Any = Racing(lsm, 3)
    assert read_archived_timeline(racing, LAYOUT_2).num_rows == 5
    racing = Racing(lsm, 1000)
    with pytest.raises(NotFoundError):
        read_archived_timeline(racing, LAYOUT_2)


def test_an_instant_that_was_archived_twice(tmp_path: Path):
    storage = open_storage(unpack("v6_cow_archived_replace", tmp_path).path.as_uri())
    first = next(p for p in storage.list(LAYOUT_1.history)["path"].to_pylist() if ".archive.1_" in p)
    storage.write(first.replace(".archive.1_", ".archive.7_"), storage.read(first))
    assert read_archived_timeline(storage, LAYOUT_1).num_rows == 10


def test_a_broken_v6_archive(tmp_path: Path):
    storage = open_storage(unpack("v6_cow_archived_replace", tmp_path).path.as_uri())
    path = f"{LAYOUT_1.history}/.commits_.archive.8_1-0-1"
    storage.write(path, b"#HUDI#cut off")
    assert read_archived_timeline(storage, LAYOUT_1).num_rows == 10  # a block cut off by a dying writer is no block
    storage.write(path, b"nonsense")
    with pytest.raises(CorruptInstantError, match="archive"):
        read_archived_timeline(storage, LAYOUT_1)


def test_types(lsm: Storage):
    assert pa.types.is_binary(read_archived_timeline(lsm, LAYOUT_2)["plan"].type)


@pytest.mark.parametrize("name", ["v6_cow_archived_replace", "v9_mor_compaction_lsm"])
def test_times_of_archived_instants_are_read_once(tmp_path: Path, name: str) -> None:
    root = unpack(name, tmp_path).path
    faulty = FaultyStorage(open_storage(root))
    layout = LAYOUT_1 if name.startswith("v6") else LAYOUT_2
    every = read_archived_timeline(faulty, layout, metadata=False)
    middle = every["requested"][every.num_rows // 2].as_py()

    def opened(**bounds: Any) -> tuple[int, pa.Table]:
        before = len(faulty.operations)
        found = read_archived_timeline(faulty, layout, **bounds)
        return sum("manifest" not in path for op, path in faulty.operations[before:] if op == "open_input"), found

    assert every.num_rows > 2
    before = len([op for op, _ in faulty.operations if op.startswith(("open", "read"))])
    after = read_archived_timeline(faulty, layout, after=middle, metadata=False)
    assert after == every.filter(pc.greater(every["requested"], middle))
    # _version_ and the manifest
    reads = len([op for op, _ in faulty.operations if op.startswith(("open", "read"))]) - before
    assert reads == (0 if layout is LAYOUT_1 else 2)
    # no instant of a file is wanted, so it is not opened for its metadata either
    last = every["requested"][-1].as_py()
    count, found = opened(after=last)
    assert (count, found.num_rows, found.schema) == (0, 0, ARCHIVED_INSTANTS_SCHEMA)
    if layout is LAYOUT_2:
        count, found = opened(after=middle)
        assert count > 0
        assert found["metadata"].null_count == 0
