"""Calls of the public API on Spark whose process dies at a single change of a file: whoever comes next reads all rows
once, repeats the call, and writes. Files of tasks are written by other processes, which do not die.

Without Spark: `tests/unit/services/test_failing_effects.py`.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import pyhudi
from pyhudi.api.hudi_table import HudiTable
from pyhudi.errors import BusyError
from pyhudi.index.bucket_counts import counted_instants
from pyhudi.spark.streaming.sink import StreamingSink
from pyhudi.spark.write.dataframe_writer import write
from pyhudi.storage import open_storage
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.table.view.pending_file_groups import is_clustering
from pyhudi.timeline.instant import Action
from tests.cases import classic, seldom
from tests.fault_injection import Killed
from tests.file_effects import effects_below, places
from tests.spark.model import SCHEMA, Row, frame, options, rows_of
from tests.spark.streaming.streams import await_compaction

pytest.importorskip("sqlglot")
pytestmark = classic

OFTEN = {
    "pyhudi.storage.fsync": "none",
    "hoodie.time.generator.max_expected_clock_skew_ms": "0",
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.compact.max.delta.commits": "3",
    "hoodie.clean.commits.retained": "1",
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
    "hoodie.timeline.compaction.batch.size": "2",
    "hoodie.compact.inline": "true",
    "hoodie.compact.inline.max.delta.commits": "2",
}
"""Options with which services run after nearly every write."""
MERGE_ON_READ = {"hoodie.datasource.write.table.type": "MERGE_ON_READ"}
CLUSTERING = {"hoodie.clustering.inline": "true", "hoodie.clustering.inline.max.commits": "2"}
BUCKETS = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2", "hoodie.compact.inline": "false"}
ASYNC = {"hoodie.compact.inline": "false", "hoodie.compact.inline.max.delta.commits": "1"}
INSERTS = {"hoodie.datasource.write.operation": "insert"}
ROWS = [(f"k{n}", f"p{n % 2}", 0, "first") for n in range(8)]


@dataclass
class Table:
    """A table in a folder, and the options of its writes."""

    spark: SparkSession
    root: Path
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def hudi(self) -> HudiTable:
        return HudiTable.for_path(str(self.root), self.options)

    @property
    def client(self) -> TableMetaClient:
        return TableMetaClient.open(str(self.root), self.options)

    def write(self, rows: Sequence[Row], operation: str = "upsert") -> None:
        given = {**self.options, "hoodie.datasource.write.operation": operation}
        write(frame(self.spark, rows), str(self.root), given, "append")

    def rows(self) -> list[Row]:
        found: list[Row] = rows_of(self.root)
        return found


Act = Callable[[Table], object]


def nothing(_: Table) -> None:
    """Do nothing."""


@dataclass(frozen=True)
class Case:
    """A call that may fail.

    Attributes:
        act: The call, which can be repeated.
        options: Options of the table and its writes.
        prepare: What precedes the call.
        adds: Rows that it adds.
        others: Number of writes of another writer before it is repeated.
    """

    act: Act
    options: dict[str, str] = field(default_factory=dict)
    prepare: Act = nothing
    adds: tuple[Row, ...] = ()
    others: int = 1


def grow(table: Table, writes: int = 4) -> None:
    table.write(ROWS, "bulk_insert")
    for n in range(1, writes):
        table.write([(f"k{n}", f"p{n % 2}", n, f"v{n}"), (f"k{n + 1}", f"p{(n + 1) % 2}", n, f"w{n}")])


def stream(table: Table, number: int) -> None:
    """Write a micro-batch as a query does that has just been started, and await its compaction."""
    rows = frame(table.spark, [(f"s{number}", "p0", number, "streamed")], SCHEMA)
    try:
        StreamingSink(str(table.root), {**table.options, **INSERTS})(rows, number)
    finally:
        await_compaction()


def begin_stream(table: Table) -> None:
    grow(table)
    stream(table, 0)


def rescale(table: Table) -> None:
    call(table, "overwrite => 'p0,5', bucket_number => 2, dry_run => false")


def undo_rescaling(table: Table) -> None:
    for instant in rescalings(table):
        call(table, f"rollback => '{instant}'")


def rescalings(table: Table) -> list[str]:
    return [instant for instant in counted_instants(open_storage(str(table.root))) if instant.strip("0")]


def call(table: Table, arguments: str) -> None:
    given = ",".join(f"{key}={value}" for key, value in {**table.options}.items())
    table.spark.sql(
        f"CALL partition_bucket_index_manager(table => '{table.root}', {arguments}, options => '{given}')"
    ).collect()


UPSERTED = ("k1", "p1", 50, "written")
STREAMED = ("s1", "p0", 1, "streamed")
CASES = {
    "services_after_a_write_mor": Case(lambda t: t.write([UPSERTED]), MERGE_ON_READ, grow, (UPSERTED,)),
    "services_after_a_write_cow": Case(lambda t: t.write([UPSERTED]), CLUSTERING, grow, (UPSERTED,)),
    "sink_cow": Case(lambda t: stream(t, 1), {}, begin_stream, (STREAMED,), others=5),
    "sink_mor": Case(lambda t: stream(t, 1), MERGE_ON_READ, begin_stream, (STREAMED,), others=5),
    "rescale_cow": Case(rescale, BUCKETS, grow),
    "rescale_mor": Case(rescale, {**MERGE_ON_READ, **BUCKETS}, grow),
    "undo_rescaling": Case(undo_rescaling, {**MERGE_ON_READ, **BUCKETS}, lambda t: (grow(t), rescale(t)), others=0),
    "build_record_index": Case(
        lambda t: t.hudi.services.build_index("record_index", if_not_exists=True, spark=t.spark), MERGE_ON_READ, grow
    ),
    "run_record_index": Case(
        lambda t: t.hudi.services.run_index(spark=t.spark),
        MERGE_ON_READ,
        lambda t: (grow(t), t.hudi.services.schedule_index("record_index")),
    ),
    "sink_mor_async": Case(lambda t: stream(t, 1), {**MERGE_ON_READ, **ASYNC}, begin_stream, (STREAMED,), others=5),
}


@pytest.fixture(scope="module", autouse=True)
def _active(spark: SparkSession) -> Iterator[None]:
    pyhudi.activate(spark)
    yield
    pyhudi.deactivate()


def cases() -> list[Any]:
    """A version of each case. Of a call one table type is usual, and one of what builds an index or changes buckets."""
    usual = [(name, 6) if number % 2 else (name, 9) for number, name in enumerate(CASES)]
    others = [(name, 9 if number % 2 else 6) for number, name in enumerate(CASES)]
    twice = ("sink_cow", "rescale_mor", "undo_rescaling", "run_record_index", "sink_mor_async")
    return [seldom(case) if case[0] in twice else case for case in usual] + [seldom(case) for case in others]


@pytest.mark.parametrize(("name", "version"), cases())
def test_deaths(spark: SparkSession, tmp_path: Path, name: str, version: int) -> None:
    """The process dies; another one calls again, or writes first."""
    case = CASES[name]
    given = {**options("upsert", hoodie__write__table__version=version), **OFTEN, **case.options}
    grown = Table(spark, tmp_path / "grown", given)
    case.prepare(grown)
    before = grown.rows()
    probe = Table(spark, Path(shutil.copytree(grown.root, tmp_path / "probe")), given)
    with effects_below(probe.root) as watched:
        case.act(probe)
    assert len(watched.seen) > 5
    after = changed(before, case.adds)
    assert probe.rows() == after
    for turn, nth in enumerate(places(len(watched.seen), 1), version):
        table = Table(spark, Path(shutil.copytree(grown.root, tmp_path / f"copy{nth}")), given)
        try:
            die_and_go_on(table, case, nth, (before, after), case.others if turn % 2 == 0 else 0)
        except Exception as error:
            error.add_note(f"after the death before {watched.seen[nth - 1]}, effect {nth} of {len(watched.seen)}")
            raise
        shutil.rmtree(table.root)


def changed(rows: Sequence[Row], by: Sequence[Row]) -> list[Row]:
    """Return rows after an upsert of others."""
    return sorted({row[:2]: row for row in (*rows, *by)}.values(), key=repr)


def die_and_go_on(table: Table, case: Case, nth: int, allowed: Sequence[list[Row]], others: int) -> None:
    with effects_below(table.root, fail_at=nth), suppress(Killed):  # once all is published, nothing is raised
        case.act(table)
    check_seen(table, *allowed)
    more = [(f"o{n}", "p9", n, "other") for n in range(others)]
    for row in more:
        table.write([row])
    check_seen(table, *(changed(rows, more) for rows in allowed))
    try:
        case.act(table)
    except BusyError:
        run_plans(table)
        case.act(table)
    run_plans(table)
    rows = changed(allowed[-1], more)
    check_seen(table, rows)
    updated = [(key, partition, 90, "again") for key, partition, _, _ in rows[::2]] + [("z", "p1", 90, "new")]
    table.write(updated)
    run_plans(table)
    check_end(table, changed(rows, updated))


def run_plans(table: Table) -> None:
    services = table.hudi.services
    for entry in table.client.active_timeline().timeline.pending():
        if entry.action == Action.COMPACTION:
            services.run_compaction(entry.requested)
        elif is_clustering(table.client.active_timeline(), entry):
            services.run_clustering(entry.requested)


def check_seen(table: Table, *allowed: list[Row]) -> None:
    """All rows are seen, with and without the metadata table."""
    assert table.rows() in allowed
    listed = HudiTable.for_path(str(table.root), {**table.options, "hoodie.metadata.enable": "false"}).scan()
    columns = SCHEMA.replace(" string", "").replace(" long", "").split(", ")
    found = listed.to_arrow().select(columns).to_pylist()
    assert sorted((tuple(row.values()) for row in found), key=repr) in allowed


def check_end(table: Table, rows: list[Row]) -> None:
    """Nothing is left of what went wrong."""
    check_seen(table, rows)
    assert not table.client.active_timeline().timeline.pending()
    # in version 6 a rollback that died may have left a command block beside that of the next attempt
    harmless = {"not in the metadata table"} if table.hudi.config.version < 8 else set()
    assert not set(table.hudi.validate_metadata()["problem"].to_pylist()) - harmless
    left = [path for name in (".temp", ".heartbeat") for path in (table.root / ".hoodie" / name).rglob("*")]
    assert not [path for path in left if path.is_file()]
    assert not table.hudi.services.delete_orphan_files(dry_run=True).to_pylist()
