"""CALL of procedures in the life of a table."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pyhudi.errors import AlreadyExistsError, InstantNotFoundError, NotFoundError, QueryError, TransactionError
from pyhudi.table.meta_client import TableMetaClient

pytest.importorskip("sqlglot")


@pytest.fixture
def call(spark):
    def run(procedure, **arguments):
        named = ", ".join(f"{name} => {_literal(value)}" for name, value in arguments.items())
        return [tuple(row) for row in spark.sql(f"CALL {procedure}({named})").collect()]

    return run


def _literal(value):
    return str(value).lower() if isinstance(value, bool | int) else '"' + str(value) + '"'


def test_procedures_in_the_life_of_a_table(spark, call, tmp_path):
    path = str(tmp_path / "rides")
    spark.sql(
        "CREATE TABLE rides (id INT, name STRING, ts BIGINT, city STRING) USING hudi TBLPROPERTIES (primaryKey = 'id', "
        f"preCombineField = 'ts', type = 'mor') PARTITIONED BY (city) LOCATION '{path}'"
    )
    try:
        _live(spark, call, path, tmp_path)
    finally:
        spark.sql("DROP TABLE rides")
        spark.sql("DROP TABLE IF EXISTS copied")


def _names(spark):
    return sorted(row[0] for row in spark.sql("SELECT name FROM rides").collect())


def _live(spark, call, path, tmp_path):
    spark.sql("INSERT INTO rides VALUES (1, 'a0', 0, 'oslo'), (2, 'b0', 0, 'moss')")
    for number in (1, 2):
        spark.sql(f"UPDATE rides SET name = concat(left(name, 1), '{number}'), ts = {number}")
    spark.sql("UPDATE rides SET name = 'late', ts = 9 WHERE id = 1")
    writes = [row[0] for row in call("show_commits", table="rides")][::-1]
    # savepoints and restore
    assert call("create_savepoint", table="rides", commit_time=writes[1], user="ann") == [(True,)]
    assert call("create_savepoint", path=path, commit_time=writes[2]) == [(True,)]
    assert call("show_savepoints", table="rides") == [(writes[2],), (writes[1],)]
    assert call("delete_savepoint", table="rides", instant_time=writes[1]) == [(True,)]
    with pytest.raises(InstantNotFoundError, match="no savepoint '2020'"):
        call("rollback_to_savepoint", table="rides", instant_time="2020")
    assert call("rollback_to_savepoint", table="rides") == [(True,)]
    assert _names(spark) == ["a2", "b2"]
    assert call("delete_savepoint", table="rides") == [(True,)]
    with pytest.raises(InstantNotFoundError, match="has no savepoint; its savepoints: none"):
        call("delete_savepoint", table="rides")
    # rollback
    with pytest.raises(TransactionError, match="later writes"):
        call("rollback_to_instant", table="rides", instant_time=writes[1])
    assert call("rollback_to_instant", table="rides", instant_time=writes[2]) == [(True,)]
    assert _names(spark) == ["a1", "b1"]
    ((rolled_back, undone, files, _, partitions),) = call("show_rollbacks", table="rides")
    assert (undone, partitions) == (writes[2], 2)
    detail = call("show_rollback_detail", table="rides", instant_time=rolled_back)
    assert len(detail) == files
    assert {row[1:3] for row in detail} == {(f"[{undone}]", "city=oslo"), (f"[{undone}]", "city=moss")}
    gone = detail[0][3].rpartition("/")[2]
    assert call("show_file_status", table="rides", file=gone)[0][:4] == ("deleted", "rollback", rolled_back, "active")
    assert call("show_timeline", table="rides", limit=1)[0][7] == f"Rolled back: {undone}"
    # compaction and clustering
    spark.sql("UPDATE rides SET name = 'late', ts = 9 WHERE id = 1")
    logs = str(Path(path) / "city=oslo" / "*.log.*")
    *_, block = call("show_logfile_metadata", table="rides", log_file_path_pattern=logs)
    assert block[1] == 1
    assert '"INSTANT_TIME"' in block[3]
    *_, record = call("show_logfile_records", table="rides", log_file_path_pattern=logs)
    assert '"name": "late"' in record[0]
    (merged,) = call("show_logfile_records", table="rides", log_file_path_pattern=logs, merge=True)
    assert json.loads(merged[0])["name"] == "late"
    with pytest.raises(QueryError, match="no log file"):
        call("show_logfile_metadata", table="rides", log_file_path_pattern="*/none/*")
    for op, given in (("schedule", {"timestamp": 20300101000000000}), ("scheduleAndExecute", {"instants": "1"})):
        with pytest.raises(QueryError, match="at a new instant"):
            call("run_compaction", table="rides", op=op, **given)
    ((planned, slices, _),) = call("run_compaction", table="rides", op="schedule")
    with pytest.raises(QueryError, match="no compaction is planned at '1'"):
        call("run_compaction", table="rides", op="run", instants=f"{planned},1")
    assert call("run_compaction", table="rides", op="run", instants=planned) == [(planned, slices, "COMPLETED")]
    ((clustering, groups, state, where),) = call(
        "run_clustering", table="rides", op="schedule", predicate="city = 'oslo'"
    )
    assert (groups, state, where) == (1, "REQUESTED", "*")
    shown = call("show_clustering", table="rides", show_involved_partition=True)
    assert shown == [(clustering, 1, "REQUESTED", "city=oslo")]
    with pytest.raises(InstantNotFoundError, match="no compaction and no clustering is under way"):
        call("run_rollback_inflight_tableservice", table="rides", pending_instant=clustering)
    begun = TableMetaClient.open(path).active_timeline()
    begun.to_inflight(begun.timeline.find(clustering))
    undone = call("run_rollback_inflight_tableservice", table="rides", pending_instant=clustering)
    assert [row[0] for row in undone] == [clustering]
    assert call("show_clustering", table="rides")[0][2] == "REQUESTED"
    assert call("run_clustering", table="rides", instants=clustering) == [(clustering, 1, "COMPLETED", "*")]
    with pytest.raises(QueryError, match="condition on the partition columns"):
        call("run_clustering", table="rides", predicate="id = 1")
    with pytest.raises(QueryError, match="no clustering is planned at '2020'"):
        call("run_clustering", table="rides", instants="2020")
    assert _names(spark) == ["b1", "late"]
    # cleaning and archival
    ((_, _, deleted, _, _, _),) = call(
        "run_clean", table="rides", clean_policy="KEEP_LATEST_FILE_VERSIONS", file_versions_retained=1
    )
    assert call("run_clean", table="rides", schedule_in_line=False) == []
    ((clean, *_),) = call("show_cleans", table="rides")
    assert sum(row[7] for row in call("show_cleans_metadata", table="rides")) == deleted > 0
    assert call("show_clean_plans", table="rides")[0][:3] == (clean, "COMPLETED", "clean")
    # metadata table
    assert call("show_metadata_table_partitions", table="rides") == [("city=moss",), ("city=oslo",)]
    assert call("validate_metadata_table_files", table="rides") == []
    listed = call("validate_metadata_table_files", table="rides", verbose=True)
    assert listed
    assert all(row[2] and row[3] and row[4] == row[5] for row in listed)
    stats = call("show_metadata_table_column_stats", table="rides", targetColumns="name", partition="city=oslo")
    assert [row[1:] for row in stats] == [("name", "late", "late", 0)]
    overlap = call("show_metadata_column_stats_overlap", table="rides", targetColumns="name")
    assert [row[:5] for row in overlap] == [("city=moss", "name", 1.0, 1, 1), ("city=oslo", "name", 1.0, 1, 1)]
    assert dict(call("show_metadata_table_stats", table="rides"))["files.baseFileCount"].isdigit()
    with pytest.raises(AlreadyExistsError, match="metadata table"):
        call("create_metadata_table", table="rides")
    call("delete_metadata_table", table="rides")
    with pytest.raises(NotFoundError, match="create_metadata_table"):
        call("init_metadata_table", table="rides")
    call("create_metadata_table", table="rides")
    assert call("validate_metadata_table_files", table="rides") == []
    # versions
    assert call("downgrade_table", table="rides", to_version="EIGHT") == [(True,)]
    assert call("upgrade_table", table="rides", to_version="9") == [(True,)]
    # history
    before = len(call("show_commits", table="rides", limit=100))
    assert call("archive_commits", table="rides", min_commits=2, max_commits=3, retain_commits=1) == [(0,)]
    archived = call("show_archived_commits", table="rides")
    assert archived
    assert len(call("show_commits", table="rides")) == before - len(archived)
    assert call("show_archived_commits", table="rides", end_ts=archived[-1][0])[0] == archived[-1]
    assert {row[0] for row in call("show_archived_commits_metadata", table="rides")} == {row[0] for row in archived}
    assert "ARCHIVED" in {row[6] for row in call("show_timeline", table="rides", showArchived=True, limit=99)}
    # files
    assert call("show_invalid_parquet", path=path) == []
    damaged = next(file for file in Path(path, "city=moss").glob("*.parquet"))
    whole = damaged.read_bytes()
    damaged.write_bytes(b"PAR1")
    assert call("show_invalid_parquet", path=path) == [(f"file://{damaged}",)]
    with pytest.raises(QueryError, match="not an orphan file"):
        call("show_invalid_parquet", path=path, needDelete=True)
    damaged.write_bytes(whole)
    stranger = damaged.with_name(f"{damaged.name.partition('_')[0]}_7-7-7_{writes[-1]}.parquet")
    stranger.write_bytes(b"PAR1")
    with pytest.raises(Exception, match=r"UNRESOLVED_COLUMN.*`nothing`"):
        call("show_invalid_parquet", path=path, needDelete=True, filter="nothing = 1")
    assert call("show_invalid_parquet", path=path, needDelete=True) == [(f"file://{stranger}",)]
    assert not stranger.exists()
    assert call("show_invalid_parquet", path=path) == []
    exported = tmp_path / "made" / "exported"
    with pytest.raises(QueryError, match="cannot be created on this machine"):
        call("export_instants", table="rides", local_folder=damaged)
    only = {"table": "rides", "local_folder": exported, "actions": "deltacommit,commit,clean"}
    assert call("export_instants", **only, limit=2) == [(f"Exported 2 Instants to {exported}",)]
    assert [file.name[:17] for file in sorted(exported.iterdir())] == sorted(row[0] for row in archived)[:2]
    call("export_instants", **only)
    records = [json.loads(file.read_text()) for file in exported.iterdir()]
    assert {row["operationType"] for row in records if "operationType" in row} >= {"INSERT", "UPSERT"}
    assert call("show_file_status", table="rides", partition="city=moss", file=damaged.name)[0][0] == "exists"
    with pytest.raises(QueryError, match=r"there is no folder '.*-other'"):
        call("show_fs_path_detail", path=f"{path}-other")
    whole, parts = call("show_fs_path_detail", path=path)[0], call("show_fs_path_detail", path=path, is_sub=True)
    assert [part[4].rpartition("/")[2] for part in parts if part[4].endswith("moss")] == ["city=moss"]
    assert whole[1] == sum(part[1] for part in parts)
    assert whole[2] == sum(part[2] for part in parts)
    # copies
    assert call("copy_to_table", table="rides", new_table="copied") == [(0,)]
    assert [row[0] for row in spark.sql("SELECT name FROM copied ORDER BY id").collect()] == ["late", "b1"]
    spark.sql("DELETE FROM copied WHERE id = 1")
    other = spark.sql("SHOW TBLPROPERTIES copied ('path')").first()["value"]
    assert "is behind by 2 commits" in call("commits_compare", table="rides", path=other)[0][0]
    meta = Path(path, "city=moss", ".hoodie_partition_metadata")
    meta.unlink()
    assert call("repair_add_partition_meta", table="rides")[0] == ("city=moss", "No", "None")
    assert call("repair_add_partition_meta", table="rides", dry_run=False)[0] == ("city=moss", "No", "Repaired")
    assert meta.exists()
    assert call("repair_migrate_partition_meta", table="rides")[0] == ("city=moss", "true", "false", "MIGRATE")
    assert call("repair_migrate_partition_meta", table="rides", dry_run=False)[0][3] == "MIGRATED"
    assert not meta.exists()
    assert call("repair_corrupted_clean_files", table="rides") == [(True,)]
    new = Path(path).parent / "new.properties"
    new.write_text(Path(path, ".hoodie", "hoodie.properties").read_text() + "\nmy.own=1\n")
    changed = call("repair_overwrite_hoodie_props", table="rides", new_props_file_path=new)
    assert [row for row in changed if row[1] != row[2]] == [("my.own", "null", "1")]
    repair = {"table": "rides", "repaired_output_path": f"{path}-deduplicated"}
    with pytest.raises(QueryError, match="no rows in a partition 'oslo'; its partitions are 'city=moss', 'city=oslo'"):
        call("repair_deduplicate", **repair, duplicated_partition_path="oslo", dry_run=False)
    again = {**repair, "duplicated_partition_path": "city=oslo"}
    assert call("repair_deduplicate", **again) == [(f"Deduplicated files placed in: {path}-deduplicated.",)]
    assert call("repair_deduplicate", **again, dry_run=False) == [("Deduplicated files placed in: city=oslo.",)]
    assert call("run_ttl", table="rides", ttl_policy="KEEP_BY_TIME", retain_days=1) == []
    assert call("delete_marker", table="rides", instant_time=writes[0]) == [(True,)]


def test_refused_calls_name_what_to_use(call):
    with pytest.raises(QueryError, match="did you mean 'show_commits'"):
        call("show_comits", table="rides")
    with pytest.raises(QueryError, match="no parameter 'tabel'; did you mean 'table'"):
        call("show_commits", tabel="rides")
