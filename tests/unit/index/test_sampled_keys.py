"""Record keys that are sampled from base files."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyhudi.index.sampled_keys import sample_keys
from tests.tables import HandMadeTable

ROWS = [{"id": "b", "p": "x"}, {"id": "a", "p": "x"}]


@pytest.mark.parametrize("extension", ["parquet", "orc"])
def test_sample_keys(tmp_path: Path, extension: str) -> None:
    table = HandMadeTable(tmp_path / "table", extension=extension)
    assert sample_keys(table.client()) == ()
    table.write(1, {("x", "f0-0"): []})
    assert sample_keys(table.client()) == ()
    table.write(2, {("y", "f1-0"): ROWS})
    assert sample_keys(table.client()) == ("b", "a"), "files without a footer of Hudi's are read"
    virtual = HandMadeTable(tmp_path / "virtual", meta_columns=False, extension=extension)
    virtual.write(1, {("x", "f0-0"): ROWS})
    assert sample_keys(virtual.client()) == ()
