"""MERGE: the pairs of rows, and what is left of the source."""

from __future__ import annotations

import pytest
from pyspark.sql import functions as F  # noqa: N812

from pyhudi import HudiTable
from pyhudi.errors import AmbiguousMergeError, QueryError, RecordKeyError
from pyhudi.spark.dml.merge import clause_evaluation, merge_pairs
from pyhudi.spark.dml.merge import merge_builder as merge_module
from pyhudi.spark.dml.target_snapshot import TargetSnapshot
from pyhudi.spark.session_settings import session_setting
from tests.cases import seldom
from tests.spark.dml.ride_tables import COLUMNS, FIRST, KEYED, TABLES, frame, made, rows

BY_KEY = "target.city = s.city AND (target.id = s.id)"
BY_EVENT_TIME = {**TABLES["mor"], "hoodie.datasource.write.precombine.field": "fare"}
REWRITTEN_BY_EVENT_TIME = {**KEYED, "hoodie.datasource.write.precombine.field": "fare"}
OTHERS = ("cow", "mor", "v6-mor", "virtual-keys", "record-index", "bucket")


WHOLE = {"id": "s.id", "city": "s.city", "fare": "s.FARE", "note": "s.note"}


@pytest.mark.parametrize("kind", ["event-time", *map(seldom, OTHERS)])
def test_a_merge_by_key_is_an_upsert(spark, tmp_path, monkeypatch, kind):
    """The same rows and counts as by the join, which a condition on stored rows requires."""
    source = frame(spark, (1, "Oslo", 9, None), (2, "Oslo", 99, None), (3, "Moss", 7, (3, "y")), (5, "Oslo", 5, None))
    source = source.selectExpr("note", "cast(fare as int) as FARE", "city", "id").alias("s")
    found = []
    ways = ("joined", "target.id > 0", None), ("upserted", None, None), ("assigned", None, WHOLE)
    for name, condition, values in ways:
        table = HudiTable.create(str(tmp_path / name), {**TABLES, "event-time": BY_EVENT_TIME}[kind])
        table.bulk_insert(frame(spark, *FIRST))
        if condition is None and kind not in ("record-index", "bucket"):
            monkeypatch.setattr(merge_module, "count_changes", None)
        merge = table.merge(source, BY_KEY)
        if values is None:
            merge = merge.when_matched_update_all(condition).when_not_matched_insert_all()
        else:
            updated = {"target.FARE": "s.fare", "note": "s.note"}
            merge = merge.when_matched_update(updated).when_not_matched_insert(values)
        done = merge.execute()
        found.append((rows(table), done.rows_matched, done.rows_updated, done.rows_inserted, done.rows_deleted))
    assert found[0] == found[1] == found[2]
    assert found[0][1:] == (2, 2, 2, 0)
    assert found[0][0][0][2] == (10 if kind == "event-time" else 9)


CHANGES = [
    (1, "Oslo", 9, None, "U"),
    (2, "Oslo", 1, None, "D"),  # also less than the stored ordering value
    (3, "Moss", 7, (3, "y"), "I"),
    (4, "Oslo", 5, None, "D"),  # the table has no such row
    (4, "Moss", 50, None, None),  # no condition on op is true
    (7, "Moss", 70, None, "X"),  # no clause applies
    (None, "Moss", 1, None, "D"),
]
NO_KEY = tuple(row for row in CHANGES if row[0] is not None)


def _applied(merge, condition):
    deleted = merge.when_matched_delete("s.op = 'D'")
    updated = deleted.when_matched_update_all(condition + "s.op in ('I', 'U') or s.op is null")
    return updated.when_not_matched_insert_all("s.op in ('I', 'U')")


def _replayed(merge, condition):
    """Apply changes as Debezium has them: by two kinds of updates, whose values are listed."""
    whole = {"fare": "s.fare", "note": "s.note"}
    merge = merge.when_matched_update(whole, condition + "s.op = 'U'").when_matched_delete("op = 'D'")
    merge = merge.when_matched_update(whole, condition + "s.op <> 'X'")
    return merge.when_not_matched_insert(WHOLE, "op <> 'D' and s.op <> 'X'")


def _unconditional(merge, condition):
    merge = merge.when_matched_delete(condition + "s.op = 'D'").when_matched_update_all()
    return merge.when_not_matched_insert_all()


CLAUSES = {
    "apply": _applied,
    "replay": _replayed,
    "delete or insert": _unconditional,
    "update": lambda merge, condition: merge.when_matched_update_all(condition + "s.op <> 'D'"),
    "delete": lambda merge, condition: merge.when_matched_delete(condition + "true"),
    "insert": lambda merge, _: merge.when_not_matched_insert_all("op = 'I' or s.fare = 5"),
}
COUNTED = {**TABLES["cow"], "pyhudi.index.task.rows": "0"}
JOINED = ("record-index",)  # a global index finds records in other partitions
CONDITIONAL_JOINED = ("cow-event-time", "mor-event-time", "v6-mor")
OTHER_KINDS = ("cow-event-time", "mor-event-time", "mor", "v6-mor", "counted", "record-index", "virtual-keys")


@pytest.mark.parametrize("kind", ["cow", *map(seldom, OTHER_KINDS)])
def test_change_data_is_upserted(spark, tmp_path, monkeypatch, kind):
    """Clauses with conditions on the source give the same rows and counts as the join, in one write."""
    joins, found = [], {}
    planned = merge_module.planned_join
    monkeypatch.setattr(merge_module, "planned_join", lambda *args: joins.append(1) or planned(*args))
    for name, condition in (("joined", "target.id > 0 and "), ("upserted", "")):
        by_event_time = {"cow-event-time": REWRITTEN_BY_EVENT_TIME, "mor-event-time": BY_EVENT_TIME}
        tables = {**TABLES, **by_event_time, "counted": COUNTED}
        table = HudiTable.create(str(tmp_path / name), tables[kind])
        for clauses in CLAUSES.values():
            if kind == "record-index" and clauses is _unconditional:
                continue  # refused: it updates one row of the key 4, and inserts another
            table.insert_overwrite_table(frame(spark, *FIRST))
            joins.clear()
            given = NO_KEY if clauses in (CLAUSES["insert"], _unconditional) else CHANGES
            source = frame(spark, *given, columns=COLUMNS + ", op string").alias("s")
            done = clauses(table.merge(source, BY_KEY), condition).execute()
            counts = (done.rows_matched, done.rows_updated, done.rows_inserted, done.rows_deleted)
            found.setdefault(clauses, []).append((rows(table), counts))
            has_condition = name == "joined" and clauses is not CLAUSES["insert"]
            may_join = JOINED if clauses is CLAUSES["delete"] else (*JOINED, *CONDITIONAL_JOINED)
            assert bool(joins) == has_condition or kind in may_join
        assert table.validate_metadata().num_rows == 0
    for clauses, (joined, upserted) in found.items():
        assert joined == upserted, clauses
    assert found[CLAUSES["apply"]][0][1] == (3, 2, 1, 1)


def test_deletes_and_failing_conditions_that_need_the_join(spark, tmp_path):
    """A delete with only the key's part of the ordering value would lose, and in ANSI mode a condition fails on a row
    without a match."""
    by_fare_and_id = {**KEYED, "hoodie.datasource.write.precombine.field": "fare,id"}
    table = HudiTable.create(str(tmp_path / "t"), by_fare_and_id)
    table.bulk_insert(frame(spark, *FIRST))
    source = frame(spark, (1, "Oslo", 12, None), (2, "Oslo", 1, None), (5, "Oslo", 5, None)).alias("s")
    assert table.merge(source, BY_KEY).when_matched_delete("s.fare < 5").execute().rows_deleted == 1
    assert rows(table) == [FIRST[0], *FIRST[2:]]
    with session_setting(spark, "spark.sql.ansi.enabled", "true"):
        done = table.merge(source, BY_KEY).when_matched_update_all("10 / (s.id - 5) < 0").execute()
    assert (done.rows_updated, rows(table)[0]) == (1, (1, "Oslo", 12, None))


@pytest.mark.parametrize(
    ("on", "updated", "inserted", "upserted"),
    [
        (BY_KEY, None, WHOLE, True),
        (
            BY_KEY,
            {"fare": "round(s.fare, 1)", "note": "null"},
            {**WHOLE, "fare": "round(s.fare, 1)", "note": "null"},
            True,
        ),
        (
            "target.city = s.city AND target.id = s.number",
            {"fare": "s.fare", "note": "s.note"},
            {**WHOLE, "id": "s.number"},
            True,
        ),
        ("target.city = s.city AND target.id = s.number", None, None, False),  # the values of id are others
        ("target.city = s.city AND target.id = s.number", {"fare": "s.fare", "note": "s.note"}, WHOLE, False),
        (BY_KEY, {"fare": "s.fare"}, WHOLE, False),  # note keeps its values
        (BY_KEY, {"fare": "s.fare", "note": "s.note"}, {**WHOLE, "fare": "0"}, False),
        (BY_KEY, {"fare": "target.fare", "note": "s.note"}, WHOLE, False),
        (BY_KEY, {"fare": "s.fare", "note.b": "s.note.b"}, WHOLE, False),
        (
            BY_KEY,
            {"fare": "identifier('target.fare')", "note": "s.note"},
            {**WHOLE, "fare": "identifier('target.fare')"},
            False,
        ),
        (BY_KEY + " AND s.number > 1", None, None, False),
    ],
)
def test_merges_that_are_upserts(spark, keyed_table, on, updated, inserted, upserted):
    source = frame(spark, (1, "Oslo", 9, None)).selectExpr("*", "id + 1 as number").alias("s")
    merge = keyed_table.merge(source, on)
    merge = merge.when_matched_update_all() if updated is None else merge.when_matched_update(updated)
    merge = merge.when_not_matched_insert_all() if inserted is None else merge.when_not_matched_insert(inserted)
    pinned = TargetSnapshot.pin(spark, merge.path, merge.opts)
    assert (merge_module.upserted_rows(merge, pinned) is not None) == upserted


@pytest.fixture(scope="module")
def keyed_table(spark, tmp_path_factory):
    return made(spark, tmp_path_factory.mktemp("keyed") / "t", "cow")


def test_pairs_and_what_is_left_of_the_source(spark, tmp_path):
    """Rows that match by no key, several source rows of a row, source rows without any, and clauses that take none."""
    table = made(spark, tmp_path / "t", "cow")
    given = (1, "Oslo", 100, None), (2, "Oslo", 7, None), (None, "Moss", 9, None), (8, "Moss", 4, None)
    merge = table.merge(frame(spark, *given).alias("s"), "target.id = s.id")
    inserted = {"id": "coalesce(s.id, 90)", "city": "s.city", "fare": "s.fare"}
    done = (
        merge.when_matched_delete("s.fare < target.fare - 50")
        .when_matched_update({"fare": "target.fare + s.fare"}, "s.fare >= 100")
        .when_not_matched_insert(inserted, "s.fare > 4")
        .execute()
    )
    # id 2 matches, so that it is not inserted, though no clause takes it
    assert (done.rows_updated, done.rows_inserted, done.rows_deleted) == (1, 1, 0)
    assert rows(table) == [(1, "Oslo", 110, (1, "x")), *FIRST[1:], (90, "Moss", 9, None)]
    # of a row that two pairs delete one is deleted; another join than by equal values
    twice = frame(spark, (5, "x", 30, None), (6, "x", 30, None)).alias("s")
    done = table.merge(twice, "target.fare >= s.fare and target.id < 5").when_matched_delete().execute()
    assert (done.rows_matched, done.rows_deleted) == (3, 3)
    assert [row[0] for row in rows(table)] == [2, 90]
    with pytest.raises(AmbiguousMergeError, match=r"^2 rows of the table .* record key '90'"):
        table.merge(twice, "target.fare < s.fare").when_matched_update({"fare": "s.fare"}).execute()
    # only new rows; one of them twice
    new = frame(spark, (2, "Oslo", 1, None), (3, "Oslo", 1, None), (3, "Oslo", 1, None)).alias("s")
    done = table.merge(new, "target.id = s.id").when_not_matched_insert_all().execute()
    assert done.rows_matched == 0
    assert [row[0] for row in rows(table)] == [2, 3, 90]
    nothing = frame(spark, (4, "Oslo", 1, None)).where("false").alias("s")
    done = table.merge(nothing, "target.id = s.id").when_not_matched_insert_all().execute()
    assert (done.rows_matched, done.rows_inserted) == (0, 0)
    assert table.validate_metadata().num_rows == 0


@pytest.mark.parametrize("kind", ["cow", seldom("event-time"), seldom("record-index")])
def test_new_rows_with_a_key_of_the_table_have_all_their_columns(spark, tmp_path, kind):
    """The condition does not find them, as it is about more than the key, or about another column."""
    ordering = {**KEYED, "hoodie.datasource.write.precombine.field": "fare"}
    table = HudiTable.create(str(tmp_path / "t"), {**TABLES, "event-time": ordering}[kind])
    table.bulk_insert(frame(spark, *FIRST))
    source = frame(spark, (1, "Oslo", 100, (7, "new"))).alias("s")
    table.merge(source, "target.id = s.id and target.fare > 50").when_not_matched_insert_all().execute()
    assert rows(table) == [(1, "Oslo", 100, (7, "new")), *FIRST[1:]]
    source = frame(spark, (2, "Oslo", 200, (8, "newer"))).alias("s")
    merge = table.merge(source, "target.fare = s.fare").when_matched_update({"fare": "s.fare"})
    merge.when_not_matched_insert_all().execute()
    assert rows(table) == [(1, "Oslo", 100, (7, "new")), (2, "Oslo", 200, (8, "newer")), *FIRST[2:]]


@pytest.mark.parametrize("kind", ["cow", *map(seldom, ("mor", "record-index", "bucket", "virtual-keys"))])
def test_a_new_row_with_the_key_of_an_updated_one_is_refused(spark, tmp_path, kind):
    """As in a table of versions of rows whose key is not that of a version: one of the two would be lost."""
    table = made(spark, tmp_path / "t", kind)
    source = frame(spark, (1, "Oslo", 10, None), (1, "Oslo", 11, None), (9, "Moss", 90, None)).alias("s")
    merge = table.merge(source, "target.fare = s.fare").when_matched_update({"note": "null"})
    with pytest.raises(RecordKeyError, match=r"record key '1', and inserts another one"):
        merge.when_not_matched_insert_all().execute()
    assert rows(table) == FIRST
    other = frame(spark, (1, "Oslo", 10, None), (1, "Moss", 11, None)).alias("s")
    if kind in ("cow", "mor"):  # the partition belongs to the key
        merge = table.merge(other, "target.fare = s.fare").when_matched_update({"note": "null"})
        done = merge.when_not_matched_insert_all().execute()
        assert (done.rows_updated, done.rows_inserted) == (1, 1)
        assert rows(table)[:2] == [(1, "Moss", 11, None), (1, "Oslo", 10, None)]


@pytest.mark.parametrize("kind", ["event-time-mor", *map(seldom, OTHERS)])
def test_a_new_row_replaces_a_deleted_one_of_its_key(spark, tmp_path, kind):
    """As when a table becomes equal to a source that is compared by another column than the record key."""
    table = HudiTable.create(str(tmp_path / "t"), {**TABLES, "event-time-mor": BY_EVENT_TIME}[kind])
    table.bulk_insert(frame(spark, *FIRST))
    given = (1, "Oslo", 15, (7, "new")), (2, "Oslo", 20, (8, "same")), (4, "Bergen", 40, None), (5, "Oslo", 50, None)
    merge = table.merge(frame(spark, *given).alias("s"), "target.fare = s.fare and target.city = s.city")
    done = merge.when_not_matched_by_source_delete().when_not_matched_insert_all().execute()
    assert (done.rows_updated, done.rows_inserted, done.rows_deleted) == (0, 3, 3)
    moved = (4, "Moss", 40, None) if kind == "record-index" else given[2]  # such an index keeps the partition
    after = [given[0], FIRST[1], moved, given[3]]
    assert rows(table) == after
    if kind == "event-time-mor":
        late = frame(spark, (1, "Oslo", 14, None), (9, "Moss", 1, None)).alias("s")
        merge = table.merge(late, "target.fare = s.fare").when_not_matched_by_source_delete()
        with pytest.raises(RecordKeyError, match=r"record key '1', and inserts .* ordering column fare is less"):
            merge.when_not_matched_insert_all().execute()
    twice = frame(spark, (0, "Oslo", 20, None), (0, "Oslo", 20, None), (2, "Oslo", 99, None)).alias("s")
    merge = table.merge(twice, "target.fare = s.fare").when_matched_delete()
    done = merge.when_not_matched_insert_all().execute()
    assert (done.rows_inserted, done.rows_deleted) == (1, 1)
    assert rows(table) == [after[0], (2, "Oslo", 99, None), *after[2:]]
    assert table.validate_metadata().num_rows == 0


@pytest.mark.slow
def test_keys_that_spark_casts_to_match(spark, tmp_path):
    """Two texts may equal one number, and two source rows that match nothing may be inserted with the same key."""
    table = made(spark, tmp_path / "t", "cow")
    texts = spark.createDataFrame([("1", 5), ("01", 6)], "id string, fare long").alias("s")
    with pytest.raises(AmbiguousMergeError, match="record key '1'"):
        table.merge(texts, "target.id = s.id").when_matched_update({"fare": "s.fare"}).execute()
    new = spark.createDataFrame(
        [("70", "Oslo", 5, None), ("070", "Oslo", 5, None)], COLUMNS.replace("id int", "id string")
    )
    done = table.merge(new.alias("s"), "target.id = s.id").when_not_matched_insert_all().execute()
    assert done.rows_matched == 0
    assert [row[0] for row in rows(table)] == [*(row[0] for row in FIRST), 70]


@pytest.mark.slow
def test_no_more_rows_are_broadcast_than_the_source_has(spark, tmp_path, monkeypatch):
    """A condition on other columns than the key may make any number of pairs."""
    table = made(spark, tmp_path / "t", "cow")
    broadcast, counted = F.broadcast, []
    monkeypatch.setattr(merge_pairs.F, "broadcast", lambda rows: counted.append(rows.count()) or broadcast(rows))
    source = frame(spark, (1, "Oslo", 100, None), (9, "Voss", 200, None)).alias("s")
    merge = table.merge(source, "target.city = s.city").when_matched_update({"fare": "s.fare"})
    done = merge.when_not_matched_insert_all().execute()
    assert (done.rows_updated, done.rows_inserted, counted[0]) == (2, 1, 1)
    changed = [(*row[:2], 100, row[3]) for row in FIRST[:2]]
    assert rows(table) == [*changed, *FIRST[2:], (9, "Voss", 200, None)]


@pytest.mark.slow
def test_a_field_of_a_struct_is_no_column_of_the_source(spark, tmp_path):
    options = {"hoodie.table.name": "t", "hoodie.datasource.write.recordkey.field": "id"}
    table = HudiTable.create(str(tmp_path / "t"), options)
    table.bulk_insert(frame(spark, (1, "a"), (2, "b"), columns="id int, v string"))
    columns = "id int, v string, after struct<id:int,v:string>"

    def merge(*events):
        return table.merge(frame(spark, *events, columns=columns).alias("s"), "target.id = after.id")

    with pytest.raises(AmbiguousMergeError):
        merge((11, "", (2, "X")), (12, "", (2, "Y"))).when_matched_update({"v": "after.v"}).execute()
    with pytest.raises(RecordKeyError, match="'2' cannot be changed to '1'"):
        merge((1, "other", (2, ""))).when_matched_update_all().when_not_matched_insert_all().execute()
    new = merge((1, "", (1, "A")), (1, "", (50, "B"))).when_matched_update({"v": "after.v"})
    new.when_not_matched_insert({"id": "after.id", "v": "after.v"}).execute()
    found = table.scan(columns=["id", "v"]).to_arrow().to_pylist()
    assert sorted(tuple(row.values()) for row in found) == [(1, "A"), (2, "b"), (50, "B")]


def test_what_only_a_join_can_merge(spark, tmp_path):
    table = made(spark, tmp_path / "t", "mor")

    def merge(*given, on=BY_KEY, columns=COLUMNS):
        source = frame(spark, *given, columns=columns).alias("s")
        return table.merge(source, on).when_matched_update_all().when_not_matched_insert_all().execute()

    with pytest.raises(AmbiguousMergeError):
        merge((1, "Oslo", 11, None), (1, "Oslo", 12, None))
    with pytest.raises(RecordKeyError):
        merge((None, "Oslo", 11, None))
    assert rows(table) == sorted(FIRST)
    # a partition is not part of this condition
    assert merge((1, "Moss", 11, None), on="target.id = s.id").rows_updated == 1
    assert rows(table)[0] == (1, "Moss", 11, None)
    # null equals nothing, so that the second row is not the first one's new version
    assert merge((7, None, 70, None)).rows_inserted == 1
    assert merge((7, None, 71, None)).rows_updated == 0
    # Spark makes the types equal first
    assert merge((2, "Oslo", 21, None), columns=COLUMNS.replace("id int", "id smallint")).rows_updated == 1
    assert (2, "Oslo", 21, None) in rows(table)


def test_the_name_of_the_table_comes_before_a_column_that_is_called_like_it(spark, tmp_path):
    """As in Spark's queries: ``t.a`` is the column of the table ``t``, though its column ``t`` has a field ``a``."""
    options = {"hoodie.table.name": "t", "hoodie.datasource.write.recordkey.field": "id"}
    table = HudiTable.create(str(tmp_path / "t"), options).alias("t")
    table.bulk_insert(frame(spark, (1, "x", ("y",)), columns="id int, a string, t struct<a:string>"))
    table.update({"t.a": "concat(t.a, '+')"}, "t.a = 'x' and t.t.a = 'y'")
    assert [row["a"] for row in table.scan().to_arrow().to_pylist()] == ["x+"]
    source = frame(spark, (1, "z"), columns="id int, s string").alias("s")
    merge = table.merge(source, "t.id = s.id").when_matched_update({"t.a": "t.a || t.t.a", "t.t.a": "s.s"})
    merge.execute()
    (row,) = table.scan().to_arrow().to_pylist()
    assert (row["a"], row["t"]) == ("x+y", {"a": "z"})


@pytest.mark.slow
def test_conditions_that_only_compare_are_not_analysed_beforehand(spark, tmp_path, monkeypatch):
    """They cannot have a window function or an aggregate, for which the others are analysed."""
    monkeypatch.setattr(clause_evaluation, "row_expression_types", None)
    table = made(spark, tmp_path / "t", "cow")
    source = frame(spark, (1, "Oslo", 100, None), (2, "Oslo", 200, None), (9, "Voss", 300, None)).alias("s")
    merge = table.merge(source, "target.id = s.id").when_matched_delete("(s.fare > 100) and target.id in (1, 2)")
    merge = merge.when_matched_update({"fare": "s.fare"}, "not (s.fare >= 200)")
    merge.when_not_matched_insert_all("s.fare is not null or (s.id = 9)").execute()
    assert rows(table) == [(1, "Oslo", 100, (1, "x")), *FIRST[2:], (9, "Voss", 300, None)]
    monkeypatch.undo()
    with pytest.raises(QueryError, match="the condition of clause 1 has a window function"):
        table.merge(source, "target.id = s.id").when_matched_delete("(1 = 1) and (max (s.fare)) > 1").execute()
