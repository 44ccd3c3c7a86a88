"""What cleans, rollbacks and restores of Apache Hudi, and ours, have deleted."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyhudi import HudiTable
from pyhudi.errors import InstantNotFoundError
from tests.golden.expected import unpack
from tests.unit.services.merge_on_read_table import FILE_IDS, MorTable, row


def test_cleans(tmp_path: Path) -> None:
    path = unpack("v6_cow_nonpart_clean", tmp_path).path
    inspect = HudiTable.for_path(str(path)).inspect
    found = inspect.deletions().to_pylist()
    assert [row["action"] for row in found] == ["clean"] * 3
    assert found == sorted(found, key=lambda row: row["requested"], reverse=True)
    for clean in found:
        files = inspect.deleted_files(clean["requested"]).to_pylist()
        assert len(files) == clean["files_deleted"] + clean["files_failed"]
        assert not any((path / row["path"]).exists() for row in files)
        assert clean["undone"] is None
    with pytest.raises(InstantNotFoundError, match="no completed clean"):
        inspect.deleted_files("20200101000000000")


def test_rollbacks(tmp_path: Path) -> None:
    path = unpack("v6_mor_rollback", tmp_path).path
    inspect = HudiTable.for_path(str(path)).inspect
    (rollback,) = inspect.deletions().to_pylist()
    (undone,) = rollback["undone"]
    assert rollback["requested"] > undone
    assert len(inspect.deleted_files(rollback["requested"])) == rollback["files_deleted"]


def test_restores_of_both(tmp_path: Path) -> None:
    (theirs,) = HudiTable.for_path(str(unpack("v9_mor_cluster_restore", tmp_path).path)).inspect.deletions().to_pylist()
    assert theirs["action"] == "restore"
    assert theirs["undone"]
    made = MorTable(tmp_path / "t")
    made.load([row(f"{p}{n}", p, 0, "x") for p in FILE_IDS for n in range(3)])
    start = made.delta([row("a0", "a", 1, "y")])
    later = [made.delta([row("a0", "a", n, "z")]) for n in (2, 3)]
    made.table.services.restore(start)
    ours = made.table.inspect.deletions().to_pylist()
    (restore,) = [row for row in ours if row["action"] == "restore"]
    assert sorted(restore["undone"]) == later
    files = made.table.inspect.deleted_files(restore["requested"]).to_pylist()
    assert [row["partition"] for row in files] == ["a", "a"]
    assert all(row["is_deleted"] and not (made.root / row["path"]).exists() for row in files)
