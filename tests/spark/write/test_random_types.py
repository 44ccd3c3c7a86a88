"""Tables of columns of random types: every kind of query gives what was written, whatever writes and services did."""

from __future__ import annotations

import base64
import copy
import itertools
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import Column as SparkColumn
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.pandas.types import from_arrow_type

import pyhudi
from pyhudi.api.hudi_table import HudiTable
from tests.cases import classic, each_choice, every, seldom
from tests.properties import examples
from tests.random_types import (
    COMMIT,
    LEAVES,
    WIDENED,
    Choices,
    Column,
    TypedTable,
    assert_rows,
    comparable,
    edges,
    frame_of,
)
from tests.spark_arrow import to_arrow

STORAGES = {
    "copy on write": {},
    "avro logs": {"hoodie.logfile.data.block.format": "avro"},
    "parquet logs": {"hoodie.logfile.data.block.format": "parquet"},
}
CONDITIONS = 5
"""Number of conditions in SQL that are compared with Spark's own answer."""


@pytest.fixture(autouse=True)
def _active(spark: SparkSession) -> Iterator[None]:
    pyhudi.activate(spark)
    yield
    pyhudi.deactivate()


@dataclass
class Commit:
    """A commit and the table after it."""

    completion: str
    table: TypedTable


class TypedLife:
    """A table of random types at ``path``, and what it held after each commit."""

    def __init__(self, spark: SparkSession, path: Path, version: int, storage: str, seed: int) -> None:
        self.spark, self.path, self.version = spark, path, version
        self.table = TypedTable.draw(seed, Choices())
        self.merge_on_read = storage != "copy on write"
        self.options = {
            "hoodie.table.name": "typed",
            "hoodie.write.table.version": str(version),
            "hoodie.datasource.write.table.type": "MERGE_ON_READ" if self.merge_on_read else "COPY_ON_WRITE",
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.precombine.field": "ts",
            "hoodie.datasource.write.partitionpath.field": "part",
            "hoodie.table.cdc.enabled": "true",
            "hoodie.compact.inline": "false",
            "hoodie.metadata.index.column.stats.enable": "true",
            **STORAGES[storage],
        }
        self.commits: list[Commit] = []

    def write(self, rows: pa.Table, operation: str) -> None:
        """Write rows, and remember the table."""
        frame = frame_of(self.spark, rows, self.path.parent)
        options = {**self.options, "hoodie.datasource.write.operation": operation}
        frame.write.format("hudi").options(**options).mode("append").save(str(self.path))
        self.remember()

    def assign(self, numbers: range) -> None:
        """Update columns by other ones, in SQL."""
        pairs, where = self.table.assign(numbers)
        assignments = {name: f"`{other}`" for name, other in pairs.items()}
        HudiTable.for_path(str(self.path)).update(assignments, where=where)
        self.remember()

    def serve(self) -> None:
        """Compact, or cluster: the rows stay."""
        services = HudiTable.for_path(str(self.path)).services
        if self.merge_on_read:
            services.compact()
        else:
            services.cluster({"hoodie.clustering.plan.strategy.sort.columns": "f,i"})
        self.check("after a service")

    def remember(self) -> None:
        """Store what the table holds after the last commit, and check that it does."""
        newest = HudiTable.for_path(str(self.path)).history().to_pylist()[0]
        time = newest["completed" if self.version > 6 else "requested"]
        for row in self.table.rows.values():
            row.setdefault(COMMIT, len(self.commits))
        kept = replace(self.table, columns=list(self.table.columns), rows=copy.deepcopy(self.table.rows))
        self.commits.append(Commit(time, kept))
        self.check(f"after commit {len(self.commits)}")

    def check(self, what: str) -> None:
        """Check the latest rows, on Spark and without."""
        assert_rows(to_arrow(self.spark.read.format("hudi").load(str(self.path))), self.table, f"{what}, on Spark")
        assert_rows(HudiTable.for_path(str(self.path)).scan().to_arrow(), self.table, f"{what}, local")

    def check_history(self) -> None:
        """Check time travel, incremental queries and change data."""
        opened = HudiTable.for_path(str(self.path))
        for number, commit in every(2, list(enumerate(self.commits))):
            found = self.spark.read.format("hudi").option("as.of.instant", commit.completion).load(str(self.path))
            assert_rows(to_arrow(found), commit.table, f"as of commit {number}, on Spark")
            assert_rows(opened.scan(as_of=commit.completion).to_arrow(), commit.table, f"as of commit {number}")
        for begin, end in every(4, list(itertools.combinations(range(len(self.commits)), 2))):
            first, last = self.commits[begin], self.commits[end]
            changed = _changed(first.table, last.table)
            scan = opened.scan(begin=first.completion, end=last.completion)
            assert_rows(scan.to_arrow(), changed, f"changes from commit {begin} to {end}")
        self._check_images(opened)

    def _check_images(self, opened: HudiTable) -> None:
        changes = opened.changes("earliest").to_arrow().to_pylist()
        names = self.table.schema.names
        for number, ts in enumerate(sorted({change["ts_ms"] for change in changes})):
            before = self.commits[number - 1].table.rows if number else {}
            after = self.commits[number].table.rows
            expected = {
                key: (_image(before.get(key), self.table), _image(after.get(key), self.table))
                for key in before.keys() | after.keys()
                if before.get(key, {}).get(COMMIT) != after.get(key, {}).get(COMMIT)
            }
            found = {}
            for change in (change for change in changes if change["ts_ms"] == ts):
                pair = [change["before"], change["after"]]
                images = [None if text is None else json.loads(text, parse_float=Decimal) for text in pair]
                key = next(image["id"] for image in images if image)
                found[key] = tuple(image and {name: image.get(name) for name in names} for image in images)
            assert found.keys() == expected.keys(), f"keys of the changes of commit {number}"
            for key, pair in expected.items():
                for image, wanted in zip(found[key], pair, strict=True):
                    assert image == wanted, f"image of {key} at commit {number}"

    def check_conditions(self) -> None:
        """Check that conditions find the rows that they find in the same rows of another format."""
        columns = [column for column in self.table.columns if not pa.types.is_nested(column.type)]
        rng, choices = self.table.rng, self.table.choices
        widened = [(column, "=") for column in columns if column.name in WIDENED]
        drawn = [(rng.choice(columns), rng.choice(("=", "!=", "<", "<=", ">", ">=", "in"))) for _ in range(CONDITIONS)]
        conditions = []
        for column, op in (*widened, *drawn):
            # Spark's reader takes -0.0 for less than 0.0, of any Parquet file
            usual = [value for value in edges(column.type, choices) if str(value) != "-0.0"]
            values = rng.sample(usual, min(2, len(usual)))
            conditions.append((column.name, op, values, _condition(column, op, values)))
        rows = pa.Table.from_pylist(list(self.table.rows.values()), self.table.schema)
        plain = frame_of(self.spark, rows, self.path.parent)
        flags = [sf.coalesce(made, sf.lit(False)).alias(f"met{n}") for n, (*_, made) in enumerate(conditions)]
        answers = plain.select("id", *flags).collect()
        frame = self.spark.read.format("hudi").load(str(self.path))
        for number, (name, op, values, made) in enumerate(conditions):
            found = sorted(row.id for row in frame.where(made).select("id").collect())
            assert found == sorted(row.id for row in answers if row[f"met{number}"]), f"{name} {op} {values}"


def _changed(first: TypedTable, last: TypedTable) -> TypedTable:
    """Return the rows that were written since."""
    known = {key: row[COMMIT] for key, row in first.rows.items()}
    return replace(last, rows={key: row for key, row in last.rows.items() if known.get(key) != row[COMMIT]})


def _image(row: dict[str, Any] | None, table: TypedTable) -> dict[str, Any] | None:
    """Return a record as in the JSON of change data."""
    if row is None:
        return None
    return {name: _json_value(row.get(name), table.schema.field(name).type) for name in table.schema.names}


def _json_value(value: Any, kind: pa.DataType) -> Any:
    if value is None:
        return None
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, float):
        if math.isnan(value) or math.isinf(value):
            return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        return Decimal(repr(value))
    if pa.types.is_struct(kind):
        return {inner.name: _json_value(value[inner.name], inner.type) for inner in kind}
    if pa.types.is_map(kind):
        return {key: _json_value(inner, kind.item_type) for key, inner in value}
    if pa.types.is_list(kind):
        return [_json_value(inner, kind.value_type) for inner in value]
    return value


def _condition(column: Column, op: str, values: list[Any]) -> SparkColumn:
    named = sf.col(f"`{column.name}`")
    first, *others = (_literal(column.type, value) for value in values)
    if op == "in":
        return named.isin(first, *others)
    made = {"=": named == first, "!=": named != first, "<": named < first, "<=": named <= first}
    return {**made, ">": named > first, ">=": named >= first}[op]


def _literal(kind: pa.DataType, value: Any) -> SparkColumn:
    if pa.types.is_date(kind):
        return sf.expr(f"date_from_unix_date({value})")
    if pa.types.is_timestamp(kind):
        moment = sf.expr(f"timestamp_micros({value}L)")
        return moment if kind.tz else moment.cast("timestamp_ntz")
    if isinstance(value, bytes):
        return sf.lit(bytearray(value))
    return sf.lit(value).cast(from_arrow_type(kind))


CASES = each_choice((6, 8, 9), list(STORAGES))


@classic
@pytest.mark.parametrize(("version", "storage"), CASES)
def test_what_was_written_is_read(spark: SparkSession, tmp_path: Path, version: int, storage: str) -> None:
    for number in range(examples(1)):
        live(spark, tmp_path / str(number), version, storage, seed=100 * number + 10 * version + len(storage))


def live(spark: SparkSession, folder: Path, version: int, storage: str, seed: int) -> None:
    """Write a table by every operation, and check all queries."""
    folder.mkdir(exist_ok=True)
    life = TypedLife(spark, folder / "t", version, storage, seed)
    life.write(life.table.upsert(range(12)), "insert")
    life.write(life.table.upsert(range(3, 15)), "upsert")
    life.write(life.table.delete([0, 5]), "delete")
    life.assign(range(2, 8))
    life.serve()
    life.table.widen()
    life.write(life.table.upsert([1, 2, 15]), "upsert")
    life.check_conditions()
    life.check_history()


OFTEN = (pa.timestamp("us"),)
KINDS = [kind if kind in OFTEN else seldom(kind) for kind in LEAVES]


@classic
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_partition_columns(spark: SparkSession, tmp_path: Path, kind: pa.DataType) -> None:
    """Values of partition columns are read as they were written, and found by conditions."""
    column = Column("p", kind)
    values = [value for value in (*edges(kind, Choices(far=False)), None) if len(str(value)) < 100]
    schema = pa.schema([("id", pa.string()), ("p", kind), ("v", pa.int64())])
    rows = pa.Table.from_pylist([{"id": f"k{n}", "p": value, "v": n} for n, value in enumerate(values)], schema)
    options = {
        "hoodie.table.name": "typed",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.precombine.field": "v",
        "hoodie.datasource.write.partitionpath.field": "p",
        "hoodie.datasource.write.partitionpath.urlencode": "true",
    }
    path, frame = str(tmp_path / "t"), frame_of(spark, rows, tmp_path)
    for batch in (frame, frame.where("v % 2 = 0")):
        batch.write.format("hudi").options(**options).mode("append").save(path)
    loaded = spark.read.format("hudi").load(path)
    expected = comparable(rows, schema.names)
    assert comparable(to_arrow(loaded), schema.names) == expected
    assert comparable(HudiTable.for_path(path).scan().to_arrow(), schema.names) == expected
    for value in every(3, values[:-1]):
        if str(value) == "-0.0":
            continue
        for op in every(2, ("=", "<", ">=")):
            made = _condition(column, op, [value])
            found = sorted(row.id for row in loaded.where(made).select("id").collect())
            assert found == sorted(row.id for row in frame.where(made).select("id").collect()), (op, value)
