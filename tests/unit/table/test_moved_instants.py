"""Tables that Apache Hudi has left between two versions: some instants are in the folder of the other layout."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from pyhudi.api.hudi_table import HudiTable
from pyhudi.errors import MetadataTableWarning, TransactionError
from pyhudi.table import moved_instants
from pyhudi.table.moved_instants import refuse_moved_instants
from pyhudi.timeline.instant import Action
from pyhudi.timeline.timeline_layout import LAYOUT_1, LAYOUT_2
from tests.cases import seldom
from tests.unit.services.merge_on_read_table import FAST, FILE_IDS, MorTable, row

REFUSED = r"are only in .*: Apache Hudi is changing the version of the table, or was interrupted"
FOLDERS = {6: LAYOUT_1.folder, 8: LAYOUT_2.folder, 9: LAYOUT_2.folder}


def make(root: Path, version: int, **properties: str) -> MorTable:
    mor = MorTable(root, version, properties, options={**FAST, "hoodie.metadata.enable": "true"})
    mor.load([row(f"{p}0", p, 0, "x") for p in FILE_IDS])
    for n in range(1, 4):
        mor.delta([row("a0", "a", n, f"v{n}")])
    return mor


def tree(mor: MorTable) -> dict[Path, bytes]:
    """Return the files of the table with their content, except for locks."""
    files = (path for path in mor.root.rglob("*") if path.is_file() and "lock" not in path.name)
    return {path: path.read_bytes() for path in files}


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


ACTIONS: dict[str, Callable[[HudiTable, str], object]] = {
    "compact": lambda table, _: table.services.compact(),
    "cluster": lambda table, _: table.services.cluster(),
    "run_compaction": lambda table, _: table.services.run_compaction(),
    "clean": lambda table, _: table.services.clean({"hoodie.clean.commits.retained": "1"}),
    "archive": lambda table, _: table.services.archive(),
    "savepoint": lambda table, _: table.services.savepoint(),
    "rollback": lambda table, _: table.services.rollback(),
    "restore": lambda table, first: table.services.restore(first),
    "build_index": lambda table, _: table.services.build_index(
        "column_stats", options={"hoodie.metadata.enable": "true"}
    ),
    "delete_orphan_files": lambda table, _: table.services.delete_orphan_files(),
    "alter_schema": lambda table, _: table.alter_schema().add_column("w", pa.string()).commit(),
    "sync_catalog": lambda table, _: table.services.sync_catalog(
        {"hoodie.datasource.hive_sync.metastore.uris": "thrift://127.0.0.1:1"}
    ),
    "incremental query": lambda table, first: table.scan(begin=first).to_arrow(),
    "change data query": lambda table, first: table.changes(begin=first).to_arrow(),
}


@pytest.mark.parametrize(("version", "to"), [(6, 8), (9, 6)])
@pytest.mark.parametrize("action", ACTIONS)
def test_a_table_with_moved_instants_is_not_used(tmp_path: Path, version: int, to: int, action: str) -> None:
    """Rows of the moved commits would be missing from the results, and stay missing once these are back."""
    changes = {"hoodie.table.cdc.enabled": "true"} if action == "change data query" else {}
    mor = make(tmp_path / "t", version, **changes)
    first, *_, moved = instants(mor)
    if action == "run_compaction":
        mor.table.services.schedule_compaction()
    move(mor, to, [f"{moved}*"])
    before = tree(mor)
    table = HudiTable.for_path(str(mor.root), {**FAST, "hoodie.metadata.enable": "false"})
    with pytest.raises(TransactionError, match=REFUSED):
        ACTIONS[action](table, first)
    assert tree(mor) == before


@pytest.mark.parametrize(("version", "to"), [(6, 8), (9, 6)])
def test_a_table_of_which_only_the_metadata_table_was_changed_is_read(tmp_path: Path, version: int, to: int) -> None:
    mor = make(tmp_path / "t", version)
    rows = mor.rows()
    move(mor, to, [])
    with pytest.warns(MetadataTableWarning, match="is not used"):
        assert mor.rows() == rows


@pytest.mark.parametrize(("version", "to"), [(6, 8), (9, 6)])
def test_copies_of_commits_that_a_query_does_not_know_yet(tmp_path: Path, version: int, to: int) -> None:
    """pyhudi copies instants before it changes the version, while others read the table as they have found it."""
    mor = make(tmp_path / "t", version)
    pinned = mor.client.active_timeline()
    mor.delta([row("a0", "a", 9, "new")])
    (mor.root / FOLDERS[to]).mkdir(exist_ok=True)
    copies = halves(mor, to) / FOLDERS[to]
    for instant in instants(mor):
        for copy in copies.glob(f"{instant}*"):
            shutil.copy(copy, mor.root / FOLDERS[to])
    refuse_moved_instants(pinned)
    assert mor.rows()["a0"]["v"] == "new"


@pytest.mark.parametrize(("version", "to"), [(6, 8), (9, 6)])
def test_a_half_copied_commit_that_was_rolled_back_and_archived(tmp_path: Path, version: int, to: int) -> None:
    """An upgrade of pyhudi died after the first file of a commit. Nothing is left of it but that copy."""
    mor = make(tmp_path / "t", version)
    last = instants(mor)[-1]
    (copy,) = (halves(mor, to) / FOLDERS[to]).glob(f"{last}*.requested")
    (mor.root / FOLDERS[to]).mkdir(exist_ok=True)
    shutil.copy(copy, mor.root / FOLDERS[to])
    mor.table.services.rollback()
    mor.table.services.compact({"hoodie.compact.inline.max.delta.commits": "1"})
    for n in range(4, 8):
        mor.delta([row("a0", "a", n, f"v{n}")])
    mor.table.services.compact({"hoodie.compact.inline.max.delta.commits": "1"})
    few = {"hoodie.keep.min.commits": "1", "hoodie.keep.max.commits": "2", "hoodie.clean.commits.retained": "1"}
    mor.table.services.archive({**few, "hoodie.metadata.compact.max.delta.commits": "1"})
    assert not mor.client.active_timeline().timeline.of_actions(Action.ROLLBACK)
    assert mor.rows()["a0"]["v"] == "v7"
    mor.delta([row("a0", "a", 9, "new")])


@pytest.mark.parametrize(("version", "to"), [(6, 8), (9, 6)])
def test_a_moved_compaction_with_an_archived_rollback(
    tmp_path: Path, version: int, to: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rollback is that of an attempt. The plan is still to be executed, and log files follow it."""
    mor = make(tmp_path / "t", version)
    plan = mor.table.services.schedule_compaction({"hoodie.compact.inline.max.delta.commits": "1"})
    mor.delta([row("a0", "a", 8, "v8")])
    (mor.root / FOLDERS[to]).mkdir(exist_ok=True)
    shutil.move(mor.root / FOLDERS[version] / f"{plan.instant}.compaction.requested", mor.root / FOLDERS[to])
    monkeypatch.setattr(moved_instants, "_archived_undone_commits", lambda *_: {plan.instant})
    with pytest.raises(TransactionError, match=REFUSED):
        mor.delta([row("a0", "a", 9, "v9")])
