"""Apache Hudi and pyhudi run each other's clustering plans, read what comes out, and go on writing to it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pyhudi.api.hudi_table import HudiTable
from tests.cases import seldom
from tests.interop.harness.oracle import Oracle
from tests.interop.harness.scenarios import NO_COLUMN_STATISTICS
from tests.rows import assert_same_rows

SCHEMA = pa.schema([("id", pa.string()), ("p", pa.string()), ("ts", pa.int64()), ("v", pa.string())])
COMPARED = ["_hoodie_commit_time", "_hoodie_commit_seqno", "_hoodie_record_key", "id", "p", "ts", "v"]
CASES = [
    seldom(pytest.param("0.15.0", 6, "COPY_ON_WRITE", id="v6")),
    seldom(pytest.param("1.0.2", 8, "MERGE_ON_READ", id="v8")),
    seldom(pytest.param("1.1.1", 9, "MERGE_ON_READ", id="v9-1.1.1")),
    pytest.param("1.2.0", 9, "MERGE_ON_READ", id="v9"),
]
COPIED = {"hoodie.clustering.plan.strategy.class": "SparkStreamCopyClusteringPlanStrategy"}
SORTED = {"hoodie.clustering.plan.strategy.sort.columns": "v"}


class Shared:
    """A table of Apache Hudi's in two partitions."""

    def __init__(self, path: Path, oracle: Oracle, table_type: str) -> None:
        self.path, self.oracle, self.table_type = path, oracle, table_type
        self.round = 0

    @property
    def table(self) -> HudiTable:
        return HudiTable.for_path(str(self.path))

    def write(self, numbers: Sequence[int], operation: str = "upsert", **more: str) -> None:
        """Let Apache Hudi write rows. Dots of options are double underscores."""
        self.round += 1
        rows = [{"id": f"k{n}", "p": "ab"[n % 2], "ts": self.round, "v": f"{9 - n % 7} {self.round}"} for n in numbers]
        options = {
            "hoodie.table.name": "shared",
            "hoodie.datasource.write.table.type": self.table_type,
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.partitionpath.field": "p",
            "hoodie.datasource.write.precombine.field": "ts",
            "hoodie.datasource.write.operation": operation,
            "hoodie.parquet.small.file.limit": "0",
            "hoodie.compact.inline": "false",
            **NO_COLUMN_STATISTICS,
            **{key.replace("__", "."): value for key, value in more.items()},
        }
        self.oracle.write(self.path, pa.Table.from_pylist(rows, schema=SCHEMA), options)

    def procedure(self, op: str) -> None:
        """Apache Hudi's ``run_clustering``."""
        self.oracle.sql(f"CALL run_clustering(op => '{op}', path => '{self.path}', order => 'v')")

    def agree(self) -> pa.Table:
        """Both read the same rows."""
        theirs = self.oracle.read(self.path)
        assert_same_rows(self.table.scan().to_arrow(), theirs, COMPARED)
        return theirs

    def replacements(self) -> list[str]:
        """Requested times of completed replacements, as Apache Hudi sees them."""
        found = self.oracle.timeline(self.path)
        return [i.requested for i in found if i.action == "replacecommit" and i.state == "COMPLETED"]


@pytest.mark.parametrize(("oracle", "version", "table_type"), CASES, indirect=["oracle"])
def test_plans_change_hands(oracle: Oracle, version: int, table_type: str, tmp_path: Path):
    shared = Shared(tmp_path / "table", oracle, table_type)
    shared.write(range(12), "bulk_insert")
    assert shared.table.config.version == version
    shared.write([0, 1, 2])
    shared.write([20, 21])
    before = shared.agree()
    begin = max(i["completed"] or i["requested"] for i in shared.table.history().to_pylist())

    # our plan, their run
    plan = shared.table.services.schedule_clustering(SORTED)
    assert plan.instant is not None
    assert_same_rows(shared.agree(), before, COMPARED)
    shared.procedure("execute")
    assert shared.replacements() == [plan.instant]
    assert_same_rows(shared.agree(), before, COMPARED)

    # their plan, our run
    shared.write([0, 5, 30, 31])
    before = shared.agree()
    shared.procedure("schedule")
    (theirs,) = shared.table.services.pending_clusterings()
    assert theirs.sort_columns == ("v",)
    assert shared.table.services.run_clustering().instants == (theirs.instant,)
    assert shared.replacements() == [plan.instant, theirs.instant]
    assert_same_rows(shared.agree(), before, COMPARED)

    # both tell the same changes, and go on
    options = {"hoodie.datasource.query.type": "incremental", "hoodie.datasource.read.begin.instanttime": begin}
    changes = shared.table.scan(begin=begin).to_arrow()
    assert set(changes["id"].to_pylist()) == {"k0", "k5", "k30", "k31"}
    if oracle.release != "1.0.2":  # which takes the begin as part of the range
        assert_same_rows(changes, oracle.read(shared.path, options), COMPARED)
    shared.write([0, 31])
    assert shared.agree().num_rows == before.num_rows


@pytest.mark.parametrize("oracle", [seldom("1.2.0")], indirect=True)
def test_row_groups_are_copied(oracle: Oracle, tmp_path: Path):
    """Apache Hudi reads and goes on with files that were concatenated here, of its files and ours, and carries out our
    plans to concatenate files."""
    shared = Shared(tmp_path / "table", oracle, "COPY_ON_WRITE")
    shared.write(range(10), "insert")
    shared.write(range(10, 20), "insert")
    before = shared.agree()
    plan = shared.table.services.schedule_clustering(COPIED)
    shared.procedure("execute")
    assert shared.replacements() == [plan.instant]
    assert_same_rows(shared.agree(), before, COMPARED)

    shared.write(range(20, 40), "insert")
    before = shared.agree()
    result = shared.table.services.cluster(COPIED)
    assert (result.num_replaced, result.num_files) == (4, 2)
    for path in result.stats["path"].to_pylist():
        assert pq.read_metadata(shared.path / path).num_row_groups >= 2
    theirs = shared.agree()
    assert_same_rows(theirs, before, COMPARED)
    assert set(theirs["_hoodie_file_name"].to_pylist()) == {
        p.rpartition("/")[2] for p in result.stats["path"].to_pylist()
    }
    # keys are looked up in ranges and bloom filters
    shared.write([3, 13, 33, 50], "upsert", hoodie__index__type="BLOOM")
    after = shared.agree()
    assert sorted(after["id"].to_pylist()) == sorted(f"k{n}" for n in [*range(40), 50])
    assert shared.table.services.cluster(COPIED).num_files == 2
    assert_same_rows(shared.agree(), after, COMPARED)
