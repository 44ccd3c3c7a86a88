"""Writes to merge-on-read tables: every operation against a dict, and what is in the log files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from pyhudi.api.hudi_table import HudiTable
from pyhudi.errors import ConfigError, SchemaMismatchError
from pyhudi.format.file_names import parse_names
from pyhudi.format.log import BlockType, Header, decode_deletes, decode_records, scan_blocks
from pyhudi.schema.converters.arrow_avro import to_avro
from pyhudi.spark.write.dataframe_writer import write
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.timeline.instant import Action
from pyhudi.write.write_result import WriteResult
from tests.cases import seldom
from tests.spark.model import SCHEMA, Model, Row, Steps, batch, frame, rows_of
from tests.spark.write.log_files import blocks, log_files, merge_on_read
from tests.tables import HandMadeTable

_EVENT_TIME = "org.apache.hudi.common.model.DefaultHoodieRecordPayload"


def load(spark: SparkSession, path: Path | str, rows: list[Row], version: int = 9, **more: Any) -> None:
    """Write rows into one base file for each partition."""
    write(frame(spark, rows).coalesce(1), str(path), merge_on_read("bulk_insert", version, **more))


def stats_of(path: Path | str, result: WriteResult) -> list[dict[str, Any]]:
    """The stats that the timeline has of a write."""
    active = TableMetaClient.open(str(path)).active_timeline()
    instant = active.timeline.find(str(result.instant))
    assert instant is not None
    return list(active.commit_metadata(instant).stats.to_pylist())


@pytest.mark.parametrize("version", [seldom(6), seldom(8), 9])
def test_operations(spark: SparkSession, tmp_path: Path, version: int) -> None:
    path = str(tmp_path / "table")
    step = Steps(spark, path, lambda operation, **extra: merge_on_read(operation, version, **extra))
    step("bulk_insert", batch(0, 60, 10, "bulk"))
    # older, equal and newer versions, a key twice in the batch
    rows = [*batch(0, 10, 9, "old"), *batch(10, 20, 10, "tie"), *batch(20, 30, 11, "new")]
    step("upsert", [*rows, ("k021", "p0", 15, "twice, stronger"), ("k021", "p0", 14, "twice")])
    assert len(log_files(path)) == 3
    # new keys, in partitions with logs and in a new one; a second log
    step("upsert", [*batch(55, 70, 12, "more"), ("x", "fresh", 1, "first")])
    step("insert", batch(100, 110, 1, "inserted"))
    step("delete", [*batch(0, 25, 0, ""), ("nobody", "p1", 0, ""), ("k001", "p2", 0, "")])
    # records that were deleted come again, records of the log are updated
    step("upsert", [*batch(0, 5, 20, "again"), *batch(55, 60, 30, "third version")])
    rows = [("a", "p1", 1, "overwritten"), ("b", "other", 1, "overwritten")]
    step("insert_overwrite", rows, drop=("p1", "other"))
    gone = {"hoodie__datasource__write__partitions__to__delete": "*2,other"}
    step("delete_partition", [], drop=("p2", "other"), **gone)
    step("upsert", [("k030", "p0", 99, "after"), ("z", "p2", 1, "again")])
    step("insert_overwrite_table", batch(0, 5, 1, "anew"))
    actions = HudiTable.for_path(path).history()["action"].to_pylist()
    assert actions == ["replacecommit", "deltacommit", *["replacecommit"] * 2, *["deltacommit"] * 6]


@pytest.mark.parametrize(
    ("options", "block_type"),
    [
        pytest.param({}, BlockType.PARQUET_DATA, id="default"),
        pytest.param({"hoodie__logfile__data__block__format": "avro"}, BlockType.AVRO_DATA, id="avro"),
    ],
)
def test_what_log_files_hold(
    spark: SparkSession, tmp_path: Path, options: dict[str, str], block_type: BlockType
) -> None:
    path = tmp_path / "table"
    load(spark, path, batch(0, 20, 10, "base", 1))
    base = TableMetaClient.open(str(path)).active_timeline().timeline.writes().last.requested
    rows = [("k007", "p0", 11, "b"), ("k003", "p0", 5, "a"), ("k011", "p0", 12, "c")]
    result = write(frame(spark, rows), str(path), merge_on_read("upsert", **options))
    (file,) = log_files(path)
    name = parse_names(pa.array([file.name])).to_pylist()[0]
    assert (name["instant"], name["log_version"]) == (result.instant, 1)
    (block,) = scan_blocks(file.read_bytes())
    assert (block.type, block.instant, block.positions_base_instant) == (block_type, result.instant, base)
    found = decode_records(block).to_pylist()
    assert block.positions().tolist() == [3, 7, 11]
    assert [row["v"] for row in found] == ["a", "b", "c"]
    assert {row["_hoodie_commit_time"] for row in found} == {result.instant}
    assert {row["_hoodie_file_name"] for row in found} == {name["file_id"]}
    assert {row["_hoodie_partition_path"] for row in found} == {"p0"}
    assert [row["_hoodie_record_key"] for row in found] == ["k003", "k007", "k011"]
    assert len({row["_hoodie_commit_seqno"] for row in found}) == 3
    (stat,) = stats_of(path, result)
    assert stat["path"] == f"p0/{file.name}"
    assert (stat["numWrites"], stat["numUpdateWrites"], stat["numInserts"], stat["numDeletes"]) == (3, 3, 0, 0)
    assert (stat["logVersion"], stat["logOffset"], stat["logFiles"]) == (1, 0, [file.name])
    assert (stat["prevCommit"], stat["baseFile"]) == (result.instant, "")
    assert stat["fileSizeInBytes"] == stat["totalWriteBytes"] == file.stat().st_size
    assert (result.num_updates, result.num_inserts, result.num_files) == (3, 0, 1)


def test_version_6(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "table"
    load(spark, path, batch(0, 20, 10, "base", 1), 6)
    (base,) = path.rglob("*.parquet")
    instant = TableMetaClient.open(str(path)).active_timeline().timeline.writes().last.requested
    results = []
    for ts in (11, 12):
        results.append(write(frame(spark, batch(0, 3, ts, "new", 1)), str(path), merge_on_read("upsert", 6)))
    first, second = (file.name for file in log_files(path))
    names = parse_names(pa.array([first, second]))
    assert names["instant"].to_pylist() == [instant, instant]
    assert names["log_version"].to_pylist() == [1, 2]
    assert [block.instant for block in blocks(path)] == [result.instant for result in results]
    assert not any(Header.RECORD_POSITIONS in block.headers for block in blocks(path))
    (stat,) = stats_of(path, results[1])
    assert (stat["prevCommit"], stat["baseFile"], stat["logVersion"]) == (instant, base.name, 2)
    assert stat["logFiles"] == [first, second]
    text = next((path / ".hoodie").glob(f"{results[1].instant}.deltacommit")).read_text()
    assert '"recordsStats"' in text


def test_ordering_values_of_deletes(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "table"
    marked = {
        "hoodie__payload__delete__field": "op",
        "hoodie__payload__delete__marker": "d",
    }
    schema = SCHEMA + ", op string, _hoodie_is_deleted boolean"
    rows = [(f"k{i}", "p", 10, "base", "i", False) for i in range(8)]
    write(spark.createDataFrame(rows, schema).coalesce(1), str(path), merge_on_read("bulk_insert", **marked))
    rows = [
        ("k1", "p", 9, "late delete", "i", True),
        ("k2", "p", 11, "delete", "i", True),
        ("k3", "p", 11, "marked", "d", None),
        ("k4", "p", 11, "not quite", "D", False),
        ("nowhere", "p", 11, "delete", "d", True),
    ]
    result = write(spark.createDataFrame(rows, schema), str(path), merge_on_read("upsert", **marked))
    assert (result.num_updates, result.num_deletes, result.num_inserts) == (1, 3, 0)
    data, deletes = blocks(path)
    assert (data.type, deletes.type) == (BlockType.PARQUET_DATA, BlockType.DELETE)
    found = decode_deletes(deletes, pa.schema([("ts", pa.int64())])).to_pylist()
    assert [(row["_hoodie_record_key"], row["ts"]) for row in found] == [("k1", 9), ("k2", 11), ("k3", 11)]
    assert len(deletes.positions()) == 3
    assert [row[0] for row in rows_of(path)] == ["k0", "k1", "k4", "k5", "k6", "k7"]

    write(frame(spark, [("k0", "p", 0, ""), ("k4", "p", 0, "")]), str(path), merge_on_read("delete"))
    (hard,) = (block for block in blocks(path) if block.type is BlockType.DELETE and block.offset == 0)
    found = decode_deletes(hard, pa.schema([("ts", pa.int64())])).to_pylist()
    assert [(row["_hoodie_record_key"], row["_pyhudi_natural"]) for row in found] == [("k0", True), ("k4", True)]
    assert [row[0] for row in rows_of(path)] == ["k1", "k5", "k6", "k7"]


def test_commit_time_ordering(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "table")
    mode = {"hoodie__record__merge__mode": "COMMIT_TIME_ORDERING"}
    write(frame(spark, batch(0, 6, 10, "base", 1)), path, merge_on_read("insert", **mode))
    write(frame(spark, batch(0, 4, 1, "second", 1)), path, merge_on_read("upsert"))
    write(frame(spark, batch(0, 2, 0, "", 1)), path, merge_on_read("delete"))
    write(frame(spark, batch(1, 3, 0, "last", 1)), path, merge_on_read("upsert"))
    assert [(row[0], row[3]) for row in rows_of(path)] == [
        ("k001", "last"),
        ("k002", "last"),
        ("k003", "second"),
        ("k004", "base"),
        ("k005", "base"),
    ]


def test_inserts_fill_small_files(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "table"
    for rows in (batch(0, 40, 1, "large", 1), batch(40, 42, 1, "small", 1), batch(42, 60, 1, "middle", 1)):
        load(spark, path, rows)

    def groups() -> dict[str, tuple[int, int]]:
        slices = HudiTable.for_path(str(path)).inspect.file_slices().to_pylist()
        return {row["file_id"]: (row["base_size"] or 0, len(row["log_paths"] or ())) for row in slices}

    before = groups()
    smallest = min(before, key=lambda group: before[group][0])
    rows = [("k000", "p0", 2, "new"), ("k040", "p0", 2, "new"), ("x", "p0", 2, "new"), ("k050", "p0", 2, "new")]
    result = write(frame(spark, rows), str(path), merge_on_read("upsert"))
    after = groups()
    assert after.keys() == before.keys()
    assert after[smallest][1] == 0, "what goes with new records is merged"
    assert sorted(logs for _, logs in after.values()) == [0, 1, 1]
    assert (result.num_inserts, result.num_updates) == (1, 3)
    kinds = {stat["fileId"]: stat["logVersion"] for stat in stats_of(path, result)}
    assert kinds[smallest] is None

    # now only one has no logs; with none left, a new group is opened
    write(frame(spark, [("k040", "p0", 3, "third")]), str(path), merge_on_read("upsert"))
    write(frame(spark, [("y", "p0", 3, "third")]), str(path), merge_on_read("upsert"))
    assert len(groups()) == 4
    assert len(rows_of(path)) == 62


@pytest.mark.parametrize("version", [6, 9])
def test_rollover_of_parquet_blocks(spark: SparkSession, tmp_path: Path, version: int) -> None:
    path = tmp_path / "table"
    load(spark, path, batch(0, 300, 1, "base", 1), version)
    more = {
        "hoodie__logfile__data__block__format": "parquet",
        "hoodie__logfile__data__block__max__size": 4000,
        "hoodie__logfile__max__size": 6000,
    }
    result = write(frame(spark, batch(0, 300, 2, "new", 1)), str(path), merge_on_read("upsert", version, **more))
    assert {block.type for block in blocks(path)} == {BlockType.PARQUET_DATA}
    stats = stats_of(path, result)
    files = log_files(path)
    assert len(files) > 1
    assert sorted(stat["logVersion"] for stat in stats) == list(range(1, len(files) + 1))
    assert sum(stat["numWrites"] for stat in stats) == 300
    assert {row[3] for row in rows_of(path)} == {"new"}


_TEXT_ORDER = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.compact.inline": "false",
}


@pytest.mark.parametrize(
    ("ordering", "options", "block_type"),
    [
        seldom(("t", {}, BlockType.AVRO_DATA)),
        ("s.t", {}, BlockType.AVRO_DATA),
        ("n,t", {}, BlockType.AVRO_DATA),
        ("n", {}, BlockType.PARQUET_DATA),
        seldom(("t", {"hoodie.record.merge.mode": "COMMIT_TIME_ORDERING"}, BlockType.PARQUET_DATA)),
        ("t", {"hoodie.logfile.data.block.format": "parquet"}, BlockType.PARQUET_DATA),
    ],
)
def test_blocks_by_ordering_type(
    spark: SparkSession, tmp_path: Path, ordering: str, options: dict[str, str], block_type: BlockType
) -> None:
    """Apache Hudi merges Parquet blocks wrongly by texts; log compaction writes the same blocks."""
    opts = {**_TEXT_ORDER, "hoodie.datasource.write.precombine.field": ordering, **options}
    rows = spark.sql("SELECT id, 't' AS t, 1 AS n, struct('t' AS t) AS s FROM range(3)").coalesce(1)
    for _ in range(3):
        write(rows, str(tmp_path / "table"), opts)
    services = HudiTable.for_path(str(tmp_path / "table")).services
    assert services.log_compact({"hoodie.log.compaction.blocks.threshold": "1", **options}).instants
    assert {block.type for block in blocks(tmp_path / "table")} == {block_type}


def test_record_positions(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "table"
    load(spark, path, batch(0, 9, 1, "base", 1))
    more = {"hoodie__write__record__positions": "false"}
    write(frame(spark, batch(0, 2, 2, "new", 1)), str(path), merge_on_read("upsert", **more))
    (block,) = blocks(path)
    assert Header.RECORD_POSITIONS not in block.headers
    assert [row[3] for row in rows_of(path)][:3] == ["new", "new", "base"]


def test_refusals(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "table"
    load(spark, path, batch(0, 9, 1, "base", 1))
    write(frame(spark, batch(0, 2, 2, "new", 1)), str(path), merge_on_read("upsert"))
    before = sorted(str(p) for p in path.rglob("*"))
    hfile = merge_on_read("upsert", hoodie__logfile__data__block__format="hfile")
    with pytest.raises(ConfigError, match="cannot read such records"):
        write(frame(spark, batch(0, 2, 3, "x", 1)), str(path), hfile)
    assert sorted(str(p) for p in path.rglob("*")) == before
    older = {"hoodie.write.table.version": "6", "hoodie.datasource.write.table.type": "MERGE_ON_READ"}
    keyed = {"hoodie.table.name": "t", "hoodie.datasource.write.recordkey.field": "id", **older}
    table = HudiTable.create(str(tmp_path / "older"), keyed)
    rows = spark.createDataFrame([(1, "value")], "id int, key string")
    with pytest.raises(ConfigError, match="the values of the column 'key' would be lost"):
        table.upsert(rows, {"hoodie.logfile.data.block.format": "hfile"})


@pytest.mark.parametrize("moves", ["true", seldom("false")])
def test_global_index(spark: SparkSession, tmp_path: Path, moves: str) -> None:
    path = tmp_path / "table"
    load(spark, path, [(f"k{i}", "p", 10, "base") for i in range(6)])
    write(frame(spark, [("k1", "p", 50, "log"), ("k2", "p", 5, "late")]), str(path), merge_on_read("upsert"))
    write(frame(spark, [("k3", "p", 0, ""), ("k4", "p", 0, "")]), str(path), merge_on_read("delete"))
    index = {
        "hoodie__index__type": "GLOBAL_SIMPLE",
        "hoodie__simple__index__update__partition__path": moves,
    }
    rows = [
        ("k0", "q", 20, "moves"),
        ("k1", "q", 20, "loses to the log"),
        ("k2", "q", 7, "loses to the base"),
        ("k3", "q", 1, "was deleted"),
        ("k5", "p", 11, "stays"),
        ("k9", "q", 1, "new"),
    ]
    write(frame(spark, rows), str(path), merge_on_read("upsert", **index))
    there = "q" if moves == "true" else "p"
    assert rows_of(path) == [
        ("k0", there, 20, "moves"),
        ("k1", "p", 50, "log"),
        ("k2", "p", 10, "base"),
        ("k3", "q", 1, "was deleted"),
        ("k5", "p", 11, "stays"),
        ("k9", "q", 1, "new"),
    ]
    # once more, on what the first one left
    again = [(key, "r", 99, "again") for key in ("k0", "k1", "k3", "k4")]
    write(frame(spark, again), str(path), merge_on_read("upsert", **index))
    found = {row[0]: row[1] for row in rows_of(path)}
    assert len(rows_of(path)) == len(found) == 7
    expected = {"k0": there, "k1": "p", "k3": "q", "k4": "r"} if moves == "false" else dict.fromkeys(found, "r")
    assert {key: found[key] for key in ("k0", "k1", "k3", "k4")} == {
        key: expected[key] for key in ("k0", "k1", "k3", "k4")
    }


def test_duplicates(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "table"
    load(spark, path, batch(0, 4, 10, "base", 1))
    write(frame(spark, batch(0, 2, 0, "", 1)), str(path), merge_on_read("delete"))
    drop = merge_on_read("insert", hoodie__datasource__insert__dup__policy="drop")
    write(frame(spark, batch(1, 3, 20, "inserted", 1)), str(path), drop)
    assert [(row[0], row[3]) for row in rows_of(path)] == [("k001", "inserted"), ("k002", "base"), ("k003", "base")]


@pytest.mark.parametrize("version", [6, seldom(9)])
def test_keys_in_log_files_alone(spark: SparkSession, tmp_path: Path, version: int) -> None:
    """As with an index that finds keys in log files: there are slices without base files, and new records in logs."""
    schema = pa.schema([("id", pa.string()), ("part", pa.string()), ("ts", pa.int64()), ("v", pa.string())])
    properties = {
        "hoodie.table.type": "MERGE_ON_READ",
    }
    if version == 6:
        properties |= {"hoodie.compaction.payload.class": _EVENT_TIME, "hoodie.table.precombine.field": "ts"}
    else:
        properties |= {"hoodie.record.merge.mode": "EVENT_TIME_ORDERING", "hoodie.table.ordering.fields": "ts"}
    table = HandMadeTable(tmp_path / "t", version, "part", schema=schema, properties=properties)

    def row(key: str, ts: int, v: str) -> dict[str, Any]:
        return {"id": key, "part": "p", "ts": ts, "v": v}

    table.write(10, {("p", "f1-0"): [row("a", 1, "base")]}, action=Action.DELTA_COMMIT)
    table.log(20, {("p", "f1-0"): [row("b", 1, "log of f1")]}, base=10)
    table.log(30, {("p", "f2-0"): [row("c", 1, "log alone"), row("d", 5, "log alone")]}, base=30)
    path = str(table.root)
    rows = [
        ("a", "p", 2, "new"),
        ("b", "p", 2, "new"),
        ("c", "p", 2, "new"),
        ("d", "p", 2, "late"),
        ("e", "p", 2, "new"),
    ]
    result = write(frame(spark, rows), path, {"hoodie.datasource.write.operation": "upsert"})
    assert rows_of(path) == [*rows[:3], ("d", "p", 5, "log alone"), rows[4]]
    assert (result.num_updates, result.num_inserts) == (4, 1)
    write(frame(spark, [("b", "p", 0, ""), ("c", "p", 0, "")]), path, {"hoodie.datasource.write.operation": "delete"})
    assert [row[0] for row in rows_of(path)] == ["a", "d", "e"]


@pytest.mark.parametrize("data_format", ["avro", "parquet"])
def test_partial_updates(spark: SparkSession, tmp_path: Path, data_format: str) -> None:
    path = tmp_path / "table"
    load(spark, path, batch(0, 4, 10, "base", 1))
    schema = pa.schema([("id", pa.string()), ("part", pa.string()), ("ts", pa.int64())])
    partial = {
        "hoodie__write__partial__update__schema": to_avro(schema, "t"),
        "hoodie__logfile__data__block__format": data_format,
    }
    rows = [("k000", "p0", 11), ("k001", "p0", 9), ("k009", "p0", 5)]
    some = spark.createDataFrame(rows, "id string, part string, ts long")
    write(some, str(path), merge_on_read("upsert", **partial))
    (block,) = blocks(path)
    assert block.is_partial
    assert "v" not in decode_records(block).column_names
    assert [(row[0], row[2], row[3]) for row in rows_of(path)] == [
        ("k000", 11, "base"),
        ("k001", 10, "base"),
        ("k002", 10, "base"),
        ("k003", 10, "base"),
        ("k009", 5, None),
    ]
    write(frame(spark, [("k000", "p0", 12, "whole")]), str(path), merge_on_read("upsert"))
    assert rows_of(path)[0] == ("k000", "p0", 12, "whole")
    before = sorted(str(p) for p in path.rglob("*"))
    with pytest.raises(SchemaMismatchError, match="differ in the columns v"):
        write(frame(spark, batch(0, 1, 20, "", 1)), str(path), merge_on_read("upsert", **partial))
    with pytest.raises(ConfigError, match="require an upsert"):
        write(
            spark.createDataFrame(rows, "id string, part string, ts long"),
            str(path),
            merge_on_read("insert", **partial),
        )
    few = pa.schema([("id", pa.string()), ("part", pa.string())])
    with pytest.raises(ConfigError, match="lacks the ordering column ts"):
        write(
            some.select("id", "part"),
            str(path),
            merge_on_read("upsert", hoodie__write__partial__update__schema=to_avro(few, "t")),
        )
    assert sorted(str(p) for p in path.rglob("*")) == before


@pytest.mark.parametrize("version", [seldom(6), seldom(9)])
def test_reinserts_beside_a_compaction(spark: SparkSession, tmp_path: Path, version: int) -> None:
    path, model = str(tmp_path / "table"), Model()
    rows = batch(0, 12, 10, "bulk")
    model.upsert(rows)
    load(spark, path, rows, version)

    def step(operation: str, rows: list[Row]) -> None:
        (model.delete if operation == "delete" else model.upsert)(rows)
        write(frame(spark, rows), path, merge_on_read(operation, version))
        assert rows_of(path) == model.rows, operation

    step("delete", batch(0, 6, 0, ""))
    services = HudiTable.for_path(path).services
    assert services.schedule_compaction().instant is not None
    # the keys are in the base files that the compaction is going to replace, and not in those that it makes
    step("upsert", batch(0, 3, 20, "again"))
    assert services.run_compaction(spark=spark)
    assert rows_of(path) == model.rows
    step("upsert", batch(0, 5, 30, "twice"))
    step("delete", batch(1, 2, 0, ""))
    step("upsert", batch(1, 2, 40, "thrice"))
    assert services.compact(spark=spark)
    assert rows_of(path) == model.rows
    step("upsert", batch(0, 12, 50, "all"))


@pytest.mark.parametrize("index", [seldom("SIMPLE"), "BLOOM"])
def test_reinserted_keys(spark: SparkSession, tmp_path: Path, index: str) -> None:
    """It is in two base files then, of which a log file has emptied the first. Whatever comes goes to the second."""
    path = str(tmp_path / "table")
    rest = {"hoodie__index__type": index, "hoodie__parquet__small__file__limit": 0}
    step = Steps(spark, path, lambda operation: merge_on_read(operation, **rest))
    step("upsert", [*batch(0, 4, 1, "first", 1), *batch(0, 2, 1, "elsewhere", 2)])
    step("upsert", [("k003", "p0", 2, "second")])
    step("delete", [("k000", "p0", 0, ""), ("k001", "p0", 0, ""), ("k003", "p0", 0, "")])
    step("insert", [("k000", "p0", 5, "inserted"), ("k003", "p0", 5, "inserted")])
    step("upsert", [("k000", "p0", 6, "again"), ("k001", "p0", 6, "again"), ("k002", "p0", 6, "again")])
    step("delete", [("k000", "p0", 0, ""), ("k002", "p0", 0, "")])
    step("upsert", [("k000", "p0", 9, "third"), ("k003", "p0", 7, "third"), ("k009", "p0", 1, "new")])
    step("insert", [("k002", "p0", 1, "third")])
    HudiTable.for_path(path).services.compact()
    assert rows_of(path) == step.model.rows


def test_empty_nested_lists(spark: SparkSession, tmp_path: Path) -> None:
    """Arrow has no offsets of the inner ones, if Spark 3.5 writes it, and crashed where it measured them."""
    options = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    }
    table = HudiTable.create(str(tmp_path / "t"), options)
    lists = "l array<array<string>>, m map<string,array<array<string>>>, s array<struct<q:map<string,int>>>"
    for v in range(3):
        table.upsert(
            spark.createDataFrame([(1, v, [], {"k": []}, None), (2, v, None, {}, [])], f"id int, v int, {lists}")
        )
    table.update({"v": "v + 1"})
    found = table.scan(columns=["id", "v", "l", "m", "s"]).to_arrow().to_pylist()
    assert sorted(found, key=lambda row: row["id"]) == [
        {"id": 1, "v": 3, "l": [], "m": [("k", [])], "s": None},
        {"id": 2, "v": 3, "l": None, "m": [], "s": []},
    ]
