"""When the plan of a write tells where its new keys are."""

from __future__ import annotations

import pyarrow as pa
import pytest

from pyhudi.spark.write.plans.file_groups.planned_keys import matches_plan
from pyhudi.write.planning.small_files import INSERT_TARGETS_SCHEMA, INSERTS_SCHEMA
from pyhudi.write.planning.workload_profile import COUNTS_SCHEMA, GROUPS_SCHEMA, WorkloadProfile

Files = list[tuple[str, str, int | None]]


def files(rows: Files) -> pa.Table:
    partitions, ids, tails = zip(*rows, strict=True) if rows else ((), (), ())
    text = pa.string()
    return pa.table(
        [pa.array(partitions, text), pa.array(ids, text), pa.array(tails, pa.int64())],
        names=["partition", "file_id", "tail"],
    )


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([("a", "f1", 2), ("a", "f2", 3), ("b", "f3", 1)], True),
        # hashes may send other numbers to the files of a partition than were planned
        ([("a", "f1", 4), ("a", "f2", 1), ("b", "f3", 1)], True),
        ([("a", "f1", 5), ("b", "f3", 1)], True),
        # a key that the index knows, and its file does not
        ([("a", "f1", 3), ("a", "f2", 3), ("b", "f3", 1)], False),
        ([("a", "f1", 2), ("a", "f9", 3), ("b", "f3", 1)], False),
        ([("a", "f1", 2), ("a", "f2", 3)], False),
        ([("a", "f1", 2), ("a", "f3", 3), ("b", "f3", 1)], False),
        ([("a", "f1", None), ("b", "f3", 1)], False),
        ([], False),
    ],
)
def test_files_that_are_as_planned(rows: Files, expected: bool) -> None:
    inserts = pa.table([["a", "b"], [5, 1]], schema=INSERTS_SCHEMA)
    targets = pa.table([["a", "a", "b"], ["f1", "f2", "f3"], [None] * 3, [2, 3, 1]], schema=INSERT_TARGETS_SCHEMA)
    workload = WorkloadProfile(COUNTS_SCHEMA.empty_table(), inserts, targets, GROUPS_SCHEMA.empty_table())
    assert matches_plan(files(rows), workload) is expected
