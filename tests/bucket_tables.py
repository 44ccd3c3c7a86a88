"""Options of tables with the bucket index, and writers to them that are at work at the same time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from pyhudi.spark.write.plans.buckets.bucket_plan import BucketPlan

KEYS_AND_BUCKETS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "part",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.operation": "upsert",
    "hoodie.index.type": "BUCKET",
    "hoodie.bucket.index.num.buckets": "2",
    "hoodie.compact.inline": "false",
}
"""Options of an upsert of rows (id, part, ts, v) to two buckets of each partition."""
NON_BLOCKING = {"hoodie.write.concurrency.mode": "NON_BLOCKING_CONCURRENCY_CONTROL"}


def bucket_index(number: int) -> dict[str, Any]:
    """Return the options of an index with a number of buckets in each partition."""
    return {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": number}


def meanwhile(monkeypatch: pytest.MonkeyPatch, action: Callable[[], object]) -> None:
    """Let the next write to buckets run an action, such as the write of another writer, after it was planned."""
    real = BucketPlan.write

    def write_after_another(plan: BucketPlan, instant: str) -> pa.Table:
        monkeypatch.setattr(BucketPlan, "write", real)
        action()
        return real(plan, instant)

    monkeypatch.setattr(BucketPlan, "write", write_after_another)
