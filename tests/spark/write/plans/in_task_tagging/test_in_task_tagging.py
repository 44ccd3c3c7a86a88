"""Upserts and deletes whose tasks look keys up by themselves do what those do that look them up before."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from pyhudi.api.hudi_table import HudiTable
from pyhudi.config.enums import TableType
from pyhudi.spark.execution import write_stages
from pyhudi.spark.write.dataframe_writer import write
from pyhudi.spark.write.plans.file_groups import file_group_planner
from pyhudi.spark.write.plans.in_task_tagging import partition_work
from pyhudi.spark.write.plans.in_task_tagging.partition_work import count_rows_by_partition, is_cheaper
from tests.cases import seldom
from tests.spark.model import Model, Row, frame, options, rows_of

OFF = {"pyhudi__index__task__rows": "0"}
BLOOM = {"hoodie__index__type": "BLOOM"}


def given(operation: str, kind: str, version: int, **more: Any) -> dict[str, Any]:
    more |= {"hoodie__datasource__write__table__type": kind, "hoodie__write__table__version": version}
    if version == 6:
        more["hoodie__datasource__write__payload__class"] = "org.apache.hudi.common.model.DefaultHoodieRecordPayload"
    # with a bloom filter of that size each file is larger than files may be, so that new keys go to new ones
    small = {"hoodie__parquet__max__file__size": "40000", "hoodie__index__bloom__num_entries": "60000"}
    return options(operation, **small, hoodie__compact__inline__max__delta__commits="2", **more)


def some(dice: random.Random, number: int, count: int) -> list[Row]:
    """Rows of any partition and time, some keys more than once."""
    return [
        (f"k{dice.randrange(40):02d}", f"p{dice.randrange(4)}", dice.randrange(5), f"v{number}.{i}")
        for i in range(count)
    ]


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """How the rows of each write were sent to the tasks."""
    found: list[str] = []
    for name in ("run_in_task_tagging", "run_upsert"):
        run = getattr(write_stages, name)

        def noted(*args: Any, name: str = name, run: Any = run, **more: Any) -> Any:
            found.append(name)
            return run(*args, **more)

        module = (
            "in_task_tagging.in_task_tagging_plan" if name == "run_in_task_tagging" else "file_groups.file_group_plan"
        )
        monkeypatch.setattr(f"pyhudi.spark.write.plans.{module}.{name}", noted)
    return found


@pytest.mark.parametrize(
    ("kind", "version", "more"),
    [
        ("COPY_ON_WRITE", 9, BLOOM),
        seldom(("COPY_ON_WRITE", 9, {})),
        seldom(("COPY_ON_WRITE", 6, OFF)),
        seldom(("MERGE_ON_READ", 9, {})),
        ("MERGE_ON_READ", 9, OFF),
        seldom(("MERGE_ON_READ", 6, {})),
    ],
)
def test_writes_against_a_dict(
    spark: SparkSession,
    tmp_path: Path,
    sent: list[str],
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    version: int,
    more: dict[str, str],
) -> None:
    monkeypatch.setattr(partition_work, "_SHARED", 1)  # files of a partition are written by several tasks
    path, model, dice = str(tmp_path / "t"), Model(), random.Random(version + len(more))
    for number in range(5):
        # ties are told apart by the values, which are the greater the later they come
        rows = sorted(some(dice, number, 30), key=lambda row: row[2])
        write(frame(spark, rows).coalesce(1), path, given("upsert", kind, version, **more))
        model.upsert(rows)
        assert rows_of(path) == model.rows
    gone = some(dice, 9, 8)
    write(frame(spark, gone), path, given("delete", kind, version, **more))
    model.delete(gone)
    assert rows_of(path) == model.rows
    back = some(dice, 10, 30)
    write(frame(spark, sorted(back, key=lambda row: row[2])).coalesce(1), path, given("upsert", kind, version, **more))
    model.upsert(sorted(back, key=lambda row: row[2]))
    assert rows_of(path) == model.rows
    assert ("run_in_task_tagging" in sent) == (more != OFF and (kind, version) != ("MERGE_ON_READ", 6))
    assert HudiTable.for_path(path).validate_metadata().num_rows == 0


def test_keys_that_log_files_delete(spark: SparkSession, tmp_path: Path, sent: list[str]) -> None:
    """Their next version goes to their file group, unless they were inserted into another one since."""
    path = str(tmp_path / "t")

    def do(operation: str, *rows: Row) -> list[Row]:
        more = {"hoodie__compact__inline": "false"}
        write(frame(spark, rows), path, {**given(operation, "MERGE_ON_READ", 9), **options(operation, **more)})
        return rows_of(path)

    do("insert", ("a", "p", 1, "a"), ("b", "p", 1, "b"))
    do("delete", ("a", "p", 2, ""), ("b", "p", 2, ""))
    assert do("upsert", ("a", "p", 3, "back")) == [("a", "p", 3, "back")]
    do("insert", ("b", "p", 3, "again"))
    sent.clear()
    assert do("upsert", ("a", "p", 4, "new")) == [("a", "p", 4, "new"), ("b", "p", 3, "again")]
    assert sent == ["run_in_task_tagging"]
    assert do("upsert", ("b", "p", 4, "new"), ("c", "p", 4, "c"))[1:] == [("b", "p", 4, "new"), ("c", "p", 4, "c")]
    assert sent == ["run_in_task_tagging"] * 2 + ["run_upsert"]
    assert do("delete", ("b", "p", 5, "")) == [("a", "p", 4, "new"), ("c", "p", 4, "c")]
    assert HudiTable.for_path(path).validate_metadata().num_rows == 0


def test_a_record_index_wants_to_know_the_keys(spark: SparkSession, tmp_path: Path, sent: list[str]) -> None:
    path = str(tmp_path / "t")
    index = {
        "hoodie__metadata__record__index__enable": "true",
        "hoodie__metadata__global__record__level__index__enable": "true",
    }
    write(frame(spark, [("a", "p", 1, "x")]), path, given("insert", "COPY_ON_WRITE", 9, **index))
    write(frame(spark, [("a", "p", 2, "y"), ("b", "p", 1, "z")]), path, given("upsert", "COPY_ON_WRITE", 9, **index))
    assert rows_of(path) == [("a", "p", 2, "y"), ("b", "p", 1, "z")]
    assert "run_in_task_tagging" not in sent


@pytest.mark.parametrize("most", [100, 5])
def test_micro_batches_without_partitions_are_counted_only_if_they_are_many(
    spark: SparkSession, tmp_path: Path, sent: list[str], monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr(file_group_planner, "UNCOUNTED_ROWS", most)
    counted: list[DataFrame] = []

    def count(rows: DataFrame) -> list[tuple[str, int]]:
        counted.append(rows)
        return count_rows_by_partition(rows)

    monkeypatch.setattr(file_group_planner, "count_rows_by_partition", count)
    path, model = str(tmp_path / "t"), Model()
    whole = given("upsert", "COPY_ON_WRITE", 9) | {"hoodie.datasource.write.partitionpath.field": ""}
    for number in range(2):
        # of rows of one key and time, the last one of the batch stays
        rows = [(f"k{i % 4}", "p", number, f"v{number}.{i}") for i in range(8)]
        write(frame(spark, rows), path, whole, cached=True)
        model.upsert(rows)
        assert rows_of(path) == model.rows
    assert sent == ["run_upsert", *["run_in_task_tagging"] * (1 if most > 8 else 2)]
    assert len(counted) == (0 if most > 8 else 1)
    # rows of several partitions of Spark go to the same file group
    apart = [(f"k{i}", "p", 3, f"last {i}") for i in range(8)]
    write(frame(spark, apart).repartition(4), path, whole, cached=True)
    model.upsert(apart)
    assert rows_of(path) == model.rows
    write(frame(spark, rows).limit(0), path, whole, cached=True)
    assert rows_of(path) == model.rows
    assert HudiTable.for_path(path).validate_metadata().num_rows == 0


def test_only_small_and_even_partitions_are_worth_it() -> None:
    def is_worth_it(
        found: list[tuple[int, int]], kind: TableType, files: int = 1, max_rows: int = 10_000, *, bloom: bool = False
    ) -> bool:
        rows, size = zip(*found, strict=True)
        names = [str(i) for i in range(len(found))]
        bases = pa.table({"partition": pa.array(names * files, pa.string())})
        partitions = pa.table({"partition": names, "rows": rows, "size": size})
        return is_cheaper(partitions, bases, kind, 2, max_rows, bloom=bloom)

    mor, cow, mib = TableType.MERGE_ON_READ, TableType.COPY_ON_WRITE, 1 << 20
    assert is_worth_it([(1000, 20 * mib)], cow)
    assert not is_worth_it([(1000, 200 * mib)], cow), "two cores would share it"
    assert is_worth_it([(1000, 200 * mib)], cow, files=2), "two tasks share its files"
    assert is_worth_it([(1000, 200 * mib)], mor), "its keys are read in a second"
    assert is_worth_it(4 * [(1000, 200 * mib)], cow), "all cores are busy"
    assert not is_worth_it(4 * [(1000, 200 * mib)], cow, max_rows=999)
    assert not is_worth_it(4 * [(1000, 2000 * mib)], mor)
    assert is_worth_it(4 * [(1000, 50 * mib)], mor, bloom=True)
    assert not is_worth_it(4 * [(1000, 200 * mib)], mor, bloom=True), "filters may exclude the files"
    none = pa.table({name: pa.array([], kind) for name, kind in (("partition", "string"), ("rows", "int64"))})
    assert not is_cheaper(none, none, mor, 2, 10_000)
