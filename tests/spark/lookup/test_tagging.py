"""Tagging against a plain model, for every index, key kind and reader; tables are base files made by hand."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from pyhudi.config import Options
from pyhudi.errors import UnsupportedTableError
from pyhudi.format.base_file.base_file_footer import BloomOptions
from pyhudi.format.base_file.base_file_writer import BaseFileSchema
from pyhudi.format.base_file.parquet_writer import ParquetFileWriter
from pyhudi.keygen.key_spec import KeySpec
from pyhudi.schema.meta_fields import META_COLUMNS, PARTITION_PATH, RECORD_KEY
from pyhudi.spark.keys.deduplication import mark_deletes
from pyhudi.spark.keys.key_generator import with_keys
from pyhudi.spark.lookup.key_lookup import KeyLookup
from pyhudi.spark.lookup.tagging import tag, untagged
from pyhudi.table.config.table_config import TableConfig
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.table.view.file_slicing import SLICE_SCHEMA
from tests.cases import each_choice, seldom

SCHEMA = pa.schema(
    [
        ("a", pa.int64()),
        ("b", pa.int32()),
        ("s", pa.string()),
        ("p", pa.string()),
        ("ts", pa.int32()),
        ("v", pa.string()),
    ]
)
SPARK_SCHEMA = "a bigint, b int, s string, p string, ts int, v string, _hoodie_is_deleted boolean"
PARTITIONS = ("p0", "p1", "p2", "p3")
Place = tuple[str, str, str, int]  # partition, file id, base path, row
Tagged = tuple[str, str, bool, str | None, str | None, int | None, str]


@dataclass
class Table:
    """A table of hand-made base files. ``places`` says where keys are, with the ordering value they have there."""

    client: TableMetaClient
    spec: KeySpec
    slices: pa.Table
    places: dict[str, list[tuple[Place, int]]]

    def lookup(self, **options: str) -> KeyLookup:
        opts = Options.parse({k.replace("__", "."): v for k, v in options.items()})
        return KeyLookup(self.client, self.spec, self.client.config.merging, opts)


def key_of(row: dict[str, Any], fields: Sequence[str]) -> str:
    if len(fields) == 1:
        return str(row[fields[0]])
    return ",".join(f"{name}:{'__null__' if row[name] is None else row[name]}" for name in fields)


def make_table(root: Path, keys: str, *, meta: bool = True, ordering: bool = True, schema: pa.Schema = SCHEMA) -> Table:
    """Three files in each of three partitions; some keys twice in a file, some in several partitions."""
    options = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": keys,
        "hoodie.datasource.write.partitionpath.field": "p",
        "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.ComplexKeyGenerator"
        if "," in keys
        else "org.apache.hudi.keygen.SimpleKeyGenerator",
        "hoodie.populate.meta.fields": str(meta).lower(),
    }
    if ordering:
        options["hoodie.datasource.write.precombine.field"] = "ts"
    client = TableMetaClient.create(str(root), TableConfig.for_new_table(Options.parse(options)))
    rng = random.Random(7)
    fields = keys.split(",")
    slices: list[dict[str, Any]] = []
    places: dict[str, list[tuple[Place, int]]] = {}
    for partition in PARTITIONS[:3]:
        for number in range(3):
            file_id = f"{partition}{number}-0"
            path = f"{partition}/{file_id}_0-1-2_20260101000000000.parquet"
            rows = [random_row(rng, partition) for _ in range(60)]
            rows.append(dict(rows[5], v="again"))
            for position, row in enumerate(rows):
                place = (partition, file_id, path, position)
                places.setdefault(key_of(row, fields), []).append((place, row["ts"]))
            write_file(root / path, rows, fields, schema, meta=meta)
            slices.append(
                {"partition": partition, "file_id": file_id, "base_instant": "20260101000000000", "base_path": path,
                 "base_size": 1, "log_paths": [], "log_sizes": []}
            )  # fmt: skip
    spec = KeySpec.from_config(client.config, {})
    return Table(client, spec, pa.Table.from_pylist(slices, SLICE_SCHEMA), places)


def random_row(rng: random.Random, partition: str) -> dict[str, Any]:
    a, b = rng.randrange(400), rng.randrange(2)
    return {"a": a, "b": b, "s": f"k{a}", "p": partition, "ts": rng.randrange(5), "v": str(rng.random())}


def write_file(path: Path, rows: list[dict[str, Any]], fields: list[str], schema: pa.Schema, *, meta: bool) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    data = pa.Table.from_pylist(rows, schema)
    count = len(rows)
    texts = {
        "_hoodie_record_key": [key_of(row, fields) for row in rows],
        "_hoodie_partition_path": [row["p"] for row in rows],
    }
    columns = [pa.array(texts.get(n, ["x"] * count) if meta else [None] * count, pa.string()) for n in META_COLUMNS]
    full = pa.schema([*((n, pa.string()) for n in META_COLUMNS), *schema])
    bloom = BloomOptions(num_entries=100, dynamic_max=200) if meta else None
    with ParquetFileWriter(str(path), BaseFileSchema(full), bloom=bloom) as out:
        out.write(pa.table([*columns, *data.columns], schema=full))
        out.close()


def incoming(seed: int, rows: int = 300) -> list[tuple[Any, ...]]:
    rng = random.Random(seed)
    found = {}
    for _ in range(rows):
        row = random_row(rng, rng.choice(PARTITIONS[1:]))
        row["a"] += rng.choice([0, 0, 0, 250])
        row["s"] = f"k{row['a']}"
        found[row["a"], row["b"], row["p"]] = (*row.values(), rng.random() < 0.2)
    return list(found.values())


def keyed(spark: SparkSession, table: Table, rows: list[tuple[Any, ...]]) -> DataFrame:
    df = spark.createDataFrame(rows, SPARK_SCHEMA).repartition(2)
    return mark_deletes(with_keys(df, table.spec, ""), table.client.config.merging)


def result(df: DataFrame) -> list[Tagged]:
    columns = [RECORD_KEY, PARTITION_PATH, "_pyhudi_delete", "_pyhudi_file_id", "_pyhudi_base_path", "_pyhudi_row", "v"]
    return sorted((tuple(row) for row in df.select(*columns).collect()), key=str)  # type: ignore[misc]


def expected(
    table: Table, rows: list[tuple[Any, ...]], fields: list[str], *, everywhere: bool, moves: bool = True,
    ordered: bool = True
) -> list[Tagged]:  # fmt: skip
    found: list[Tagged] = []
    for values in rows:
        row = dict(zip([*SCHEMA.names, "delete"], values, strict=True))
        key, new, gone, v = key_of(row, fields), row["p"], row["delete"], row["v"]
        places = table.places.get(key, [])
        if not everywhere:
            places = [place for place in places if place[0][0] == new]
        fresh = not places
        for (partition, file_id, path, position), ts in places:
            moved = moves and partition != new
            if moved and ordered and ts > row["ts"]:
                continue
            found.append((key, partition, gone or moved, file_id, path, position, v))
        if moves and places and all(p[0] != new for p, _ in places):
            fresh = not (ordered and any(ts > row["ts"] for _, ts in places))
        if fresh and not gone:
            found.append((key, new, False, None, None, None, v))
    return sorted(found, key=str)


@pytest.mark.parametrize(
    ("index", "keys"),
    [
        seldom(("SIMPLE", "a")),
        ("SIMPLE", "a,b"),
        ("SIMPLE", "s"),
        seldom(("SIMPLE", "s,b")),
        ("BLOOM", "a"),
        seldom(("BLOOM", "a,b")),
        seldom(("BLOOM", "s")),
        ("BLOOM", "s,b"),
    ],
)
def test_within_partitions(spark: SparkSession, tmp_path: Path, keys: str, index: str) -> None:
    table = make_table(tmp_path, keys)
    rows = unique(incoming(1), keys, by_partition=True)
    df = keyed(spark, table, rows)
    assert result(tag(df, table.slices, table.lookup(hoodie__index__type=index)).rows) == expected(
        table, rows, keys.split(","), everywhere=False
    )


def unique(rows: list[tuple[Any, ...]], keys: str, *, by_partition: bool) -> list[tuple[Any, ...]]:
    fields = keys.split(",")
    found = {}
    for values in rows:
        row = dict(zip(SCHEMA.names, values[:-1], strict=True))
        found[key_of(row, fields), row["p"] if by_partition else ""] = values
    return list(found.values())


@pytest.mark.parametrize(
    ("moves", "ordered", "index", "keys"),
    [
        (True, True, "SIMPLE", "a"),
        seldom((True, True, "SIMPLE", "s,b")),
        seldom((True, True, "BLOOM", "a")),
        (True, True, "BLOOM", "s,b"),
        seldom((True, False, "SIMPLE", "a")),
        (True, False, "SIMPLE", "s,b"),
        seldom((True, False, "BLOOM", "a")),
        seldom((True, False, "BLOOM", "s,b")),
        (False, True, "SIMPLE", "a"),
        seldom((False, True, "SIMPLE", "s,b")),
        seldom((False, True, "BLOOM", "a")),
        (False, True, "BLOOM", "s,b"),
    ],
)
def test_everywhere(
    spark: SparkSession, tmp_path: Path, keys: str, index: str, moves: bool, ordered: bool
) -> None:  # fmt: skip
    table = make_table(tmp_path, keys, ordering=ordered)
    rows = unique(incoming(2), keys, by_partition=False)
    lookup = table.lookup(
        hoodie__index__type=f"GLOBAL_{index}",
        hoodie__simple__index__update__partition__path=str(moves).lower(),
        hoodie__bloom__index__update__partition__path=str(moves).lower(),
    )
    found = result(tag(keyed(spark, table, rows), table.slices, lookup).rows)
    assert found == expected(table, rows, keys.split(","), everywhere=True, moves=moves, ordered=ordered)


@pytest.mark.parametrize("options", [
    {"pyhudi__read__engine": "arrow"},
    {"pyhudi__index__broadcast__rows": "0"},
    {"pyhudi__index__broadcast__rows": "0", "pyhudi__read__engine": "arrow"},
    {"hoodie__index__type": "BLOOM", "hoodie__bloom__index__prune__by__ranges": "false"},
    {"hoodie__index__type": "BLOOM", "hoodie__bloom__index__parallelism": "3"},
])  # fmt: skip
def test_other_ways_to_the_same(spark: SparkSession, tmp_path: Path, options: dict[str, str]) -> None:
    table = make_table(tmp_path, "a,b")
    rows = incoming(3)
    found = result(tag(keyed(spark, table, rows), table.slices, table.lookup(**options)).rows)
    assert found == expected(table, rows, ["a", "b"], everywhere=False)


@pytest.mark.parametrize(("keys", "index"), each_choice(["a,b", "s,b", "s"], ["SIMPLE", "BLOOM", "GLOBAL_SIMPLE"]))
def test_virtual_keys(spark: SparkSession, tmp_path: Path, keys: str, index: str) -> None:
    table = make_table(tmp_path, keys, meta=False)
    everywhere = index.startswith("GLOBAL")
    rows = unique(incoming(4), keys, by_partition=not everywhere)
    found = result(tag(keyed(spark, table, rows), table.slices, table.lookup(hoodie__index__type=index)).rows)
    assert found == expected(table, rows, keys.split(","), everywhere=everywhere)


@pytest.mark.parametrize("meta", [True, False])
def test_files_of_narrower_types(spark: SparkSession, tmp_path: Path, meta: bool) -> None:
    narrow = SCHEMA.set(0, pa.field("a", pa.int32()))
    table = make_table(tmp_path, "a,b", meta=meta, schema=narrow)
    rows = incoming(5)
    assert result(tag(keyed(spark, table, rows), table.slices, table.lookup()).rows) == expected(
        table, rows, ["a", "b"], everywhere=False
    )
    mixed = make_table(tmp_path / "mixed", "a,b", meta=meta)
    first = mixed.slices["base_path"][0].as_py()
    rewritten = [
        {"a": int(k.split(",")[0][2:]), "b": int(k.split(",")[1][2:]), "s": "", "p": "p0", "ts": 0, "v": ""}
        for _, k in sorted((p[3], k) for k, found in mixed.places.items() for p, _ in found if p[2] == first)
    ]
    (tmp_path / "mixed" / first).unlink()
    write_file(tmp_path / "mixed" / first, rewritten, ["a", "b"], narrow, meta=meta)
    slices = mixed.slices.set_column(2, "base_instant", pa.array([f"{i:017d}" for i in range(mixed.slices.num_rows)]))
    rows = [
        (*row[:3], "p0", *row[4:]) for row in unique([(*r[:3], "p0", *r[4:]) for r in rows], "a,b", by_partition=True)
    ]
    assert result(tag(keyed(spark, mixed, rows), slices, mixed.lookup()).rows) == expected(
        mixed, rows, ["a", "b"], everywhere=False
    )


@pytest.mark.parametrize(
    ("strangers", "broadcast"), each_choice([[], [(-3, 1)], [(2**62 + 5, 0)], [(0, 0), (5, 2**31 - 1)]], ["0", "1000"])
)
def test_keys_at_the_ends_of_their_types(
    spark: SparkSession, tmp_path: Path, strangers: list[tuple[int, int]], broadcast: str
) -> None:
    """Keys of few values are compared as one number, in which other keys of the table do not look like them."""
    table = make_table(tmp_path, "a,b")
    rows = [row for row in incoming(11) if row[0] < 4]
    rows += [(a, b, "s", "p1", 1, f"{a} {b}", False) for a, b in strangers]
    rows = unique(rows, "a,b", by_partition=True)
    lookup = table.lookup(pyhudi__index__broadcast__rows=broadcast)
    found = result(tag(keyed(spark, table, rows), table.slices, lookup).rows)
    assert found == expected(table, rows, ["a", "b"], everywhere=False)


def test_null_parts_of_keys(spark: SparkSession, tmp_path: Path) -> None:
    table = make_table(tmp_path, "a,b")
    rows = [(None, 1, "s", "p0", 1, "v", False), (3, None, "s", "p1", 1, "w", False), *incoming(6, 50)]
    found = result(tag(keyed(spark, table, rows), table.slices, table.lookup()).rows)
    assert found == expected(table, rows, ["a", "b"], everywhere=False)


def test_repeated_keys_in_the_batch(spark: SparkSession, tmp_path: Path) -> None:
    table = make_table(tmp_path, "a,b")
    rows = incoming(8, 60)
    later = [(*row[:4], 9, f"later {row[5]}", row[6]) for row in rows[:20]]
    df = keyed(spark, table, [*rows, *later]).coalesce(1)
    merged = result(tag(df, table.slices, table.lookup(), combine=True).rows)
    assert merged == expected(table, later + rows[20:], ["a", "b"], everywhere=False)
    kept = result(tag(df, table.slices, table.lookup()).rows)
    assert kept == expected(table, rows + later, ["a", "b"], everywhere=False)


def test_nothing_to_find(spark: SparkSession, tmp_path: Path) -> None:
    table = make_table(tmp_path, "a")
    rows = incoming(9, 30)
    df = keyed(spark, table, rows)
    new = sorted(
        ((str(r[0]), r[3], False, None, None, None, r[5]) for r in rows if not r[6]), key=str
    )  # fmt: skip
    assert result(untagged(df)) == new
    empty = SLICE_SCHEMA.empty_table()
    assert result(tag(df, empty, table.lookup()).rows) == new
    elsewhere = df.withColumn(PARTITION_PATH, F.lit("p9"))
    assert [row[1] for row in result(tag(elsewhere, table.slices, table.lookup()).rows)] == ["p9"] * len(new)
    assert result(tag(df.limit(0), table.slices, table.lookup()).rows) == []
    with pytest.raises(UnsupportedTableError, match=r"hoodie\.index\.type=BUCKET"):
        tag(df, table.slices, table.lookup(hoodie__index__type="BUCKET"))


def test_hard_deletes_win_over_newer_records(spark: SparkSession, tmp_path: Path) -> None:
    table = make_table(tmp_path, "a")
    keys = sorted({int(key) for key in table.places})[:40]
    df = spark.createDataFrame([(key, "p3") for key in keys], "a bigint, p string")
    df = mark_deletes(with_keys(df, table.spec, ""), table.client.config.merging, every_row=True).withColumn(
        "v", F.lit("")
    )
    lookup = table.lookup(hoodie__index__type="GLOBAL_SIMPLE")
    found = result(tag(df, table.slices, replace(lookup, hard_deletes=True)).rows)
    assert len(found) == sum(len(table.places[str(key)]) for key in keys)
    assert all(row[2] and row[1] != "p3" for row in found)


def test_only_files_of_touched_partitions_are_read(spark: SparkSession, tmp_path: Path) -> None:
    table = make_table(tmp_path, "a")
    for file in (tmp_path / "p0").iterdir():
        file.write_bytes(b"broken")
    rows = [row for row in incoming(10) if row[3] != "p0"]
    assert result(tag(keyed(spark, table, rows), table.slices, table.lookup()).rows)
