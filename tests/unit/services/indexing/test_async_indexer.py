"""Indexes that are built while writers go on: planned, built beside writes, given up, left by builders that died."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from pyhudi.config import Options
from pyhudi.errors import BusyError, ConfigError, ConflictError, InstantNotFoundError, UnsupportedTableError
from pyhudi.metadata.file_groups.delta_commit_writer import MetadataCommit, acknowledged_partitions
from pyhudi.metadata.file_groups.hfile_sources import CACHE
from pyhudi.metadata.indexes.pending_index_plans import pending_index_plans
from pyhudi.metadata.reader.metadata_table import MetadataTable
from pyhudi.services.indexing import async_indexer
from pyhudi.services.indexing.async_indexer import plans_to_run, run_index_plans
from pyhudi.services.indexing.index_builder import drop_index
from pyhudi.services.indexing.index_planner import schedule_index
from pyhudi.services.indexing.index_requests import IndexRequest
from pyhudi.storage import Storage
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline.commit_metadata import WRITE_STAT_SCHEMA, CommitMetadata
from pyhudi.timeline.instant import Action, State
from pyhudi.timeline.plans.index_plan import IndexPlan
from tests.unit.services.merge_on_read_table import FAST, FILE_IDS, MorTable, row
from tests.unit.transaction.test_writer_death import deaths

STATS = ("column_stats", "partition_stats")
FEW = {**FAST, "hoodie.metadata.enable": "true"}
LATER = Options.parse(FEW)
INFLIGHT = "hoodie.table.metadata.partitions.inflight"
SEVERAL = {"hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL"}


@pytest.fixture(params=[6, 9])
def mor(request: pytest.FixtureRequest, tmp_path: Path) -> MorTable:
    """A table with two file groups and a log file, and without statistics."""
    table = MorTable(tmp_path / "t", request.param, options=FEW)
    table.load([row(f"{p}{n}", p, 1, "x") for p in FILE_IDS for n in range(3)])
    table.delta([row("a1", "a", 2, "log")])
    if table.version >= 8:
        table.table.services.drop_index("column_stats")
    return table


def no_engine() -> async_indexer.Preparer:
    raise AssertionError("no index here needs one")


def wanted(table: MorTable) -> tuple[str, ...]:
    """What is built in these tests. (Tables of version 6 have no statistics of partitions.)"""
    return STATS if table.version >= 8 else STATS[:1]


def plan(table: MorTable) -> IndexPlan:
    request = IndexRequest.from_arguments(wanted(table)[-1], (), None, {})
    return schedule_index(table.client, LATER, request, dry_run=False)


def run(table: MorTable, options: Mapping[str, str] | None = None) -> tuple[str, ...]:
    opts = LATER.merged(options or {})
    return run_index_plans(table.client, opts, plans_to_run(table.client, opts), preparer=no_engine).partitions


def records(table: MorTable, partition: str) -> list[dict[str, Any]]:
    """What the metadata table says, but whether bounds are exact."""
    CACHE.clear()
    client = table.client
    found = MetadataTable.open(TableSnapshot.load(client)).scan(partition).to_pylist()
    for one in found:
        for payload in one.values():
            if isinstance(payload, dict):
                payload.pop("isTightBound", None)
    return sorted(found, key=lambda one: one["key"])


def check(table: MorTable, *, last: bool = False) -> None:
    """The index is in use and says what it would say if it was built anew, and nothing is left of its building. The
    ``last`` thing that is done with the table spares a copy of it."""
    config = table.client.config
    assert set(wanted(table)) <= set(config.metadata_partitions)
    assert not config.metadata_partitions_inflight
    assert not pending_index_plans(table.client.active_timeline())
    found = {name: records(table, name) for name in wanted(table)}
    copy = table if last else _copied(table)
    services = copy.table.services
    services.drop_index(STATS[0])
    services.build_index(wanted(table)[-1])
    for name in wanted(table):
        assert records(copy, name) == found[name]
    if not last:
        shutil.rmtree(copy.root)


def _copied(table: MorTable) -> MorTable:
    copy = MorTable(table.root.with_name("anew"), table.version, options=table.options)
    shutil.rmtree(copy.root)
    shutil.copytree(table.root, copy.root)
    return copy


def beside(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object], *, before: bool = True) -> None:
    """Have something done while base files are written, before or after."""
    real = async_indexer.write_index_files
    monkeypatch.setattr(
        async_indexer, "write_index_files", lambda begun: (act(), real(begun))[1] if before else _then(real, begun)
    )

    def _then(real: Any, begun: Any) -> Any:
        found = real(begun)
        act()
        return found


def test_plan_and_run(mor: MorTable) -> None:
    made = plan(mor)
    assert made.partitions == wanted(mor)
    assert made.state is State.REQUESTED
    assert mor.table.services.pending_indexes() == [made]
    if mor.version < 8:  # later ones build statistics by themselves, unless somebody is at it
        mor.delta([row("b2", "b", 2, "z")])
    assert mor.table.services.run_index(dry_run=True).partitions == wanted(mor)
    assert not set(wanted(mor)) & set(mor.client.config.metadata_partitions)
    seen: list[tuple[str, int, int]] = []
    plans = plans_to_run(mor.client, LATER)
    ran = run_index_plans(mor.client, LATER, plans, preparer=no_engine, progress=lambda *done: seen.append(done))
    assert ran.partitions == wanted(mor)
    assert seen == [("build indexes", n, len(wanted(mor))) for n in range(len(wanted(mor)) + 1)]
    check(mor)
    mor.delta([row("a2", "a", 2, "more")])
    check(mor)
    last = mor.client.active_timeline()
    (done,) = last.timeline.completed().of_actions(Action.INDEXING)
    assert done.requested == made.instant
    assert mor.table.services.run_index().reason == "no index is planned"


def test_writes_beside(mor: MorTable, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that begin and end while it is built, and one that was under way when it began."""
    plan(mor)
    under_way = mor.begin() if mor.version >= 8 else None  # in version 6 a second writer would roll it back
    if under_way is not None:
        mor.options = {**FEW, **SEVERAL}
        under_way = mor.begin()

    def act() -> None:
        for n in range(12):  # the metadata table is compacted meanwhile
            mor.delta([row("a0", "a", 3 + n, f"beside {n}")])
        if under_way is not None:
            logs = mor.write_logs(under_way, [row("b0", "b", 9, "under way")])
            mor.commit(under_way, "UPSERT", logs)
        assert set(mor.client.config.metadata_partitions_inflight) == set(wanted(mor))
        assert mor.rows()["a0"]["v"] == "beside 11"

    beside(monkeypatch, act)
    assert run(mor, SEVERAL) == wanted(mor)
    check(mor)
    for n in range(12):
        mor.delta([row("a0", "a", 20 + n, f"after {n}")])
    check(mor)


def test_a_rolled_back_write(mor: MorTable, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that the index was built with, after it was planned; and one that is rolled back while it is built."""
    mor.options = {**FEW, "hoodie.metadata.index.column.stats.enable": "false"}
    plan(mor)
    mor.delta([row("a0", "a", 99, "rolled back after")])
    assert run(mor) == wanted(mor)
    assert mor.table.services.rollback()
    check(mor)

    mor.table.services.drop_index(STATS[0])
    plan(mor)
    mor.delta([row("a0", "a", 99, "rolled back beside")])
    once: list[object] = []
    beside(monkeypatch, lambda: once or once.append(mor.table.services.rollback()), before=False)
    assert run(mor) == wanted(mor)
    check(mor, last=True)


@pytest.mark.parametrize("key", ["pyhudi.acknowledged.partitions", "pyhudi.told"])
def test_acknowledgements_of_writes(key: str) -> None:
    """Earlier releases recorded them under another key."""
    extra = {"schema": "", key: "column_stats,partition_stats"}
    commit = CommitMetadata("UPSERT", WRITE_STAT_SCHEMA.empty_table(), extra)
    assert acknowledged_partitions(commit) == set(STATS)


def test_an_acknowledgement_is_written_with_the_new_key() -> None:
    commit = MetadataCommit((), acknowledged=STATS).metadata(9)
    assert commit.extra["pyhudi.acknowledged.partitions"] == "column_stats,partition_stats"
    assert acknowledged_partitions(commit) == set(STATS)
    assert not acknowledged_partitions(MetadataCommit(()).metadata(9))


def test_a_write_that_tells_nothing(mor: MorTable, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that looked at the table's properties before the index was announced, as other writers may."""
    if mor.version < 8:
        pytest.skip("the next writer would roll it back")
    mor.options = {**FEW, **SEVERAL}
    plan(mor)
    tx = mor.begin()

    def act() -> None:
        config = mor.client.config
        assert mor.storage is not None
        named = config.properties[INFLIGHT]
        config.updated(mor.storage, remove=[INFLIGHT])
        mor.commit(tx, "UPSERT", mor.write_logs(tx, [row("a9", "a", 99, "zzz")]))
        mor.client.config.updated(mor.storage, set={INFLIGHT: named})

    beside(monkeypatch, act)
    assert run(mor, SEVERAL) == wanted(mor)
    check(mor)


def test_dying_builders(mor: MorTable) -> None:
    """Wherever a builder dies, writers go on and readers are right; who runs the plan again builds all of it."""
    plan(mor)
    outcomes = set()

    def act(storage: Storage) -> None:
        client = type(mor.client).open(storage, FEW)
        run_index_plans(client, LATER, plans_to_run(client, LATER), preparer=no_engine)

    for storage in deaths(mor.root, act):
        left = MorTable(mor.root.with_name("dead"), mor.version, options=FEW, storage=storage)
        left.delta([row("b1", "b", 5, "after the death")])
        assert left.rows()["b1"]["v"] == "after the death"
        pending = pending_index_plans(left.client.active_timeline())
        outcomes.add(bool(pending))
        if pending:
            assert run(left) in (wanted(left), ())  # the write may have built it by itself
        check(left, last=True)
    assert outcomes == {True, False}


def test_dying_while_dropping(mor: MorTable) -> None:
    """Nothing is left of an index that was dropped while it was built, wherever who dropped it died."""
    name = wanted(mor)[0]
    plan(mor)

    attempt = async_indexer.IndexBuildAttempt(mor.client, LATER, mor.table.services.pending_indexes()[0], no_engine)
    with async_indexer.lock_table(mor.client, LATER) as table:
        attempt.begin(table)

    def drop(storage: Storage) -> None:
        drop_index(type(mor.client).open(storage, FEW), LATER, name, if_exists=False, dry_run=False)

    for storage in deaths(mor.root, drop):
        left = MorTable(mor.root.with_name("dead"), mor.version, options=FEW, storage=storage)
        left.table.services.drop_index(name, if_exists=True)
        config = left.client.config
        assert not config.metadata_partitions_inflight
        assert name not in config.metadata_partitions
        assert not pending_index_plans(left.client.active_timeline())
        left.table.services.build_index(wanted(left)[-1])
        check(left, last=True)


@pytest.mark.parametrize("mor", [9], indirect=True)
def test_expressions_of_columns_that_older_files_name_otherwise_are_refused(mor: MorTable) -> None:
    """Values are computed from files, where such a column is null or another one."""
    services = mor.table.services

    def preview(column: str) -> IndexPlan:
        expression = {"using": "column_stats", "index_options": {"expr": "lower"}}
        return services.schedule_index("letters", column, dry_run=True, **expression)

    with mor.table.alter_schema() as columns:
        columns.add_column("more", "string")
    assert preview("v").partitions
    with mor.table.alter_schema() as columns:
        columns.rename_column("v", "w")
    assert preview("more").partitions
    with pytest.raises(UnsupportedTableError, match="column 'w' was renamed"):
        preview("w")
    with mor.table.alter_schema() as columns:
        columns.add_column("v", "string")
    with pytest.raises(UnsupportedTableError, match=r"lower\(v\) cannot be computed"):
        preview("v")


def test_refused(mor: MorTable, monkeypatch: pytest.MonkeyPatch) -> None:
    services = mor.table.services
    with pytest.raises(ConfigError, match="requires a name"):
        services.schedule_index("fi les", "v")
    plan(mor)
    with pytest.raises(ConfigError, match="is planned"):
        plan(mor)
    with pytest.raises(ConfigError, match="is planned"):
        services.build_index(wanted(mor)[-1])
    assert services.schedule_index(wanted(mor)[0], if_not_exists=True).reason
    with pytest.raises(InstantNotFoundError, match="20010101000000000"):
        services.run_index("20010101000000000")
    with pytest.raises(ConfigError, match=r"hoodie\.metadata\.enable"):
        services.run_index(options={"hoodie.metadata.enable": "false"})
    # an attempt that fails leaves the plan, and nothing else
    beside(monkeypatch, lambda: (_ for _ in ()).throw(ZeroDivisionError()))
    with pytest.raises(ZeroDivisionError):
        run(mor)
    assert [one.state for one in services.pending_indexes()] == [State.REQUESTED]
    assert not mor.client.config.metadata_partitions_inflight
    monkeypatch.undo()
    # dropped while it is built
    beside(monkeypatch, lambda: services.drop_index(wanted(mor)[0]))
    with pytest.raises(ConflictError, match="dropped"):
        run(mor)
    monkeypatch.undo()
    assert not services.pending_indexes()
    plan(mor)
    # two at a time
    inner = []

    def second() -> None:
        monkeypatch.undo()
        with pytest.raises(BusyError, match="heartbeat"):
            run(mor, SEVERAL)
        inner.append(1)

    beside(monkeypatch, second)
    run(mor, SEVERAL)
    assert inner
    check(mor)


def test_plans_of_indexes_that_are_not_built_here(mor: MorTable) -> None:
    if mor.version < 8:
        pytest.skip("there are none")
    active = mor.client.active_timeline()
    unknown = IndexPlan(("vector_index_x",), "0")
    active.create_requested(Action.INDEXING, "20990101000000000", unknown.encode(9))
    with pytest.raises(UnsupportedTableError, match="vector_index_x"):
        mor.table.services.run_index()
    mor.delta([row("a1", "a", 7, "on")])
    assert mor.rows()["a1"]["v"] == "on"
    # somebody else is building it: it cannot be kept, so it goes
    active.to_inflight(active.timeline.find("20990101000000000"))  # type: ignore[arg-type]
    assert mor.storage is not None
    mor.client.config.updated(mor.storage, set={INFLIGHT: "vector_index_x"})
    mor.delta([row("a1", "a", 8, "on")])
    assert not mor.client.config.metadata_partitions_inflight
    assert mor.table.services.drop_index("vector_index_x").partitions == ("vector_index_x",)
    assert not mor.table.services.pending_indexes()


def test_declared_and_not_completed(mor: MorTable) -> None:
    """Apache Hudi declares a partition before it completes its indexing instant; one that died in between leaves base
    files that nobody counts, so the partition must not be read."""
    plan(mor)
    run(mor)
    active = mor.client.active_timeline()
    (done,) = active.timeline.completed().of_actions(Action.INDEXING)
    for state in active.states(done):
        if state.is_completed:
            active.delete(state)
    mor.delta([row("a1", "a", 50, "last")])
    found = mor.table.scan([("o", "=", 50)], ["id"])
    assert found.to_arrow()["id"].to_pylist() == ["a1"]
    assert mor.table.scan([("o", "=", 1)], ["id"]).to_arrow().num_rows == 5
    assert run(mor) == ()
    check(mor)
