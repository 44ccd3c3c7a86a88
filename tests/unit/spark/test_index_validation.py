"""Comparison of indexes with rows, as far as it needs no session."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pyhudi.config import Options
from pyhudi.spark.indexes.index_validation import index_differences
from pyhudi.table.table_snapshot import TableSnapshot
from tests.tables import HandMadeTable


def test_indexes_of_tables_without_stored_keys_are_not_compared(tmp_path: Path) -> None:
    """pyhudi does not maintain them, and the rows do not have the column of keys."""
    table = HandMadeTable(tmp_path / "t", 9, meta_columns=False)
    table.write(1, {("x", "f1-0"): [{"id": "k1", "p": "x"}]})
    no_session: Any = None
    assert not index_differences(no_session, TableSnapshot.load(table.client()), Options.parse({})).num_rows
