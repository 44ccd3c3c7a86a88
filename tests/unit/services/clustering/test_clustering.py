"""Clustering by threads of this process: plans, rows, file groups, failures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pyhudi.api.hudi_table import HudiTable
from pyhudi.config import Options
from pyhudi.errors import (
    ConfigError,
    ConflictError,
    HudiError,
    InstantNotFoundError,
    SetupError,
    TransactionError,
    UnsupportedTableError,
)
from pyhudi.metadata.file_groups.delta_commit_writer import GroupFiles, GroupSlice
from pyhudi.metadata.reader.metadata_table import MetadataTable
from pyhudi.metadata.records.record_changes import RecordChanges
from pyhudi.schema.converters.arrow_avro import to_avro
from pyhudi.services.clustering import clustering_runner
from pyhudi.services.clustering.clustering_planner import pending_clusterings
from pyhudi.services.clustering.clustering_runner import ThreadClusteringRunner, run_pending_clusterings
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.timeline.commit_metadata import REPLACED_SCHEMA, CommitMetadata, write_stats
from pyhudi.transaction.transaction import Transaction
from tests.golden.expected import unpack
from tests.tables import HandMadeTable
from tests.unit.merge.mergers import First
from tests.unit.services.merge_on_read_table import FAST, FILE_IDS, SCHEMA, MorTable, row

SORTED = {**FAST, "hoodie.clustering.plan.strategy.sort.columns": "v"}
ALLOWING = {
    **FAST,
    "hoodie.clustering.updates.strategy": "SparkAllowUpdateStrategy",
    "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
}
"""Writes to file groups of a pending plan are allowed."""
FOLDED = {**FAST, "hoodie.clustering.plan.strategy.sort.columns": "V"}
"""The same column; the case of its name does not count."""


class _FailsAfterIndexing(ThreadClusteringRunner):
    """A runner that ends when it has written a log file of the record index."""

    def check(self, config: Any, job: Any) -> None:
        pass

    def index_delta(self, client: Any, tx: Any, *_: Any) -> Any:
        file_id = MetadataTable.open_now(client.storage, tx.config).groups("record_index")["file_id"][0].as_py()
        files = GroupFiles(client.storage, "record_index", tx.instant, tx.config.version)
        files.write_log(GroupSlice(file_id), RecordChanges(deletes=pa.array(["k1"])), token="0-9-27")
        raise RuntimeError("lost")


def _filled(root: Path, version: int = 9, **more: Any) -> MorTable:
    mor = MorTable(root / "table", version, **more)
    mor.load([row(f"{p}{i}", p, 1, f"v{9 - i}") for p in "ab" for i in range(10)])
    mor.delta([row("a0", "a", 2, "w"), row("b0", "b", 2, None)], deletes=[("a1", "a", 5)])
    return mor


@pytest.mark.parametrize("version", [6, 8, 9])
def test_rows_stay_and_are_sorted(version: int, tmp_path: Path):
    mor = _filled(tmp_path, version)
    before = mor.table.scan().to_arrow()
    since = mor.table.history()["requested"].to_pylist()
    plan = mor.table.services.schedule_clustering(FOLDED)
    assert plan.num_slices == 2
    assert plan.action == ("clustering" if version >= 8 else "replacecommit")
    (pending,) = mor.table.services.pending_clusterings()
    assert (pending.instant, pending.sort_columns, pending.outputs) == (plan.instant, ("v",), (1, 1))
    assert pending.file_groups == plan.file_groups
    seen: list[tuple[str, int, int]] = []
    result = mor.table.services.run_clustering(options=SORTED, progress=lambda *what: seen.append(what))
    assert seen == [("cluster groups of files", done, 2) for done in (1, 2)]
    assert result.instants == (plan.instant,)
    assert (result.num_files, result.num_replaced, result.num_rows) == (2, 2, 19)
    after = mor.table.scan().to_arrow()
    key = [("_hoodie_record_key", "ascending")]
    assert after.sort_by(key).drop(["_hoodie_file_name"]) == before.sort_by(key).drop(["_hoodie_file_name"])
    for path in result.stats["path"].to_pylist():
        stored = pq.read_table(mor.root / path)
        values = stored["v"].to_pylist()
        assert values == sorted(values, key=lambda v: (v is None, v or ""))
        assert set(stored["_hoodie_file_name"].to_pylist()) == {Path(path).name}
    (done,) = [i for i in mor.table.history().to_pylist() if i["requested"] not in since]
    assert (done["action"], done["state"]) == ("replacecommit", "COMPLETED")
    assert not mor.table.services.pending_clusterings()
    last = max(i["completed"] or i["requested"] for i in mor.table.history().to_pylist() if i["requested"] in since)
    changed = mor.table.scan(begin=last).to_arrow()
    assert not changed.num_rows  # nothing is said to have changed


def test_nothing_is_done_by_a_dry_run(tmp_path: Path):
    mor = _filled(tmp_path)
    before = sorted(mor.root.rglob("*"))
    plan = mor.table.services.cluster(SORTED, dry_run=True)
    assert len(plan) == 2
    assert plan.instant is None
    assert "2 file slices of 2 partitions in 2 groups" in repr(plan)
    assert sorted(mor.root.rglob("*")) == before


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"hoodie.clustering.plan.strategy.sort.columns": "w"}, "sort column 'w' does not exist.*the columns are"),
        ({"hoodie.clustering.plan.strategy.sort.columns": "v.x"}, "sort column 'v.x' does not exist"),
        ({"hoodie.clustering.plan.strategy.class": "Mine"}, "'Mine' of option .*; allowed: "),
        ({"hoodie.clustering.execution.strategy.class": "Mine"}, "'Mine' of option .*; allowed: "),
        ({"hoodie.clustering.plan.partition.filter.mode": "SELECTED_PARTITIONS"}, "begin.partition"),
        ({"hoodie.clustering.plan.strategy.partition.regex.pattern": "("}, "a regular expression"),
        (
            {"hoodie.clustering.plan.strategy.class": "SparkConsistentBucketClusteringPlanStrategy"},
            "no consistent hashing buckets",
        ),
        (
            {"hoodie.clustering.execution.strategy.class": "SparkConsistentBucketClusteringExecutionStrategy"},
            "cannot be combined",
        ),
        ({"hoodie.clustering.execution.strategy.class": "SparkSingleFileSortExecutionStrategy"}, "individually"),
    ],
)
def test_wrong_options_are_refused_before_anything_is_done(options: dict[str, str], message: str, tmp_path: Path):
    mor = _filled(tmp_path)
    before = sorted(mor.root.rglob("*"))
    with pytest.raises(HudiError, match=message):
        mor.table.services.cluster(options)
    assert sorted(mor.root.rglob("*")) == before


def test_a_failed_attempt_leaves_the_plan(tmp_path: Path):
    mor = _filled(tmp_path)
    plan = mor.table.services.schedule_clustering()
    (log,) = (mor.root / "b").glob(".*.log.*")
    content = log.read_bytes()
    log.unlink()
    with pytest.raises(HudiError, match="which no longer exists: restore the file"):
        mor.table.services.run_clustering()
    (pending,) = mor.table.services.pending_clusterings()
    assert pending.instant == plan.instant
    assert not list(mor.root.glob(f"*/*_{plan.instant}.parquet"))
    log.write_bytes(content)
    assert mor.table.services.run_clustering().instants == (plan.instant,)
    assert len(mor.rows()) == 19


def test_a_write_that_is_let_through(tmp_path: Path):
    """What was written before the clustering begins is planned anew with it; what comes later makes it fail."""
    mor = _filled(tmp_path, options=ALLOWING)
    mor.table.services.schedule_clustering()
    before = mor.delta([row("a5", "a", 7, "before")])

    class Slow(ThreadClusteringRunner):
        def run(self, job: Any) -> Any:
            stats = super().run(job)
            mor.delta([row("b5", "b", 7, "meanwhile")])
            return stats

    with pytest.raises(ConflictError, match="concurrently changed file group"):
        run_pending_clusterings(mor.client, Options.parse(ALLOWING), Slow())
    (failed,) = pending_clusterings(mor.client.active_timeline())
    assert (failed.instant or "") > before
    result = mor.table.services.run_clustering()
    assert result.instants > (mor.client.active_timeline().timeline.of_actions("deltacommit").last.requested,)
    assert result.num_replaced == 2
    assert not pending_clusterings(mor.client.active_timeline())
    rows = mor.rows()
    assert (rows["a5"]["v"], rows["b5"]["v"]) == ("before", "meanwhile")


@pytest.mark.parametrize("version", [6, 9])
def test_earlier_snapshots_do_not_get_rows_that_were_written_after_the_plan(version: int, tmp_path: Path):
    """Files with the instant of the old plan would count in time travel, and in restores, to any later instant."""
    mor = MorTable(tmp_path / "table", version, options=ALLOWING)
    mor.load([row("a0", "a", 1, "old"), row("b0", "b", 1, "old")])
    mor.table.services.schedule_clustering(SORTED)
    to = mor.delta([row("b0", "b", 2, "two")])
    last = mor.delta([row("a0", "a", 7, "later")])

    def values(**query: Any) -> dict[str, str]:
        rows = mor.table.scan(columns=["id", "v"], **query).to_arrow().to_pylist()
        return {r["id"]: r["v"] for r in rows}

    (instant,) = mor.table.services.run_clustering().instants
    assert instant > last
    assert values() == {"a0": "later", "b0": "two"}
    assert values(as_of=to) == {"a0": "old", "b0": "two"}
    mor.table.services.restore(to)
    assert values() == {"a0": "old", "b0": "two"}


@pytest.mark.parametrize("partitions", ["a", "ab"])
def test_file_groups_that_were_replaced_are_not_planned_again(partitions: str, tmp_path: Path):
    mor = _filled(tmp_path, options=ALLOWING)
    mor.table.services.schedule_clustering()
    tx = Transaction.begin(mor.client, "replacecommit", "DELETE_PARTITION", ALLOWING)
    tx.to_inflight(CommitMetadata("DELETE_PARTITION"))
    groups = [{"partition": p, "file_id": FILE_IDS[p]} for p in partitions]
    replaced = pa.Table.from_pylist(groups, schema=REPLACED_SCHEMA)
    extra = {"schema": to_avro(SCHEMA, "t")}
    tx.commit(CommitMetadata("DELETE_PARTITION", write_stats([]), extra, replaced=replaced))
    result = mor.table.services.run_clustering()
    assert result.num_replaced == 2 - len(partitions)
    assert not pending_clusterings(mor.client.active_timeline())
    assert len(mor.rows()) == 20 - 10 * len(partitions)


def test_writers_are_refused_while_a_clustering_is_pending(tmp_path: Path):
    mor = _filled(tmp_path)
    mor.table.services.schedule_clustering()
    tx = mor.begin()
    outcome = mor.write_logs(tx, [row("a5", "a", 7, "late")])
    with pytest.raises(AssertionError, match="is going to rewrite file group"):
        mor.commit(tx, "UPSERT", outcome)


def test_a_plan_whose_files_are_gone(tmp_path: Path):
    mor = _filled(tmp_path)
    plan = mor.table.services.schedule_clustering()
    for path in (mor.root / "a").glob("*.parquet"):
        path.unlink()
    for path in (mor.root / "a").glob(".*.log.*"):
        path.unlink()
    with pytest.raises(TransactionError, match="contains 1 file groups that the table does not have"):
        mor.table.services.run_clustering()
    assert [p.instant for p in mor.table.services.pending_clusterings()] == [plan.instant]


def test_a_plan_that_a_restore_of_apache_hudi_has_left(tmp_path: Path):
    """One rollback removes it, so that its file groups can be written again (`docs/format/core.md`, 10, 41)."""
    mor = _filled(tmp_path)
    rows, restored = mor.rows(), mor.client.active_timeline().timeline.completed().writes().by_completion()[-1]
    mor.delta([row("a2", "a", 3, "later")])
    (instant,) = mor.table.services.cluster().instants
    plan = {path: path.read_bytes() for path in mor.root.glob(f".hoodie/timeline/{instant}.clustering.*")}
    mor.table.services.restore(restored.requested)
    for path, content in plan.items():
        path.write_bytes(content)
    assert [one.instant for one in mor.table.services.pending_clusterings()] == [instant]
    with pytest.raises(TransactionError, match=rf"no longer exists: .*services\.rollback\('{instant}'\)"):
        mor.table.services.run_clustering(instant)
    assert mor.table.services.rollback(instant).instants == (instant,)
    assert not mor.table.services.pending_clusterings()
    assert mor.rows() == rows
    mor.delta([row("a2", "a", 4, "last")])
    assert mor.rows() == rows | {"a2": row("a2", "a", 4, "last")}


def test_groups_that_were_replaced_are_left_out(tmp_path: Path):
    mor = _filled(tmp_path)
    a = mor.table.services.schedule_clustering({**FAST, "hoodie.clustering.plan.strategy.partition.selected": "a"})
    assert mor.table.services.schedule_clustering().partitions == ["b"]  # what is in a plan is in no other
    assert mor.table.services.schedule_clustering().reason.startswith("there are no file groups to cluster")
    assert a.partitions == ["a"]
    assert mor.table.services.run_clustering().num_rows == 19
    with pytest.raises(InstantNotFoundError, match="no clustering 'x' is pending"):
        mor.table.services.run_clustering("x")


@pytest.mark.parametrize("name", ["v6_cow_cluster", "v9_mor_cluster_restore"])
def test_pending_plans_of_apache_hudi(name: str, tmp_path: Path):
    golden = unpack(name, tmp_path)
    table = HudiTable.for_path(str(golden.path))
    before = table.scan().to_arrow()
    (pending,) = table.services.pending_clusterings()
    assert len(pending.sort_columns) == 1
    assert len(pending) == 2
    result = table.services.run_clustering()
    assert result.instants == (pending.instant,)
    assert result.num_replaced == 4
    after = table.scan().to_arrow()
    order = [("_hoodie_record_key", "ascending"), ("_hoodie_partition_path", "ascending")]
    assert after.sort_by(order).drop(["_hoodie_file_name"]) == before.sort_by(order).drop(["_hoodie_file_name"])


def test_unknown_sort_column_of_a_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    mor = _filled(tmp_path)
    plan = mor.table.services.schedule_clustering(SORTED)
    (pending,) = pending_clusterings(mor.client.active_timeline())
    assert plan.sort_columns == ("v",)
    object.__setattr__(pending, "sort_columns", ("gone",))
    monkeypatch.setattr(clustering_runner, "pending_clusterings", lambda _: [pending])
    with pytest.raises(ConfigError, match="sort column 'gone' does not exist"):
        mor.table.services.run_clustering(options=FAST)


COPY = {**FAST, "hoodie.clustering.plan.strategy.class": "SparkStreamCopyClusteringPlanStrategy"}


@pytest.mark.parametrize("version", [6, 9])
def test_row_groups_are_copied(version: int, tmp_path: Path):
    """Files without logs are copied together as they are; those with logs are rewritten."""
    mor = MorTable(tmp_path / "table", version)
    for number in range(3):
        ids = {p: f"{p * 8}-0000-4000-8000-00000000000{number}-0" for p in "ab"}
        mor.load([row(f"{p}{number}{i}", p, 1, f"v{9 - i}") for p in "ab" for i in range(10)], ids)
    before = mor.table.scan().to_arrow()
    assert mor.table.services.cluster(COPY, dry_run=True).strategy.endswith(
        "SparkBinaryCopyClusteringExecutionStrategy"
    )
    result = mor.table.services.cluster(COPY)
    assert (result.num_files, result.num_replaced, result.num_rows) == (2, 6, 60)
    for path in result.stats["path"].to_pylist():
        file = pq.ParquetFile(mor.root / path)
        assert [file.metadata.row_group(n).num_rows for n in range(file.metadata.num_row_groups)] == [10, 10, 10]
        assert set(file.read()["_hoodie_file_name"].to_pylist()) == {Path(path).name}
    assert _unnamed(mor.table.scan().to_arrow()) == _unnamed(before)
    # statistics and file sizes are as of the new files
    assert mor.table.scan(filter=[("v", "=", "v9")]).to_arrow().num_rows == 6
    if version >= 8:
        assert not mor.table.scan(filter=[("v", ">", "w")]).plan().tasks.num_rows
    sizes = {path: (mor.root / path).stat().st_size for path in result.stats["path"].to_pylist()}
    assert dict(zip(sizes, result.stats["fileSizeInBytes"].to_pylist(), strict=True)) == sizes


def test_files_that_cannot_be_copied_are_rewritten(tmp_path: Path):
    for name, copied in (("v9_cow_evolution", False), ("v8_cow_replace", True)):
        golden = unpack(name, tmp_path)
        table = HudiTable.for_path(str(golden.path))
        before = table.scan().to_arrow()
        result = table.services.cluster(COPY)
        writers = {pq.read_metadata(golden.path / path).created_by[:11] for path in result.stats["path"].to_pylist()}
        assert ("parquet-cpp" not in writers) is copied
        assert _unnamed(table.scan().to_arrow()) == _unnamed(before)
        folder = golden.path / ".hoodie/.temp"
        assert not list(folder.rglob("*.marker*"))


def _unnamed(rows: pa.Table) -> pa.Table:
    """Rows in the order of their keys, whatever files they are in."""
    return rows.drop(["_hoodie_file_name"]).sort_by([("_hoodie_record_key", "ascending")]).combine_chunks()


@pytest.mark.parametrize(("version", "order"), [(6, ""), (9, "id")])
def test_tables_without_meta_columns(version: int, order: str, tmp_path: Path):
    table = HandMadeTable(tmp_path / "t", version, meta_columns=False)
    for n in (1, 2):
        table.write(n, {("x", f"f{n}-0"): [{"id": f"k{n}", "p": "x"}]})
    before = HudiTable.for_path(str(table.root)).scan().to_arrow()
    sort = {"hoodie.clustering.plan.strategy.sort.columns": order} if order else {}
    result = HudiTable.for_path(str(table.root), FAST).services.cluster({**FAST, **sort})
    assert (result.num_replaced, result.num_files, result.num_rows) == (2, 1, 2)
    after = HudiTable.for_path(str(table.root)).scan().to_arrow()
    assert after.sort_by("id") == before.sort_by("id")


def test_what_this_process_cannot_run_is_not_planned(tmp_path: Path):
    merged_by_others = {
        "hoodie.write.record.merge.mode": "CUSTOM",
        "hoodie.datasource.write.payload.class": "",
        "hoodie.write.record.merge.strategy.id": First.strategy_id,
    }
    mor = _filled(tmp_path, properties=merged_by_others)
    indexed = HudiTable.for_path(str(unpack("v9_mor_meta_all", tmp_path).path), FAST)
    for table, error, why in (
        (mor.table, UnsupportedTableError, rf"{First.strategy_id}.*register_merger"),
        (indexed, SetupError, "record index.*requires Spark"),
    ):
        before = table.history()
        with pytest.raises(error, match=why):
            table.services.cluster()
        assert table.history() == before
        assert not table.services.pending_clusterings()
        assert table.services.schedule_clustering().instant  # another process may run it


def test_index_entries_of_a_failed_attempt_are_deleted(tmp_path: Path):
    root = unpack("v9_mor_meta_all", tmp_path).path
    plan = HudiTable.for_path(str(root), FAST).services.schedule_clustering()
    client = TableMetaClient.open(str(root))
    with pytest.raises(RuntimeError, match="lost"):
        run_pending_clusterings(client, Options.parse(FAST), _FailsAfterIndexing(), instant=plan.instant)
    # the next attempt has the same instant, which would make them valid
    assert not list((root / ".hoodie/metadata/record_index").glob(f"*{plan.instant}*"))
