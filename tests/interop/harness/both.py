"""A table that both engines write and read, and checks that they agree."""

from __future__ import annotations

import datetime as dt
import itertools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pyhudi.api.hudi_table import HudiTable
from tests.interop.harness.oracle import Oracle, OracleInstant, read_with_hudi_rs
from tests.interop.harness.scenarios import PARALLELISM, Model, Scenario, Step
from tests.rows import META_COLUMNS, assert_same_rows
from tests.spark_arrow import to_arrow

INCREMENTAL = {"hoodie.datasource.query.type": "incremental"}
BEGIN = "hoodie.datasource.read.begin.instanttime"
OURS, THEIRS = "ours", "theirs"


class Both:
    """The table of a scenario at ``path``, written by both engines alternately."""

    def __init__(self, scenario: Scenario, path: Path, oracle: Oracle, spark: Any) -> None:
        self.scenario = scenario
        self.path = path
        self.oracle = oracle
        self.spark = spark
        self.model = Model(scenario)
        self.round = 0
        self._they_read_changes = True
        self._files = itertools.count()
        self._last_snapshot: tuple[int, pa.Table] | None = None

    # --- writing -----------------------------------------------------------------------------------------------------

    def write(self, side: str, step: Step) -> None:
        """Execute a step with one engine, and apply it to the model."""
        self.round += 1
        options = {**self.scenario.table_options, **step.options}
        rows = step.rows(self.scenario, self.round)
        if side == OURS:
            version = {"hoodie.write.table.version": str(self.scenario.engine.version)}
            self.write_ours(rows, {**options, **version}, step.mode)
        else:
            self.oracle.write(self.path, rows, {**options, **PARALLELISM}, step.mode)
        self.model.apply(step, self.round)
        # 0.15.0 puts the meta columns into the schema of such a commit and then cannot read the changes itself
        broken = self.oracle.release == "0.15.0" and side == THEIRS and step.operation == "delete_partition"
        self._they_read_changes = not broken

    def write_ours(self, rows: pa.Table, options: Mapping[str, str], mode: str = "append") -> None:
        """Write Arrow rows through pyhudi's ``format("hudi")``."""
        source = self.path.with_name(f"ours-{next(self._files)}.parquet")
        pq.write_table(rows, source)
        df = self.spark.read.parquet(str(source))
        df.write.format("hudi").options(**options).mode(mode).save(str(self.path))

    def read_ours(self, options: Mapping[str, str] | None = None) -> pa.Table:
        """Read through pyhudi's ``format("hudi")`` on Spark."""
        return to_arrow(self.spark.read.format("hudi").options(**(options or {})).load(str(self.path)))

    # --- checks ------------------------------------------------------------------------------------------------------

    @property
    def columns(self) -> list[str]:
        """Return all columns that are compared, meta columns included."""
        return [*META_COLUMNS, *self.scenario.compared]

    def check_snapshot(self) -> None:
        """Check that the model, Apache Hudi, and pyhudi's Spark and local readers have the same rows."""
        expected = self.model.table()
        theirs = self.oracle.read(self.path)
        self._last_snapshot = self.round, theirs
        self._same("Apache Hudi's snapshot", theirs, expected, expected.column_names)
        self._same("our snapshot on Spark", self.read_ours(), theirs, self.columns)
        self._same("our local snapshot", HudiTable.for_path(str(self.path)).scan().to_arrow(), theirs, self.columns)

    def check_our_snapshot(self) -> None:
        """Check that pyhudi's readers have the rows of the model."""
        expected = self.model.table()
        self._same("our snapshot on Spark", self.read_ours(), expected, expected.column_names)
        local = HudiTable.for_path(str(self.path)).scan().to_arrow()
        self._same("our local snapshot", local, expected, expected.column_names)

    def check_filter(self) -> None:
        """Check that a filter on key and partition columns returns the right rows, so statistics and indexes are not
        stale."""
        expected = self.model.table()
        expected = expected.filter(pc.and_(pc.greater_equal(expected["num"], 5), pc.equal(expected["part"], "b")))
        theirs = self.oracle.read(self.path, where="num >= 5 AND part = 'b'")
        self._same("Apache Hudi's filtered snapshot", theirs, expected, expected.column_names)

    def check_incremental(self, begin: str) -> None:
        """Check that both engines return the same changes since ``begin``."""
        if not self._they_read_changes:
            return
        options = {**INCREMENTAL, BEGIN: begin}
        theirs = self.oracle.read(self.path, {**options, BEGIN: self._begin_for_them(begin)})
        columns = [name for name in self.columns if name not in self.scenario.layout.encoded_in_changes]
        self._same(f"our changes since {begin}", self.read_ours(options), theirs, columns)

    def _begin_for_them(self, begin: str) -> str:
        """Return ``begin`` for Apache Hudi: 1.0.2 treats it as inclusive, all others (and 1.1 and later on the same
        table) as exclusive."""
        if self.oracle.release != "1.0.2" or begin == "000":
            return begin
        after = dt.datetime.strptime(begin + "000", "%Y%m%d%H%M%S%f") + dt.timedelta(milliseconds=1)
        return after.strftime("%Y%m%d%H%M%S%f")[:17]

    def check_time_travel(self, instant: str) -> None:
        """Check that both engines return the same table as of an instant."""
        options = {"as.of.instant": instant}
        theirs = self.oracle.read(self.path, options)
        self._same(f"our snapshot as of {instant}", self.read_ours(options), theirs, self.columns)

    def check_timeline(self) -> None:
        """Check that both engines list the same instants, and that Apache Hudi can list the commits with their
        statistics."""
        dated = self._has_completion_times
        instants = self.oracle.timeline(self.path)
        theirs = {(i.requested, i.action, i.state, i.completed if dated else None) for i in instants}
        ours = HudiTable.for_path(str(self.path)).history().to_pylist()
        own = {(i["requested"], i["action"], i["state"], i["completed"] if dated else None) for i in ours}
        assert own == theirs, f"only ours: {sorted(own - theirs)}; only Apache Hudi's: {sorted(theirs - own)}"
        writes = {row["commit_time"] for row in self.oracle.show_commits(self.path).to_pylist()}
        assert writes == {requested for requested, action, *_ in theirs if action in ("commit", "replacecommit")}

    def check_hudi_rs(self) -> None:
        """Check that hudi-rs agrees on columns that it reads in every layout, if it can read the schema (no nested
        types)."""
        if self.scenario.layout.hudi_rs and not self.scenario.wide:
            columns = [
                "_hoodie_commit_time",
                "_hoodie_record_key",
                "_hoodie_partition_path",
                "id",
                "qty",
                "price",
                "seq",
            ]
            seen, theirs = self._last_snapshot or (0, None)
            if seen != self.round:
                theirs = self.oracle.read(self.path)
            self._same("hudi-rs", read_with_hudi_rs(self.path), theirs, columns)

    def last_write(self) -> OracleInstant:
        """Return the newest completed write."""
        writes = [i for i in self.oracle.timeline(self.path) if i.action in ("commit", "replacecommit")]
        return max((i for i in writes if i.state == "COMPLETED"), key=lambda i: i.requested)

    def bookmark(self) -> str:
        """Return the ``begin`` of an incremental read that returns all later changes."""
        last = self.last_write()
        return last.completed or "" if self._has_completion_times else last.requested

    @property
    def _has_completion_times(self) -> bool:
        """Return whether the table has completion times; for older tables Apache Hudi 1.x returns the files'
        modification times."""
        return self.scenario.engine.version >= 8

    def _same(self, what: str, actual: pa.Table, expected: pa.Table, columns: list[str]) -> None:
        for name in set(self.scenario.layout.read_as_text) & set(columns):
            place = actual.column_names.index(name)
            actual = actual.set_column(place, name, actual[name].cast(pa.string()))
        try:
            assert_same_rows(actual, expected, columns)
        except AssertionError as error:
            raise AssertionError(f"after commit {self.round}: {what}: {error}") from None
