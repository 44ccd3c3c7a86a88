"""Files that a task finishes when its write has been rolled back, and dies: nobody ever sees them."""

from __future__ import annotations

import pytest

from pyhudi.api.hudi_table import HudiTable
from pyhudi.config import Options
from pyhudi.format.log import scan_blocks
from pyhudi.services.archival.archival_runner import archive_table
from pyhudi.services.savepoint import create_savepoint
from pyhudi.storage import Storage
from pyhudi.timeline.markers import IOType
from pyhudi.transaction.rollback.late_data_files import delete_files_older_than
from tests.unit.transaction.tables import OPTIONS, Write, active, check_clean, client, data_files

ARCHIVAL = Options.parse(
    OPTIONS | {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3", "hoodie.clean.commits.retained": "1"}
)


def slept(storage: Storage) -> str:
    """A file of a write that the next one has rolled back; its task wakes up afterwards and dies with it written."""
    dead = Write(("a",)).leave(storage)
    (path,) = dead.markers.list()["data_path"].to_pylist()
    Write(("b",)).run(storage)
    assert not storage.exists(path)
    storage.write(path, b"late")
    return str(path)


def test_it_goes_before_archival_passes_its_instant(storage: Storage) -> None:
    Write(("b",)).run(storage)
    path = slept(storage)
    for _ in range(4):
        Write(("b",)).run(storage)
        assert path in data_files(storage)
    assert archive_table(client(storage), ARCHIVAL).instants
    assert path not in data_files(storage)
    assert len(data_files(storage)) == 6


def test_it_stays_while_the_timeline_begins_before_it(storage: Storage) -> None:
    """Nobody sees it then, and there is nothing to be done."""
    first = Write(("b",))
    first.run(storage)
    path = slept(storage)
    delete_files_older_than(active(storage), active(storage).timeline.writes().instants[0].requested)
    assert path in data_files(storage)


def test_it_goes_before_a_savepoint_moves_the_start_of_the_timeline(storage: Storage) -> None:
    """Readers take the first write without a savepoint for the start, and files older than that for committed ones."""
    Write(("b",)).run(storage)
    first = active(storage).timeline.writes().instants[0].requested
    path = slept(storage)
    create_savepoint(client(storage), Options.parse(OPTIONS), first)
    assert path not in data_files(storage)
    assert len(data_files(storage)) == 2


def test_it_goes_before_the_first_write_of_a_table_is_published(storage: Storage) -> None:
    dead = Write(("a",)).leave(storage)
    (path,) = dead.markers.list()["data_path"].to_pylist()
    first = Write(("b",))
    tx = first.begin(storage)  # rolls the dead one back
    storage.write(path, b"late")
    tx.commit(first.write_files(tx))
    check_clean(storage)


@pytest.mark.parametrize("seen", [False, True], ids=["late", "in time"])
def test_late_blocks_of_version_6_are_voided(storage: Storage, version: int, seen: bool) -> None:
    """Log files of version 6 are not deleted; the rollback voided what was there, and wrote nothing if nothing was."""
    Write(("a",), file_ids={"a": "A"}).run(storage)
    first = active(storage).timeline.writes().instants[0].requested
    dead = Write(("b",), "deltacommit").leave(storage)
    log = f"a/.A_{first if version < 8 else dead.instant}.log.1_0-1-2"
    dead.markers.create("a", log.removeprefix("a/"), IOType.APPEND if version < 8 else IOType.CREATE)
    if seen:
        storage.write(log, b"")
    Write(("b",)).run(storage)
    storage.write(log, b"")
    for _ in range(4):
        Write(("b",)).run(storage)
    archive_table(client(storage), ARCHIVAL)
    logs = {path for path in data_files(storage) if ".log." in path}
    voided = [block.target_instant for path in logs for block in scan_blocks(storage.read(path))]
    assert voided == ([dead.instant] if version < 8 else [])
    assert (log in logs) == (version < 8)


@pytest.mark.parametrize("version", [6])
def test_late_blocks_are_voided_by_an_upgrade(storage: Storage) -> None:
    """From version 8 on, every block of a log file counts."""
    Write(("a",), file_ids={"a": "A"}).run(storage)
    first = active(storage).timeline.writes().instants[0].requested
    dead = Write(("b",), "deltacommit").leave(storage)
    log = f"a/.A_{first}.log.1_0-1-2"
    dead.markers.create("a", log.removeprefix("a/"), IOType.APPEND)
    Write(("b",)).run(storage)
    storage.write(log, b"")
    HudiTable.for_path(storage.root, OPTIONS).services.upgrade(9)
    logs = {path for path in data_files(storage) if ".log." in path}
    assert [block.target_instant for path in logs for block in scan_blocks(storage.read(path))] == [dead.instant]
