"""Writes with a key generator in Python."""

from __future__ import annotations

import threading

import pytest
from pyspark.sql import functions as F  # noqa: N812

import pyhudi
from pyhudi import HudiTable
from pyhudi.errors import ConfigError, HudiError, RecordKeyError, SchemaMismatchError, UnsupportedTableError
from tests.cases import seldom
from tests.key_generators import CLASS, COLUMNS, OPTIONS, TenantKeyGenerator, registered

FIRST = [("Acme", 1, "2024-05-03", 1, 10), ("acme", 2, "2024-05-04", 1, 20), ("Bolt", 1, "2024-06-01", 1, 30)]
KEYS = {("acme-1", "2024/05"), ("acme-2", "2024/05"), ("bolt-1", "2024/06")}
MOR = {"hoodie.datasource.write.table.type": "MERGE_ON_READ", "hoodie.compact.inline": "false"}


@pytest.fixture(autouse=True)
def activated(spark):
    pyhudi.activate(spark)
    with registered(TenantKeyGenerator()):
        yield
    pyhudi.deactivate()


def write(spark, path, rows, columns=COLUMNS, **more):
    options = {**OPTIONS, **{key.replace("__", "."): value for key, value in more.items()}}
    spark.createDataFrame(rows, columns).write.format("hudi").options(**options).mode("append").save(path)


def stored(spark, path):
    read = spark.read.format("hudi").load(path)
    names = ("_hoodie_record_key", "_hoodie_partition_path", "tenant", "id", "day", "v")
    return sorted(tuple(row) for row in read.select(*names).collect())


COW_TABLE, MOR_TABLE = pytest.param({}, id="cow"), pytest.param(MOR, id="mor")
WITH_INDEX = pytest.param({"hoodie.metadata.record.index.enable": "true"}, id="rli")


@pytest.mark.parametrize("more", [COW_TABLE, seldom(MOR_TABLE), seldom(WITH_INDEX)])
def test_upserts_and_deletes(spark, tmp_path, more):
    path = str(tmp_path / "t")
    write(spark, path, FIRST, **more)
    assert {row[:2] for row in stored(spark, path)} == KEYS
    properties = (tmp_path / "t" / ".hoodie" / "hoodie.properties").read_text()
    assert f"hoodie.table.keygenerator.class={CLASS}" in properties
    assert "hoodie.table.keygenerator.type=USER_PROVIDED\n" in properties
    # another spelling of the tenant, and another day of the month: the same record
    write(spark, path, [("ACME", 1, "2024-05-09", 2, 11), ("bolt", 2, "2024-06-01", 2, 40)], **more)
    assert stored(spark, path) == [
        ("acme-1", "2024/05", "ACME", 1, "2024-05-09", 11),
        ("acme-2", "2024/05", "acme", 2, "2024-05-04", 20),
        ("bolt-1", "2024/06", "Bolt", 1, "2024-06-01", 30),
        ("bolt-2", "2024/06", "bolt", 2, "2024-06-01", 40),
    ]
    # columns of keys change here, so that no version may be left out by its values
    for condition, expected in (("tenant = 'Acme'", []), ("tenant = 'ACME'", [11]), ("day = '2024-05-03'", [])):
        read = spark.read.format("hudi").load(path).where(condition)
        assert [row.v for row in read.collect()] == expected
        assert HudiTable.for_path(path).scan(filter=condition).to_arrow()["v"].to_pylist() == expected
    HudiTable.for_path(path).delete(spark.createDataFrame([("aCME", 1, "2024-05-31", 3, 0)], COLUMNS))
    assert [row[0] for row in stored(spark, path)] == ["acme-2", "bolt-1", "bolt-2"]


@pytest.mark.parametrize("more", [seldom(COW_TABLE), MOR_TABLE])
def test_statements(spark, tmp_path, more):
    path = str(tmp_path / "t")
    write(spark, path, FIRST, **more)
    table = HudiTable.for_path(path)
    table.update({"v": "v + 1", "day": "'2024-06-30'"}, "id = 2")
    assert stored(spark, path)[1] == ("acme-2", "2024/06", "acme", 2, "2024-06-30", 21)
    with pytest.raises(ConfigError, match="cannot assign 'tenant'"):
        table.update({"tenant": "'x'"}, "id = 2")
    source = spark.createDataFrame([("BOLT", 1, "2024-06-02", 5, 31), ("Cap", 1, "2024-07-01", 5, 50)], COLUMNS).alias(
        "source"
    )
    merge = table.merge(source, "lower(target.tenant) = lower(source.tenant) and target.id = source.id")
    merge.when_matched_update({"v": "source.v"}).when_not_matched_insert_all().execute()
    assert stored(spark, path) == [
        ("acme-1", "2024/05", "Acme", 1, "2024-05-03", 10),
        ("acme-2", "2024/06", "acme", 2, "2024-06-30", 21),
        ("bolt-1", "2024/06", "Bolt", 1, "2024-06-01", 31),
        ("cap-1", "2024/07", "Cap", 1, "2024-07-01", 50),
    ]
    with pytest.raises(RecordKeyError, match=r"'(bolt|cap)-1' cannot be changed to '(bolt|cap)-2'"):
        table.merge(source.where("id = 1"), "lower(target.tenant) = lower(source.tenant)").when_matched_update(
            {"id": "2"}
        ).execute()
    table.delete("tenant = 'Cap'")
    assert len(stored(spark, path)) == 3


def test_refusals(spark, tmp_path):
    path = str(tmp_path / "t")
    with pytest.raises(RecordKeyError, match="there is no column 'tenant'"):
        write(spark, path, [(1, "2024-05-03", 1, 1)], "id bigint, day string, ts bigint, v bigint")
    with pytest.raises(SchemaMismatchError, match="there is no column 'day'"):
        write(spark, path, [("a", 1, 1, 1)], "tenant string, id bigint, ts bigint, v bigint")
    with pytest.raises(UnsupportedTableError, match=r"hoodie\.populate\.meta\.fields=false"):
        write(spark, path, FIRST, **{"hoodie.populate.meta.fields": "false"})
    with pytest.raises(UnsupportedTableError, match=r"hoodie\.index\.type=BUCKET"):
        write(spark, path, FIRST, **{"hoodie.index.type": "BUCKET"})
    with pytest.raises(UnsupportedTableError, match=r"drop\.partition\.columns=true"):
        write(spark, path, FIRST, **{"hoodie.datasource.write.drop.partition.columns": "true"})
    pyhudi.unregister_key_generator(CLASS)
    for create in (lambda: write(spark, path, FIRST), lambda: HudiTable.create(path, OPTIONS)):
        with pytest.raises(UnsupportedTableError, match=r"pyhudi\.register_key_generator"):
            create()
    assert not (tmp_path / "t").exists()


def test_without_the_generator(spark, tmp_path):
    path = str(tmp_path / "t")
    write(spark, path, FIRST, **MOR)
    write(spark, path, [("ACME", 1, "2024-05-09", 2, 11)], **MOR)
    pyhudi.unregister_key_generator(CLASS)
    expected = stored(spark, path)
    assert len(expected) == 3
    table = HudiTable.for_path(path)
    with pytest.raises(UnsupportedTableError, match=r"pyhudi\.register_key_generator"):
        table.upsert(spark.createDataFrame(FIRST, COLUMNS))
    table.services.compact()
    assert stored(spark, path) == expected
    assert len(table.lookup([{"tenant": "ACME", "id": 1}])) == 1


def test_unpicklable_functions(spark, tmp_path):
    lock = threading.Lock()

    class Locked(TenantKeyGenerator):
        def record_key(self):
            @F.udf("string")
            def key(tenant):
                with lock:
                    return tenant

            return key("tenant")

    with registered(Locked()), pytest.raises(ConfigError, match=f"{CLASS}.record_key has .*lock.* inside of the func"):
        write(spark, str(tmp_path / "t"), FIRST)
    assert not (tmp_path / "t").exists()


class UsesAnyColumn(TenantKeyGenerator):
    def record_key(self):
        return F.concat("tenant", F.col("v").cast("string"))


class MakesNumbers(TenantKeyGenerator):
    def record_key(self):
        return "id + 1"


class ReturnsNone(TenantKeyGenerator):
    def partition_path(self):
        return None


class ReturnsANumber(TenantKeyGenerator):
    def record_key(self):
        return 5


class ReturnsNoExpression(TenantKeyGenerator):
    def record_key(self):
        return "id +"


class MakesNothing(TenantKeyGenerator):
    def record_key(self):
        return "if(id = 2, '', tenant)"


class LeavesTheTable(TenantKeyGenerator):
    def partition_path(self):
        return "concat('../', day)"


@pytest.mark.parametrize(
    ("generator", "error", "message"),
    [
        (UsesAnyColumn, ConfigError, r"record_key cannot be evaluated over the columns in .*tenant, id"),
        (MakesNumbers, ConfigError, "record_key returns a column of the type bigint; cast it to string"),
        (ReturnsNone, ConfigError, "partition_path returns None; return a Column or SQL text"),
        (ReturnsANumber, ConfigError, "record_key returns 5; return a Column or SQL text"),
        (ReturnsNoExpression, ConfigError, r"record_key (returns 'id \+', which is no expression|cannot be evaluated)"),
        (MakesNothing, RecordKeyError, "the record key that .* makes is null or empty; nothing was committed"),
        (LeavesTheTable, HudiError, "not a valid folder name"),
    ],
)
def test_bad_generators(spark, tmp_path, generator, error, message):
    path = str(tmp_path / "t")
    with registered(generator()), pytest.raises(error, match=message):
        write(spark, path, FIRST)
    assert not (tmp_path / "t").exists() or not HudiTable.for_path(path).history().num_rows
    pyhudi.register_key_generator(TenantKeyGenerator())
    write(spark, path, FIRST)
    assert {row[:2] for row in stored(spark, path)} == KEYS


class OnlyKeys(pyhudi.KeyGenerator):
    class_name = CLASS

    def record_key(self):
        return F.upper("tenant")


class OnlyPaths(pyhudi.KeyGenerator):
    class_name = CLASS

    def partition_path(self):
        return "if(day is null, null, 'all')"


def test_texts_of_columns(spark, tmp_path):
    rows = [("a", 1, "x/y", 1, 1), ("b", 2, None, 1, 1)]
    with registered(OnlyKeys()):
        write(spark, str(tmp_path / "k"), rows)
    assert [row[:2] for row in stored(spark, str(tmp_path / "k"))] == [
        ("A", "x/y"),
        ("B", "__HIVE_DEFAULT_PARTITION__"),
    ]
    with registered(OnlyPaths()):
        write(spark, str(tmp_path / "p"), rows)
    assert [row[:2] for row in stored(spark, str(tmp_path / "p"))] == [
        ("tenant:a,id:1", "all"),
        ("tenant:b,id:2", "__HIVE_DEFAULT_PARTITION__"),
    ]


@pytest.mark.parametrize("to", [seldom(8), 6])
def test_versions(spark, tmp_path, to):
    path = str(tmp_path / "t")
    write(spark, path, FIRST)
    table = HudiTable.for_path(path)
    table.services.downgrade(to=to)
    write(spark, path, [("ACME", 1, "2024-05-09", 2, 11)], **{"hoodie.write.table.version": str(to)})
    table.services.upgrade(to=9)
    write(spark, path, [("ACME", 2, "2024-05-09", 3, 22)])
    assert [(row[0], row[-1]) for row in stored(spark, path)] == [("acme-1", 11), ("acme-2", 22), ("bolt-1", 30)]
