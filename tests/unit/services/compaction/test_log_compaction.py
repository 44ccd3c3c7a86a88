"""Log compaction: many log files of a slice become one, and nobody who reads can tell."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from pyhudi.api.hudi_table import HudiTable
from pyhudi.config import Options
from pyhudi.errors import ConflictError
from pyhudi.format.log import BlockType, scan_blocks
from pyhudi.services.compaction.compaction_job import CompactionJob
from pyhudi.services.compaction.compaction_runner import run_pending_compactions
from pyhudi.services.post_commit_services import PostCommitServices
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline.commit_metadata import WRITE_STAT_SCHEMA
from pyhudi.timeline.instant import Action
from pyhudi.transaction.planned_transaction import PlanAttempt, PlannedTransaction
from tests.golden.expected import unpack
from tests.unit.services.compaction.compaction_tables import IN_THREADS, RunnerOf
from tests.unit.services.merge_on_read_table import FAST, MorTable, row

THREE = {"hoodie.log.compaction.blocks.threshold": "3", "hoodie.index.bloom.num_entries": "10"}


@pytest.fixture(params=[6, 8, 9])
def mor(request: pytest.FixtureRequest, tmp_path: Path) -> MorTable:
    """Three log files in the group of ``a``, one in that of ``b``."""
    table = MorTable(tmp_path / "table", request.param, options=FAST | THREE)
    table.load([row(f"{p}{i}", p, 1, "base") for p in "ab" for i in range(4)])
    table.delta([row("a0", "a", 2, "first"), row("b0", "b", 2, "first")], [("a2", "a", 5)])
    table.delta([row("a0", "a", 4, "second"), row("a2", "a", 4, "too late")])
    table.delta([row("a0", "a", 3, "late"), row("a9", "a", 1, "new")], [("a3", "a", None)])
    return table


def test_nobody_can_tell(mor: MorTable):
    before = mor.table.scan().to_arrow().sort_by("_hoodie_record_key")
    bookmark = mor.table.completion_of(mor.table.latest_instant)
    past, as_of = mor.rows(), mor.table.latest_instant
    result = mor.table.services.log_compact()
    assert (result.num_files, result.num_log_files, result.is_log) == (1, 3, True)
    assert mor.table.scan().to_arrow().sort_by("_hoodie_record_key") == before
    assert mor.table.scan(begin=bookmark).to_arrow().num_rows == 0, "the records are none that were changed"
    travelled = mor.table.scan(as_of=as_of, columns=["id", "p", "o", "v"]).to_arrow().to_pylist()
    assert {r["id"]: r for r in travelled} == past


def test_versions_that_come_later(mor: MorTable):
    """The blocks remember what deletes and late events need."""
    mor.table.services.log_compact()
    mor.delta([row("a2", "a", 4, "before the delete"), row("a3", "a", 1, "after it"), row("a0", "a", 3, "late again")])
    rows = mor.rows()
    assert "a2" not in rows
    assert (rows["a3"]["v"], rows["a0"]["v"]) == ("after it", "second")
    mor.table.services.compact()
    assert mor.rows() == rows


def test_the_file(mor: MorTable):
    (stat,) = mor.table.services.log_compact().stats.to_pylist()
    blocks = list(scan_blocks((mor.root / stat["path"]).read_bytes()))
    assert [block.type for block in blocks] == [BlockType.PARQUET_DATA, BlockType.DELETE]
    times = {block.compacted_times for block in blocks}
    assert len(times) == 1
    assert len(next(iter(times))) == 3
    wanted = {"numWrites": 2, "numDeletes": 2, "totalLogFilesCompacted": 3, "totalUpdatedRecordsCompacted": 4}
    assert {name: stat[name] for name in wanted} == wanted
    active = mor.client.active_timeline()
    last = active.timeline.writes().last
    assert last is not None
    metadata = active.commit_metadata(last)
    assert (last.action, metadata.operation, metadata.compacted) == ("deltacommit", "LOG_COMPACT", True)


def test_when_it_is_due(mor: MorTable):
    four = {"hoodie.log.compaction.blocks.threshold": "5"}
    assert not mor.table.services.log_compact(four, only_if_due=True)
    assert mor.table.services.log_compact(only_if_due=True)
    again = mor.table.services.schedule_log_compaction(only_if_due=True)
    assert again.reason.startswith(("not due: 1 delta commits", "not due: 0 delta commits"))


def test_a_compaction_overtakes_it(mor: MorTable):
    services = mor.table.services
    plan = services.schedule_log_compaction()
    assert services.pending_log_compactions()[0].instant == plan.instant
    before = mor.rows()
    assert services.compact().num_log_files == 4
    assert not services.run_log_compaction()
    assert not services.pending_log_compactions()
    assert mor.rows() == before


def test_a_compaction_that_is_planned_while_it_runs(mor: MorTable):
    services = mor.table.services
    services.schedule_log_compaction()
    before = mor.rows()

    def overtaken(job: CompactionJob) -> pa.Table:
        stats = IN_THREADS.run(job)
        assert services.schedule_compaction().instant is not None
        return stats

    opts, runner = Options.parse(mor.options), RunnerOf(work=overtaken)
    assert not run_pending_compactions(mor.client, opts, runner, action=Action.LOG_COMPACTION)
    assert not services.pending_log_compactions()
    assert mor.rows() == before
    services.compact()
    assert mor.rows() == before


def test_a_failed_run_is_forgotten(mor: MorTable):
    services = mor.table.services
    services.schedule_log_compaction()
    before = mor.rows()

    def broken(job: CompactionJob) -> pa.Table:
        IN_THREADS.run(job)
        raise RuntimeError("gone")

    opts = Options.parse(mor.options)
    with pytest.raises(RuntimeError):
        run_pending_compactions(mor.client, opts, RunnerOf(work=broken), action=Action.LOG_COMPACTION)
    assert not services.pending_log_compactions()
    assert mor.rows() == before
    assert services.log_compact()
    assert mor.rows() == before


@pytest.mark.parametrize("by", ["a writer", "a compaction"])
def test_whoever_comes_next_forgets_a_run_that_died(mor: MorTable, by: str):
    services = mor.table.services
    plan = services.schedule_log_compaction()
    opts = Options.parse(mor.options)
    job = CompactionJob.from_plan(TableSnapshot.load(mor.client), plan, opts)
    dead = PlannedTransaction.start_attempt(
        mor.client, PlanAttempt(plan.action, plan.instant or "", "LOG_COMPACT", job.context.attempt), opts
    )
    assert dead is not None
    before = mor.rows()
    if by == "a compaction":
        services.schedule_compaction()
    dead.to_inflight()
    left = {path for path in IN_THREADS.run(job)["path"].to_pylist() if (mor.root / path).exists()}
    assert left
    if by == "a writer":
        mor.delta()
    else:
        assert services.run_compaction()
    assert not services.pending_log_compactions()
    assert mor.version < 8 or not any((mor.root / path).exists() for path in left)
    assert mor.rows() == before
    with pytest.raises(ConflictError):
        dead.commit(job.metadata(WRITE_STAT_SCHEMA.empty_table()))


def test_a_plan_that_nobody_has_begun_stays(mor: MorTable):
    services = mor.table.services
    services.schedule_log_compaction()
    mor.delta([row("a1", "a", 9, "meanwhile")])
    assert services.run_log_compaction()


def test_a_write_after_the_plan_is_not_part_of_it(mor: MorTable):
    services = mor.table.services
    planned = services.schedule_log_compaction().instant
    before = mor.rows()
    later = mor.delta([row("a1", "a", 9, "meanwhile")])
    assert services.run_log_compaction()
    assert mor.rows()["a1"]["v"] == "meanwhile"
    travelled = mor.table.scan(as_of=planned, columns=["id", "p", "o", "v"]).to_arrow().to_pylist()
    assert {r["id"]: r for r in travelled} == before
    if mor.version < 8:  # later versions go by completion, so the log compaction is the last write
        services.rollback(later)
        assert mor.rows() == before


def test_again_and_again(mor: MorTable):
    for n in range(3):
        assert mor.table.services.log_compact()
        mor.delta([row("a1", "a", 5 + n, f"v{n}")], [("a9", "a", 9)])
    rows = mor.rows()
    assert rows["a1"]["v"] == "v2"
    mor.table.services.compact()
    assert mor.rows() == rows


def test_partial_updates_stay(tmp_path: Path):
    """A block of whole records cannot say which columns a record leaves out."""
    for name in ("v8_mor_partial_merge", "v9_mor_partial_merge"):
        table = HudiTable.for_path(str(unpack(name, tmp_path).path))
        plan = table.services.log_compact({"hoodie.log.compaction.blocks.threshold": "1"}, dry_run=True)
        assert not len(plan)


def test_golden_table(tmp_path: Path):
    golden = unpack("v8_mor_event_deletes", tmp_path)
    table = HudiTable.for_path(str(golden.path))
    before = table.scan().to_arrow().sort_by("_hoodie_record_key")
    assert table.services.log_compact().num_log_files == 7
    assert table.scan().to_arrow().sort_by("_hoodie_record_key") == before


def test_ranges_around_a_log_compaction_of_apache_hudi(tmp_path: Path):
    """Its records have its own instant. They count where a write is in the range that it has taken in, as the block
    does not tell which records are of that write, and not where it is there alone."""
    table = HudiTable.for_path(str(unpack("v9_mor_logcompaction", tmp_path).path))
    history = table.history().sort_by("completed")
    completed = history["completed"].to_pylist()
    at = history["operation"].to_pylist().index("LOG_COMPACT")

    def keys(begin: int, end: int) -> list[str]:
        rows = table.scan(begin=completed[begin], end=completed[end]).to_arrow()
        return sorted(rows["_hoodie_record_key"].to_pylist())

    assert keys(at - 1, at) == []
    assert keys(at - 2, at) == ["0", "1", "2", "3", "4", "5"]
    assert keys(at - 2, at - 1) == ["5"]
    assert keys(at - 1, at + 1) == keys(at, at + 1) == ["5", "6"]


def test_after_a_commit(mor: MorTable):
    """What the options want, and only when it is due."""
    assert mor.storage is not None

    def act(**more: str) -> list[str]:
        opts = Options.parse({**mor.options, **{f"hoodie.{k.replace('__', '.')}": v for k, v in more.items()}})
        done = PostCommitServices(mor.storage, opts).compact(IN_THREADS)
        return ["log" if result.is_log else "full" for result in done]

    assert act() == []
    assert act(compact__inline="true") == []
    assert act(compact__schedule__inline="true", compact__inline__max__delta__commits="2") == []
    assert len(mor.table.services.pending_compactions()) == 1
    assert act(compact__schedule__inline="true", compact__inline__max__delta__commits="1") == []
    assert len(mor.table.services.pending_compactions()) == 1
    assert act(compact__inline="true", table__services__enabled="false") == []
    before = mor.rows()
    assert act(compact__inline="true") == ["full"]
    for n in range(3):
        mor.delta([row("a0", "a", 10 + n, "more")])
    assert act(log__compaction__inline="true", compact__inline="true") == ["log"]
    changed = {key: value for key, value in mor.rows().items() if key != "a0"}
    assert changed == {key: value for key, value in before.items() if key != "a0"}
    actions = [i.action for i in mor.client.active_timeline().timeline]
    assert actions.count(Action.COMMIT) == 1
    assert pc.any(pc.equal(mor.table.history()["operation"], "LOG_COMPACT")).as_py()


_PLANNING = """
import resource, shutil, sys
from pathlib import Path
from tests.unit.services.merge_on_read_table import FAST, MorTable, row
mor = MorTable(Path(sys.argv[1]), 9, {}, FAST)
mor.load([row("a1", "a", 3, "x"), row("b1", "b", 3, "y")])
mor.delta([row("a1", "a", 5, "u"), row("b1", "b", 5, "v")])
for folder in ("a", "b"):
    (log,) = (path for path in (mor.root / folder).iterdir() if ".log.1_" in path.name)
    for n in range(2, 301):
        shutil.copy(log, log.with_name(log.name.replace(".log.1_", f".log.{n}_")))
resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
assert {key: row["v"] for key, row in mor.rows().items()} == {"a1": "u", "b1": "v"}
assert len(mor.table.services.log_compact(dry_run=True)) == 2
assert len(mor.table.services.compact(dry_run=True)) == 2
"""


def test_planning_with_few_handles(tmp_path: Path):
    done = subprocess.run(
        [sys.executable, "-c", _PLANNING, str(tmp_path / "t")], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
