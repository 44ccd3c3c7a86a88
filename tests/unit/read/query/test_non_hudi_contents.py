"""Messages for paths without a Hudi table, which say what is there."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyhudi import HudiTable
from pyhudi.errors import NotAHudiTableError, TableExistsError
from pyhudi.read.query.table_location import locate_table
from pyhudi.storage import open_storage


def _delta(root: Path) -> None:
    (root / "_delta_log").mkdir()
    (root / "part-0.parquet").touch()


def _iceberg(root: Path) -> None:
    (root / "metadata").mkdir()
    (root / "metadata" / "v1.metadata.json").touch()
    (root / "data").mkdir()


def _tables(root: Path) -> None:
    for name in "abcd":
        HudiTable.create(str(root / name), {"hoodie.table.name": name})
    (root / "metadata").mkdir()


def _lost_properties(root: Path) -> None:
    HudiTable.create(str(root), {"hoodie.table.name": "t"})
    (root / ".hoodie/hoodie.properties").unlink()


def _parquet(root: Path) -> None:
    (root / "part-0.parquet").touch()


@pytest.mark.parametrize(
    ("fill", "message"),
    [
        (_delta, r"it is a Delta Lake table \(_delta_log\)"),
        (_iceberg, "it is an Iceberg table"),
        (_tables, "it has tables in its folders: 'a', 'b', 'c', …"),
        (_parquet, "it has data files without a table.*pyhudi.bootstrap_table"),
        (_lost_properties, r"it has the folder \.hoodie, but .* is missing.*pyhudi\.overwrite_properties"),
        (Path.touch, r"hoodie\.properties"),
    ],
)
@pytest.mark.parametrize("find", [HudiTable.for_path, locate_table])
def test_folders(fill, message, find, tmp_path: Path):
    fill(tmp_path)
    with pytest.raises(NotAHudiTableError, match=f"there is no Hudi table at .*{tmp_path}.*: .*{message}"):
        find(str(tmp_path))


@pytest.mark.parametrize("path", ["{}/rides.csv", "file://{}/rides.csv", "{}/rides.csv/"])
def test_a_file(path: str, tmp_path: Path):
    (tmp_path / "rides.csv").touch()
    with pytest.raises(NotAHudiTableError, match="it is a file; a table is given by its root folder"):
        HudiTable.for_path(path.format(tmp_path))
    with pytest.raises(TableExistsError, match=r"cannot create a table at .*: it is a file"):
        HudiTable.create(path.format(tmp_path), {"hoodie.table.name": "rides"})


def test_objects_where_a_table_is_to_be():
    """Hadoop marks a folder of an Azure container by an empty object of its name."""
    storage = open_storage("memory://marks")
    storage.write("folder", b"")
    HudiTable.create("memory://marks/folder", {"hoodie.table.name": "t"})
    storage.write("rides.csv", b"id")
    with pytest.raises(TableExistsError, match="it is a file"):
        HudiTable.create("memory://marks/rides.csv", {"hoodie.table.name": "t"})


def test_a_file_in_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "rides.csv").touch()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(NotAHudiTableError, match="it is a file"):
        HudiTable.for_path("rides.csv")


@pytest.mark.parametrize("path", ["memory://nowhere", "rides"])
def test_nothing_to_say(path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(NotAHudiTableError, match=r"hoodie\.properties does not exist"):
        HudiTable.for_path(path)


def test_a_partition_of_a_table(tmp_path: Path):
    HudiTable.create(str(tmp_path / "rides"), {"hoodie.table.name": "rides"})
    with pytest.raises(NotAHudiTableError, match=f"rides/p': it is inside the table at '{tmp_path}/rides'"):
        HudiTable.for_path(str(tmp_path / "rides/p"))


@pytest.mark.parametrize(("fill", "format"), [(_delta, "Delta Lake"), (_iceberg, "Iceberg")])
def test_new_tables_at_tables_of_other_formats_are_refused(fill, format, tmp_path: Path):
    fill(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(TableExistsError, match=f"cannot create a table at .*: it is an? {format} table.*another path"):
        HudiTable.create(str(tmp_path), {"hoodie.table.name": "rides"})
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("fill", [_parquet, _tables])
def test_new_tables_beside_other_files(fill, tmp_path: Path):
    fill(tmp_path)
    HudiTable.create(str(tmp_path), {"hoodie.table.name": "rides"})
