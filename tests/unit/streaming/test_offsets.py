"""Which commits a micro-batch of the streaming source is about."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from pyhudi.api.hudi_table import HudiTable
from pyhudi.errors import CheckpointError, QueryError
from pyhudi.read.query.query import Query
from pyhudi.storage import open_storage
from pyhudi.streaming.offsets import StartOffset, batch_query, check_not_archived, commits_per_batch
from pyhudi.streaming.source_log import SourceLog, files_of_batch
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.table.table_snapshot import TableSnapshot
from tests.tables import HandMadeTable, at

EARLIEST = StartOffset()
ARCHIVING = {
    "hoodie.time.generator.max_expected_clock_skew_ms": "0",
    "hoodie.metadata.enable": "false",
    "hoodie.clean.commits.retained": "1",
    "hoodie.keep.min.commits": "3",
    "hoodie.keep.max.commits": "4",
}


@pytest.fixture(params=[6, 9])
def table(request, tmp_path) -> TableSnapshot:
    made = HandMadeTable(tmp_path / "t", version=request.param)
    for n in (10, 20, 30):
        made.write(n, {("a", f"f{n}"): [{"id": str(n), "p": "a", "v": n}]}, done=n)
    return TableSnapshot.load(made.client())


def files(table: TableSnapshot, *numbers: int) -> list[str]:
    return [i.file_name for i in table.active.timeline.completed() if i.requested in map(at, numbers)]


def test_a_batch_is_its_commits(table):
    query = batch_query(table, files(table, 10, 30), EARLIEST, 0, query=Query())
    assert (query.instants.begin, query.instants.end, query.instants.only) == (None, at(30), {at(10), at(30)})
    query = batch_query(table, files(table, 20), EARLIEST, 7, query=Query())
    assert at(19) <= query.instants.begin < at(20)
    assert (query.instants.end, query.instants.only) == (at(20), {at(20)})


def test_commits_before_the_start_are_left_out(table):
    after = StartOffset(after=at(20))
    assert batch_query(table, files(table, 10, 20), after, 0, query=Query()) is None
    assert batch_query(table, files(table, 20), after, 3, query=Query()) is None
    assert batch_query(table, files(table, 10, 30), after, 0, query=Query()).instants.only == {at(30)}
    latest = StartOffset(first_batch_after=at(20))
    assert batch_query(table, files(table, 10, 20), latest, 0, query=Query()) is None
    assert batch_query(table, files(table, 20), latest, 1, query=Query()).instants.only == {at(20)}
    with pytest.raises(QueryError, match="in the thread of its query"):
        batch_query(table, files(table, 20), latest, None, query=Query())


@pytest.mark.parametrize(("is_past", "limited"), [(True, False), (True, True), (False, False)])
def test_a_query_goes_on_where_it_was_although_its_start_has_changed(table, is_past, limited):
    """By completion times, without a limit, and unless the start is in the future: batches may have commits up to it
    otherwise."""
    later = StartOffset(after=at(30), is_past=is_past, limited=limited)
    query = batch_query(table, files(table, 20, 30), later, 1, query=Query())
    if is_past and not limited and table.config.version >= 8:
        assert query.instants.only == {at(20), at(30)}
    else:
        assert query is None
    assert batch_query(table, files(table, 10, 20, 30), later, 0, query=Query()) is None


def test_commits_that_are_gone(table):
    names = [name.replace(at(20), at(15)) for name in files(table, 20)]
    with pytest.raises(CheckpointError, match=at(15)):
        batch_query(table, names, EARLIEST, 1, query=Query())


def test_a_first_batch_that_is_repeated_after_later_commits(table):
    """It was planned for an earlier start, which nobody knows any more."""
    latest = StartOffset(first_batch_after=at(30))
    assert batch_query(table, files(table, 10, 20, 30), latest, 0, query=Query()) is None
    with pytest.raises(CheckpointError, match="is repeated"):
        batch_query(table, files(table, 10, 20), latest, 0, query=Query())


def test_a_timeline_that_was_written_again(table):
    """After an upgrade all files of the timeline have new names, so that Spark delivers them once more."""
    with pytest.raises(CheckpointError, match="upgrade or downgrade"):
        batch_query(table, files(table, 10, 20, 30), EARLIEST, 4, query=Query())


def test_a_checkpoint_location_of_another_table(table):
    """Spark knows paths of files, so all of a moved table are new."""
    after, everything = StartOffset(after=at(20)), files(table, 10, 20, 30)
    read = SourceLog(frozenset({"x.commit"}), frozenset({"x.commit"}))
    for log in (None, read, SourceLog(frozenset(), frozenset())):
        with pytest.raises(CheckpointError, match="has been moved"):
            batch_query(table, everything, after, 7, query=Query(), log=lambda _, log=log: log)
    with pytest.raises(CheckpointError, match="has been moved"):
        batch_query(table, files(table, 10), replace(after, limited=True), 7, query=Query(), log=lambda _: read)
    # the first batch, one that may follow on archived commits, and one that does
    assert batch_query(table, everything, after, 0, query=Query()).instants.only == {at(30)}
    assert batch_query(table, everything, replace(after, limited=True), 7, query=Query()).instants.only == {at(30)}
    assert batch_query(table, files(table, 30), after, 7, query=Query()).instants.only == {at(30)}


@pytest.mark.parametrize("version", [6, 9])
def test_commits_from_before_the_start_that_follow_on_archived_ones(tmp_path, version):
    made = written(tmp_path, version, 6)
    table = TableSnapshot.load(made.client())
    read = SourceLog(frozenset(files(table, 1, 2, 3)), frozenset(files(table, 1)))
    HudiTable.for_path(str(made.root), ARCHIVING).services.archive()
    table = TableSnapshot.load(made.client())
    assert table.active.timeline.start > at(2)
    limited = StartOffset(after=at(5), limited=True)
    assert batch_query(
        table, files(table, 3, 4, 5, 6), limited, 3, query=Query(), log=lambda _: read
    ).instants.only == {at(6)}


@pytest.mark.parametrize(
    ("modified", "limit", "expected"),
    [
        ((1, 2, 3), 1, 1),
        ((1, 2, 3), 2, 2),
        ((2, 1, 3), 1, 3),  # the second commit would come before the first one
        ((2, 1, 3), 2, 2),
        ((3, 1, 2), 2, 3),
        ((1, 2, 2), 2, 3),  # Spark may take either first
        ((3, 2, 1), 4, 4),
    ],
)
def test_a_limit_needs_files_in_the_order_of_their_commits(table, modified, limit, expected):
    folder = Path(table.storage.root.removeprefix("file://")) / table.active.layout.folder
    for name, time in zip(files(table, 10, 20, 30), modified, strict=True):
        os.utime(folder / name, (time, time))
    assert commits_per_batch(table, limit) == expected


def entries(table: TableSnapshot, batch: int, *numbers: int) -> str:
    folder = f"{table.storage.uri(table.active.layout.folder)}/".replace("t/", "%74/", 1)  # Spark encodes paths
    lines = [{"path": folder + name, "timestamp": 1, "batchId": batch} for name in files(table, *numbers)]
    return "\n".join(map(json.dumps, lines))


def log_of(tmp_path: Path, table: TableSnapshot, batch: int, last: int | None, **steps: str) -> SourceLog | None:
    """What a stream has read before a batch, of its first source. ``last``: the last step of the batch before it."""
    (tmp_path / "cp/sources/0").mkdir(parents=True, exist_ok=True)
    for name, text in steps.items():
        (tmp_path / "cp/sources/0" / name[1:].replace("_", ".")).write_text(f"v1\n{text}")
        (tmp_path / f"cp/sources/0/.{name[1:]}.crc").write_text("no log")
    (tmp_path / "cp/offsets").mkdir(exist_ok=True)
    offset = "-" if last is None else json.dumps({"logOffset": last})
    (tmp_path / f"cp/offsets/{batch - 1}").write_text(f'v1\n{{"batchWatermarkMs":0}}\n{offset}\n{{"kafka":{{}}}}')
    return log_of_batch(tmp_path, table, batch)


def log_of_batch(tmp_path: Path, table: TableSnapshot, batch: int) -> SourceLog | None:
    timeline = table.storage.uri(table.active.layout.folder)
    return SourceLog.load(open_storage(str(tmp_path / "cp")), timeline, batch)


def test_a_late_write_that_was_archived_after_it_was_read(tmp_path: Path) -> None:
    made = HandMadeTable(tmp_path / "t")
    for n, done in ((10, 11), (20, 21), (15, 41)):
        made.write(n, {("a", f"f{n}"): [{"id": str(n), "p": "a", "v": n}]}, done=done)
    table = TableSnapshot.load(made.client())
    read = log_of(tmp_path, table, 2, 1, b0=entries(table, 0, 10), b1_compact=entries(table, 1, 20, 15))
    made.archive(15)
    made.write(50, {("a", "f50"): [{"id": "50", "p": "a", "v": 50}]}, done=51)
    table = TableSnapshot.load(made.client())
    assert batch_query(table, files(table, 50), EARLIEST, 2, query=Query(), log=lambda _: read).instants.only == {
        at(50)
    }
    x = frozenset({"x.commit"})
    for log in (None, replace(read, read=frozenset()), SourceLog(x, x)):
        with pytest.raises(CheckpointError, match=f"commits up to {at(41)} have been archived"):
            batch_query(table, files(table, 50), EARLIEST, 2, query=Query(), log=lambda _, log=log: log)


def test_what_the_first_batch_included_is_not_missing(tmp_path: Path) -> None:
    """Its files were archived before the stream began, or after it."""
    made = HandMadeTable(tmp_path / "t")
    for n in (10, 20, 30):
        made.write(n, {("a", f"f{n}"): [{"id": str(n), "p": "a", "v": n}]})
    table = TableSnapshot.load(made.client())
    written = {"b0": entries(table, 0, 20), "b1": entries(table, 1, 30)}
    read = [log_of(tmp_path, table, 5, last, **written) for last in (1, 0)]
    made.archive(10, 20, 30)
    made.write(40, {("a", "f40"): [{"id": "40", "p": "a", "v": 40}]})
    table = TableSnapshot.load(made.client())
    assert batch_query(table, files(table, 40), EARLIEST, 5, query=Query(), log=lambda _: read[0]).instants.only == {
        at(40)
    }
    with pytest.raises(CheckpointError, match=f"commits up to {at(30)} have been archived"):
        batch_query(table, files(table, 40), EARLIEST, 5, query=Query(), log=lambda _: read[1])


@pytest.mark.parametrize("version", [6, 9])
def test_a_batch_whose_files_are_gone(tmp_path: Path, version: int) -> None:
    made = written(tmp_path, version, 7)
    table = TableSnapshot.load(made.client())
    steps = {"b0": entries(table, 0, 1), "b1": entries(table, 1, 2), "b2_compact": entries(table, 2, 3, 6)}
    for batch, last in ((1, None), (2, 0), (3, 0), (4, 2)):
        log_of(tmp_path, table, batch, last, **steps)
    timeline, checkpoint = table.storage.uri(table.active.layout.folder), open_storage(str(tmp_path / "cp"))
    of_batches = [files_of_batch(checkpoint, timeline, batch) for batch in range(5)]
    assert of_batches == [set(), {*files(table, 1)}, set(), {*files(table, 2, 3, 6)}, None]
    undone = {name.replace(at(2), at(9)) for name in files(table, 2)}
    check_not_archived(table, of_batches[3], EARLIEST, 3)
    HudiTable.for_path(str(made.root), ARCHIVING).services.archive()
    table = TableSnapshot.load(made.client())
    with pytest.raises(CheckpointError, match=f"the commits {at(2)}, {at(3)} are no longer"):
        check_not_archived(table, of_batches[3], EARLIEST, 3)
    check_not_archived(table, of_batches[3], StartOffset(after=at(3)), 3)
    check_not_archived(table, undone, EARLIEST, 3)


def test_a_later_start_does_not_hide_that_commits_were_missed(tmp_path: Path) -> None:
    made = written(tmp_path, 9, 3)
    table = TableSnapshot.load(made.client())
    read = [SourceLog(frozenset(files(table, *numbers)), frozenset(files(table, 1))) for numbers in ((1,), (1, 2))]
    made.archive(1, 2)
    table = TableSnapshot.load(made.client())
    later = StartOffset(after=at(5), is_past=True)
    with pytest.raises(CheckpointError, match=f"commits up to {at(2)} have been archived"):
        batch_query(table, files(table, 3), later, 1, query=Query(), log=lambda _: read[0])
    assert batch_query(table, files(table, 3), later, 2, query=Query(), log=lambda _: read[1]).instants.only == {at(3)}


def test_steps_of_a_source_are_not_batches_of_the_query(tmp_path: Path, table: TableSnapshot) -> None:
    """Another source, or an operator with state, causes batches without files of this one."""
    written = {"b0": '{"path": "file:///elsewhere/1.commit", "batchId": 0}', "b3": entries(table, 3, 10, 20, 30)}
    moved = log_of(tmp_path, table, 7, 2, **written)
    with pytest.raises(CheckpointError, match="has been moved"):
        batch_query(table, files(table, 10, 20, 30), StartOffset(after=at(20)), 7, query=Query(), log=lambda _: moved)
    # after a kill, the log may have files of which no batch has been begun
    assert log_of(tmp_path, table, 1, 0, b0=entries(table, 0, 10)).read == {*files(table, 10)}


@pytest.mark.parametrize("start", [EARLIEST, StartOffset(after=at(20))])
def test_the_first_batch_of_a_source_may_follow_on_those_of_others(
    tmp_path: Path, table: TableSnapshot, start: StartOffset
) -> None:
    everything = files(table, 10, 20, 30)
    log = log_of(tmp_path, table, 4, None, b0=entries(table, 0, 10, 20, 30))
    query = batch_query(table, everything, start, 4, query=Query(), log=lambda _: log)
    assert query == batch_query(table, everything, start, 0, query=Query())


def test_logs_that_cannot_be_read(tmp_path: Path, table: TableSnapshot) -> None:
    assert log_of(tmp_path, table, 2, 1, b0='{"path": "file:///elsewhere/1.commit", "batchId": 0}') is None
    for text in ("{", '{"path": "x"}', "[1]"):
        assert log_of(tmp_path, table, 2, 1, b1=text) is None
    assert log_of(tmp_path, table, 2, 1, b1=entries(table, 1, 10)) is not None
    for path, text in (("sources/0/1", "v9\n"), ("offsets/1", "v2\n{}\n{}")):
        before = (tmp_path / "cp" / path).read_text()
        (tmp_path / "cp" / path).write_text(text)
        assert log_of_batch(tmp_path, table, 2) is None
        (tmp_path / "cp" / path).write_text(before)
    assert log_of_batch(tmp_path, table, 2) is not None
    assert log_of_batch(tmp_path, table, 9) is None  # no offsets


def written(path: Path, version: int, count: int) -> HandMadeTable:
    made = HandMadeTable(path / "t", version)
    for n in range(1, count + 1):
        made.write(n, {("a", f"f{n}"): [{"id": str(n), "p": "a", "v": n}]})
    return made


@pytest.mark.parametrize("version", [6, 9])
def test_commits_that_were_archived_after_a_savepoint(tmp_path, version):
    services = HudiTable.for_path(str(written(tmp_path, version, 8).root), ARCHIVING).services
    services.savepoint(at(1))
    services.archive({"hoodie.archive.beyond.savepoint": "true"})
    table = TableSnapshot.load(TableMetaClient.open(str(tmp_path / "t")))
    assert [i.requested for i in table.active.timeline.writes()] == [at(n) for n in (1, 6, 7, 8)]
    with pytest.raises(CheckpointError, match=f"begins with {at(6)}.*after {at(1)}.*{at(5)} have been archived"):
        batch_query(table, files(table, 6, 7), EARLIEST, 1, query=Query())
    with pytest.raises(QueryError, match="in the thread of its query"):
        batch_query(table, files(table, 6, 7), EARLIEST, None, query=Query())
    assert batch_query(table, files(table, 7, 8), EARLIEST, 1, query=Query()).instants.only == {at(7), at(8)}
    assert batch_query(table, files(table, 6, 7), StartOffset(after=at(5)), 1, query=Query()).instants.only == {
        at(6),
        at(7),
    }


@pytest.mark.parametrize("version", [6, 9])
def test_the_last_commit_of_the_batch_before_has_a_savepoint(tmp_path, version):
    """Archival reaches to the savepoint, and nothing is missing after it."""
    services = HudiTable.for_path(str(written(tmp_path, version, 8).root), ARCHIVING).services
    services.savepoint(at(5))
    services.archive()
    table = TableSnapshot.load(TableMetaClient.open(str(tmp_path / "t")))
    assert [i.requested for i in table.active.timeline.writes()] == [at(n) for n in (5, 6, 7, 8)]
    assert batch_query(table, files(table, 6), EARLIEST, 5, query=Query()).instants.only == {at(6)}


def test_an_archived_write_that_completed_after_the_batch_before(tmp_path):
    made = HandMadeTable(tmp_path / "t")
    for n, done in ((1, 1), (3, 100), *((n, n) for n in range(40, 100, 10)), (101, 101)):
        made.write(n, {("a", f"f{n}"): [{"id": str(n), "p": "a", "v": n}]}, done=done)
    made.archive(1, 3)
    table = TableSnapshot.load(made.client())
    for numbers in ((60, 70), (101,)):
        with pytest.raises(CheckpointError, match=f"commits up to {at(100)} have been archived"):
            batch_query(table, files(table, *numbers), EARLIEST, 1, query=Query())
    made.write(102, {("a", "f102"): [{"id": "102", "p": "a", "v": 102}]})
    table = TableSnapshot.load(made.client())
    assert batch_query(table, files(table, 102), EARLIEST, 1, query=Query()).instants.only == {at(102)}
    assert batch_query(table, files(table, 101), StartOffset(after=at(100)), 1, query=Query()).instants.only == {
        at(101)
    }


def test_an_archived_compaction_that_completed_after_the_batch_before(tmp_path):
    made = HandMadeTable(tmp_path / "t")
    for n, done in ((1, 1), (3, 100), (40, 40), (101, 101)):
        operation = "COMPACT" if n == 3 else "UPSERT"
        made.write(n, {("a", "f1"): [{"id": "1", "p": "a", "v": n}]}, done=done, operation=operation)
    made.archive(1, 3)
    table = TableSnapshot.load(made.client())
    assert batch_query(table, files(table, 101), EARLIEST, 1, query=Query()).instants.only == {at(101)}
