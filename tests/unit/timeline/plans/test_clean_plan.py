"""Plans and results of cleans, as bytes."""

from __future__ import annotations

import time

import pyarrow as pa

from pyhudi.timeline.action_avro import decode_record
from pyhudi.timeline.instant import Action, State
from pyhudi.timeline.plans.clean_plan import EXPIRED_SCHEMA, CleanPlan, clean_metadata


def test_results_that_drop_many_partitions_take_linear_time() -> None:
    """The table's lock is held meanwhile: 14 seconds for these when each was looked for in a list."""
    partitions = [f"p={number:05d}" for number in range(30_000)]
    files = pa.table([partitions, ["f"] * len(partitions), [1] * len(partitions)], schema=EXPIRED_SCHEMA)
    begun = time.process_time()
    data = clean_metadata(CleanPlan(files), "1" * 17, 0, version=9, dropped=partitions[1:], extra={})
    assert time.process_time() - begun < 5
    parts = decode_record(Action.CLEAN, State.COMPLETED, data)["partitionMetadata"]
    assert {path for path, part in parts.items() if not part["isPartitionDeleted"]} == {partitions[0]}
