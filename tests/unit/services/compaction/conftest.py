"""Fixtures of the tests of compaction."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.unit.services.compaction.compaction_tables import SMALL, VERSIONS
from tests.unit.services.merge_on_read_table import FAST, FILE_IDS, MorTable, row


@pytest.fixture(scope="package", params=VERSIONS)
def written(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> MorTable:
    """A table with a base file and two logs in either of its file groups, which no test changes."""
    table = MorTable(tmp_path_factory.mktemp("written") / "table", request.param, options=FAST | SMALL)
    table.load([row(f"{p}{i}", p, 1, "base") for p in FILE_IDS for i in range(5)])
    table.delta([row("a0", "a", 2, "first"), row("a1", "a", 0, "late"), row("b0", "b", 2, "first")], [("a2", "a", 3)])
    table.delta([row("a0", "a", 3, "second"), row("a9", "a", 1, "new")], [("b1", "b", None)])
    return table


@pytest.fixture
def mor(written: MorTable, tmp_path: Path) -> MorTable:
    """A copy of it."""
    root = Path(shutil.copytree(written.root, tmp_path / "table"))
    return MorTable(root, written.version, options=written.options)
