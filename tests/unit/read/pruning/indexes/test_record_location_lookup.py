"""Record keys that filters restrict queries to, and their lookup in the record index."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pytest

from pyhudi.api.hudi_table import HudiTable
from pyhudi.config import Options
from pyhudi.read.filters.row_filter import RowFilter
from pyhudi.read.pruning.indexes.record_location_lookup import equality_keys
from pyhudi.table.config.table_config import TableConfig
from tests.golden.expected import unpack
from tests.tables import HandMadeTable
from tests.unit.read.pruning.statistics_tables import SCHEMA


def test_keys_by_the_record_index(tmp_path: Path):
    golden = unpack("v9_mor_meta_all", tmp_path)
    table = HudiTable.for_path(str(golden.path))
    every = table.scan(columns=["_hoodie_record_key", "id", "part"]).to_arrow()
    for text in every["id"].to_pylist():
        scan = table.scan([("id", "=", text)], columns=["id"])
        assert scan.to_arrow()["id"].to_pylist() == [text]
        assert scan.plan().tasks.num_rows == 1
        assert any("record_index: 1 of 2 partitions out" in line for line in scan.plan().skipped)
    some = every["id"].to_pylist()[:5]
    assert sorted(table.scan([("_hoodie_record_key", "in", some)]).to_arrow()["id"].to_pylist()) == sorted(some)
    assert table.scan([("id", "=", "not there")]).plan().tasks.num_rows == 0


@pytest.mark.parametrize("version", [6, 8])
def test_keys_of_one_field_are_looked_for_in_both_forms(version: int, tmp_path: Path):
    """Below version 9 a complex key generator has made either `k1` or `id:k1`, and the table does not say which."""
    table = HandMadeTable(tmp_path / "t", version=version, schema=SCHEMA)
    if version == 8:
        TableConfig.load(table.storage).updated(table.storage, set={"hoodie.table.keygenerator.type": "COMPLEX"})
    assert named_keys(table, [("id", "in", ["k1", "k2"])]) == ["id:k1", "id:k2", "k1", "k2"]


def test_keys_of_timestamps_are_not_made(tmp_path: Path):
    """What they look like is an option of each write."""
    table = HandMadeTable(tmp_path / "t", schema=SCHEMA, properties={"hoodie.table.recordkey.fields": "t"})
    assert named_keys(table, [("t", "=", dt.datetime(2024, 1, 1, tzinfo=dt.UTC))]) is None


def test_keys_of_dates_are_not_made_of_times(tmp_path: Path):
    """The day of a time is one of the session's zone."""
    table = HandMadeTable(tmp_path / "t", schema=SCHEMA, properties={"hoodie.table.recordkey.fields": "day"})
    assert named_keys(table, [("day", "=", dt.date(2024, 1, 1))]) == ["2024-01-01"]
    assert named_keys(table, [("day", "=", dt.datetime(2023, 12, 31, 15))]) is None
    assert named_keys(table, [("day", "in", [dt.date(2024, 1, 1), dt.datetime(2024, 1, 1)])]) is None


def named_keys(table: HandMadeTable, condition: Any) -> list[str] | None:
    rows = RowFilter.parse(condition)
    assert rows is not None
    found = equality_keys(rows, TableConfig.load(table.storage), SCHEMA, Options.parse({}))
    return None if found is None else found.to_pylist()
