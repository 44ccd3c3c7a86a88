"""Scan plans: columns, partition pruning, files that are renamed or lack columns; and reading them."""

from __future__ import annotations

import json
from datetime import date
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from pyhudi.api.hudi_table import HudiTable
from pyhudi.config import Options
from pyhudi.errors import NotAHudiTableError, QueryError, StorageError, TableExistsError
from pyhudi.read.execution.arrow_scan import scan_batches, scan_table
from pyhudi.read.execution.file_schemas import file_parts
from pyhudi.read.query.query import Query
from pyhudi.read.query.table_location import locate_table
from pyhudi.read.scan_plan import ScanPlan
from pyhudi.read.scan_planner import plan_scan, prune_scan
from pyhudi.schema.table_types import to_table_types
from pyhudi.storage import open_storage
from pyhudi.table.schema_history import SchemaHistory
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline.instant import Action
from tests.tables import SCHEMA, HandMadeTable, at


def planned(table: HandMadeTable, *args, **kwargs) -> ScanPlan:
    return plan_scan(TableSnapshot.load(table.client()), *args, **kwargs)


def result(table: HandMadeTable, *args, **kwargs) -> list[dict]:
    rows = scan_table(planned(table, *args, **kwargs), table.storage).to_pylist()
    return sorted(rows, key=str)


@pytest.fixture
def years(tmp_path) -> HandMadeTable:
    """One file for each of ten years, hive-style, partitioned by an integer."""
    schema = pa.schema([("id", pa.string()), ("year", pa.int32()), ("v", pa.int64())])
    hive = {"hoodie.datasource.write.hive_style_partitioning": "true"}
    table = HandMadeTable(tmp_path / "t", partition_fields="year", schema=schema, properties=hive)
    table.write(
        10,
        {(f"year={y}", f"f{y}"): [{"id": f"k{y}-{i}", "year": y, "v": i} for i in range(3)] for y in range(2000, 2010)},
    )
    return table


@pytest.mark.parametrize(
    ("filter", "partitions", "rows"),
    [
        ([("year", "=", 2003)], 1, 3),
        ([("year", ">=", 2008), ("v", "=", 1)], 2, 2),
        ([("year", "in", [2001, 2002, 1999])], 2, 6),
        ([("year", "not in", [2001, 2002])], 8, 24),
        ([[("year", "=", 2001)], [("v", "=", 0)]], 10, 12),
        ([("year", "=", None)], 0, 0),
        (pc.field("year") + 1 == 2005, 1, 3),
        (pc.field("year") > 2007, 2, 6),
        ([("v", ">", 99)], 10, 0),
    ],
)
def test_partitions_are_pruned(years, filter, partitions, rows):
    plan = planned(years, filter=filter)
    assert (len(plan.partitions), plan.partitions_before_pruning) == (partitions, 10)
    assert plan.tasks.num_rows == partitions
    assert scan_table(plan, years.storage).num_rows == rows


def test_only_the_partitions_of_a_query_are_listed(years, monkeypatch):
    listed = []
    list_folder = type(years.storage).list

    def recorded(self, folder, *args, **kwargs):
        listed.append(folder)
        return list_folder(self, folder, *args, **kwargs)

    table = TableSnapshot.load(years.client())
    monkeypatch.setattr(type(years.storage), "list", recorded)
    plan = plan_scan(table, Query(partitions=("year=2003", "year=2005", "year=1999")))
    assert plan.partitions == ["year=2003", "year=2005"]
    assert {folder for folder in listed if folder.startswith("year=")} == {"year=2003", "year=2005", "year=1999"}
    assert scan_table(plan, years.storage).num_rows == 6
    assert plan_scan(table, Query(partitions=())).tasks.num_rows == 0


def test_a_plan_says_what_it_reads(years):
    plan = planned(years, filter=[("year", "=", 2003)], columns=["v"])
    assert plan.output_schema == pa.schema([("v", pa.int64())])
    text = plan.explain()
    assert "1 of 10" in text
    assert f"{plan.size_bytes:,}" in text
    assert plan.size_bytes == next((years.root / "year=2003").glob("*.parquet")).stat().st_size


def test_columns_are_projected_in_the_order_asked_for(years):
    rows = result(years, columns=["v", "id"], filter=[("year", "=", 2003), ("v", "=", 2)])
    assert rows == [{"v": 2, "id": "k2003-2"}]
    with pytest.raises(QueryError, match="no column 'w'; the table has _hoodie_commit_time"):
        planned(years, columns=["w"])
    with pytest.raises(QueryError, match="requested twice"):
        planned(years, columns=["v", "v"])


def test_the_path_decides_only_where_it_is_certain(tmp_path):
    """null and the empty text share a folder; neither is pruned, both are told apart by the files."""
    table = HandMadeTable(tmp_path / "t")
    default = "__HIVE_DEFAULT_PARTITION__"
    table.write(
        10, {(default, "f1"): [{"id": "1", "p": None}, {"id": "2", "p": ""}], ("x", "f2"): [{"id": "3", "p": "x"}]}
    )
    assert [r["id"] for r in result(table, filter=[("p", "=", "")])] == ["2"]
    assert [r["id"] for r in result(table, filter=[("p", "=", None)])] == ["1"]
    assert planned(table, filter=[("p", "=", "x")]).partitions == [default, "x"]


def test_typed_partition_values(tmp_path):
    schema = pa.schema([("id", pa.string()), ("d", pa.date32()), ("n", pa.decimal128(6, 2))])
    table = HandMadeTable(tmp_path / "t", partition_fields="d,n", schema=schema)
    rows = {
        (f"2024-01-0{i}/{i}.50", f"f{i}"): [{"id": str(i), "d": date(2024, 1, i), "n": Decimal(f"{i}.50")}]
        for i in (1, 2)
    }
    table.write(10, rows)
    assert planned(table, filter=[("d", "<", date(2024, 1, 2))]).partitions == ["2024-01-01/1.50"]
    assert planned(table, filter=[("n", "=", Decimal("2.5"))]).partitions == ["2024-01-02/2.50"]


def test_older_files_lack_columns_and_hold_narrower_types(tmp_path):
    old = pa.schema([("id", pa.string()), ("p", pa.string()), ("v", pa.int32()), ("f", pa.float32())])
    new = pa.schema(
        [
            ("id", pa.string()),
            ("p", pa.string()),
            ("v", pa.int64()),
            ("f", pa.float64()),
            ("s", pa.struct([("a", pa.int64()), ("b", pa.string())])),
        ]
    )
    table = HandMadeTable(tmp_path / "t", schema=old)
    table.write(10, {("a", "f1"): [{"id": "1", "p": "a", "v": 1, "f": 0.1}]})
    table.write(20, {("a", "f2"): [{"id": "2", "p": "a", "v": 2**40, "f": 0.2, "s": {"a": 1, "b": "x"}}]}, schema=new)
    columns = ["id", "v", "f", "s"]
    assert result(table, columns=columns) == [
        {"id": "1", "v": 1, "f": 0.1, "s": None},
        {"id": "2", "v": 2**40, "f": 0.2, "s": {"a": 1, "b": "x"}},
    ]
    assert [r["id"] for r in result(table, columns=["id"], filter=[("v", "<", 5)])] == ["1"]
    assert [r["id"] for r in result(table, columns=["id"], filter=pc.field("s").is_null())] == ["1"]
    assert result(table, Query(as_of=at(10)), columns=["v", "f"]) == [{"v": 1, "f": pytest.approx(0.1)}]
    pinned = TableSnapshot.load(table.client())
    parts = file_parts(pinned, plan_scan(pinned), plan_scan(pinned).tasks)
    assert [(p.file_schema.field("v").type, p.file_schema.field("f").type, p.tasks.num_rows) for p in parts] == [
        (pa.int32(), pa.float32(), 1),
        (pa.int64(), pa.float64(), 1),
    ]


def test_files_of_archived_writes_are_asked_for_their_types(tmp_path):
    old = pa.schema([("id", pa.string()), ("p", pa.string()), ("v", pa.int32())])
    table = HandMadeTable(tmp_path / "t")
    table.write(10, {("a", "f1"): [{"id": "1", "p": "a", "v": 1}]}, schema=old)
    table.write(20, {("a", "f2"): [{"id": "2", "p": "a", "v": 2}]})
    for file in (table.root / ".hoodie/timeline").glob(f"{at(10)}*"):
        file.unlink()
    pinned = TableSnapshot.load(table.client())
    plan = plan_scan(pinned)
    assert {p.file_schema.field("v").type for p in file_parts(pinned, plan, plan.tasks)} == {pa.int32(), pa.int64()}
    assert [r["v"] for r in result(table, columns=["v"])] == [1, 2]


@pytest.mark.parametrize("operation", ["BULK_INSERT", "INSERT_OVERWRITE"])
def test_files_that_are_narrower_than_their_commit(tmp_path, operation):
    """As Apache Hudi's row writer makes them of rows whose types are narrower than the table's."""
    thin = pa.schema([("id", pa.string()), ("p", pa.string()), ("v", pa.int32())])
    table = HandMadeTable(tmp_path / "t")
    table.write(10, {("a", "f1"): [{"id": "1", "p": "a", "v": 1}]}, operation="BULK_INSERT")
    table.write(20, {("a", "f2"): [{"id": "2", "p": "a", "v": 2}]}, schema=thin, recorded=SCHEMA, operation=operation)
    table.write(30, {("a", "f3"): [{"id": "3", "p": "a", "v": 3}]}, operation="UPSERT")
    pinned = TableSnapshot.load(table.client())
    plan = plan_scan(pinned)
    kinds = {part.file_schema.field("v").type: part.tasks.num_rows for part in file_parts(pinned, plan, plan.tasks)}
    assert kinds == {pa.int32(): 1, pa.int64(): 2}


def test_nested_types_that_are_narrower_than_their_commit(tmp_path):
    def schema(whole, real):
        struct = pa.struct([("q", whole), ("r", pa.list_(pa.struct([("x", real)])))])
        more = [("s", struct), ("l", pa.list_(whole)), ("m", pa.map_(pa.string(), real))]
        return pa.schema([("id", pa.string()), ("p", pa.string()), *more])

    row = {"p": "a", "s": {"q": 1, "r": [{"x": 0.5}]}, "l": [1], "m": [("k", 0.5)]}
    wide, thin = schema(pa.int64(), pa.float64()), schema(pa.int32(), pa.float32())
    table = HandMadeTable(tmp_path / "t", schema=wide)
    table.write(10, {("a", "f1"): [{"id": "1", **row}]}, operation="BULK_INSERT")
    table.write(20, {("a", "f2"): [{"id": "2", **row}]}, schema=thin, recorded=wide, operation="BULK_INSERT")
    pinned = TableSnapshot.load(table.client())
    plan = plan_scan(pinned)
    parts = file_parts(pinned, plan, plan.tasks)
    assert [part.tasks.num_rows for part in parts] == [1, 1]
    for name in ("s", "l", "m"):
        kinds = {to_table_types(kind).field(name).type for kind in (wide, thin)}
        assert {part.file_schema.field(name).type for part in parts} == kinds


def test_partition_columns_that_only_paths_hold(tmp_path):
    own = pa.schema([("id", pa.string()), ("v", pa.int64())])
    properties = {
        "hoodie.datasource.write.drop.partition.columns": "true",
        "hoodie.datasource.write.hive_style_partitioning": "true",
    }
    table = HandMadeTable(tmp_path / "t", schema=own, properties=properties)
    table.write(10, {("p=x", "f1"): [{"id": "1", "v": 1}], ("p=y", "f2"): [{"id": "2", "v": 2}]})
    assert result(table, columns=["id", "p"]) == [{"id": "1", "p": "x"}, {"id": "2", "p": "y"}]
    assert result(table, columns=["v"], filter=[("p", "=", "y")]) == [{"v": 2}]
    assert planned(table).path_columns == ("p",)


def test_values_can_be_asked_from_the_path(tmp_path):
    table = HandMadeTable(tmp_path / "t")
    table.write(10, {("x", "f1"): [{"id": "1", "p": "x", "v": 1}], ("x/y", "f2"): [{"id": "2", "p": "z", "v": 1}]})
    assert result(table, columns=["p"]) == [{"p": "x"}, {"p": "z"}]
    assert result(table, Query(partitions_from_path=True), columns=["p"]) == [{"p": "x"}, {"p": "x/y"}]


@pytest.mark.parametrize("extension", ["parquet", "orc"])
def test_paths_tell_the_values_of_records_in_their_old_partition(tmp_path, extension):
    """As Apache Hudi 0.15.0, 1.0.2 and 1.2.0 read what they wrote with `…update.partition.path=false`."""
    table = HandMadeTable(tmp_path / "t", extension=extension)
    moved = {"id": "1", "p": "b", "v": 1}
    table.write(10, {("a", "f1"): [moved, {"id": "2", "p": "a", "v": 2}], ("b", "f2"): [{"id": "3", "p": "b", "v": 3}]})
    a, b = [{"id": "1", "p": "a"}, {"id": "2", "p": "a"}], [{"id": "3", "p": "b"}]
    columns = ["id", "p"]
    assert result(table, columns=columns) == a + b
    assert result(table, Query.from_arguments(table.client().config, begin="earliest"), columns=columns) == a + b
    for condition, rows in ([("p", "=", "a")], a), ([("p", "=", "b")], b), ([("p", "!=", "a"), ("v", "<", 9)], b):
        assert result(table, filter=condition, columns=columns) == rows
    either = [[("p", "=", "a"), ("v", "=", 2)], [("p", "=", "b")], [("p", "=", "c"), ("v", "=", 1)]]
    assert result(table, filter=either, columns=columns) == [a[1], *b]
    assert result(table, filter=pc.field("p") == "a", columns=columns) == a
    assert result(table, filter="p = 'b' or v = 2", columns=columns) == [a[1], *b]
    assert result(table, filter=[("p", "=", "a"), ("v", "=", 2)], columns=["id"]) == [{"id": "2"}]
    files = Options.parse({"pyhudi.read.partition.values": "file"})
    for condition, ids in (None, "123"), ([("p", "=", "a")], "2"), ([("p", "=", "b")], "13"), ("p = 'b'", "13"):
        rows = result(table, filter=condition, columns=["id"], opts=files)
        assert "".join(row["id"] for row in rows) == ids, "the value of the file counts in filters, too"
    if extension == "orc":
        return
    table.log(20, {("a", "f1"): [{"id": "1", "p": "b", "v": 9}]})
    assert result(table, columns=columns) == a + b
    assert result(table, filter=[("p", "=", "a"), ("v", "<", 10)], columns=columns) == a


def test_a_partition_column_called_partition(tmp_path):
    schema = pa.schema([("id", pa.string()), ("partition", pa.string()), ("v", pa.int64())])
    table = HandMadeTable(tmp_path / "t", schema=schema, partition_fields="partition")
    table.write(10, {(p, f"f{p}"): [{"id": p, "partition": p, "v": 1}] for p in "ab"})
    assert result(table, columns=["partition"]) == [{"partition": "a"}, {"partition": "b"}]
    assert planned(table, filter=[("partition", "=", "b")]).partitions == ["b"]


def test_the_custom_generator_of_version_6_does_not_tell_values(tmp_path):
    """That ts is a formatted time is known to its writers alone."""
    schema = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("v", pa.int64())])
    custom = {"hoodie.table.keygenerator.type": "CUSTOM"}
    table = HandMadeTable(tmp_path / "t", version=6, schema=schema, partition_fields="ts", properties=custom)
    rows = {(f"2023111{i}", f"f{i}"): [{"id": str(i), "ts": 1700000000000 + i, "v": i}] for i in range(3)}
    table.write(10, rows)
    assert result(table, filter=[("ts", "=", 1700000000001)], columns=["id"]) == [{"id": "1"}]
    assert result(table, filter=[("ts", "=", 20231111)]) == []
    assert [row["ts"] for row in result(table, columns=["ts"])] == [1700000000000 + i for i in range(3)]


def test_formatted_times_from_paths(tmp_path):
    """As Apache Hudi 1.2.0: the column of a timestamp generator is a text then."""
    schema = pa.schema([("id", pa.string()), ("ts", pa.int64())])
    times = {
        "hoodie.keygen.timebased.timestamp.type": "EPOCHMILLISECONDS",
        "hoodie.keygen.timebased.output.dateformat": "yyyy/MM/dd",
        "hoodie.table.keygenerator.type": "TIMESTAMP",
    }
    table = HandMadeTable(tmp_path / "t", version=6, schema=schema, partition_fields="ts", properties=times)
    table.write(10, {("2023/11/14", "f1"): [{"id": "1", "ts": 1700000000000}]})
    assert result(table, columns=["ts"]) == [{"ts": 1700000000000}]
    from_path = Query(partitions_from_path=True)
    assert result(table, from_path, columns=["ts"]) == [{"ts": "2023/11/14"}]
    assert result(table, from_path, filter=[("ts", "=", "2023/11/14")], columns=["id"]) == [{"id": "1"}]


def test_sql_without_spark(tmp_path):
    table = HandMadeTable(tmp_path / "t")
    table.write(10, {(p, f"f{p}"): [{"id": p, "p": p, "v": i}] for i, p in enumerate("abc")})
    assert result(table, filter="(p = 'a' or v >= 2) and id is not null", columns=["id"]) == [{"id": "a"}, {"id": "c"}]
    for refused in ("length(p) = 1", "p = 'nowhere' and length(p) = 1", "v = '1'"):
        with pytest.raises(QueryError, match="requires Spark"):
            result(table, filter=refused)
    with pytest.raises(QueryError, match="no column 'nothing'"):
        result(table, filter="nothing = 3")


def test_renamed_and_replaced_columns(tmp_path):
    """v becomes w; then v comes back as another column."""
    table = HandMadeTable(tmp_path / "t")
    table.write(10, {("a", "f1"): [{"id": "1", "p": "a", "v": 1}]})
    now = pa.schema([("id", pa.string()), ("p", pa.string()), ("w", pa.int64()), ("v", pa.string())])

    def version(since: int, names: dict[int, str]) -> dict:
        fields = [{"id": i, "name": n, "optional": True, "type": "string"} for i, n in names.items()]
        return {"max_column_id": 3, "version_id": since, "type": "record", "fields": fields}

    newest = version(int(at(20)), {0: "id", 1: "p", 2: "w", 3: "v"})
    schemas = {"schemas": [newest, version(0, {0: "id", 1: "p", 2: "v"})]}
    (table.root / ".hoodie/.schema").mkdir()
    (table.root / f".hoodie/.schema/{at(20)}_{at(21)}.schemacommit").write_text(json.dumps(schemas))
    table.write(
        20,
        {("a", "f2"): [{"id": "2", "p": "a", "w": 2, "v": "new"}]},
        schema=now,
        extra={"latest_schema": json.dumps(newest)},
    )
    # a write that died has left a history, in which v is another column
    died = {"schemas": [version(int(at(30)), {0: "id", 1: "p", 7: "w", 8: "v"}), *schemas["schemas"]]}
    (table.root / f".hoodie/.schema/{at(30)}_{at(31)}.schemacommit").write_text(json.dumps(died))
    table.write(30, {("a", "f3"): []}, pending=True)
    history = SchemaHistory.load(table.client().active_timeline())
    assert history is not None
    assert history.unchanged() == {"id", "p"}
    assert result(table, columns=["id", "w", "v"]) == [
        {"id": "1", "w": 1, "v": None},
        {"id": "2", "w": 2, "v": "new"},
    ]
    assert result(table, columns=["id"], filter=[("w", "=", 1)]) == [{"id": "1"}]
    assert result(table, Query(as_of=at(10)), columns=["v"]) == [{"v": 1}]
    pinned = TableSnapshot.load(table.client())
    plan = plan_scan(pinned)
    names = [dict(part.names) for part in file_parts(pinned, plan, plan.tasks)]
    assert sorted(names, key=len) == [{}, {"w": "v", "v": None}]


def test_files_of_several_names_are_one_part_where_no_file_has_two_of_them(tmp_path):
    first = pa.schema([("id", pa.string()), ("a", pa.int64()), ("b", pa.int64()), ("p", pa.string())])
    versions = [{0: "id", 1: "a", 2: "b", 3: "p"}, {0: "id", 1: "c", 2: "b", 3: "p"}, {0: "id", 1: "c", 2: "a", 3: "p"}]
    table = HandMadeTable(tmp_path / "t", schema=first)
    schemas = [
        {
            "max_column_id": 3,
            "version_id": 0 if n == 0 else int(at(20 * n)),
            "type": "record",
            "fields": [{"id": i, "name": name, "optional": True, "type": "long"} for i, name in names.items()],
        }
        for n, names in enumerate(versions)
    ]
    table.write(10, {("x", "f1"): [{"id": "1", "p": "x", "a": 1, "b": 2}]})
    (table.root / ".hoodie/.schema").mkdir()
    for n in (1, 2):
        text = json.dumps({"schemas": schemas[n::-1]})
        (table.root / f".hoodie/.schema/{at(20 * n)}_{at(20 * n)}.schemacommit").write_text(text)
        own = versions[n]
        now = first.set(1, first.field("a").with_name(own[1])).set(2, first.field("b").with_name(own[2]))
        row = {"id": str(n + 1), "p": "x", own[1]: n, own[2]: n}
        table.write(20 * n, {("x", f"f{n + 1}"): [row]}, schema=now, extra={"latest_schema": json.dumps(schemas[n])})
        pinned = TableSnapshot.load(table.client())
        plan = plan_scan(pinned)
        parts = file_parts(pinned, plan, plan.tasks)
        if n == 1:  # a was renamed to c
            (part,) = parts
            assert set(part.names_of("c")) == {"a", "c"}
            filtered = plan_scan(pinned, filter=[("c", "=", 1)])
            assert len(file_parts(pinned, filtered, filtered.tasks)) == 2
        else:  # b to a: in older files that is another column
            assert sorted(part.tasks.num_rows for part in parts) in ([1, 2], [1, 1, 1])
            assert all(len(part.names_of("a")) == 1 for part in parts)
    assert sorted(result(table, columns=["id", "c", "a"]), key=lambda row: row["id"]) == [
        {"id": "1", "c": 1, "a": 2},
        {"id": "2", "c": 1, "a": 1},
        {"id": "3", "c": 2, "a": 2},
    ]


@pytest.mark.parametrize("extension", ["parquet", "orc"])
def test_batches_come_as_a_stream(tmp_path, extension):
    table = HandMadeTable(tmp_path / "t", extension=extension)
    table.write(10, {("a", f"f{i}"): [{"id": f"{i}-{j}", "p": "a", "v": j} for j in range(50)] for i in range(20)})
    plan = planned(table, columns=["v"], filter=[("v", "<", 10)])
    batches = scan_batches(plan, table.storage, threads=3)
    assert sum(batch.num_rows for batch in batches) == 200
    partly = scan_batches(plan, table.storage, threads=3)
    assert next(partly).num_rows == 10
    partly.close()
    assert scan_table(plan, table.storage).num_rows == 200


def test_two_level_lists_of_the_avro_writer(tmp_path):
    """pyarrow can write the old form of lists, which Apache Hudi's own writer uses."""
    schema = pa.schema([("id", pa.string()), ("p", pa.string()), ("l", pa.list_(pa.field("element", pa.int64())))])
    table = HandMadeTable(tmp_path / "t", schema=schema)
    table.write(10, {("a", "f1"): [{"id": "1", "p": "a", "l": [1, 2]}, {"id": "2", "p": "a", "l": None}]})
    import pyarrow.parquet as pq

    path = table.root / planned(table).tasks["base_path"][0].as_py()
    pq.write_table(pq.read_table(path), path, use_compliant_nested_type=False)
    assert result(table, columns=["l"]) == [{"l": None}, {"l": [1, 2]}]


def test_a_file_that_vanishes_is_told(years):
    plan = planned(years)
    years.remove(10, "year=2004", "f2004")
    with pytest.raises(QueryError, match=r"f2004.*cleaner"):
        scan_table(plan, years.storage)
    with pytest.raises(QueryError, match="f2004"):
        list(scan_batches(plan, years.storage))


def test_the_table_around_a_path(years):
    place = locate_table(f"{years.root}/year=2003/")
    assert (place.root, place.subpath) == (str(years.root), "year=2003")
    assert locate_table(f"{years.root}/*/*").subpath == ""
    assert locate_table(f"file://{years.root}").root == f"file://{years.root}"
    assert locate_table(f"file:{years.root}/*").root == f"file:{years.root}"
    with pytest.raises(NotAHudiTableError):
        locate_table(f"file:{years.root.parent}")
    with pytest.raises(NotAHudiTableError, match="/nowhere"):
        locate_table("/nowhere/at/all")


@pytest.mark.parametrize("sub", ["typo", "year=2003/typo", "year=1901", "year=*", ".hoodie", ".hoodie/timeline"])
def test_a_path_inside_a_table_that_is_no_part_of_it(years, sub):
    with pytest.raises(NotAHudiTableError, match=rf"no partition .* in the table above it at '{years.root}'"):
        locate_table(f"{years.root}/{sub}")
    with pytest.raises(NotAHudiTableError, match=rf"is inside the table at '{years.root}'"):
        HudiTable.for_path(f"{years.root}/{sub}")


@pytest.mark.parametrize("sub", ["year=2003", "new", "new/er", ".hoodie/x"])
def test_no_table_is_made_inside_another_one(years, sub):
    with pytest.raises(TableExistsError, match=rf"which is inside the Hudi table at '{years.root}'"):
        HudiTable.create(f"{years.root}/{sub}", {"hoodie.table.name": "t"})
    assert not (years.root / sub / ".hoodie").exists()
    HudiTable.create(f"{years.root}-2", {"hoodie.table.name": "t"})


def test_who_may_not_look_above_a_table_may_make_it(tmp_path, monkeypatch):
    def refused(*_: object) -> None:
        raise StorageError("403")

    monkeypatch.setattr("pyhudi.read.query.table_location.table_above", refused)
    HudiTable.create(str(tmp_path / "t"), {"hoodie.table.name": "t"})


def test_a_table_without_partitions(tmp_path):
    table = HandMadeTable(tmp_path / "t", partition_fields="")
    table.write(10, {("", "f1"): [{"id": "1", "p": "a", "v": 1}]})
    assert result(table, columns=["id"], filter=[("p", "=", "a")]) == [{"id": "1"}]
    assert planned(table).schema.names[5:] == SCHEMA.names


def test_storage_other_than_local(tmp_path):
    """The reader goes through the storage protocol alone."""
    table = HandMadeTable(tmp_path / "t")
    table.write(10, {("a", "f1"): [{"id": "1", "p": "a", "v": 1}]})
    memory = open_storage("memory://plan-test/t")
    for path in table.storage.list("", recursive=True)["path"].to_pylist():
        memory.write(path, table.storage.read(path))
    pinned = TableSnapshot.load(table.client().open(memory))
    assert scan_table(plan_scan(pinned, columns=["v"]), memory).to_pylist() == [{"v": 1}]


def cleaned(table: HandMadeTable, n: int, path: str) -> None:
    """Delete a file, as a clean at ``n`` that is still running."""
    (table.root / path).unlink()
    table.active.create_requested(Action.CLEAN, at(n), b"")


def test_a_filter_of_an_earlier_plan_prunes_its_slices(tmp_path) -> None:
    """Files that were rewritten and cleaned since are neither missing in the plan nor replaced by newer ones."""
    table = HandMadeTable(tmp_path / "t")
    table.write(10, {("a", "f1"): [{"id": "1", "p": "a", "v": 1}], ("b", "f2"): [{"id": "2", "p": "b", "v": 1}]})
    pinned = TableSnapshot.load(table.client())
    earlier = plan_scan(pinned)
    table.write(20, {("a", "f1"): [{"id": "1", "p": "a", "v": 2}]})
    cleaned(table, 30, next(path for path in earlier.tasks["base_path"].to_pylist() if path.startswith("a/")))
    plan = prune_scan(pinned, earlier, filter=[("p", "=", "a")])
    assert plan.tasks.to_pylist() == [row for row in earlier.tasks.to_pylist() if row["partition"] == "a"]
    assert "slices      1 of 2" in plan.explain()
    assert "partitions  1 of 2" in plan.explain()


def test_files_that_are_cleaned_while_a_query_is_planned(tmp_path) -> None:
    """A group whose old file is gone, and whose new file is later than the snapshot, is not left out."""
    table = HandMadeTable(tmp_path / "t")
    table.write(10, {("a", "f1"): [{"id": "1", "p": "a", "v": 1}]})
    pinned = TableSnapshot.load(table.client())
    old = plan_scan(pinned).tasks["base_path"][0].as_py()
    table.write(20, {("a", "f1"): [{"id": "1", "p": "a", "v": 2}]})
    cleaned(table, 30, old)
    assert [row["v"] for row in scan_table(plan_scan(pinned), table.storage).to_pylist()] == [2]
