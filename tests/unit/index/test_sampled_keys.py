"""Record keys that are sampled from files of a table."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest

from pyhudi.index.sampled_keys import sample_keys
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.table.view.file_system_view import FileSystemView
from tests.tables import HandMadeTable

ROWS = [{"id": "b", "p": "x"}, {"id": "a", "p": "x"}]
OTHER_ROWS = [{"id": "c", "p": "x"}]


@pytest.mark.parametrize("extension", ["parquet", "orc"])
def test_sample_keys(tmp_path: Path, extension: str) -> None:
    table = HandMadeTable(tmp_path / "table", extension=extension)
    assert sample_keys(TableSnapshot.load(table.client())) == ()
    table.write(1, {("x", "f0-0"): []})
    assert sample_keys(TableSnapshot.load(table.client())) == ()
    table.write(2, {("y", "f1-0"): ROWS})
    assert sample_keys(TableSnapshot.load(table.client())) == ("b", "a"), "files without a footer of Hudi's are read"
    virtual = HandMadeTable(tmp_path / "virtual", meta_columns=False, extension=extension)
    virtual.write(1, {("x", "f0-0"): ROWS})
    assert sample_keys(TableSnapshot.load(virtual.client())) == ()


def _only_logs(table: HandMadeTable) -> None:
    table.log(1, {("x", "f0-0"): ROWS})
    table.log(2, {}, deletes={("x", "f0-0"): ["a"]})


def _base_and_log(table: HandMadeTable) -> None:
    table.write(1, {("x", "f0-0"): ROWS})
    table.log(2, {}, base=1, deletes={("x", "f0-0"): ["a"]})


def _cleaned(table: HandMadeTable) -> None:
    table.write(1, {("x", "f0-0"): ROWS})
    table.write(2, {("x", "f1-0"): OTHER_ROWS})
    table.remove(2, "x", "f1-0")


def _damaged(table: HandMadeTable) -> None:
    table.write(1, {("x", "f0-0"): ROWS})
    table.write(2, {("x", "f1-0"): OTHER_ROWS})
    (file,) = (table.root / "x").glob("f1-0*")
    file.write_bytes(b"PAR1")


@pytest.mark.parametrize("version", [6, 9])
@pytest.mark.parametrize("write", [_only_logs, _base_and_log, _cleaned, _damaged])
def test_tables_are_not_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: int, write: Callable[[HandMadeTable], None]
) -> None:
    """Every write samples keys, and the listing of a large table takes many requests."""

    def refuse(*_: object, **__: object) -> NoReturn:
        raise AssertionError("the table is listed")

    table = HandMadeTable(tmp_path / "t", version, properties={"hoodie.table.type": "MERGE_ON_READ"})
    write(table)
    monkeypatch.setattr(FileSystemView, "load", refuse)
    assert sample_keys(TableSnapshot.load(table.client())) == ("b", "a")


def test_older_writes_are_listed(tmp_path: Path) -> None:
    table = HandMadeTable(tmp_path / "t", properties={"hoodie.table.type": "MERGE_ON_READ"})
    table.write(1, {("x", "f0-0"): ROWS})
    for n in range(2, 13):
        table.log(n, {}, base=1, deletes={("x", "f0-0"): ["d"]})
    assert sample_keys(TableSnapshot.load(table.client())) == ("b", "a")
