"""Rows set aside come back whole, by partition, in order."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from pyhudi.write.rows.partition_spill import PartitionSpill


@settings(deadline=None)
@given(st.lists(st.lists(st.integers(0, 5), min_size=1, max_size=20), max_size=6))
def test_rows_come_back_by_partition(batches: list[list[int]]) -> None:
    spill = PartitionSpill()
    expected: dict[str, list[int]] = {}
    n = 0
    try:
        for codes in batches:
            rows = pa.RecordBatch.from_pydict({"v": list(range(n, n + len(codes))), "s": [str(c) for c in codes]})
            n += len(codes)
            for code, value in zip(codes, rows.column("v").to_pylist(), strict=True):
                expected.setdefault(f"p{code}", []).append(value)
            spill.add(rows, [f"p{i}" for i in range(6)], np.array(codes, dtype=np.int64))
        found = {p: [v for batch in rows for v in batch.column("v").to_pylist()] for p, rows in spill.read()}
        assert found == expected
    finally:
        spill.close()
