"""Decimals get to a task as they are in the frame."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from pyhudi.spark.execution.row_serialization import decimals, pack_rows

LARGEST = 10**15 - 1


@given(st.lists(st.none() | st.integers(-LARGEST, LARGEST)), st.integers(0, 15), st.integers(0, 3))
def test_unscaled_integers_are_the_decimals(values: list[int | None], scale: int, skipped: int) -> None:
    kind = pa.decimal128(15, scale)
    expected = [None if v is None else Decimal(v).scaleb(-scale) for v in values][skipped:]
    assert decimals(pa.array(values, pa.int64())[skipped:], kind).to_pylist() == expected


@pytest.mark.parametrize(("precision", "scale"), [(15, 0), (15, 2), (15, 14), (15, 15), (9, 3), (16, 2), (28, 10)])
def test_decimals_of_a_frame_arrive(spark: SparkSession, precision: int, scale: int) -> None:
    top = 10**precision - 1
    unscaled = [0, 1, -1, 7, 29, 57, 115, top, -top, top // 3, top // 7 * 2, 5 * 10 ** (precision - 1), None]
    values = [None if n is None else Decimal(n).scaleb(-scale) for n in unscaled]
    df = spark.createDataFrame(
        [(i, v, str(v)) for i, v in enumerate(values)], f"n int, `d` decimal({precision},{scale}), s string"
    )
    packed, unpacking = pack_rows(df)
    assert (packed.schema["d"].dataType.simpleString() == "bigint") == (precision <= 15)

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in unpacking.rows(batches):
            assert batch.schema.field("d").type == pa.decimal128(precision, scale)
            texts = pa.array([str(v) for v in batch.column("d").to_pylist()])
            yield pa.RecordBatch.from_arrays([batch.column("n"), texts, batch.column("s")], names=["n", "t", "s"])

    found = packed.mapInArrow(work, "n int, t string, s string").collect()
    assert len(found) == len(values)
    assert all(row.t == row.s for row in found), [row for row in found if row.t != row.s]
