"""Random lives of a merge-on-read table against a dict: upserts, deletes, events out of order, compactions, log
compactions, failed runs and rolled back writes; what a reader sees is always what the dict says."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from pyhudi import register_merger, unregister_merger
from pyhudi.config import Options
from pyhudi.errors import TransactionError
from pyhudi.services.compaction.compaction_job import CompactionJob
from pyhudi.services.compaction.compaction_runner import run_pending_compactions
from pyhudi.timeline.instant import Action
from tests.joining_merger import Joining
from tests.properties import examples
from tests.unit.services.compaction.compaction_tables import IN_THREADS, RunnerOf
from tests.unit.services.merge_on_read_table import FAST, FILE_IDS, MorTable, row

KEYS = [f"{p}{i}" for p in FILE_IDS for i in range(3)]
SMALL = {
    "hoodie.index.bloom.num_entries": "10",
    "hoodie.bloom.index.filter.dynamic.max.entries": "10",
    "hoodie.log.compaction.blocks.threshold": "2",
}
EVENT_TIME, COMMIT_TIME, CUSTOM = "EVENT_TIME_ORDERING", "COMMIT_TIME_ORDERING", "CUSTOM"
PARTIAL = "PARTIAL"
"""By event time, and what the newer version has no value for is taken from the older one."""
PAYLOADS = {
    EVENT_TIME: "DefaultHoodieRecordPayload",
    COMMIT_TIME: "OverwriteWithLatestAvroPayload",
    PARTIAL: "PartialUpdateAvroPayload",
}
changes = st.lists(
    st.tuples(st.sampled_from(KEYS), st.integers(1, 6), st.sampled_from([*["put"] * 3, "blank", "delete", "drop"])),
    min_size=1,
    max_size=5,
    unique_by=lambda change: change[0],
)


@dataclass(frozen=True)
class Version:
    """A version of a record: a row or a delete (``gone``), and its ordering value (0: a delete without one)."""

    value: str | None
    ordering: int
    gone: bool = False

    def beats(self, older: Version, mode: str) -> bool:
        """Whether this, the newer one, counts."""
        if mode == COMMIT_TIME:
            return True
        natural = (self.gone and not self.ordering) or (older.gone and not older.ordering)
        return natural or self.ordering >= older.ordering


class Model:
    """Every record as base row and as what the log says since, as the format's rules for merging have it."""

    def __init__(self, mode: str) -> None:
        self.mode = mode
        self.base: dict[str, Version] = {}
        self.log: dict[str, Version] = {}

    def put(self, key: str, version: Version) -> None:
        older = self.log.get(key)
        if older is None:
            self.log[key] = version
            return
        stays = older.gone and not older.ordering and version.gone
        if not (stays and self.mode in (EVENT_TIME, PARTIAL)):
            self.log[key] = self.merged(older, version)

    def merged(self, older: Version, newer: Version) -> Version:
        if self.mode == CUSTOM:
            gone = older.gone or newer.gone
            return Version(None if gone else f"{older.value}{newer.value}", newer.ordering, gone)
        first, second = (newer, older) if newer.beats(older, self.mode) else (older, newer)
        if self.mode == PARTIAL and first.value is None and not first.gone:
            return replace(first, value=second.value)
        return first

    def rows(self) -> dict[str, Version]:
        found = dict(self.base)
        for key, version in self.log.items():
            found[key] = self.merged(found[key], version) if key in found else version
        return {key: version for key, version in found.items() if not version.gone}

    def copy(self) -> Model:
        found = Model(self.mode)
        found.base, found.log = dict(self.base), dict(self.log)
        return found

    def compact(self) -> None:
        self.base, self.log = self.rows(), {}


class Life(RuleBasedStateMachine):
    """One table. ``later`` holds what was written after the pending plan was made, ``saved`` the savepoint and what the
    table held then, ``undo`` what it held before the last write, if nothing else has happened since."""

    mode = EVENT_TIME
    version = 9

    @initialize()
    def load(self) -> None:
        self.folder = Path(tempfile.mkdtemp())
        if self.mode == CUSTOM:
            properties = {"hoodie.write.record.merge.mode": CUSTOM, "hoodie.datasource.write.payload.class": ""}
            properties["hoodie.write.record.merge.strategy.id"] = Joining.strategy_id
        else:
            payload = f"org.apache.hudi.common.model.{PAYLOADS[self.mode]}"
            properties = {"hoodie.datasource.write.payload.class": payload}
        self.mor = MorTable(self.folder / "t", self.version, properties, FAST | SMALL)
        self.model = Model(self.mode)
        self.later: list[tuple[str, Version]] | None = None
        self.saved: tuple[str, Model] | None = None
        self.undo: tuple[str, Model] | None = None
        self.cleaned = False
        self.count = 0
        rows = [row(key, key[0], 3, f"{key} base") for key in KEYS[::2]]
        self.mor.load(rows)
        self.model.base = {r["id"]: Version(r["v"], r["o"]) for r in rows}

    @rule(changed=changes)
    def write(self, changed: list[tuple[str, int, str]]) -> None:
        rows, deletes = self._split(changed)
        before = self.model.copy()
        self.undo = self.mor.delta(rows, deletes), before
        for key, version in self._versions(changed):
            if self.later is None:
                self.model.put(key, version)
            else:
                self.later.append((key, version))

    @rule(changed=changes)
    def fail_to_write(self, changed: list[tuple[str, int, str]]) -> None:
        """The writer dies after its log files; the next one rolls it back."""
        self.mor.write_logs(self.mor.begin(), *self._split(changed))
        self.mor.begin().abort()

    @precondition(lambda self: self.later is None)
    @rule()
    def plan(self) -> None:
        if self.mor.table.services.schedule_compaction().instant is not None:
            self.later, self.undo = [], None

    @precondition(lambda self: self.later is not None)
    @rule(dies=st.booleans())
    def run(self, dies: bool) -> None:
        """Run the plan, after a first attempt that dies or not."""
        if dies:
            with pytest.raises(RuntimeError):
                run_pending_compactions(self.mor.client, Options.parse(self.mor.options), RunnerOf(work=_broken))
        assert run_pending_compactions(self.mor.client, Options.parse(self.mor.options), IN_THREADS)
        self._compacted()

    @precondition(lambda self: self.later is None)
    @rule()
    def log_compact(self) -> None:
        """Changes nothing that anybody sees, now or later."""
        client, opts = self.mor.client, Options.parse(self.mor.options)
        self.undo = None
        self.mor.table.services.schedule_log_compaction()
        run_pending_compactions(client, opts, IN_THREADS, action=Action.LOG_COMPACTION)

    @rule(retained=st.integers(1, 3))
    def clean_and_archive(self, retained: int) -> None:
        """Changes nothing that anybody sees."""
        options = {"hoodie.clean.commits.retained": retained, "hoodie.keep.min.commits": retained}
        self.cleaned |= bool(self.mor.table.services.clean(options))
        self.mor.table.services.archive(options)

    @precondition(lambda self: self.later is None and self.saved is None)
    @rule()
    def save(self) -> None:
        (instant,) = self.mor.table.services.savepoint().instants
        self.saved = instant, self.model.copy()

    @precondition(lambda self: self.saved is not None)
    @rule(forget=st.booleans())
    def restore(self, forget: bool) -> None:
        """Back to the savepoint, across whatever was written, planned, compacted and cleaned since."""
        assert self.saved is not None
        instant, model = self.saved
        self.mor.table.services.restore(instant)
        self.model, self.later, self.undo = model.copy(), None, None
        if forget:
            self.mor.table.services.delete_savepoint(instant)
            self.saved = None

    @precondition(lambda self: self.later is None and self.undo is not None)
    @rule()
    def roll_back(self) -> None:
        """The last write, unless it is saved or cleaning does not let it go."""
        assert self.undo is not None
        (instant, model), self.undo = self.undo, None
        saved = self.saved is not None and self.saved[0] == instant
        why = ""
        try:
            self.mor.table.services.rollback(instant)
        except TransactionError as error:
            why = str(error)
        if why:
            assert saved or (self.cleaned and "cleaning has deleted" in why)
            return
        assert not saved
        self.model = model

    def _compacted(self) -> None:
        self.undo = None
        later = self.later or []
        self.later = None
        self.model.compact()
        for key, version in later:
            self.model.put(key, version)

    @invariant()
    def reads_what_the_model_says(self) -> None:
        if not hasattr(self, "mor"):
            return
        model = self.model
        if self.later:
            # as long as the plan is pending, a reader merges both slices' logs with the base file before it
            model = Model(self.mode)
            model.base, model.log = dict(self.model.base), dict(self.model.log)
            for key, version in self.later:
                model.put(key, version)
        expected = {key: (version.value, version.ordering) for key, version in model.rows().items()}
        assert {key: (r["v"], r["o"]) for key, r in self.mor.rows().items()} == expected

    def teardown(self) -> None:
        if hasattr(self, "folder"):
            pending = self.mor.client.active_timeline().timeline.pending().of_actions(Action.LOG_COMPACTION)
            assert not pending
            shutil.rmtree(self.folder)

    def _split(
        self, changed: list[tuple[str, int, str]]
    ) -> tuple[list[dict[str, Any]], list[tuple[str, str, int | None]]]:
        self.count += 1
        versions = self._versions(changed)
        rows = [row(key, key[0], version.ordering, version.value) for key, version in versions if not version.gone]
        return rows, [(key, key[0], version.ordering or None) for key, version in versions if version.gone]

    def _versions(self, changed: list[tuple[str, int, str]]) -> list[tuple[str, Version]]:
        found = []
        for key, o, what in changed:
            if what in ("put", "blank"):
                # a merger that joins texts would make null of everything
                blank = what == "blank" and self.mode != CUSTOM
                found.append((key, Version(None if blank else f"{key} {self.count}", o)))
            else:
                found.append((key, Version(None, o if what == "delete" else 0, gone=True)))
        return found


def _broken(job: CompactionJob) -> pa.Table:
    IN_THREADS.run(job)
    raise RuntimeError("gone")


@pytest.mark.parametrize(
    ("mode", "version"),
    [(mode, version) for mode in (EVENT_TIME, COMMIT_TIME) for version in (6, 8, 9)]
    + [(CUSTOM, 8), (CUSTOM, 9), (PARTIAL, 9)],
)
def test_lives(mode: str, version: int):
    life = type("OneLife", (Life,), {"mode": mode, "version": version})
    quiet = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
    register_merger(Joining())
    try:
        run_state_machine_as_test(
            life,
            settings=settings(max_examples=examples(7), stateful_step_count=10, suppress_health_check=quiet),
        )
    finally:
        unregister_merger(Joining.strategy_id)
