"""What goes wrong beside an index that is being built: writers that die or say nothing, a second builder, a plan that
cannot be read."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pyhudi.errors import ConflictError, CorruptInstantError
from pyhudi.metadata.file_groups.hfile_sources import CACHE
from pyhudi.metadata.indexes.pending_index_plans import pending_index_plans
from pyhudi.services.indexing import async_indexer
from pyhudi.services.indexing.index_builder import lock_table
from pyhudi.timeline.instant import Action
from tests.fault_injection import WRITES, Fault, FaultyStorage, Killed
from tests.properties import places
from tests.unit.services.indexing.test_async_indexer import (
    FEW,
    INFLIGHT,
    LATER,
    check,
    mor,
    no_engine,
    plan,
    run,
    wanted,
)
from tests.unit.services.merge_on_read_table import MorTable, row
from tests.unit.transaction.test_writer_death import operations

__all__ = ["mor"]


def during(monkeypatch: pytest.MonkeyPatch, act: Callable[[int], object]) -> list[int]:
    """Have something done each time after base files were written; the list tells how often they were."""
    real, times = async_indexer.write_index_files, list[int]()

    def written(begun: Any) -> Any:
        found = real(begun)
        times.append(len(times) + 1)
        act(len(times))
        return found

    monkeypatch.setattr(async_indexer, "write_index_files", written)
    return times


def silently(table: MorTable, act: Callable[[], object]) -> None:
    """Write as one who knows nothing of what is being built."""
    assert table.storage is not None
    named = table.client.config.properties[INFLIGHT]
    table.client.config.updated(table.storage, remove=[INFLIGHT])
    before = table.options
    table.options = {**FEW, "hoodie.metadata.index.column.stats.enable": "false"}
    act()
    table.options = before
    table.client.config.updated(table.storage, set={INFLIGHT: named})


@pytest.mark.parametrize("often", [1, 9])
def test_writes_that_tell_nothing(mor: MorTable, monkeypatch: pytest.MonkeyPatch, often: int) -> None:
    """They begin after the index was announced. It is begun anew, and at last nobody may write meanwhile."""
    plan(mor)
    first = mor.table.services.pending_indexes()[0].instant

    def act(time: int) -> None:
        if time <= often:
            silently(mor, lambda: mor.delta([row("a9", "a", 90 + time, f"z{time}")]))

    times = during(monkeypatch, act)
    assert run(mor) == wanted(mor)
    assert len(times) == min(often + 1, async_indexer._TRIES)
    (done,) = mor.client.active_timeline().timeline.completed().of_actions(Action.INDEXING)
    assert done.requested != first
    check(mor)


def test_the_lock_is_free_while_base_files_are_written(mor: MorTable, monkeypatch: pytest.MonkeyPatch) -> None:
    plan(mor)
    several = {**FEW, "hoodie.write.lock.wait_time_ms_between_retry": "1", "hoodie.write.lock.num_retries": "1"}

    def act(_: int) -> None:
        with lock_table(mor.client, LATER.merged(several)) as table:
            assert set(table.config.metadata_partitions_inflight) == set(wanted(mor))

    times = during(monkeypatch, act)
    assert run(mor) == wanted(mor)
    assert times == [1]


def test_writers_that_die_beside(mor: MorTable, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever they die, the index is right after it was built, and after somebody has rolled their write back."""

    def write(storage: Any, folder: Path) -> None:
        MorTable(folder, mor.version, options=FEW, storage=storage).delta([row("a1", "a", 77, "dying")])

    def built_beside(act: Callable[[MorTable], None]) -> MorTable:
        copy = MorTable(mor.root.with_name("case"), mor.version, options=FEW)
        shutil.rmtree(copy.root)
        shutil.copytree(mor.root, copy.root)
        CACHE.clear()  # the files have names that others had before
        during(monkeypatch, lambda _: act(copy))
        built = run(copy)
        monkeypatch.undo()
        assert built == wanted(copy)
        return copy

    plan(mor)
    done: list[str] = []
    built_beside(lambda copy: done.extend(operations(copy.root, lambda storage: write(storage, copy.root))))
    seen = set()
    for nth in (place + 1 for place in places(sum(name in WRITES for name in done), step=2)):

        def act(copy: MorTable, nth: int = nth) -> None:
            assert copy.storage is not None
            with contextlib.suppress(Killed):
                write(FaultyStorage(copy.storage, [Fault("writes", nth, "after", Killed)]), copy.root)

        copy = built_beside(act)
        copy.delta([row("b1", "b", 5, "after the death")])
        value = copy.rows()["a1"]["v"]
        seen.add(value)
        assert copy.table.scan([("v", "=", value)], ["id"]).to_arrow()["id"].to_pylist() == ["a1"]
        if copy.version >= 8:  # before, an index that is built anew knows the log files of writes that were rolled back
            check(copy, last=True)
        shutil.rmtree(copy.root)
    assert seen == {"log", "dying"}


def test_a_second_builder_without_heartbeats(mor: MorTable, monkeypatch: pytest.MonkeyPatch) -> None:
    """One process for each table: who comes later takes the earlier one for dead."""
    plan(mor)
    inner = []

    def act(_: int) -> None:
        monkeypatch.undo()
        mor.delta([row("a0", "a", 30, "between them")])
        inner.append(run(mor))

    during(monkeypatch, act)
    with pytest.raises(ConflictError, match="no longer belongs to this attempt"):
        run(mor)
    assert inner == [wanted(mor)]
    check(mor)


def test_a_plan_that_cannot_be_read(mor: MorTable) -> None:
    """Readers list files, writers go on, and keep what is being built."""
    plan(mor)
    attempt = async_indexer.IndexBuildAttempt(mor.client, LATER, mor.table.services.pending_indexes()[0], no_engine)
    with lock_table(mor.client, LATER) as table:
        attempt.begin(table)
    active = mor.client.active_timeline()
    (entry,) = active.timeline.pending().of_actions(Action.INDEXING)
    requested = next(state for state in active.states(entry) if state.state.rank == 0)
    assert mor.storage is not None
    content = active.read(requested)
    mor.storage.write(active.path(requested), b"")
    with pytest.warns(UserWarning, match="cannot determine which indexes are being built"):
        assert mor.rows()["a1"]["v"] == "log"
    mor.delta([row("a1", "a", 40, "on")])
    assert mor.rows()["a1"]["v"] == "on"
    assert set(mor.client.config.metadata_partitions_inflight) == set(wanted(mor))
    with pytest.raises(CorruptInstantError):
        run(mor)
    mor.storage.write(active.path(requested), content)
    assert run(mor) == wanted(mor)
    assert not pending_index_plans(mor.client.active_timeline())
    check(mor)
