"""Tables of older payload classes through Spark: what Apache Hudi 1.2.0 answered (recorded), whoever merges."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from pyhudi.api.hudi_table import HudiTable
from pyhudi.format.log import BlockType, decode_deletes
from pyhudi.spark.write.dataframe_writer import write
from pyhudi.table.config.payload_classes import PAYLOADS
from tests.cases import seldom
from tests.spark.model import frame, options, rows_of
from tests.spark.write.log_files import blocks
from tests.spark_arrow import to_arrow
from tests.unit.merge.recorded_merges import FAULTS, RECORDED, SCENARIOS, STEPS, batch_of, several

CLASSES = {
    "default": "DefaultHoodieRecordPayload",
    "dms": "AWSDmsAvroPayload",
    "event": "EventTimeAvroPayload",
    "latest": "OverwriteWithLatestAvroPayload",
    "my": "MySqlDebeziumAvroPayload",
    "nondef": "OverwriteNonDefaultsWithLatestAvroPayload",
    "partial": "PartialUpdateAvroPayload",
    "pg": "PostgresDebeziumAvroPayload",
}
ORDERING = {"pg": "_event_lsn", "my": "_event_pos"}
LOG_COMPACTION = {"hoodie.log.compaction.blocks.threshold": "2"}
OFTEN = {"v6_mor_my", "v9_mor_dms", "v8_mor_pg", "v9_mor_nondef"}
"""Each class that does more than order, once."""
CASES = [name if name in OFTEN else seldom(name) for name in RECORDED["tables"] if "_mor_" in name]


def class_of(kind: str) -> str:
    return next(name for name in PAYLOADS if name.endswith("." + CLASSES[kind]))


class Recorded:
    """A table that gets the batches of the recorded ones."""

    def __init__(self, spark: SparkSession, path: Path, name: str) -> None:
        self.spark, self.path = spark, str(path)
        version, _, self.kind = name.split("_")
        self.stored = RECORDED["tables"][name]["properties"]
        ordering = ("hoodie.table.ordering.fields", "hoodie.table.precombine.field")
        self.more = {
            "hoodie__datasource__write__table__type": "MERGE_ON_READ",
            "hoodie__write__table__version": version[1:],
            "hoodie__datasource__write__recordkey__field": "k",
            "hoodie__datasource__write__partitionpath__field": "",
            "hoodie__datasource__write__precombine__field": next(self.stored[k] for k in ordering if k in self.stored),
            "hoodie__datasource__write__payload__class": class_of(self.kind),
            "hoodie__compact__inline": "false",
            "hoodie__metadata__enable": "false",
        }

    @property
    def table(self) -> HudiTable:
        return HudiTable.for_path(self.path)

    def write(self, operation: str, rows: Sequence[tuple[str, Any]]) -> None:
        batch = batch_of(self.kind, list(rows))
        values = [tuple(row.values()) for row in batch.to_pylist()]
        df = self.spark.createDataFrame(values, from_arrow_schema(batch.schema)).coalesce(1)
        write(df, self.path, options(operation, **self.more))

    def rows(self, found: pa.Table) -> dict[str, list[Any]]:
        names = (ORDERING.get(self.kind, "o"), "a", "b")
        return {row["k"]: [row[name] for name in names] for row in found.to_pylist()}

    def snapshot(self) -> dict[str, list[Any]]:
        return self.rows(self.table.scan().to_arrow())


@pytest.mark.parametrize("name", CASES)
def test_the_rows_of_apache_hudi(spark: SparkSession, tmp_path: Path, name: str) -> None:
    recorded = Recorded(spark, tmp_path / "table", name)
    answers, faults = RECORDED["tables"][name]["answers"], FAULTS.get(name, ("", ()))[1]
    recorded.write("bulk_insert", [(key, steps[0]) for key, steps in SCENARIOS.items()])
    assert recorded.stored.items() <= recorded.table.config.properties.items()
    for step, place in STEPS.items():
        if step not in answers:
            continue
        given = {key: steps[place] for key, steps in SCENARIOS.items() if steps[place]}
        if step == "d":
            recorded.write("delete", [(key, [3, "z", "z"]) for key in given])
        else:
            recorded.write("upsert", [(key, row) for key, rows in given.items() for row in several(rows)])
        found = recorded.snapshot()
        assert step in faults or {key: found.get(key) for key in given} == answers[step], step
    assert recorded.rows(to_arrow(recorded.table.scan().to_spark(spark))) == found
    assert recorded.table.services.log_compact(LOG_COMPACTION).instants
    assert recorded.snapshot() == found
    assert recorded.table.services.compact().instants
    assert recorded.snapshot() == found


@pytest.mark.parametrize("name", ["v6_mor_pg", seldom("v8_mor_my")])
def test_late_deletes_of_debezium(spark: SparkSession, tmp_path: Path, name: str) -> None:
    """They lose in copy-on-write tables, as in 0.15.0, 1.0.2, 1.1.1 and 1.2.0."""
    recorded = Recorded(spark, tmp_path / "table", name)
    recorded.more["hoodie__datasource__write__table__type"] = "COPY_ON_WRITE"
    recorded.write("bulk_insert", [(key, [10, "A", "B"]) for key in ("late", "later")])
    recorded.write("upsert", [("late", ("x", 5)), ("later", ("x", 20))])
    assert recorded.snapshot() == {"late": [10, "A", "B"]}


@pytest.mark.parametrize("version", [6, seldom(8)])
def test_sequences_of_mysql(spark: SparkSession, tmp_path: Path, version: int) -> None:
    """Below version 9 the class orders by the numbers in ``_event_seq``; it needs no other column, and deletes in log
    files carry the text. Recorded from tables of 0.15.0 and 1.0.2, which 1.2.0 read."""
    path = tmp_path / "table"
    schema = "id string, part string, _event_seq string, v string, _change_operation_type string"
    more = {
        "hoodie__datasource__write__table__type": "MERGE_ON_READ",
        "hoodie__write__table__version": version,
        "hoodie__datasource__write__precombine__field": "_event_seq",
        "hoodie__datasource__write__payload__class": class_of("my"),
        "hoodie__compact__inline": "false",
    }
    base = [(f"k{i}", "p", "000001.10", "base", "u") for i in range(8)]
    write(frame(spark, base, schema).coalesce(1), str(path), options("bulk_insert", **more))  # type: ignore[arg-type]
    rows = [
        ("k0", "p", "000001.9", "9", "u"),
        ("k1", "p", "000010.1", "file 10", "u"),
        ("k2", "p", "000001.10", "tie", "u"),
        ("k3", "p", "000001.11", "11", "u"),
        ("k3", "p", "000001.9", "9", "u"),
        ("k4", "p", "000001.5", "", "d"),
        ("k6", "p", "000001.20", "", "d"),
    ]
    write(frame(spark, rows, schema).coalesce(1), str(path), options("upsert", **more))  # type: ignore[arg-type]
    (deletes,) = (block for block in blocks(path) if block.type is BlockType.DELETE)
    found = decode_deletes(deletes, pa.schema([("_event_seq", pa.string())])).to_pylist()
    assert [(row["_hoodie_record_key"], row["_event_seq"]) for row in found] == [
        ("k4", "000001.5"),
        ("k6", "000001.20"),
    ]
    late = [("k6", "p", "000001.15", "after", "u"), ("k1", "p", "000009.1", "file 9", "u")]
    moved = {"hoodie__index__type": "GLOBAL_SIMPLE", "hoodie__simple__index__update__partition__path": "true"}
    late += [("k5", "q", "000001.9", "stays", "u"), ("k7", "q", "000001.100", "moves", "u")]
    write(frame(spark, late, schema), str(path), options("upsert", **more, **moved))  # type: ignore[arg-type]
    expected = [
        ("k0", "p", "base"),
        ("k1", "p", "file 10"),
        ("k2", "p", "tie"),
        ("k3", "p", "11"),
        ("k5", "p", "base"),
        ("k6", "p", "after"),
        ("k7", "q", "moves"),
    ]
    assert rows_of(path, ("id", "part", "v")) == expected
    assert HudiTable.for_path(str(path)).services.compact().instants
    assert rows_of(path, ("id", "part", "v")) == expected
