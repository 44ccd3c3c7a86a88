"""The first record of tables whose content is given by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pyhudi.config import Options
from pyhudi.read.complex_key_encoding import first_record
from pyhudi.table.table_snapshot import TableSnapshot
from tests.tables import HandMadeTable

MERGE_ON_READ = {"hoodie.table.type": "MERGE_ON_READ"}


def first(table: HandMadeTable, *fields: str) -> list[dict[str, Any]]:
    record = first_record(TableSnapshot.load(table.client()), Options.parse({}), fields)
    return [] if record is None else record.to_pylist()


@pytest.mark.parametrize("version", [6, 8])
def test_first_record(tmp_path: Path, version: int) -> None:
    table = HandMadeTable(tmp_path / "table", version=version, properties=MERGE_ON_READ)
    assert first(table) == []
    table.log(10, {("x", "f0-0"): []}, deletes={("x", "f0-0"): ["a"]})
    assert first(table) == []
    table.log(20, {("y", "f1-0"): [{"id": "b", "v": 1}]})
    assert first(table) == [{"_hoodie_record_key": "b"}]
    assert first(table, "id", "none") == [{"_hoodie_record_key": "b", "id": "b"}]
    table.write(30, {("z", "f2-0"): [{"id": "c", "p": "z", "v": 1}]})
    assert first(table, "v") == [{"_hoodie_record_key": "c", "v": 1}]
    virtual = HandMadeTable(tmp_path / "virtual", version=version, properties=MERGE_ON_READ, meta_columns=False)
    assert first(virtual) == []
