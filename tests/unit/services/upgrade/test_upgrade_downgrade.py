"""Upgrades and downgrades on tables with log files, metadata table and archive: rows, history and refusals; deaths at
every change of the storage."""

from __future__ import annotations

import os
import shutil
import warnings
from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from pyhudi.api.hudi_table import HudiTable
from pyhudi.errors import BusyError, ConfigError, TransactionError, UnsupportedTableError
from pyhudi.metadata.indexes.index_definitions import load_definitions
from pyhudi.metadata.reader.metadata_table import MetadataTable
from pyhudi.metadata.writer.initial_statistics import LOCAL
from pyhudi.services.compaction.compaction_runner import ThreadCompactionRunner
from pyhudi.services.upgrade.metadata_table_conversion import JOURNAL
from pyhudi.services.upgrade.upgrade_downgrade import UpgradeDowngrade
from pyhudi.storage import Storage
from pyhudi.table.config.table_config import TableConfig
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline.instant import Action, next_instant
from pyhudi.timeline.timeline_layout import LAYOUT_1, LAYOUT_2
from tests.cases import seldom
from tests.fault_injection import WRITES, Fault, FaultyStorage, Killed
from tests.file_effects import effects_below
from tests.properties import FACTOR
from tests.tables import HandMadeTable
from tests.unit.services.merge_on_read_table import FAST, FILE_IDS, MorTable, row
from tests.unit.transaction.test_writer_death import opened

OPTIONS = {
    **FAST,
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.metadata.compact.max.delta.commits": "2",
    "hoodie.clean.commits.retained": "1",
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
}


STEP = round(15 / min(1, FACTOR))
"""In versions 6 and 9 at once a run changes more than a hundred files."""


class Tables(dict[int, Path]):
    """Tables by version, made when they are asked for."""

    def __init__(self, folder: Path, make: Callable[[MorTable], None]) -> None:
        super().__init__()
        self._folder, self._make = folder, make

    def __missing__(self, version: int) -> Path:
        mor = MorTable(self._folder / f"v{version}", version, options=OPTIONS)
        self._make(mor)
        return self.setdefault(version, mor.root)


@pytest.fixture(scope="module")
def grown(tmp_path_factory: pytest.TempPathFactory) -> Tables:
    """Tables with a base, log files, a compaction, a clean, an archive and a metadata table."""

    def make(mor: MorTable) -> None:
        mor.load([row(f"{p}{n}", p, 0, "x") for p in FILE_IDS for n in range(3)])
        for n in range(1, 5):
            mor.delta([row("a0", "a", n, f"v{n}"), row(f"b{n % 3}", "b", n, f"w{n}")], [("a2", "a", n)] * (n == 4))
            if n == 2:
                mor.table.services.compact()
        mor.table.services.clean()
        assert mor.table.services.archive()

    return Tables(tmp_path_factory.mktemp("grown"), make)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Tables:
    """Tables of two writes, the second of log files."""

    def make(mor: MorTable) -> None:
        mor.load([row(f"{p}0", p, 0, "x") for p in FILE_IDS])
        mor.delta([row("a0", "a", 1, "v1")])

    return Tables(tmp_path_factory.mktemp("small"), make)


def copy_of(grown: Tables, version: int, tmp_path: Path) -> MorTable:
    return MorTable(Path(shutil.copytree(grown[version], tmp_path / "t")), version, options=OPTIONS)


def change(mor: MorTable, to: int) -> None:
    services = mor.table.services
    done = services.upgrade(to) if to > mor.version else services.downgrade(to, lossy=True)
    assert (done.version, done.to) == (mor.version, to)
    mor.version = to


def history(mor: MorTable) -> dict[tuple[str, str], Any]:
    return {(i["requested"], i["action"]): i["state"] for i in mor.table.history().to_pylist()}


def check(mor: MorTable, rows: dict[str, Any], partitions: set[str], harmless: AbstractSet[str] = frozenset()) -> None:
    """The rows are these, by the metadata table and by listing; nothing is pending; the metadata table is right."""
    assert mor.client.config.version == mor.version
    # 1.0.2 refuses to write tables whose first version it does not know.
    assert int(mor.client.config.properties.get("hoodie.table.initial.version", 6)) <= mor.version
    assert partitions <= set(mor.client.config.metadata_partitions)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert mor.rows() == rows
    plain = {**OPTIONS, "hoodie.metadata.enable": "false"}
    listed = HudiTable.for_path(str(mor.root), plain).scan(columns=["id", "p", "o", "v"]).to_arrow().to_pylist()
    assert {r["id"]: r for r in listed} == rows
    # the test's writer tells no sizes
    assert not set(mor.table.validate_metadata()["problem"].to_pylist()) - {"of another size", *harmless}
    assert not mor.client.active_timeline().timeline.pending()
    own = LAYOUT_1 if mor.version < 8 else LAYOUT_2
    other = LAYOUT_2 if mor.version < 8 else LAYOUT_1
    assert mor.storage is not None
    for folder in ("", ".hoodie/metadata/"):
        names = [p.rpartition("/")[2] for p in mor.storage.list(f"{folder}{other.folder}")["path"].to_pylist()]
        assert not [n for n in names if other.parse(n)]
        names = [p.rpartition("/")[2] for p in mor.storage.list(f"{folder}{own.folder}")["path"].to_pylist()]
        assert [n for n in names if own.parse(n)]


@pytest.mark.parametrize(
    "path",
    [(6, 8, 9, 8, 6, 9), (9, 6, 8), (9, 8, 6, 8), seldom(((6, 9, 6, 9),)), seldom(((8, 6),)), seldom(((8, 9, 6),))],
    ids=str,
)
def test_rows_history_and_indexes_stay(grown: Tables, tmp_path: Path, path: tuple[int, ...]) -> None:
    mor = copy_of(grown, path[0], tmp_path)
    rows, before = mor.rows(), history(mor)
    assert "a2" not in rows
    for n, to in enumerate(path[1:]):
        start, files = mor.version, mor.client.config.metadata_partitions
        change(mor, to)
        kept = {"files", "column_stats"} if "column_stats" in files and not (start == 9 > to) else {"files"}
        check(mor, rows, kept)
        after = history(mor)
        assert before.items() <= after.items()
        mor.delta([row("a1", "a", 100 + n, f"in {to}")])
        rows |= {"a1": row("a1", "a", 100 + n, f"in {to}")}
        assert mor.rows() == rows
        before = history(mor)


def acting(start: int, to: int) -> Callable[[Storage], None]:
    def act(storage: Storage) -> None:
        client = TableMetaClient.open(storage, OPTIONS)
        opts = client.config.validate_against(client.options)
        UpgradeDowngrade(client, opts, ThreadCompactionRunner(), LOCAL, lossy=True).run(to, downgrade=to < start)

    return act


def dying(folder: Path, act: Callable[[Storage], None], step: int) -> Iterator[tuple[Path, str]]:
    """Copies of the table in which the act died after an operation that changes something, and that operation: after
    every change of files that say which version there is, and after every ``step``-th other."""
    probe = FaultyStorage(opened(Path(shutil.copytree(folder, folder.with_name("probe")))))
    act(probe)
    changes = [(name, path) for name, path in probe.operations if name in WRITES]
    assert len(changes) > 20
    for nth, (name, path) in enumerate(changes, 1):
        if nth % step and not path.endswith(("hoodie.properties", "hoodie.properties.backup", "pyhudi_upgrade.json")):
            continue
        copy = Path(shutil.copytree(folder, folder.with_name("dead")))
        with pytest.raises(Killed):
            act(FaultyStorage(opened(copy), [Fault("writes", nth, "after", Killed)]))
        yield copy, f"{name} {path}"
        shutil.rmtree(copy)


def go_on(dead: MorTable, to: int) -> None:
    """Bring a table to another version."""
    services = dead.table.services
    _ = services.upgrade(to) if to > dead.version else services.downgrade(to, lossy=True)


def finish(dead: MorTable, to: int) -> None:
    """Bring a table to another version after a death."""
    dead.version = dead.client.config.version
    with suppress(BusyError):  # died between the inflight file and the claim on it: so begin other programs, too
        go_on(dead, to)
    if dead.client.config.version != to:
        inflight = dead.client.active_timeline().timeline.pending().of_actions(Action.COMPACTION).first
        assert inflight is not None
        dead.table.services.run_compaction(inflight.requested)  # as the error says
        go_on(dead, to)
    dead.version = to


@pytest.mark.parametrize(
    ("start", "to", "step"), [(6, 9, STEP), (9, 6, STEP), seldom((6, 8, 1)), seldom((8, 6, 1)), seldom((9, 8, 1))]
)
def test_deaths(small: Tables, tmp_path: Path, start: int, to: int, step: int) -> None:
    """Whoever dies leaves a table that can be read, in the one version or the other, and the next run goes on."""
    mor = copy_of(small, start, tmp_path)
    rows, before = mor.rows(), set(history(mor))
    versions = []
    for root, where in dying(mor.root, acting(start, to), step):
        dead = MorTable(root, start, options=OPTIONS)
        versions.append(dead.client.config.version)
        assert dead.rows() == rows, where
        assert before <= set(history(dead)), where
        finish(dead, to)
        check(dead, rows, {"files"})
        assert not dead.client.storage.exists(JOURNAL), where
        assert before <= set(history(dead)), where
    assert versions == sorted(versions, reverse=to < start)
    assert set(versions) == {start, to}


@pytest.mark.parametrize(
    ("start", "to", "then"), [(6, 9, 8), (9, 6, 8), seldom((6, 9, 6)), seldom((9, 6, 9)), seldom((8, 6, 9))]
)
def test_another_version_after_a_death(small: Tables, tmp_path: Path, start: int, to: int, then: int) -> None:
    """Whoever comes next wants another version than the one that died."""
    mor = copy_of(small, start, tmp_path)
    rows = mor.rows()
    for root, where in dying(mor.root, acting(start, to), 2 * STEP):
        dead = MorTable(root, start, options=OPTIONS)
        finish(dead, then)
        for entry in dead.client.active_timeline().timeline.pending().of_actions(Action.COMPACTION):
            dead.table.services.run_compaction(entry.requested)
        check(dead, rows, {"files"})
        assert not dead.client.storage.exists(JOURNAL), where
        dead.delta([row("b0", "b", 60, "after")])
        check(dead, {**rows, "b0": row("b0", "b", 60, "after")}, {"files"})


@pytest.mark.parametrize(("start", "to"), [(6, 8), (8, 6)])
def test_commits_that_apache_hudi_has_moved_are_not_deleted(grown: Tables, tmp_path: Path, start: int, to: int) -> None:
    """It moves them one by one, and has died meanwhile."""
    mor = copy_of(grown, start, tmp_path)
    whole = MorTable(Path(shutil.copytree(mor.root, tmp_path / "whole")), start, options=OPTIONS)
    change(whole, to)
    moved = mor.client.active_timeline().timeline.writes().completed().instants[-1].requested
    folder = {6: ".hoodie", 8: ".hoodie/timeline"}
    for file in [*(mor.root / folder[start]).glob(f"{moved}*")]:
        file.unlink()
    (mor.root / folder[to]).mkdir(exist_ok=True)
    for file in (whole.root / folder[to]).glob(f"{moved}*"):
        shutil.copy(file, mor.root / folder[to])
    for version in (8, 6):
        with pytest.raises(match=rf"{moved}.* are only in .*again with Apache Hudi"):
            go_on(mor, version)
    assert list((mor.root / folder[to]).glob(f"{moved}*"))


def test_a_copy_of_a_commit_that_was_rolled_back_since_is_deleted(small: Tables, tmp_path: Path) -> None:
    mor = copy_of(small, 6, tmp_path)
    rows, seen = mor.rows(), 0
    for root, _ in dying(mor.root, acting(6, 8), 40):
        dead = MorTable(root, 6, options=OPTIONS)
        if dead.client.config.version != 6 or not list(root.glob(".hoodie/timeline/*.commit")):
            continue
        seen += 1
        dead.table.services.rollback()  # of the compaction
        finish(dead, 8)
        check(dead, rows, {"files"})
    assert seen


def test_a_metadata_table_is_put_back_unless_the_table_was_written_meanwhile(small: Tables, tmp_path: Path) -> None:
    mor = copy_of(small, 6, tmp_path)
    partitions = mor.client.config.metadata_partitions
    seen = 0
    for root, where in dying(mor.root, acting(6, 8), 1000):
        dead = MorTable(root, 6, options=OPTIONS)
        if dead.client.config.version != 6 or dead.client.config.metadata_partitions:
            continue
        seen += 1
        if seen > 1:
            unaware = MorTable(dead.root, 6, options={**OPTIONS, "hoodie.metadata.enable": "false"})
            unaware.delta([row("b0", "b", 50, "unseen by the metadata table")])
        dead.table.services.upgrade(8)
        dead.version = 8
        assert seen > 1 or dead.client.config.metadata_partitions == partitions, where
        assert dead.rows()["b0"]["v"] == ("x" if seen == 1 else "unseen by the metadata table")
    assert seen > 1


def test_what_is_done_is_told_before(grown: Tables, tmp_path: Path) -> None:
    mor = copy_of(grown, 6, tmp_path)
    tx = mor.begin()
    mor.write_logs(tx, [row("a0", "a", 50, "never")])
    plan = mor.table.services.upgrade(9, dry_run=True)
    assert plan.rolled_back == (tx.instant,)
    assert plan.file_slices == 2
    assert plan.properties_set["hoodie.table.version"] == "9"
    assert plan.steps()[:2] == [f"roll back failed writes: {tx.instant}", "compact 2 file slices"]
    assert mor.client.config.version == 6
    assert mor.client.active_timeline().timeline.pending()
    result = mor.table.services.upgrade(9)
    assert result.line().startswith("service=upgrade ")
    assert {k: mor.client.config.properties[k] for k in plan.properties_set} == dict(plan.properties_set)
    assert not set(plan.properties_removed) & set(mor.client.config.properties)
    assert not mor.table.services.upgrade(9)
    assert not mor.table.services.upgrade(9, dry_run=True).steps()


def test_a_log_file_that_belongs_to_no_write(tmp_path: Path) -> None:
    """No clean deletes it, and version 6 would take it for the beginning of a file slice."""
    mor = MorTable(tmp_path / "t")
    mor.load([row(f"{p}0", p, 0, "x") for p in FILE_IDS])
    instant = mor.delta([row("a0", "a", 1, "v1")])
    (log,) = mor.root.glob("a/.*.log.*")
    shutil.copy(log, log.with_name(log.name.replace(instant, next_instant(instant))))
    files = [*mor.root.rglob("*")]
    with pytest.raises(TransactionError, match=r"1 log files .* such as 'a/\..*delete_orphan_files\(dry_run=False\)"):
        mor.table.services.downgrade(6, lossy=True)
    assert [*mor.root.rglob("*")] == files
    assert mor.table.services.delete_orphan_files(dry_run=False).num_rows == 1
    change(mor, 6)
    assert mor.rows()["a0"]["v"] == "v1"


@pytest.mark.parametrize("selected", ["filter.selected", seldom("filter.regex")])
def test_a_downgrade_cleans_partitions_that_other_cleans_leave_out(tmp_path: Path, selected: str) -> None:
    mor = MorTable(tmp_path / "t", options={**FAST, f"hoodie.clean.partition.{selected}": "b"})
    mor.load([row(f"{p}0", p, 0, "x") for p in FILE_IDS])
    mor.delta([row("a0", "a", 1, "v1")])
    change(mor, 6)
    assert mor.rows()["a0"]["v"] == "v1"


def test_refusals(grown: Tables, tmp_path: Path) -> None:
    mor = copy_of(grown, 9, tmp_path)
    services, before = mor.table.services, mor.client.config
    with pytest.raises(ConfigError, match="table version 7 is not supported; allowed: 6, 8, 9"):
        services.upgrade(7)
    with pytest.raises(ConfigError, match=r"downgrade\(to=8\)"):
        services.upgrade(8)
    with pytest.raises(UnsupportedTableError, match="lossy=True"):
        services.downgrade(6)
    services.savepoint()
    with pytest.raises(UnsupportedTableError, match=r"services.delete_savepoint\('2"):
        services.downgrade(6, lossy=True)
    services.delete_savepoint(services.savepoints()["instant"][0].as_py())
    plan = services.schedule_log_compaction({"hoodie.log.compaction.blocks.threshold": "2"})
    with pytest.raises(TransactionError, match=rf"{plan.instant} logcompaction requested is pending: run it"):
        services.downgrade(8)
    assert mor.client.config == before
    services.run_log_compaction()
    services.schedule_compaction()
    change(mor, 8)
    assert not mor.client.active_timeline().timeline.pending()
    with pytest.raises(ConfigError, match=r"upgrade\(to=9\)"):
        mor.table.services.downgrade(9)


def test_a_writer_that_is_alive_is_left_alone(grown: Tables, tmp_path: Path) -> None:
    several = {**OPTIONS, "hoodie.write.concurrency.mode": "optimistic_concurrency_control"}
    mor = copy_of(grown, 6, tmp_path)
    mor.options = several
    tx = mor.begin()
    with pytest.raises(BusyError, match="a current heartbeat"):
        mor.table.services.upgrade(8)
    tx.abort()
    change(mor, 8)


@pytest.mark.parametrize(
    ("properties", "what"),
    [
        ({"hoodie.table.ordering.fields": "o,v"}, "hoodie.table.ordering.fields=o,v"),
        ({"hoodie.table.partial.update.mode": "IGNORE_DEFAULTS"}, "hoodie.table.partial.update.mode=IGNORE_DEFAULTS"),
        ({"hoodie.datasource.write.slash.separated.date.partitioning": "true"}, "slash.separated"),
        ({"hoodie.record.merge.mode": "CUSTOM", "hoodie.record.merge.strategy.id": "my-own"}, "strategy.id=my-own"),
    ],
)
def test_features_that_would_be_lost(tmp_path: Path, properties: dict[str, str], what: str) -> None:
    mor = MorTable(tmp_path / "t", 9)
    legacy = ("hoodie.table.legacy.payload.class",)
    before = mor.client.config.updated(mor.client.storage, set=properties, remove=legacy)
    with pytest.raises(UnsupportedTableError, match=what.replace(".", r"\.")):
        mor.table.services.downgrade(6, lossy=True)
    assert mor.client.config == before


@pytest.mark.parametrize("to", [8, 9])
@pytest.mark.parametrize(
    ("payload", "mode", "partial"),
    [
        ("PartialUpdateAvroPayload", "EVENT_TIME_ORDERING", "IGNORE_DEFAULTS"),
        ("OverwriteNonDefaultsWithLatestAvroPayload", "COMMIT_TIME_ORDERING", "IGNORE_DEFAULTS"),
        ("AWSDmsAvroPayload", "COMMIT_TIME_ORDERING", None),
        ("OverwriteWithLatestAvroPayload", "EVENT_TIME_ORDERING", None),
        ("EventTimeAvroPayload", "EVENT_TIME_ORDERING", None),
        (None, "EVENT_TIME_ORDERING", None),
    ],
)
def test_payload_class_of_writes(tmp_path: Path, payload: str | None, mode: str, partial: str | None, to: int) -> None:
    """Copy-on-write tables of version 6 do not store the payload class that each of their writes names."""
    mor = MorTable(tmp_path / "t", 6)
    stored = ("hoodie.compaction.payload.class",)
    mor.client.config.updated(mor.client.storage, set={"hoodie.table.type": "COPY_ON_WRITE"}, remove=stored)
    name = (
        {} if payload is None else {"hoodie.datasource.write.payload.class": f"org.apache.hudi.common.model.{payload}"}
    )
    HudiTable.for_path(str(mor.root), {**OPTIONS, **name}).services.upgrade(to)
    merging = TableConfig.load(mor.client.storage).merging
    assert (merging.mode, merging.partial_update_mode) == (mode, partial)


@pytest.mark.parametrize("to", [8, 9])
@pytest.mark.parametrize(
    ("payload", "mode"),
    [
        ("DefaultHoodieRecordPayload", "EVENT_TIME_ORDERING"),
        ("EventTimeAvroPayload", "EVENT_TIME_ORDERING"),
        ("OverwriteWithLatestAvroPayload", "COMMIT_TIME_ORDERING"),
    ],
)
def test_stored_payload_class(tmp_path: Path, payload: str, mode: str, to: int) -> None:
    """Releases since 1.0 store the payload class in copy-on-write tables of version 6, too."""
    mor = MorTable(tmp_path / "t", 6)
    stored = {"hoodie.compaction.payload.class": f"org.apache.hudi.common.model.{payload}"}
    mor.client.config.updated(mor.client.storage, set={"hoodie.table.type": "COPY_ON_WRITE", **stored})
    mor.table.services.upgrade(to)
    assert TableConfig.load(mor.client.storage).merging.mode == mode


def test_payload_class_without_a_merger(tmp_path: Path) -> None:
    mor = MorTable(tmp_path / "t", 6)
    stored = ("hoodie.compaction.payload.class",)
    mor.client.config.updated(mor.client.storage, set={"hoodie.table.type": "COPY_ON_WRITE"}, remove=stored)
    services = HudiTable.for_path(str(mor.root), {"hoodie.datasource.write.payload.class": "org.example.Mine"}).services
    for dry_run in (True, False):
        with pytest.raises(UnsupportedTableError, match=r"payload class org\.example\.Mine .*register_merger"):
            services.upgrade(9, dry_run=dry_run)
    assert TableConfig.load(mor.client.storage).version == 6


def test_times_of_a_table_that_was_copied_count_for_nothing(grown: Tables, tmp_path: Path) -> None:
    """A copy gives all files one time; order and completion then follow the requests."""
    mor = copy_of(grown, 6, tmp_path)
    for path in (mor.root / ".hoodie").rglob("*"):
        os.utime(path, (4_000_000_000, 4_000_000_000))
    rows = mor.rows()
    change(mor, 9)
    done = mor.client.active_timeline().timeline.completed()
    assert [i.requested for i in done.by_completion()] == sorted(i.requested for i in done)
    assert all(i.completion is not None and i.completion < "2030" for i in done if i.action != Action.COMMIT)
    check(mor, rows, {"files", "column_stats"})


def delta_commits(mor: MorTable) -> list[str]:
    return sorted(i["requested"] for i in mor.table.history().to_pylist() if i["action"] == "deltacommit")


def times_of(mor: MorTable, instants: Sequence[str]) -> list[str]:
    return [mor.table.completion_of(instant) for instant in instants]


def found(mor: MorTable, instants: Sequence[str], times: Sequence[str], loads: int = 1) -> list[Any]:
    """Return the rows of all ranges of delta commits, the rows as of each of them, and the changes after the loads."""
    ranges = [(begin, end) for n, end in enumerate(times) for begin in ("000", *times[:n])]
    rows = [mor.table.scan(begin=begin, end=end).to_arrow().select(["id", "v"]).to_pylist() for begin, end in ranges]
    then = [mor.table.scan(as_of=instant).to_arrow()["v"].to_pylist() for instant in instants]
    return [*rows, *then, mor.table.changes(times[loads - 1], times[-1]).to_arrow().to_pylist()]


@pytest.mark.parametrize("to", [8, 9])
def test_ranges_that_end_before_the_upgrade(tmp_path: Path, to: int) -> None:
    """Names of log files of version 6 have the instant of their slice, and do not tell which blocks a range has."""
    mor = MorTable(tmp_path / "t", 6, {"hoodie.table.cdc.enabled": "true"}, options=OPTIONS)
    mor.load([row(f"a{n}", "a", 0, "x") for n in range(3)])
    mor.delta([row("a0", "a", 1, "v1")])
    mor.delta([row("a0", "a", 2, "v2")], [("a1", "a", 2)])
    instants = delta_commits(mor)
    before = found(mor, instants, times_of(mor, instants))
    change(mor, to)
    times = times_of(mor, instants)
    assert found(mor, instants, times) == before
    mor.delta([row("a0", "a", 3, "v3")])
    assert found(mor, instants, times) == before


def test_ranges_that_end_before_a_compaction_that_is_archived(tmp_path: Path) -> None:
    """A compaction that was requested before the end of a range, and completed after it, has opened the slice of the
    log files that the range reads."""
    mor = MorTable(tmp_path / "t", 6, {"hoodie.table.cdc.enabled": "true"}, options=OPTIONS)
    mor.load([row("b0", "b", 0, "x")], {"b": FILE_IDS["b"]})
    mor.load([row(f"a{n}", "a", 0, "x") for n in range(3)], {"a": FILE_IDS["a"]})
    mor.delta([row("a0", "a", 1, "v1")])
    assert mor.table.services.schedule_compaction()
    mor.delta([row("a0", "a", 2, "v2")], [("a1", "a", 2)])
    assert mor.table.services.run_compaction()
    mor.delta([row("a0", "a", 3, "v3")])
    instants = delta_commits(mor)
    before = found(mor, instants, times_of(mor, instants), 2)
    change(mor, 9)
    times = times_of(mor, instants)
    assert found(mor, instants, times, 2) == before
    for n in range(4, 8):
        mor.delta([row("a0", "a", n, f"v{n}")])
    assert mor.table.services.archive()
    start = mor.client.active_timeline().timeline.start
    assert start is not None
    assert max(instants) < start
    assert found(mor, instants, times, 2) == before


def test_statistics_are_built_anew_in_the_form_of_the_version(tmp_path: Path) -> None:
    mor = MorTable(tmp_path / "t", 8, options=OPTIONS)
    mor.load([row("a0", "a", 1, "x")])
    assert mor.table.services.upgrade(9, OPTIONS)
    mor = MorTable(mor.root, 9, options=OPTIONS)
    before = load_definitions(mor.client.storage, mor.client.config)["column_stats"]
    mor.delta([row("a0", "a", 2, "y")])
    after = load_definitions(mor.client.storage, mor.client.config)["column_stats"]
    assert (before["version"], after["version"]) == ("V1", "V2")
    opened = MetadataTable.open(TableSnapshot.load(mor.client))
    for partition in ("column_stats", "partition_stats"):
        stats = opened.scan(partition).to_pylist()
        assert stats
        assert all(one["ColumnStatsMetadata"]["valueType"] for one in stats), partition


@pytest.mark.parametrize("in_log", [False, True])
@pytest.mark.parametrize(("version", "to"), [(6, 9), (9, 6)])
def test_keys_that_would_be_in_other_buckets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: int, to: int, in_log: bool
) -> None:
    for number, partition in enumerate("ab"):
        monkeypatch.setitem(FILE_IDS, partition, f"0000000{number}-0000-4000-8000-000000000001-0")
    mor = MorTable(tmp_path / "t", version, options=OPTIONS)
    mor.load([row("a0", "a", 1, "x"), row("id:1,v:2", "b", 1, "x")])
    unchanged = HudiTable.for_path(str(shutil.copytree(mor.root, tmp_path / "unchanged")), OPTIONS).services
    assert unchanged.upgrade(to) if to > version else unchanged.downgrade(to, lossy=True)
    (mor.delta if in_log else mor.load)([row("b:1", "b", 2, "y")])
    services = mor.table.services
    with pytest.raises(UnsupportedTableError, match=f"has the key 'b:1', for which the bucket index of version {to}"):
        services.upgrade(to) if to > version else services.downgrade(to, lossy=True)
    assert mor.client.config.version == version
    assert mor.rows()["b:1"]["v"] == "y"


@pytest.mark.parametrize(
    ("version", "to", "moved", "kept"), [(6, 9, "k", "id:k"), (8, 9, "k", "id:k"), (9, 8, "id:k", "k")]
)
def test_complex_keys_of_one_field(tmp_path: Path, version: int, to: int, moved: str, kept: str) -> None:
    """Other versions write them in another form; then the table stays as it is."""
    properties = {"hoodie.table.type": "MERGE_ON_READ", "hoodie.table.keygenerator.type": "COMPLEX"}
    for key in (moved, kept):
        made = HandMadeTable(tmp_path / key, version, properties=properties)
        made.log(1, {("p", FILE_IDS["a"]): [{"id": "k", "p": "p", "v": 1, "_hoodie_record_key": key}]})
        services = HudiTable.for_path(str(made.root), FAST).services
        change = services.upgrade if to > version else services.downgrade
        if key == kept:
            assert change(to=to)
            continue
        with effects_below(made.root) as watched:
            for attempt in (partial(change, dry_run=True), change):
                with pytest.raises(UnsupportedTableError, match=f"have the form '{moved.replace('k', 'value')}'"):
                    attempt(to=to)
        assert not watched.seen
