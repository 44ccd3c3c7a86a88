"""Statements that change partition columns or keys."""

from __future__ import annotations

import pytest

from pyhudi import HudiTable
from pyhudi.errors import RecordKeyError, UnsupportedTableError
from tests.cases import seldom
from tests.spark.dml.ride_tables import FIRST, KEYED, TABLES, frame, rows


@pytest.mark.parametrize("kind", ["cow", seldom("mor"), seldom("bucket"), seldom("virtual-keys")])
def test_rows_do_not_move_to_where_their_key_is(spark, tmp_path, kind):
    table = HudiTable.create(str(tmp_path / "t"), TABLES[kind])
    stored = [(1, "Moss", 2, None), (1, "Oslo", 1, None), (2, "Moss", 3, None), (3, "Oslo", 4, None)]
    table.bulk_insert(frame(spark, *stored))
    with pytest.raises(RecordKeyError, match="the key '1' cannot move to the partition 'Moss'"):
        table.update({"city": "'Moss'"}, "city = 'Oslo'")
    with pytest.raises(RecordKeyError, match=r"'1' cannot move to the partition 'Bodø'.*gets another one"):
        table.update({"city": "'Bodø'"})
    source = frame(spark, (1, "Moss", 9, None), (5, "Moss", 9, None)).alias("s")
    merge = table.merge(source, "target.id = s.id").when_matched_update_all().when_not_matched_insert_all()
    with pytest.raises(RecordKeyError, match="the key '1' cannot move to the partition 'Moss'"):
        merge.execute()
    other = frame(spark, (3, "Moss", 9, None)).selectExpr("id AS old", "30 AS id", "city", "fare", "note").alias("s")
    with pytest.raises(RecordKeyError, match="'3' cannot be changed to '30'"):
        table.merge(other, "target.id = s.old").when_matched_update_all().execute()
    assert rows(table) == stored
    assert len(table.history()) == 1
    table.update({"city": "'Moss'"}, "id = 3")
    assert rows(table) == [*stored[:3], (3, "Moss", 4, None)]


SWAP = {"city": "CASE city WHEN 'Moss' THEN 'Oslo' WHEN 'Oslo' THEN 'Moss' ELSE city END"}


@pytest.mark.parametrize("kind", ["cow", seldom("partitioned-index")])
def test_rows_swap_partitions(spark, tmp_path, kind):
    table = HudiTable.create(str(tmp_path / "t"), TABLES[kind])
    # the rows that move have lower ordering values than those whose places they take
    stored = [(1, "Bodø", 5, None), (1, "Moss", 9, (1, "x")), (1, "Oslo", 1, None), (2, "Oslo", 3, None)]
    table.bulk_insert(frame(spark, *stored))
    done = table.update(SWAP, "id = 1")
    assert (done.rows_matched, done.rows_updated, len(table.history())) == (3, 3, 2)
    swapped = [stored[0], (1, "Moss", 1, None), (1, "Oslo", 9, (1, "x")), stored[3]]
    assert rows(table) == swapped
    assert table.validate_metadata().num_rows == 0
    # later writes find the records where they are
    table.upsert(frame(spark, (1, "Moss", 10, None), (2, "Oslo", 11, None)))
    swapped = [stored[0], (1, "Moss", 10, None), swapped[2], (2, "Oslo", 11, None)]
    assert rows(table) == swapped
    # a row that is deleted makes room, one that stays does not
    table.merge(
        frame(spark, (1, "Moss"), (1, "Oslo"), columns="id int, city string").alias("s"),
        "target.id = s.id AND target.city = s.city",
    ).when_matched_delete("s.city = 'Moss'").when_matched_update({"city": "'Moss'"}).execute()
    assert rows(table) == [stored[0], (1, "Moss", 9, (1, "x")), (2, "Oslo", 11, None)]
    with pytest.raises(RecordKeyError, match="'1' cannot move to the partition 'Moss'"):
        table.update({"city": "IF(city = 'Moss', 'Moss', 'Moss')"}, "id = 1")


@pytest.mark.parametrize("kind", ["bucket", seldom("virtual-keys"), seldom("mor")])
def test_rows_without_file_groups_do_not_swap_partitions(spark, tmp_path, kind):
    table = HudiTable.create(str(tmp_path / "t"), TABLES[kind])
    stored = [(1, "Moss", 9, None), (1, "Oslo", 1, None)]
    table.bulk_insert(frame(spark, *stored))
    with pytest.raises(UnsupportedTableError, match="swap partitions"):
        table.update(SWAP)
    assert rows(table) == stored


def test_a_delete_by_new_values_makes_no_room(spark, tmp_path):
    """It may lose against the stored record, where ordering values count."""
    columns = "id int, city string, fare int, _hoodie_is_deleted boolean"
    table = HudiTable.create(str(tmp_path / "t"), TABLES["cow"])
    table.bulk_insert(frame(spark, (1, "Moss", 9, False), (1, "Oslo", 9, False), columns=columns))
    with pytest.raises(RecordKeyError, match="'1' cannot move to the partition 'Moss'"):
        table.update({"_hoodie_is_deleted": "city = 'Moss'", "fare": "fare - 1", "city": "'Moss'"})
    assert table.scan().to_arrow().num_rows == 2


def test_one_of_two_key_columns_is_assigned_its_own_value(spark, tmp_path):
    keys = {"hoodie.datasource.write.recordkey.field": "id,city", "hoodie.datasource.write.partitionpath.field": ""}
    table = HudiTable.create(str(tmp_path / "t"), {**KEYED, **keys})
    table.bulk_insert(frame(spark, *FIRST))
    source = frame(spark, (1, "Oslo", 11), columns="id int, city string, fare bigint")
    merge = table.merge(source.alias("s"), "target.id = s.id AND target.city = s.city")
    merge.when_matched_update({"id": "s.id", "fare": "s.fare"}).execute()
    assert rows(table) == [(1, "Oslo", 11, (1, "x")), *FIRST[1:]]
