"""Merge-on-read tables made by hand, slice by slice, and their rows on Spark."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from pyhudi.spark.read.load_table import load_table
from pyhudi.timeline.instant import Action
from tests.tables import HandMadeTable

MOR = {"hoodie.table.type": "MERGE_ON_READ"}
EVENT_TIME = {**MOR, "hoodie.record.merge.mode": "EVENT_TIME_ORDERING", "hoodie.table.ordering.fields": "v"}
HIVE = {"hoodie.datasource.write.hive_style_partitioning": "true"}
SCHEMA = pa.schema([("id", pa.string()), ("p", pa.string()), ("v", pa.int64()), ("w", pa.string())])


def row(key: str, v: int, w: str = "base", p: str = "a") -> dict[str, object]:
    return {"id": key, "p": p, "v": v, "w": w}


def load(spark: SparkSession, table: HandMadeTable, **options: str) -> DataFrame:
    return load_table(spark, str(table.root), options)


def values(frame: DataFrame, *columns: str) -> list[tuple]:
    return sorted((tuple(row) for row in frame.select(*columns).collect()), key=str)


def make(path, version: int = 9, properties: dict[str, str] = MOR, **more: object) -> HandMadeTable:
    """Three base files: f1 and f3 in partition a, f2 in b."""
    table = HandMadeTable(path / "t", version, schema=SCHEMA, properties=dict(properties), **more)
    prefix = "p=" if HIVE.items() <= properties.items() else ""
    files = {
        (f"{prefix}a", "f1"): [row(f"k{i}", 10) for i in range(6)],
        (f"{prefix}b", "f2"): [row(f"m{i}", 10, p="b") for i in range(3)],
        (f"{prefix}a", "f3"): [row(f"n{i}", 10) for i in range(3)],
    }
    table.write(10, files, action=Action.DELTA_COMMIT)
    return table
