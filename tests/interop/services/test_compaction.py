"""Apache Hudi and pyhudi run each other's compaction plans, read what comes out, and go on writing to it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest

from pyhudi.api.hudi_table import HudiTable
from tests.cases import seldom
from tests.interop.harness.oracle import Oracle
from tests.interop.harness.scenarios import NO_COLUMN_STATISTICS
from tests.rows import assert_same_rows

SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("p", pa.string()),
        ("ts", pa.int64()),
        ("v", pa.string()),
        ("_hoodie_is_deleted", pa.bool_()),
    ]
)
COMPARED = ["_hoodie_commit_time", "_hoodie_record_key", "_hoodie_partition_path", "id", "p", "ts", "v"]
CASES = [
    seldom(pytest.param("0.15.0", 6, id="v6")),
    seldom(pytest.param("1.0.2", 8, id="v8")),
    seldom(pytest.param("1.1.1", 9, id="v9-1.1.1")),
    pytest.param("1.2.0", 9, id="v9"),
]
LOW = {"hoodie.log.compaction.blocks.threshold": "2"}


class Shared:
    """A merge-on-read table of Apache Hudi's, ordered by event time, in two partitions. The ordering column has the
    name that 0.15.0 takes it to have when the procedure runs a compaction."""

    def __init__(self, path: Path, oracle: Oracle) -> None:
        self.path, self.oracle = path, oracle
        self.round = 0

    @property
    def table(self) -> HudiTable:
        return HudiTable.for_path(str(self.path))

    def write(
        self,
        numbers: Sequence[int],
        *,
        late: Sequence[int] = (),
        deleted: Sequence[int] = (),
        merged_by_us: bool = False,
    ) -> None:
        """Let Apache Hudi upsert these, some with an event time of the past, some as deletes."""
        self.round += 1
        if self.oracle.release == "1.0.2":
            # run by the procedure its compaction fails on its own deletes (Integer / Long ClassCastException), and
            # lets events of the past win; its snapshots do not
            late, deleted = late if merged_by_us else (), ()
        rows = [
            {
                "id": f"k{n}",
                "p": "ab"[n % 2],
                "ts": 1 if n in late else 10 * self.round,
                "v": f"round {self.round}",
                "_hoodie_is_deleted": n in deleted,
            }
            for n in [*numbers, *late, *deleted]
        ]
        options = {
            "hoodie.table.name": "shared",
            "hoodie.datasource.write.table.type": "MERGE_ON_READ",
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.partitionpath.field": "p",
            "hoodie.datasource.write.precombine.field": "ts",
            "hoodie.datasource.write.operation": "upsert",
            "hoodie.datasource.write.payload.class": "org.apache.hudi.common.model.DefaultHoodieRecordPayload",
            "hoodie.upsert.shuffle.parallelism": "2",
            "hoodie.compact.inline": "false",
            **NO_COLUMN_STATISTICS,
        }
        self.oracle.write(self.path, pa.Table.from_pylist(rows, schema=SCHEMA), options)

    def procedure(self, op: str) -> None:
        """Apache Hudi's ``run_compaction``."""
        self.oracle.sql(
            "SET hoodie.compact.inline.max.delta.commits=1", f"CALL run_compaction(op => '{op}', path => '{self.path}')"
        )

    def agree(self) -> pa.Table:
        """Both read the same rows."""
        theirs = self.oracle.read(self.path)
        assert_same_rows(self.table.scan().to_arrow(), theirs, COMPARED)
        return theirs

    def completed(self) -> list[str]:
        """Requested times of the commits of compactions, as Apache Hudi sees them."""
        return [i.requested for i in self.oracle.timeline(self.path) if i.action == "commit" and i.state == "COMPLETED"]


@pytest.mark.parametrize(("oracle", "version"), CASES, indirect=["oracle"])
def test_plans_change_hands(oracle: Oracle, version: int, tmp_path: Path):
    shared = Shared(tmp_path / "table", oracle)
    shared.write(range(12))
    assert shared.table.config.version == version
    shared.write([0, 1, 2], late=[3], deleted=[4])
    before = shared.agree()

    # our plan, their run
    plan = shared.table.services.schedule_compaction()
    assert plan.instant is not None
    assert_same_rows(shared.agree(), before, COMPARED)
    shared.write([0, 5, 12], deleted=[1])
    before = shared.agree()
    shared.procedure("run")
    assert shared.completed() == [plan.instant]
    assert_same_rows(shared.agree(), before, COMPARED)

    # their plan, our run
    shared.write([0], late=[7, 8], merged_by_us=True)
    before = shared.agree()
    shared.procedure("schedule")
    (theirs,) = shared.table.services.pending_compactions()
    shared.write([0, 6], late=[7])
    before = shared.agree()
    assert shared.table.services.run_compaction().instants == (theirs.instant,)
    assert shared.completed() == [plan.instant, theirs.instant]
    assert_same_rows(shared.agree(), before, COMPARED)

    # and on it goes, with logs put together by us
    shared.write([0, 1, 2, 3], deleted=[5])
    shared.write([0, 1], late=[2, 3])
    before = shared.agree()
    assert shared.table.services.log_compact(LOW).num_log_files >= 4
    assert_same_rows(shared.agree(), before, COMPARED)
    shared.write([1, 5], late=[0])
    before = shared.agree()
    shared.procedure("schedule")
    shared.procedure("run")
    assert_same_rows(shared.agree(), before, COMPARED)
    assert not any(shared.table.inspect.file_slices()["log_paths"].to_pylist())


@pytest.mark.slow
@pytest.mark.parametrize(("oracle", "version"), CASES, indirect=["oracle"])
def test_ranges_that_end_inside_a_compaction(oracle: Oracle, version: int, tmp_path: Path):
    """A compaction is planned, a delta commit is completed, and then the compaction, which takes up an earlier one. No
    row of an incremental query is missing, wherever it begins and ends."""
    shared = Shared(tmp_path / "table", oracle)
    shared.write(range(6))
    shared.write([0, 1])
    plan = shared.table.services.schedule_compaction()
    shared.write([2, 3])
    shared.table.services.run_compaction(plan.instant)
    shared.write([3, 4])
    assert shared.table.config.version == version
    writes = [i for i in oracle.timeline(shared.path) if i.action == "deltacommit"]
    times = [shared.table.completion_of(i.requested) for i in writes]
    expected = {
        (1, 2): {"k0": 2, "k1": 2},
        (1, 3): {"k0": 2, "k1": 2, "k2": 3, "k3": 3},
        (1, 4): {"k0": 2, "k1": 2, "k2": 3, "k3": 4, "k4": 4},
        (2, 3): {"k2": 3, "k3": 3},
        (2, 4): {"k2": 3, "k3": 4, "k4": 4},
        (3, 4): {"k3": 4, "k4": 4},
    }
    for (begin, end), rows in expected.items():
        options = {
            "hoodie.datasource.query.type": "incremental",
            "hoodie.datasource.read.begin.instanttime": _after(oracle, times[begin - 1]),
            "hoodie.datasource.read.end.instanttime": times[end - 1],
        }
        ours = shared.table.scan(begin=times[begin - 1], end=times[end - 1]).to_arrow()
        theirs = oracle.read(shared.path, options)
        found, other = ({r["id"]: int(r["v"][-1]) for r in t.select(["id", "v"]).to_pylist()} for t in (ours, theirs))
        assert found == rows == other, (begin, end)


def _after(oracle: Oracle, time: str) -> str:
    """The begin of a range, which 1.0.2 takes as inclusive."""
    if oracle.release != "1.0.2":
        return time
    later = dt.datetime.strptime(time + "000", "%Y%m%d%H%M%S%f") + dt.timedelta(milliseconds=1)
    return later.strftime("%Y%m%d%H%M%S%f")[:17]
