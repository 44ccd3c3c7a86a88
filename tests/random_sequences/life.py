"""A real table and its model, and what steps do to both."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from pyhudi.api.hudi_table import HudiTable
from pyhudi.spark.write.dataframe_writer import write
from tests.random_sequences.model import Place, Records, TableModel
from tests.random_sequences.rows import NUMBERS, OPTIONAL, Row, new_row
from tests.random_sequences.table_kinds import CUSTOM, FILLING, PLACES, TableKind

if TYPE_CHECKING:
    from tests.interop.harness.oracle import Oracle

SERVICES = ("COMPACT", "LOG_COMPACT", "CLUSTER", "INDEX")
"""Operations of commits that change no rows."""


@dataclass(frozen=True)
class WriteInstant:
    """A completed write: its requested and its completion time (the same in version 6), oldest completion first."""

    completion: str
    instant: str


@dataclass
class Life:
    """A table at ``path``. ``theirs``: Apache Hudi, if it takes part. ``savepoint``: instant of
    the commit that is saved, or None. ``cleaned``: older commits may be gone. ``stream``: folder of a stream that reads
    the table."""

    spark: SparkSession
    path: str
    kind: TableKind
    theirs: Oracle | None = None
    step: int = 0
    rng: Random = field(default_factory=Random)
    savepoint: str | None = None
    cleaned: bool = False

    def __post_init__(self) -> None:
        self.model = TableModel(self.kind)
        self._known: set[str] = set()
        self._files = itertools.count()
        self.new_stream()

    def new_stream(self) -> None:
        """Let the next stream begin with the first commit."""
        self.stream = f"{self.path}-stream-{next(self._files)}"

    @property
    def table(self) -> HudiTable:
        """The table with the options of its kind."""
        return HudiTable.for_path(self.path, self.options)

    @property
    def options(self) -> dict[str, str]:
        """Options of all writes, for the version that the table has by now."""
        return {**self.kind.options, "hoodie.write.table.version": str(self.model.version)}

    # --- rows --------------------------------------------------------------------------------------------------------

    def some_rows(self, rng: Random, count: int, *, new: bool | None = None) -> list[tuple[Place, Row]]:
        """Draw rows of different keys. ``new``: only of keys that the table does not have; otherwise some are."""
        numbers = list(range(NUMBERS))
        rng.shuffle(numbers)
        if new:
            numbers = [number for number in numbers if self.model.is_new(number)]
        if self.kind.merging == CUSTOM and self.kind.merge_on_read:
            # the merger keeps records deleted as long as the log has the delete
            numbers = [number for number in numbers if number not in self.model.deleted]
        return [self.row(rng, number) for number in numbers[:count]]

    def row(self, rng: Random, number: int) -> tuple[Place, Row]:
        """Draw a row of a key, mostly in the partition where it is."""
        place = number % PLACES if rng.random() < 0.7 else rng.randrange(PLACES)
        where = self.model.place_of(number, place)
        highest = self.model.highest.get(number, 5)
        must_win = self.model.must_win(where)
        seq = highest + rng.randint(1, 3) if must_win else max(1, highest + rng.randint(-3, 3))
        tag = f"s{self.step}.{next(self._files)}"
        row = new_row(self.kind, number, place, seq, tag, self.step + 1)
        for name in self.model.schema.names[len(row) :]:
            row[name] = f"{name} {tag}" if rng.random() < 0.7 else None
        if not (must_win and self.kind.merging in FILLING):
            for name in OPTIONAL:
                if rng.random() < 0.25:
                    row[name] = None
        return where, row

    def frame(self, rows: Iterable[Row]) -> DataFrame:
        """Return rows as a DataFrame of one partition, in their order."""
        return self.spark.read.parquet(self.parquet(rows))

    def parquet(self, rows: Iterable[Row]) -> str:
        """Write rows to a Parquet file; return its path."""
        source = f"{self.path}-rows-{next(self._files)}.parquet"
        pq.write_table(self.arrow(rows), source)
        return source

    def arrow(self, rows: Iterable[Row]) -> pa.Table:
        """Return rows as an Arrow table."""
        return pa.Table.from_pylist(list(rows), schema=self.model.schema)

    # --- writes ------------------------------------------------------------------------------------------------------

    def write(
        self,
        operation: str,
        rows: Iterable[Row],
        records: Records,
        *,
        replaced: Collection[Place] = (),
        **more: str,
    ) -> None:
        """Write rows, after which the table has these records; double underscores in option names stand for dots."""
        options = self.write_options(operation, **more)
        self.expect(lambda: write(self.frame(rows), self.path, options, "append"), records, replaced=replaced)

    def write_options(self, operation: str, **more: str) -> dict[str, str]:
        """Return the options of one write."""
        extra = {key.replace("__", "."): value for key, value in more.items()}
        return {**self.options, "hoodie.datasource.write.operation": operation, **extra}

    def expect(
        self, change: Callable[[], object], records: Records, *, replaced: Collection[Place] = (), is_alone: bool = True
    ) -> None:
        """Change the table by at most one commit, after which it has these records."""
        change()
        found = self.new_writes()
        assert len(found) <= 1, f"one change made several commits: {found}"
        if not found:
            assert records == self.model.records, "a change made no commit"
            return
        self.model.commit(records, found[0].instant, found[0].completion, replaced=replaced, is_alone=is_alone)

    def new_writes(self) -> list[WriteInstant]:
        """Return the writes that were completed since the last call, oldest completion first."""
        if not HudiTable.exists(self.path):
            return []
        found = []
        for row in HudiTable.for_path(self.path).history().to_pylist():
            self.cleaned |= row["action"] == "clean"  # a write cleans by itself what ten commits later is old
            written = row["operation"] is not None and row["operation"].upper() not in SERVICES
            if row["state"] == "COMPLETED" and written and row["requested"] not in self._known:
                self._known.add(row["requested"])
                found.append(WriteInstant(row["completed"] or row["requested"], row["requested"]))
        return sorted(found, key=lambda one: one.completion)

    def forget_deletes(self) -> None:
        """Note that base files hold everything, if they do: then a key that was deleted is like a new one."""
        slices = HudiTable.for_path(self.path).inspect.file_slices()
        if self.kind.merge_on_read and not any(slices["log_paths"].to_pylist()):
            self.model.deleted.clear()

    def finish_plans(self) -> None:
        """Execute what is planned, so that what needs a table without plans can begin."""
        services = self.table.services
        if self.kind.merge_on_read:
            services.run_compaction()
            services.run_log_compaction()
        services.run_clustering()

    def remove(self) -> None:
        """Delete the table."""
        shutil.rmtree(self.path, ignore_errors=True)
        for source in Path(self.path).parent.glob(f"{Path(self.path).name}-*-*"):
            shutil.rmtree(source) if source.is_dir() else source.unlink()
