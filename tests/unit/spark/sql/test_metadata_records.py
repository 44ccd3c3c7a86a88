"""Columns of metadata records in the types that Spark has (`pyhudi.spark.sql.queries.functions.metadata_records`)."""

from __future__ import annotations

import pyarrow as pa
import pytest

from pyhudi.spark.sql.queries.functions.metadata_records import _converted, _without_times

ROWS = [{"at": [1, 2]}, {"at": None}, None, {"at": []}, {"at": [3]}]


@pytest.mark.parametrize("start", range(len(ROWS)))
def test_slices_of_batches_are_converted(start: int) -> None:
    """A file group is read as batches that are slices of larger ones."""
    times = pa.array(ROWS, pa.struct([("at", pa.list_(pa.time64("us")))])).slice(start)
    converted = _converted(times, _without_times(times.type))
    converted.validate(full=True)
    assert converted.to_pylist() == ROWS[start:]
