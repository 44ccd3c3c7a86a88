"""Tables that Apache Hudi has left between two versions: some instants are in the folder of the other layout."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from pyhudi.api.hudi_table import HudiTable
from pyhudi.errors import MetadataTableWarning, TransactionError
from pyhudi.timeline.timeline_layout import LAYOUT_1, LAYOUT_2
from tests.cases import seldom
from tests.unit.services.merge_on_read_table import FAST, FILE_IDS, MorTable, row

REFUSED = r"are only in .*: Apache Hudi is changing the version of the table, or was interrupted"
FOLDERS = {6: LAYOUT_1.folder, 8: LAYOUT_2.folder, 9: LAYOUT_2.folder}


def make(root: Path, version: int) -> MorTable:
    mor = MorTable(root, version, options={**FAST, "hoodie.metadata.enable": "true"})
    mor.load([row(f"{p}0", p, 0, "x") for p in FILE_IDS])
    for n in range(1, 4):
        mor.delta([row("a0", "a", n, f"v{n}")])
    return mor


def instants(mor: MorTable) -> list[str]:
    return [i.requested for i in mor.client.active_timeline().timeline]


def halves(mor: MorTable, to: int) -> Path:
    """Return a copy of the table in another version."""
    whole = MorTable(Path(shutil.copytree(mor.root, mor.root.with_name("whole"))), mor.version, options=mor.options)
    services = whole.table.services
    _ = services.upgrade(to) if to > mor.version else services.downgrade(to, lossy=True)
    return whole.root


MOVED: dict[str, Callable[[MorTable], list[str]]] = {
    "the last": lambda mor: [f"{instants(mor)[-1]}*"],
    "the first": lambda mor: [f"{instants(mor)[0]}*"],
    "a completed file": lambda mor: [f"{instants(mor)[1]}{'.deltacommit' if mor.version < 8 else '_*'}"],
    "all": lambda _: ["[0-9]*"],
}


def move(mor: MorTable, to: int, patterns: list[str]) -> None:
    """Move files of instants as Apache Hudi does, and the metadata table before."""
    whole = halves(mor, to)
    here, there = mor.root / FOLDERS[mor.version], mor.root / FOLDERS[to]
    there.mkdir(exist_ok=True)
    for pattern in patterns:
        files = [*here.glob(pattern)]
        assert files
        for file in files:
            stem, _, kind = file.name.partition(".")
            for copy in (whole / FOLDERS[to]).glob(f"{stem[:17]}*.{kind}"):
                shutil.copy(copy, there)
            file.unlink()
    shutil.rmtree(mor.root / ".hoodie/metadata")
    shutil.copytree(whole / ".hoodie/metadata", mor.root / ".hoodie/metadata")


@pytest.mark.parametrize(("version", "to"), [(6, 8), (9, 6), seldom((8, 6)), seldom((6, 9))])
@pytest.mark.parametrize("moved", ["the last", "a completed file", *map(seldom, ("the first", "all"))])
def test_a_table_with_moved_instants_is_neither_read_nor_written(
    tmp_path: Path, version: int, to: int, moved: str
) -> None:
    """The metadata table, whose version Apache Hudi changes first, tells; queries that list files look."""
    mor = make(tmp_path / "t", version)
    move(mor, to, MOVED[moved](mor))

    def completed() -> list[str]:
        return sorted(p.name for p in (mor.root / FOLDERS[version]).glob("*commit"))

    before, written = completed(), {p for folder in FILE_IDS for p in (mor.root / folder).glob(".*.log.*")}
    for options in ({}, {"hoodie.metadata.enable": "false"}):
        with pytest.raises(TransactionError, match=REFUSED):
            HudiTable.for_path(str(mor.root), options).scan().to_arrow()
    with pytest.raises(TransactionError, match=REFUSED):
        mor.delta([row("a0", "a", 9, "new")])
    assert completed() == before
    assert all(map(Path.exists, written))


@pytest.mark.parametrize(("version", "to"), [(6, 8), (9, 6)])
@pytest.mark.parametrize("service", ["compact", "cluster", "run_compaction"])
def test_a_table_with_moved_instants_is_not_rewritten(tmp_path: Path, version: int, to: int, service: str) -> None:
    """Rows of the moved commits would be missing from the new files, and would stay missing once these are back."""
    mor = make(tmp_path / "t", version)
    moved = instants(mor)[-1]
    if service == "run_compaction":
        mor.table.services.schedule_compaction()
    move(mor, to, [f"{moved}*"])
    before = instants(mor)
    services = HudiTable.for_path(str(mor.root), {"hoodie.metadata.enable": "false"}).services
    with pytest.raises(TransactionError, match=REFUSED):
        getattr(services, service)()
    assert instants(mor) == before


@pytest.mark.parametrize(("version", "to"), [(6, 8), (9, 6)])
def test_a_table_of_which_only_the_metadata_table_was_changed_is_read(tmp_path: Path, version: int, to: int) -> None:
    mor = make(tmp_path / "t", version)
    rows = mor.rows()
    move(mor, to, [])
    with pytest.warns(MetadataTableWarning, match="is not used"):
        assert mor.rows() == rows
