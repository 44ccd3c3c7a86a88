"""Instants move from the active timeline into the archived one, whoever dies in between."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from pyhudi.storage import Storage
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.archive import lsm_timeline_writer
from pyhudi.timeline.archive.archived_timeline import archived_completions, read_archived_timeline
from pyhudi.timeline.archive.archiver import finish_archival
from pyhudi.timeline.archive.lsm_timeline_reader import manifest_files
from pyhudi.timeline.archive.lsm_timeline_writer import BATCH
from pyhudi.timeline.commit_metadata import CommitMetadata, decode_commit, write_stats
from pyhudi.timeline.instant import Action
from pyhudi.timeline.timeline_layout import LAYOUT_1, LAYOUT_2, Layout
from tests.archival import archive_instants
from tests.golden.expected import unpack
from tests.unit.transaction.test_writer_death import deaths, opened


def instant(n: int) -> str:
    return f"2026010100{n:07d}"


def fill(storage: Storage, start: int, stop: int, layout: Layout = LAYOUT_2) -> None:
    active = ActiveTimeline.load(storage, layout)
    for n in range(start, stop):
        entry = active.to_inflight(active.create_requested(Action.DELTA_COMMIT, instant(n)))
        metadata = CommitMetadata("UPSERT", write_stats([]), {"n": str(n)})
        content = metadata.encode(9 if layout is LAYOUT_2 else 6, Action.DELTA_COMMIT)
        active.complete(entry, content, instant(n))


def run(storage: Storage, count: int = 5, layout: Layout = LAYOUT_2) -> None:
    active = ActiveTimeline.load(storage, layout)
    archive_instants(active, active.timeline.completed().instants[:count])


def known(storage: Storage, layout: Layout = LAYOUT_2) -> list[str]:
    """All instants, archived or active, each once."""
    archived = read_archived_timeline(storage, layout)["requested"].to_pylist()
    active = [i.requested for i in ActiveTimeline.load(storage, layout).timeline]
    assert len(set(archived)) == len(archived)
    return sorted({*archived, *active})


def test_files_that_would_be_too_large_together_are_not_merged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    storage = opened(tmp_path)

    def levels() -> list[int]:
        names = sorted(file["fileName"] for file in manifest_files(storage, LAYOUT_2))
        return [int(name.removesuffix(".parquet")[-1]) for name in names]

    fill(storage, 0, 1)
    run(storage, 1)
    (file,) = manifest_files(storage, LAYOUT_2)
    monkeypatch.setattr(lsm_timeline_writer, "_MERGED_BYTES", int(2.5 * file["fileLen"]))
    for n in range(1, BATCH + 1):
        fill(storage, n, n + 1)
        run(storage, 1)
    assert levels() == [1, *[0] * (BATCH - 1)]  # Two files into one, until there are fewer than a batch.
    monkeypatch.setattr(lsm_timeline_writer, "_MERGED_BYTES", file["fileLen"] - 1)
    for n in range(BATCH + 1, BATCH + 5):
        fill(storage, n, n + 1)
        run(storage, 1)
    assert levels() == [1, *[0] * (BATCH + 3)]
    assert known(storage) == [instant(n) for n in range(BATCH + 5)]
    names = {path.name for path in (tmp_path / LAYOUT_2.history).iterdir()}
    assert len([name for name in names if name.startswith("manifest_")]) == 3


def test_instants_are_merged_in_order(tmp_path: Path) -> None:
    """Also if the files of a level overlap, as after archival of a concurrent write."""
    storage = opened(tmp_path)
    fill(storage, 0, 3 * BATCH)
    active = ActiveTimeline.load(storage, LAYOUT_2)
    for n in range(BATCH):
        archive_instants(active, active.timeline.completed().instants[:: BATCH - n])
        active = ActiveTimeline.load(storage, LAYOUT_2)
    assert known(storage) == [instant(n) for n in range(3 * BATCH)]
    (file,) = manifest_files(storage, LAYOUT_2)
    rows = pq.read_table(tmp_path / LAYOUT_2.history / file["fileName"])
    assert rows["instantTime"].to_pylist() == [instant(n) for n in range(3 * BATCH)]
    assert [decode_commit(data).extra["n"] for data in rows["metadata"].to_pylist()] == list(map(str, range(3 * BATCH)))


def test_many_runs_make_levels_and_leave_no_garbage(tmp_path: Path) -> None:
    storage = opened(tmp_path)
    for n in range(2 * BATCH + 3):
        fill(storage, n, n + 1)
        run(storage, 1)
        assert known(storage) == [instant(i) for i in range(n + 1)]
    files = manifest_files(storage, LAYOUT_2)
    levels = sorted(file["fileName"].removesuffix(".parquet")[-1] for file in files)
    assert levels == ["0", "0", "0", "1", "1"]
    assert {f["fileName"]: f["fileLen"] for f in files}.items() <= {
        p.name: p.stat().st_size for p in (tmp_path / LAYOUT_2.history).iterdir()
    }.items()
    names = {p.name for p in (tmp_path / LAYOUT_2.history).iterdir()}
    assert len([n for n in names if n.startswith("manifest_")]) == 3
    assert len([n for n in names if n.endswith(".parquet")]) <= len(files) + 2
    history = read_archived_timeline(storage, LAYOUT_2)
    assert history["completion"].to_pylist() == [instant(i) for i in range(2 * BATCH + 3)]


@pytest.mark.parametrize("layout", [LAYOUT_1, LAYOUT_2])
def test_dying_archivers(tmp_path: Path, layout: Layout) -> None:
    """Nothing is lost, nothing is there twice, and no instant looks as if its write had failed."""
    folder = tmp_path / "t"
    storage = opened(folder)
    for n in range(BATCH - 1):
        fill(storage, n, n + 1, layout)
        run(storage, 1, layout)
    fill(storage, BATCH, BATCH + 4, layout)
    every = known(storage, layout)
    for left in deaths(folder, lambda storage: run(storage, 3, layout)):
        assert known(left, layout) == every
        assert not ActiveTimeline.load(left, layout).timeline.pending()
        run(left, 3, layout)
        assert known(left, layout) == every
        if layout is LAYOUT_2:
            files = [file["fileName"] for file in manifest_files(left, layout)]
            assert len(files) == len(set(files)) <= BATCH


@pytest.mark.parametrize("layout", [LAYOUT_1, LAYOUT_2])
def test_what_a_dead_archiver_left_is_finished(tmp_path: Path, layout: Layout) -> None:
    """Whatever is archived leaves the active timeline."""
    folder = tmp_path / "t"
    storage = opened(folder)
    fill(storage, 0, 5, layout)
    every = known(storage, layout)
    finished = set()
    for left in deaths(folder, lambda storage: run(storage, 3, layout)):
        archived = read_archived_timeline(left, layout)["requested"].to_pylist()
        active = ActiveTimeline.load(left, layout)
        there = {i.requested for i in active.timeline}
        gone = finish_archival(active)
        assert {i.requested for i in gone} == there & set(archived)
        assert {i.requested for i in active.reload().timeline} == set(every) - set(archived)
        assert known(left, layout) == every
        finished.add(len(gone))
    assert {0, 3} < finished <= {0, 1, 2, 3}


@pytest.mark.parametrize("table", ["v9_mor_compaction_lsm", "v8_mor_rollback_lsm"])
def test_an_archive_of_apache_hudi_is_gone_on_with(tmp_path: Path, table: str) -> None:
    """What it says of an instant, is what ours says; and its manifest, byte by byte."""
    storage = opened(Path(unpack(table, tmp_path).path))
    before = read_archived_timeline(storage, LAYOUT_2)
    number = storage.read(f"{LAYOUT_2.history}/_version_").decode()
    theirs = storage.read(f"{LAYOUT_2.history}/manifest_{number}")
    active = ActiveTimeline.load(storage, LAYOUT_2)
    oldest = list(active.timeline.completed())[:2]
    content = {i.requested: active.read(i) for i in oldest}
    archive_instants(active, oldest)
    after = read_archived_timeline(storage, LAYOUT_2)
    assert after.slice(0, before.num_rows).equals(before)
    assert after.num_rows == before.num_rows + 2
    added = after.slice(before.num_rows).to_pylist()
    assert {row["requested"]: row["metadata"] for row in added} == content
    assert archived_completions(storage, LAYOUT_2, list(content)) == {i.requested: i.completion for i in oldest}
    ours = storage.read(f"{LAYOUT_2.history}/manifest_{int(number) + 1}")
    assert ours.startswith(theirs.removesuffix(b" ]\n}"))
