"""Record positions in the log blocks that statements write to merge-on-read tables."""

from __future__ import annotations

import pyarrow as pa
import pytest

from pyhudi import HudiTable
from pyhudi.spark.dml import update as update_module
from pyhudi.spark.write.dataframe_writer import write_changes
from pyhudi.spark.write.row_change_locations import positions_are_current
from tests.cases import seldom
from tests.spark.dml.ride_tables import TABLES, frame
from tests.spark.write.log_files import blocks

ONE_GROUP = {**TABLES["mor"], "hoodie.datasource.write.partitionpath.field": ""}
BY_KEY = {"hoodie.merge.use.record.positions": "false"}
ROWS = [(i, "Oslo", i * 10, (i, "x")) for i in range(12)]


def _fares(table: HudiTable, options: dict[str, str] | None = None) -> dict[int, int]:
    found = HudiTable.for_path(table.path, options).scan(columns=["id", "fare"]).to_arrow().to_pylist()
    assert len({row["id"] for row in found}) == len(found)
    return {row["id"]: row["fare"] for row in found}


def _positions(path) -> list[list[int] | None]:
    """The positions of each block; None: it has none."""
    found = [block.positions() for block in blocks(path)]
    return [None if positions is None else positions.tolist() for positions in found]


def _made(spark, path, **options: str) -> HudiTable:
    table = HudiTable.create(str(path), {**ONE_GROUP, **options})
    table.bulk_insert(frame(spark, *ROWS).coalesce(1))
    return table


@pytest.mark.parametrize("cached", [True, seldom(False)], ids=["merged-files", "merged-in-tasks"])
@pytest.mark.parametrize("ordering", ["", seldom("fare")], ids=["commit-time", "event-time"])
def test_statements_record_positions(spark, tmp_path, cached, ordering):
    """Also of rows that earlier log files have changed, so that each reader finds all base rows by position."""
    more = {"hoodie.datasource.write.precombine.field": ordering} if ordering else {}
    table = _made(spark, tmp_path / "t", **more)
    if not cached:
        table = HudiTable.for_path(table.path, {"pyhudi.read.log.cache.max.log.bytes": "0"})
    assert table.update({"fare": "fare + 1"}, "fare % 20 = 0").rows_updated == 6
    assert table.update({"fare": "fare + 5"}, "note.a >= 9").rows_updated == 3
    assert table.delete("note.a in (2, 11)").rows_deleted == 2
    source = frame(spark, (3, "Oslo", 33, None), (4, "Oslo", 0, None))
    merge = table.merge(source.alias("s"), "target.id = s.id")
    merge.when_matched_delete("s.fare = 0").when_matched_update({"fare": "s.fare"}).execute()
    assert _positions(tmp_path / "t") == [[0, 2, 4, 6, 8, 10], [9, 10, 11], [2, 11], [3], [4]]
    expected = {0: 1, 1: 10, 3: 33, 5: 50, 6: 61, 7: 70, 8: 81, 9: 95, 10: 106}
    assert _fares(table) == _fares(table, BY_KEY) == expected
    on_spark = table.scan(columns=["id", "fare"]).to_spark(spark).collect()
    assert dict(map(tuple, on_spark)) == expected


def test_rows_that_only_log_files_have(spark, tmp_path):
    """They have no position, so their block has none; one of a later statement without them has."""
    table = _made(spark, tmp_path / "t", **{"hoodie.index.type": "SIMPLE"})
    table.upsert(frame(spark, (20, "Oslo", 200, None)), {"hoodie.parquet.small.file.limit": "0"})
    table.update({"fare": "-1"}, "fare = 0 or fare = 200")
    table.update({"fare": "-2"}, "fare = 10")
    assert _fares(table)[0] == _fares(table)[20] == -1
    assert _fares(table) == _fares(table, BY_KEY)


def test_a_table_without_positions_gets_none(spark, tmp_path):
    table = HudiTable.for_path(_made(spark, tmp_path / "t").path, {"hoodie.write.record.positions": "false"})
    table.update({"fare": "-1"}, "fare = 0")
    assert _positions(tmp_path / "t") == [None]
    assert _fares(table)[0] == -1


def test_positions_in_a_file_that_is_compacted_meanwhile(spark, tmp_path, monkeypatch):
    """They would name other rows of the new base file, since the compaction leaves out deleted ones."""
    table = _made(spark, tmp_path / "t")
    table.delete("fare = 0")

    def after_compaction(*args, **kwargs):
        monkeypatch.setattr(update_module, "write_changes", write_changes)
        assert table.services.compact().instants
        return write_changes(*args, **kwargs)

    monkeypatch.setattr(update_module, "write_changes", after_compaction)
    assert table.update({"fare": "-1"}, "fare = 50").rows_updated == 1
    assert _positions(tmp_path / "t") == [[0], None]
    expected = {row[0]: -1 if row[2] == 50 else row[2] for row in ROWS[1:]}
    assert _fares(table) == _fares(table, BY_KEY) == expected


def test_positions_are_of_current_base_files():
    def groups(**bases: str | None) -> pa.Table:
        columns = {"partition": ["p"] * len(bases), "file_id": list(bases), "base_path": list(bases.values())}
        kinds = pa.schema([(name, pa.string()) for name in columns])
        return pa.table(columns, schema=kinds)

    assert positions_are_current(groups(), groups(a="p/1"))
    assert positions_are_current(groups(a="p/1", b=None), groups(b="p/2", a="p/1"))
    assert not positions_are_current(groups(a="p/1"), groups(a="p/2"))
    assert not positions_are_current(groups(a="p/1"), groups(b="p/1"))
    assert not positions_are_current(groups(a="p/1"), groups(a=None))
