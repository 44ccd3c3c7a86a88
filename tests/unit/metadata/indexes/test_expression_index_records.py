"""Records of expression indexes."""

from __future__ import annotations

import pyarrow as pa

from pyhudi.format.base_file.column_bounds import bounds_type
from pyhudi.metadata.indexes.expression_index_records import expression_stats_records
from pyhudi.metadata.records.metadata_record import decode, record_schema

STRING = 7
"""Number of the type in records."""


def test_files_without_values_have_the_type_of_the_expression() -> None:
    """As in Apache Hudi 1.2.0, which fails to merge them with others of their partition otherwise."""
    files = pa.table(
        {"partition": ["p", "p"], "name": ["a.parquet", "b.parquet"], "size": [10, 10], "kind": ["base", "base"]}
    )
    (kind,) = bounds_type(pa.schema([("v", pa.string())]))
    numbers = {"values": 2, "size": 1, "plain": 1}
    bounds = pa.array(
        [{"min": "x", "max": "y", "nulls": 0, **numbers}, {"min": None, "max": None, "nulls": 2, **numbers}], kind.type
    )
    for first in (True, False):
        records = expression_stats_records("v", files, bounds, 9, logs_have_statistics=True, is_initial=first)
        found = decode(records.values, record_schema(9), ["ColumnStatsMetadata"])["ColumnStatsMetadata"].to_pylist()
        assert [row["valueType"]["typeOrdinal"] for row in found] == [STRING] * 3
        assert [row["minValue"] is None for row in found] == [row["fileName"] == "b.parquet" for row in found]
    empty = expression_stats_records(
        "v", files.slice(1), bounds.slice(1), 9, logs_have_statistics=True, is_initial=True
    )
    found = decode(empty.values, record_schema(9), ["ColumnStatsMetadata"])["ColumnStatsMetadata"].to_pylist()
    assert [row["valueType"]["typeOrdinal"] for row in found] == [STRING] * 2
