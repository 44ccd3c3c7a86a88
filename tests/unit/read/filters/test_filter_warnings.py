"""Conditions on the column of a timestamp key generator."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from types import MappingProxyType
from typing import Any

import pyarrow as pa
import pytest

from pyhudi.errors import PartitionValueWarning
from pyhudi.read.filters.filter_warnings import warn_of_path_texts
from pyhudi.read.filters.row_filter import RowFilter
from pyhudi.table.config.table_config import TableConfig

SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("v", pa.string())])


def warned(condition: str | Sequence[Any], generator: str = "TIMESTAMP", kind: pa.DataType | None = None) -> list[str]:
    config = TableConfig(
        MappingProxyType(
            {
                "hoodie.table.name": "t",
                "hoodie.table.version": "9",
                "hoodie.table.keygenerator.type": generator,
                "hoodie.table.partition.fields": "ts",
            }
        )
    )
    schema = SCHEMA if kind is None else SCHEMA.set(1, pa.field("ts", kind))
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        warn_of_path_texts(config, schema, RowFilter.parse(condition))
    assert all(w.category is PartitionValueWarning for w in found)
    return [str(w.message) for w in found]


@pytest.mark.parametrize(
    "condition",
    [
        "ts = '2024/01/15'",
        "v = 'x' AND ts >= '2024/01/15'",
        [("ts", "=", "2024/01/15")],
        [[("v", "=", "x")], [("ts", "in", ["2024/01/15", "2024/01/16"])]],
    ],
)
def test_texts_of_paths(condition: str | Sequence[Any]) -> None:
    (message,) = warned(condition)
    assert "'2024/01/15'" in message
    assert "int64" in message
    assert "_hoodie_partition_path" in message


@pytest.mark.parametrize(
    "condition",
    ["ts = 1705312800", "ts = '1705312800'", "v = '2024/01/15'", "_hoodie_partition_path = '2024/01/15'", "ts IS NULL"],
)
def test_others(condition: str) -> None:
    assert warned(condition) == []


def test_columns_that_are_text() -> None:
    assert warned("ts = '2024/01/15'", kind=pa.string()) == []
    assert warned("ts = '2024/01/15'", "SIMPLE") == []
