"""Partitions left out by their paths."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest

from pyhudi.read.filters.row_filter import RowFilter
from pyhudi.read.pruning.partition_pruning import prune_paths
from pyhudi.read.schema.partition_values import decode_paths
from pyhudi.table.config.table_config import TableConfig


def kept(kind: pa.DataType, paths: list[str], *terms: Any) -> list[str]:
    config = TableConfig({"hoodie.table.name": "t", "hoodie.table.partition.fields": "p"})
    schema = pa.schema([("id", pa.int64()), ("p", kind)])
    rows = RowFilter.parse(list(terms))
    assert rows is not None
    return prune_paths(config, schema, decode_paths(config, schema, paths), rows)["partition"].to_pylist()


@pytest.mark.parametrize(
    ("op", "value", "expected"),
    [
        ("<", 1.5, ["0", "1"]),
        (">=", 1.5, ["2"]),
        ("=", 1.5, []),
        ("!=", 1.5, ["0", "1", "2"]),
        ("in", [0, 1.5], ["0"]),
        ("not in", [0, 1.5], ["1", "2"]),
        ("<", 10**20, ["0", "1", "2"]),
    ],
)
def test_whole_numbers(op: str, value: Any, expected: list[str]) -> None:
    assert kept(pa.int32(), ["0", "1", "2"], ("p", op, value)) == expected


@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()])
@pytest.mark.parametrize("value", [0.7, -0.0, math.nan])
def test_nothing_is_certain_of_floating_point_numbers(kind: pa.DataType, value: float) -> None:
    paths = ["0.0", "0.7", "NaN"]
    assert kept(kind, paths, ("p", ">", value)) == kept(kind, paths, ("p", "=", value)) == paths
