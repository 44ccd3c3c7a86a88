"""Keys of tables without base files, on tables whose content is given by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyhudi.config import Options
from pyhudi.read.log_only_slice_keys import log_only_keys
from tests.tables import HandMadeTable

MERGE_ON_READ = {"hoodie.table.type": "MERGE_ON_READ"}


@pytest.mark.parametrize("version", [6, 8])
def test_log_only_keys(tmp_path: Path, version: int):
    table = HandMadeTable(tmp_path / "table", version=version, properties=MERGE_ON_READ)
    assert log_only_keys(table.client(), Options.parse({})) == ()
    table.log(10, {("x", "f0-0"): []}, deletes={("x", "f0-0"): ["a"]})
    assert log_only_keys(table.client(), Options.parse({})) == ()
    table.log(20, {("y", "f1-0"): [{"id": "b", "v": 1}]})
    assert log_only_keys(table.client(), Options.parse({})) == ("b",)
    virtual = HandMadeTable(tmp_path / "virtual", version=version, properties=MERGE_ON_READ, meta_columns=False)
    assert log_only_keys(virtual.client(), Options.parse({})) == ()
