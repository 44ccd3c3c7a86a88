"""A writer may die before or after any operation on the storage: whoever comes next leaves a clean table."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pyhudi.format.log import scan_blocks
from pyhudi.storage import Storage, open_storage
from pyhudi.table.config.table_config import TableConfig
from pyhudi.timeline.markers import IOType
from tests.fault_injection import WRITES, Fault, FaultyStorage, Killed
from tests.properties import places
from tests.unit.transaction.tables import (
    METADATA_TABLE,
    MULTI_WRITER,
    Write,
    active,
    add_metadata_table,
    check_clean,
    data_files,
    make_table,
)

Act = Callable[[Storage], object]


def opened(folder: Path) -> Storage:
    """The table without fsync: the process dies here, not the machine."""
    return open_storage(folder, {"pyhudi.storage.fsync": "none"})


def operations(folder: Path, act: Act) -> list[str]:
    """The operations that an act takes when nothing fails, on a copy of the table."""
    copy = folder.with_name("probe")
    shutil.copytree(folder, copy)
    probe = FaultyStorage(opened(copy))
    act(probe)
    shutil.rmtree(copy)
    return [name for name, _ in probe.operations]


def deaths(folder: Path, act: Act) -> Iterator[Storage]:
    """Copies of the table in which the act died: right away, and after operations that change something.

    (To die before an operation, or after one that only reads, is to die after the change before it.)
    """
    count = sum(name in WRITES for name in operations(folder, act))
    assert count > 2
    for nth in places(count + 1):
        copy = folder.with_name("dead")
        shutil.copytree(folder, copy)
        fault = Fault("writes", nth, "after", Killed) if nth else Fault("writes", 1, "before", Killed)
        with pytest.raises(Killed):
            act(FaultyStorage(opened(copy), [fault]))
        yield opened(copy)
        shutil.rmtree(copy)


@pytest.fixture
def folder(tmp_path: Path, version: int) -> Path:
    folder = tmp_path / "table"
    storage = opened(folder)
    make_table(storage, version)
    Write(file_ids={"a": "A", "b": "B"}).run(storage)
    return folder


def whole_or_nothing(storage: Storage, before: int) -> None:
    """The write that died is committed with its two files, or there is no trace of it."""
    check_clean(storage)
    commits = len(active(storage).timeline.writes())
    assert commits in (before, before + 1)
    assert len(data_files(storage)) == commits * 2


@pytest.mark.parametrize("action", ["commit", "replacecommit"])
def test_dying_writers(folder: Path, action: str):
    write = Write(action=action, retried="9-9-9")
    outcomes = set()
    for storage in deaths(folder, write.run):
        Write().run(storage)
        whole_or_nothing(storage, 2)
        outcomes.add(len(active(storage).timeline.writes()))
    assert outcomes == {2, 3}


def test_dying_rollbacks(folder: Path):
    """The write died, then the one that rolls it back dies anywhere, then a third one finishes it."""
    Write().leave(opened(folder))
    for storage in deaths(folder, Write().run):
        Write().run(storage)
        whole_or_nothing(storage, 2)
        assert 1 <= len(active(storage).timeline.of_actions("rollback")) <= 2


def test_dying_twice_in_a_rollback(folder: Path):
    """And so does the one that finishes the rollback, at each place."""
    Write(("a",)).leave(opened(folder))
    plan = 4
    copy = folder.with_name("rolling")
    shutil.copytree(folder, copy)
    with pytest.raises(Killed):
        Write().begin(FaultyStorage(opened(copy), [Fault("writes", plan, "after", Killed)]))
    assert active(opened(copy)).timeline.pending().of_actions("rollback")
    for storage in deaths(copy, Write().run):
        Write().run(storage)
        whole_or_nothing(storage, 2)


def test_dying_while_log_files_are_rolled_back(folder: Path, version: int):
    """From version 8 on they go; in version 6 a command block voids what is in them, once or more often."""
    storage = opened(folder)
    first = active(storage).timeline.writes().last.requested
    dead = Write(("a",), "deltacommit").leave(storage)
    log = f".A_{first if version < 8 else dead.instant}.log.1_0-1-2"
    dead.markers.create("a", log, IOType.APPEND if version < 8 else IOType.CREATE)
    storage.write(f"a/{log}", b"")
    for storage in deaths(folder, Write().run):
        Write().run(storage)
        logs = {path for path in data_files(storage) if ".log." in path}
        check_clean(storage, besides=logs)
        commands = [block for path in logs for block in scan_blocks(storage.read(path))]
        assert {block.target_instant for block in commands} == ({dead.instant} if version < 8 else set())
        assert (f"a/{log}" in logs) == (version < 8)


def test_dying_aborts(folder: Path):
    def give_up(storage: Storage) -> None:
        write = Write()
        tx = write.begin(storage)
        write.write_files(tx)
        tx.abort()

    for storage in deaths(folder, give_up):
        Write().run(storage)
        whole_or_nothing(storage, 2)
        assert len(active(storage).timeline.writes()) == 2


def test_dying_with_several_writers(folder: Path):
    """A dead writer's heartbeat stays; once it has aged its write is rolled back by another one."""
    write = Write(options=MULTI_WRITER)
    for storage in deaths(folder, write.run):
        for beat in (folder.with_name("dead") / ".hoodie/.heartbeat").glob("*"):
            os.utime(beat, (0, 0))
        Write(options=MULTI_WRITER).run(storage)
        whole_or_nothing(storage, 2)


def test_dying_while_the_metadata_table_is_taken_out_of_use(folder: Path):
    add_metadata_table(opened(folder))
    for storage in deaths(folder, Write().begin):
        declared = TableConfig.load(storage).properties.get("hoodie.table.metadata.partitions")
        left = set(storage.list(".hoodie/metadata", recursive=True)["path"].to_pylist())
        if declared:
            assert left == set(METADATA_TABLE)
            assert len(active(storage).timeline) == 1, "something was written while the metadata table was in use"
        Write().run(storage)
        whole_or_nothing(storage, 2)
        assert not TableConfig.load(storage).properties.get("hoodie.table.metadata.partitions")
        assert storage.list(".hoodie/metadata", recursive=True).num_rows == 0


def test_failing_storage(folder: Path):
    """An error that is no death: the with block rolls the write back, or it is whole."""
    names = operations(folder, Write().run)
    for nth, name in enumerate(names, 1):
        for when in ("before", "after") if name in WRITES else ("before",):
            copy = folder.with_name("failing")
            shutil.copytree(folder, copy)
            faulty = FaultyStorage(opened(copy), [Fault("*", nth, when)])  # type: ignore[arg-type]
            write = Write()
            with contextlib.suppress(OSError), write.begin(faulty) as tx:
                tx.commit(write.write_files(tx))
            Write().run(opened(copy))
            whole_or_nothing(opened(copy), 2)
            shutil.rmtree(copy)
