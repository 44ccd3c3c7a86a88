"""Cleaning, archival, rollback, savepoint and restore by each side on what the other one has left."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

import pytest

from pyhudi.api.hudi_table import HudiTable
from pyhudi.config import Options
from pyhudi.metadata.writer.initial_statistics import LOCAL
from pyhudi.services.cleaning.cleaner import Cleaner
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.archive.archived_timeline import read_archived_timeline
from pyhudi.timeline.instant import Action, Instant, State
from tests.cases import every, seldom
from tests.fault_injection import Killed
from tests.file_effects import effects_below, sampled
from tests.interop.harness.alternating_writes import OPTIONS, SIMPLE, rows, table
from tests.interop.harness.oracle import Oracle, OracleError
from tests.properties import FACTOR

KEPT = {"hoodie.clean.commits.retained": "1", "hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3"}
WRITES = {
    **OPTIONS,
    **SIMPLE,
    **KEPT,
    # as release 0.15 calls it
    "hoodie.cleaner.commits.retained": KEPT["hoodie.clean.commits.retained"],
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.index.column.stats.enable": str(FACTOR >= 1).lower(),
    "hoodie.metadata.compact.max.delta.commits": "4",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.compact.inline": "true",
    "hoodie.compact.inline.max.delta.commits": "2",
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
}
DELETE_PARTITION = {**WRITES, "hoodie.datasource.write.operation": "delete_partition"}
METADATA = {"hoodie.metadata.enable": "true", "hoodie.enable.data.skipping": "true"}


class Table:
    """A table that Apache Hudi writes, and both sides look after; ``model`` is what it holds."""

    def __init__(self, path: Path, oracle: Oracle) -> None:
        self.path, self.oracle = path, oracle
        self.model: dict[str, str] = {}
        self.times = 0

    def write(self, start: int, stop: int, **more: str) -> dict[str, str]:
        """Let Apache Hudi write; returns what the table holds then. Dots of options are double underscores."""
        self.times += 1
        found = rows(start, stop, self.times, f"v{self.times}")
        self.oracle.write(self.path, table(found), WRITES | {k.replace("__", "."): v for k, v in more.items()})
        self.model |= {row[0]: row[4] for row in found}
        return dict(self.model)

    @property
    def ours(self) -> HudiTable:
        return HudiTable.for_path(str(self.path), {**KEPT, "hoodie.metadata.enable": "true"})

    @property
    def active(self) -> ActiveTimeline:
        return TableMetaClient.open(str(self.path)).active_timeline()

    def last(self, action: str) -> Instant:
        found = self.active.timeline.completed().of_actions(action).last
        assert found is not None
        return found

    def latest(self) -> str:
        return self.active.timeline.completed().writes().by_completion()[-1].requested

    def call(self, procedure: str) -> None:
        """Let Apache Hudi run a procedure on the table, ``t``."""
        name = f"t_{self.path.parent.name}".replace("-", "_")
        self.oracle.sql(
            f"CREATE TABLE IF NOT EXISTS {name} USING hudi LOCATION '{self.path}'",
            "SET hoodie.embed.timeline.server=false",
            f"CALL {procedure.replace('$', name)}",
        )
        self.oracle.sql(f"DROP TABLE {name}")

    def copied(self, path: Path) -> Table:
        """Return a copy of the table."""
        found = Table(path, self.oracle)
        shutil.copytree(self.path, path)
        found.model, found.times = dict(self.model), self.times
        return found

    def check(self) -> None:
        """Both sides see the model, with and without the metadata table, which lists what there is."""
        self.check_rows()
        problems = self.ours.validate_metadata()["problem"].to_pylist()
        assert [problem for problem in problems if not self._is_known(problem)] == []

    def check_rows(self) -> None:
        """Both sides see the model, with and without the metadata table."""
        ways = (METADATA, {"hoodie.metadata.enable": "false"})
        for options in every(2, ways):  # whether the metadata table lists what there is, is asked below
            theirs = self.oracle.read(self.path, options)
            assert dict(zip(theirs["id"].to_pylist(), theirs["v"].to_pylist(), strict=True)) == self.model
        for options in ways:
            found = HudiTable.for_path(str(self.path), options).scan(columns=["id", "v"]).to_arrow()
            assert dict(zip(found["id"].to_pylist(), found["v"].to_pylist(), strict=True)) == self.model

    def _is_known(self, problem: str) -> bool:
        """Rolled back log files of version 6 are known to one side only. A restore by 1.0.2 rolls back compactions of
        the metadata table together with log files of earlier commits that completed after them."""
        if self.oracle.release == "1.0.2" and self.active.timeline.of_actions(Action.RESTORE).last is not None:
            return problem.startswith("the metadata table cannot be used") and problem.endswith("is missing")
        return problem == "not in the metadata table" and self.active.layout.version < 2


@pytest.fixture(scope="module")
def written() -> dict[str, Table]:
    """Tables that releases have written, by release."""
    return {}


@pytest.fixture
def both(oracle: Oracle, written: dict[str, Table], tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Table:
    first = written.get(oracle.release)
    if first is None:
        first = written[oracle.release] = Table(tmp_path_factory.mktemp("written") / "table", oracle)
        for n in range(5):
            first.write(n, n + 12)
    return first.copied(tmp_path / "table")


RELEASES = pytest.mark.parametrize(
    "oracle", [seldom("0.15.0"), seldom("1.0.2"), seldom("1.1.1"), "1.2.0"], indirect=True
)


@RELEASES
def test_cleans(both: Table) -> None:
    plan = both.ours.services.clean(dry_run=True)
    assert len(both.ours.services.clean().instants) == 1
    both.check()
    # they go on after our clean, and clean by themselves
    for n in range(2):
        both.write(n, n + 5)
    both.write(2, 4, hoodie__clean__automatic="true")
    theirs = both.last(Action.CLEAN)
    record = both.active.completed_record(theirs)
    assert record["earliestCommitToRetain"] > plan.earliest_instant
    both.check()
    # theirs has died before it was inflight; we take it up
    active = both.active
    for state in active.states(theirs):
        if state.state is not State.REQUESTED:
            active.delete(state)
    assert both.ours.services.clean().instants == (theirs.requested,)
    again = both.active.completed_record(both.last(Action.CLEAN))
    for name in ("earliestCommitToRetain", "totalFilesDeleted", "lastCompletedCommitTimestamp"):
        assert again[name] == record[name]
    both.check()
    # ours has died; they take it up
    for n in range(2):
        both.write(n, n + 5)
    client, opts = TableMetaClient.open(str(both.path)), Options.parse({**KEPT, "hoodie.metadata.enable": "true"})
    cleaner = Cleaner(client, opts, LOCAL)
    mine = cleaner.schedule(TableSnapshot.load(client), cleaner.plan(), only_if_due=False)
    assert mine is not None
    both.write(1, 6, hoodie__clean__automatic="true")
    assert (found := both.active.timeline.find(mine.instant or "", Action.CLEAN)) is not None
    assert found.is_completed
    assert not {p for p in mine.paths().to_pylist() if (both.path / p).exists()}
    both.check()


@pytest.mark.slow
@RELEASES
def test_a_partition_that_comes_again_before_it_is_cleaned(both: Table) -> None:
    """They execute our plan, made when all files of the partition had been replaced."""
    both.oracle.write(both.path, table(rows(0, 1, 0, "")), DELETE_PARTITION)
    both.model = {key: value for key, value in both.model.items() if int(key[1:]) % 2}
    for n in range(2):
        both.write(2 * n + 1, 2 * n + 2)
    client, opts = TableMetaClient.open(str(both.path)), Options.parse({**KEPT, "hoodie.metadata.enable": "true"})
    cleaner = Cleaner(client, opts, LOCAL)
    plan = cleaner.schedule(TableSnapshot.load(client), cleaner.plan(), only_if_due=False)
    assert plan is not None
    assert plan.partitions == ("p0",)
    both.write(0, 6)
    both.write(3, 8, hoodie__clean__automatic="true")
    assert (found := both.active.timeline.find(plan.instant or "", Action.CLEAN)) is not None
    assert found.is_completed
    both.check()


@RELEASES
def test_archives(both: Table) -> None:
    both.ours.services.clean()
    result = both.ours.services.archive()
    assert result
    both.check()
    for n in range(4):
        both.write(n, n + 4, hoodie__archive__automatic="true", hoodie__clean__automatic="true")
    both.check()
    archived = read_archived_timeline(both.active.storage, both.active.layout)["requested"].to_pylist()
    assert set(result.instants) <= set(archived)
    assert not set(archived) & {i.requested for i in both.active.timeline}
    assert both.ours.services.archive().instants or len(archived) > len(result.instants)
    both.check()


@RELEASES
def test_savepoints_and_restores(both: Table) -> None:
    # ours, restored by them
    saved = dict(both.model)
    instant = both.latest()
    both.ours.services.savepoint(instant)
    for n in range(2):
        both.write(n, n + 20)
    both.call(f"rollback_to_savepoint(table => '$', instant_time => '{instant}')")
    both.model = saved
    both.check()
    both.write(3, 6)
    both.check()
    # theirs, restored by us
    saved, instant = dict(both.model), both.latest()
    both.call(f"create_savepoint(table => '$', commit_time => '{instant}')")
    assert instant in both.ours.services.savepoints()["instant"].to_pylist()
    for n in range(2):
        both.write(n, n + 20)
    both.ours.services.restore(instant)
    both.model = saved
    both.check()
    both.write(5, 9)
    both.check()


@pytest.mark.slow
@pytest.mark.parametrize("oracle", ["1.2.0"], indirect=True)
def test_a_restore_past_a_clustering(both: Table) -> None:
    """Theirs leaves its plan, which keeps them from writing until our rollback removes it."""
    saved, instant = dict(both.model), both.latest()
    both.ours.services.savepoint(instant)
    both.write(0, 20)
    (clustered,) = both.ours.services.cluster().instants
    both.call(f"rollback_to_savepoint(table => '$', instant_time => '{instant}')")
    both.model = saved
    assert [plan.instant for plan in both.ours.services.pending_clusterings()] == [clustered]
    with pytest.raises(OracleError, match="Not allowed to update the clustering file group"):
        both.write(3, 6)
    both.ours.services.rollback(clustered)
    both.check()
    both.write(3, 6)
    both.check()


@pytest.mark.slow
@RELEASES
def test_rollbacks(both: Table) -> None:
    before = dict(both.model)
    both.write(0, 4, hoodie__compact__inline="false")
    both.ours.services.rollback()
    both.model = before
    both.check()
    both.write(2, 6, hoodie__compact__inline="false")
    both.check()


def half_written(both: Table) -> None:
    """Leave the last write as one that died immediately before it was published."""
    both.write(0, 4, hoodie__compact__inline="false")
    active = both.active
    last = active.timeline.completed().writes().by_completion()[-1]
    active.delete(last)


def roll_back_failed(both: Table) -> None:
    for entry in both.active.timeline.writes().pending():
        both.ours.services.rollback(entry.requested)


def cluster(both: Table) -> None:
    """Let Apache Hudi carry out the clusterings that are pending."""
    for plan in both.ours.services.pending_clusterings():
        both.call(f"run_clustering(table => '$', op => 'execute', instants => '{plan.instant}')")


DEATHS: Mapping[str, tuple[Callable[[Table], object], Callable[[Table], object], Callable[[Table], object]]] = {
    "compaction": (
        lambda b: b.write(1, 5, hoodie__compact__inline="false"),
        lambda b: b.ours.services.compact(),
        lambda b: b.write(0, 6),
    ),
    "clustering": (lambda _: None, lambda b: b.ours.services.cluster(), cluster),
    "clean": (
        lambda _: None,
        lambda b: b.ours.services.clean(),
        lambda b: b.write(0, 6, hoodie__clean__automatic="true"),
    ),
    "archive": (
        lambda b: b.ours.services.clean(),
        lambda b: b.ours.services.archive(),
        lambda b: b.write(0, 6, hoodie__clean__automatic="true", hoodie__archive__automatic="true"),
    ),
    "rollback": (half_written, roll_back_failed, lambda b: b.write(0, 6)),
}
"""Services that die: what precedes the call, the call, and how Apache Hudi goes on."""


@pytest.mark.parametrize("oracle", ["1.2.0"], indirect=True)
@pytest.mark.parametrize("name", ["compaction", *map(seldom, ("clustering", "clean", "archive", "rollback"))])
def test_they_go_on_when_a_service_has_died(both: Table, name: str, tmp_path: Path) -> None:
    prepare, act, go_on = DEATHS[name]
    before = dict(both.model)
    prepare(both)
    both.model = before if name == "rollback" else both.model
    probe = both.copied(tmp_path / "probe" / "table")
    with effects_below(probe.path) as watched:
        act(probe)
    for nth in sampled(len(watched.seen), 1 if FACTOR < 1 else 4):
        left = both.copied(tmp_path / f"died{nth}" / "table")
        try:
            with effects_below(left.path, fail_at=nth), suppress(Killed):
                act(left)
            left.check_rows()
            go_on(left)
            left.check_rows()
            left.write(3, 9, hoodie__clean__automatic="true", hoodie__archive__automatic="true")
            left.ours.services.clean()
            left.check()
            assert not left.active.timeline.pending().of_actions(Action.ROLLBACK, Action.CLEAN)
        except Exception as error:
            error.add_note(f"after the death before {watched.seen[nth - 1]}, effect {nth} of {len(watched.seen)}")
            raise
