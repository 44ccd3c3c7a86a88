"""Tables of columns of random types that pyhudi writes by every operation and Apache Hudi reads, and goes on with."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from pyhudi.api.hudi_table import HudiTable
from tests.cases import seldom
from tests.interop.harness.oracle import Oracle
from tests.interop.harness.scenarios import NO_METADATA_TABLE, PARALLELISM
from tests.properties import FACTOR, examples
from tests.random_types import Choices, TypedTable, assert_rows, frame_of
from tests.spark_arrow import to_arrow

STORAGES = {
    "copy on write": {},
    "avro logs": {"hoodie.logfile.data.block.format": "avro"},
    "parquet logs": {"hoodie.logfile.data.block.format": "parquet"},
}
VERSIONS = {"0.15.0": 6, "1.0.2": 8, "1.2.0": 9}
OLD_DATES = {
    f"spark.sql.parquet.{name}": "CORRECTED" for name in ("datetimeRebaseModeInRead", "datetimeRebaseModeInWrite")
}
"""Settings without which Spark refuses dates before 1582-10-15 and timestamps before 1900 in files."""


@pytest.fixture
def reading_old_dates(oracle: Oracle) -> Iterator[Oracle]:
    settings = {**OLD_DATES, **NO_METADATA_TABLE}
    oracle.sql(*(f"SET {key}={value}" for key, value in settings.items()))
    yield oracle
    oracle.sql(*(f"RESET {key}" for key in settings))


class Shared:
    """A table of random types at ``path`` that both sides write."""

    def __init__(self, path: Path, oracle: Oracle, spark: SparkSession, storage: str, seed: int) -> None:
        self.path, self.oracle, self.spark = path, oracle, spark
        # Its Avro writer refuses nulls in lists, and lists of structs in each other ("Can't redefine: array"). If a
        # decimal and a struct have the same name in different structs, it does not even merge files of its own ("Can't
        # redefine: z"). Releases before 1.1 refuse times without a zone.
        local_times = oracle.release == "1.2.0"
        choices = Choices(local_times=local_times, null_items=False, lists_in_lists=False, same_fields=False)
        self.table = TypedTable.draw(seed, choices)
        self.merge_on_read = storage != "copy on write"
        self.options = {
            "hoodie.table.name": "typed",
            "hoodie.datasource.write.table.type": "MERGE_ON_READ" if self.merge_on_read else "COPY_ON_WRITE",
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.precombine.field": "ts",
            "hoodie.datasource.write.partitionpath.field": "part",
            "hoodie.compact.inline": "false",
            **NO_METADATA_TABLE,
            **STORAGES[storage],
        }
        self._step, self._changes = 0, 0

    def ours(self, rows: pa.Table, operation: str) -> None:
        """Write rows by pyhudi."""
        frame = frame_of(self.spark, rows, self.path.parent)
        options = {"hoodie.write.table.version": str(VERSIONS[self.oracle.release]), **self._with(operation)}
        frame.write.format("hudi").options(**options).mode("append").save(str(self.path))
        self.check(f"our {operation}")

    def theirs(self, rows: pa.Table, operation: str) -> None:
        """Write rows by Apache Hudi, whose older releases make lists that are only copied nulls after their row
        writer."""
        options = {**self._with(operation), **PARALLELISM, "hoodie.datasource.write.row.writer.enable": "false"}
        self.oracle.write(self.path, rows, options)
        self.check(f"their {operation}")

    def _with(self, operation: str) -> dict[str, str]:
        return {**self.options, "hoodie.datasource.write.operation": operation}

    def our_update(self, numbers: range) -> None:
        """Assign one column of each type to another one of it."""
        pairs, where = self.table.assign(numbers)
        HudiTable.for_path(str(self.path)).update({n: f"`{other}`" for n, other in pairs.items()}, where=where)
        self.check("our update")

    def their_update(self, numbers: range) -> None:
        """Do the same by Apache Hudi's SQL."""
        pairs, where = self.table.assign(numbers)
        assignments = ", ".join(f"`{name}` = `{other}`" for name, other in pairs.items())
        self._their_sql(f"UPDATE {{}} SET {assignments} WHERE {where}")
        self.check("their update")

    def their_service(self) -> None:
        """Let Apache Hudi compact or cluster; before 1.2 its compactions are wrong (`docs/format/core.md`, 10, 22)."""
        if self.merge_on_read and self.oracle.release != "1.2.0":
            return
        call = (
            "run_compaction(table => '{}', op => 'scheduleandexecute', "
            "options => 'hoodie.compact.inline.max.delta.commits=1')"
            if self.merge_on_read
            else "run_clustering(table => '{}', order => 'id')"
        )
        self._their_sql(f"CALL {call}")
        self.check("their service")

    def our_service(self) -> None:
        """Compact or cluster."""
        services = HudiTable.for_path(str(self.path)).services
        if self.merge_on_read:
            services.compact()
        else:
            services.cluster()
        self.check("our service")

    def _their_sql(self, statement: str) -> None:
        self._step += 1
        name = f"typed{id(self)}_{self._step}"
        try:
            self.oracle.sql(f"CREATE TABLE {name} USING hudi LOCATION '{self.path}'", statement.format(name))
        finally:
            self.oracle.sql(f"DROP TABLE IF EXISTS {name}")

    def check(self, what: str) -> None:
        """Check that all readers find the rows of the model, after every second change where checks are skipped."""
        self._changes += 1
        if FACTOR < 1 and self._changes % 2:
            return
        theirs = self.oracle.read(self.path)
        assert_rows(theirs, self.table, f"{what}, read by Apache Hudi")
        ours = self.spark.read.format("hudi").load(str(self.path))
        assert_rows(to_arrow(ours), self.table, f"{what}, read on Spark")
        assert_rows(HudiTable.for_path(str(self.path)).scan().to_arrow(), self.table, f"{what}, read without Spark")


CASES = [case for case in itertools.product(VERSIONS, STORAGES) if case[0] != "1.0.2" or case[1] == "copy on write"]
"""Merge-on-read tables of 1.0.2 alone fail, too: its upserts by a NullPointerException or "Can't redefine: value", its
reads by "Integer cannot be cast to Long"."""
OFTEN = ("1.2.0", "parquet logs")


@pytest.mark.parametrize(
    ("oracle", "storage"), [case if case == OFTEN else seldom(case) for case in CASES], indirect=["oracle"]
)
def test_each_goes_on_with_what_the_other_wrote(
    reading_old_dates: Oracle, storage: str, spark: SparkSession, tmp_path: Path
) -> None:
    oracle = reading_old_dates
    for number in range(examples(1)):
        (folder := tmp_path / str(number)).mkdir()
        seed = 100 * number + VERSIONS[oracle.release] + len(storage)
        go_on(Shared(folder / "t", oracle, spark, storage, seed))


def go_on(shared: Shared) -> None:
    """Write a table in turns."""
    table = shared.table
    shared.ours(table.upsert(range(12)), "insert")
    shared.ours(table.upsert(range(3, 14)), "upsert")
    shared.ours(table.delete([0, 5]), "delete")
    shared.our_update(range(2, 6))
    shared.theirs(table.upsert(range(4, 16)), "upsert")
    shared.theirs(table.delete([1, 6]), "delete")
    shared.their_update(range(7, 12))
    shared.our_service()
    table.widen()
    shared.ours(table.upsert([2, 3, 16]), "upsert")
    shared.theirs(table.upsert([3, 4, 17]), "upsert")
    shared.their_service()
    shared.our_update(range(12, 16))
