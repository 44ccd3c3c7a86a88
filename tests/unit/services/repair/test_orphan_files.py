"""Data files that no write of the timeline knows: which count, how they are deleted, and when that is refused."""

from __future__ import annotations

from pathlib import Path
from shutil import copyfile, copytree

import pytest

from pyhudi.api.services import TableServices
from pyhudi.config import Options
from pyhudi.errors import BusyError, QueryError
from pyhudi.services.repair.orphan_files import delete_orphan_files, find_orphan_files
from pyhudi.storage import open_storage
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline.instant import Action
from tests.fault_injection import WRITES, Fault, FaultyStorage, Killed
from tests.unit.services.merge_on_read_table import FAST, FILE_IDS, MorTable, row

ARCHIVING = {
    **FAST,
    "pyhudi.storage.fsync": "none",
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
    "hoodie.clean.commits.retained": "1",
    "hoodie.archive.automatic": "false",
    "hoodie.clean.automatic": "false",
    "hoodie.metadata.compact.max.delta.commits": "1",
}
STRANGER = "cccccccc-0000-4000-8000-000000000003-0"


def services(mor: MorTable, root: Path | None = None) -> TableServices:
    return TableServices(str(root or mor.root), Options.parse(ARCHIVING))


def after(instant: str) -> str:
    return str(int(instant) + 1)


def made(root: Path, version: int) -> tuple[MorTable, dict[str, str]]:
    """A table with writes in its history, and the orphans that writers have left in it, by what they are."""
    mor = MorTable(root, version, options=ARCHIVING)
    first = mor.load([row(f"{p}{n}", p, 0, "x") for p in FILE_IDS for n in range(3)])
    writes = [mor.delta([row("a0", "a", n, f"v{n}"), row("b0", "b", n, f"v{n}")]) for n in range(1, 6)]
    services(mor).archive(ARCHIVING)
    assert first < mor.client.active_timeline().timeline.completed().writes().first.requested
    base = next(root.glob(f"a/{FILE_IDS['a']}_*.parquet"))
    names = {
        "forgotten": f"a/{STRANGER}_0-0-0_{after(writes[0])}.parquet",
        "unnamed": f"a/{FILE_IDS['a']}_9-9-9_{first}.parquet",
        "log": f"b/.{STRANGER}_{after(writes[1])}.log.1_0-0-0",
    }
    for name in names.values():
        copyfile(base, root / name)
    # before all that is known, and in a folder that is no partition
    copyfile(base, root / "a" / f"{STRANGER}_0-0-0_20000101000000000.parquet")
    return mor, names


@pytest.mark.parametrize("version", [6, 9])
def test_orphans_are_listed_and_deleted(tmp_path: Path, version: int) -> None:
    mor, names = made(tmp_path / "t", version)
    found = services(mor).delete_orphan_files()
    assert {one["path"]: one["is_deleted"] for one in found.to_pylist()} == dict.fromkeys(names.values(), False)
    assert {one["size"] for one in found.to_pylist()} == {(mor.root / names["log"]).stat().st_size}
    assert all((mor.root / name).exists() for name in names.values())
    one = services(mor).delete_orphan_files(partitions=["b"], dry_run=False).to_pylist()
    assert [(o["path"], o["partition"], o["is_deleted"]) for o in one] == [(names["log"], "b", True)]
    rest = services(mor).delete_orphan_files(dry_run=False)["path"].to_pylist()
    assert rest == sorted((names["forgotten"], names["unnamed"]))
    assert not any((mor.root / name).exists() for name in names.values())
    rows = mor.rows()  # each key once: the forgotten file was read as one of the table
    assert sorted(rows) == ["a0", "a1", "a2", "b0", "b1", "b2"]
    assert rows["a0"]["v"] == "v5"
    assert services(mor).delete_orphan_files(dry_run=False).num_rows == 0
    cleans = mor.client.active_timeline().timeline.of_actions(Action.CLEAN)
    assert len(list(cleans)) == len(list(cleans.completed())) >= 2
    assert "deleted" not in services(mor).clean(ARCHIVING).reason


def test_chosen_files_must_be_orphans(tmp_path: Path) -> None:
    mor, names = made(tmp_path / "t", 9)
    opts = Options.parse(ARCHIVING)
    base = next(mor.root.glob(f"b/{FILE_IDS['b']}_*.parquet")).relative_to(mor.root)
    with pytest.raises(QueryError, match=r"not an orphan file.*roll back the write"):
        delete_orphan_files(mor.client, opts, paths=[str(base), names["log"]], dry_run=False)
    assert (mor.root / names["log"]).exists()
    done = delete_orphan_files(mor.client, opts, paths=[names["log"]], dry_run=False)
    assert done["path"].to_pylist() == [names["log"]]


def test_files_of_savepoints_and_of_pending_writes_stay(tmp_path: Path) -> None:
    mor, names = made(tmp_path / "t", 9)
    tx = mor.begin()
    fresh = f"a/{STRANGER}_0-0-0_{tx.instant}.parquet"
    copyfile(mor.root / names["forgotten"], mor.root / fresh)
    assert fresh not in find_orphan_files(TableSnapshot.load(mor.client))["path"].to_pylist()
    with pytest.raises(BusyError, match=tx.instant):
        services(mor).delete_orphan_files(dry_run=False)
    tx.abort()
    (mor.root / fresh).unlink(missing_ok=True)
    last = mor.client.active_timeline().timeline.completed().writes().last
    services(mor).savepoint(last.requested)
    # readers saw them as files of the snapshot, so the savepoint has them
    assert names["forgotten"] not in services(mor).delete_orphan_files(dry_run=False)["path"].to_pylist()
    assert (mor.root / names["forgotten"]).exists()
    services(mor).delete_savepoint(last.requested)
    assert names["forgotten"] in services(mor).delete_orphan_files()["path"].to_pylist()


def test_a_deletion_that_dies_is_gone_on_with(tmp_path: Path) -> None:
    mor, names = made(tmp_path / "made", 9)
    opts = Options.parse(ARCHIVING)

    def run(root: Path, *faults: Fault) -> FaultyStorage:
        storage = FaultyStorage(open_storage(root, {"pyhudi.storage.fsync": "none"}), faults)
        delete_orphan_files(TableMetaClient.open(storage, opts), opts, dry_run=False)
        return storage

    whole = tmp_path / "whole"
    copytree(mor.root, whole)
    operations = [one for one, _ in run(whole).operations if one in WRITES]
    for number in range(1, len(operations) + 1, 2):
        root = tmp_path / f"died{number}"
        copytree(mor.root, root)
        with pytest.raises(Killed):
            run(root, Fault("writes", number, "after", Killed))
        if number % 4 == 1:
            services(mor, root).clean(ARCHIVING)
        run(root)
        assert not any((root / name).exists() for name in names.values())
        rows = MorTable(root, 9, options=ARCHIVING).rows()
        assert sorted(rows) == ["a0", "a1", "a2", "b0", "b1", "b2"]
        assert not list(TableMetaClient.open(str(root), opts).active_timeline().timeline.pending())
