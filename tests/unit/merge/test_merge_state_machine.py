"""Random lives of a file group against a dict: writes, late events, failed writes, log compactions, compactions."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any, TypeVar

import hypothesis.strategies as st
import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from pyhudi.config.enums import PartialUpdateMode
from pyhudi.merge.base_file_rows import Condition
from pyhudi.merge.batch_sizes import MergeMemory
from pyhudi.merge.file_slice import SliceContext
from pyhudi.merge.key_filter import KeyFilter
from pyhudi.merge.logs.valid_log_blocks import BlockView, CommittedInstants
from pyhudi.merge.modes.merge_rules import MergeRules
from pyhudi.schema.meta_fields import RECORD_KEY
from tests.properties import examples
from tests.unit.merge.model import ModelRules, Version, fold, merge_base
from tests.unit.merge.slices import SCHEMA, Slice, at

T = TypeVar("T")
KEYS = st.sampled_from([f"k{i}" for i in range(6)])
VALUES = st.fixed_dictionaries({"a": st.one_of(st.none(), st.sampled_from("uvw")), "b": st.integers(0, 9)})
ORDERING = st.integers(1, 6)
UPSERTS = st.dictionaries(KEYS, st.tuples(ORDERING, VALUES), min_size=1, max_size=6)
DELETES = st.dictionaries(KEYS, st.one_of(st.none(), ORDERING), max_size=3)


class FileGroup(RuleBasedStateMachine):
    """One file group. ``base`` are the rows of its base file, ``logs`` the committed versions of each key since."""

    merging = MergeRules()
    version = 9

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory(prefix="pyhudi-machine-")
        self.slice = Slice(Path(self.folder.name), version=self.version)
        self.clock = 0
        self.base: dict[str, Version] = {}
        self.logs: dict[str, list[Version]] = {}
        self.committed: set[int] = set()
        self.open: list[int] = []
        fills = self.merging.partial is PartialUpdateMode.IGNORE_DEFAULTS
        self.model = ModelRules(bool(self.merging.ordering_fields), None if fills else ...)

    def teardown(self) -> None:
        self.folder.cleanup()

    def _tick(self) -> int:
        self.clock += 1
        return self.clock

    @initialize(rows=st.one_of(st.none(), UPSERTS))
    def start(self, rows: dict[str, tuple[int, dict[str, Any]]] | None) -> None:
        if rows is not None:
            n = self._tick()
            self.base = {key: Version(values, o) for key, (o, values) in rows.items()}
            self._write_base(n)

    @rule(rows=UPSERTS, deletes=DELETES, positions=st.booleans(), data_format=st.sampled_from(["avro", "parquet"]))
    def write(
        self, rows: dict[str, tuple[int, Any]], deletes: dict[str, int | None], positions: bool, data_format: str
    ) -> None:
        n = self._tick()
        self._log(n, rows, deletes, positions, data_format)
        self.committed.add(n)
        self._remember(rows, deletes)

    @rule(rows=UPSERTS, columns=st.sampled_from([("o", "a"), ("o", "b")]))
    def write_in_part(self, rows: dict[str, tuple[int, Any]], columns: tuple[str, str]) -> None:
        n = self._tick()
        self.slice.log(n, [{"id": k, "o": o, columns[1]: v[columns[1]]} for k, (o, v) in rows.items()], columns=columns)
        self.committed.add(n)
        absent = frozenset({"a", "b"} - set(columns))
        for key, (o, values) in rows.items():
            known = {c: None if c in absent else v for c, v in values.items()}
            self.logs.setdefault(key, []).append(Version(known, o, False, absent))

    @precondition(lambda self: self.version < 8)
    @rule(rows=UPSERTS, deletes=DELETES)
    def fail(self, rows: dict[str, tuple[int, Any]], deletes: dict[str, int | None]) -> None:
        """A write that leaves its blocks behind."""
        n = self._tick()
        self._log(n, rows, deletes, False, "avro")
        self.open.append(n)

    @precondition(lambda self: self.open)
    @rule()
    def roll_back(self) -> None:
        failed = self.open.pop()
        n = self._tick()
        self.slice.log(n, roll_back=failed)
        self.committed |= {n, failed}  # only the command block speaks against it

    @precondition(lambda self: len(self.committed) > 1 and not self.open)
    @rule()
    def compact_logs(self) -> None:
        """All blocks so far put together in one, as a log compaction does for built-in modes without gaps."""
        state = {key: fold(versions, self.model) for key, versions in self.logs.items()}
        if any(v.absent for v in state.values()) or self.model.unchanged is None:
            return
        instants = sorted(self.committed)
        n = self._tick()
        rows = {k: (v.ordering, v.values) for k, v in state.items() if not v.delete}
        deletes = {k: v.ordering for k, v in state.items() if v.delete}
        if rows:
            self._log(n, rows, deletes, False, "avro", instants)
            self.committed.add(n)
            self.logs = {key: [version] for key, version in state.items()}

    @precondition(lambda self: self.committed and not self.open)
    @rule()
    def compact(self) -> None:
        rows = self.expected()
        n = self._tick()
        self.base = {k: Version({"a": r["a"], "b": r["b"]}, r["o"]) for k, r in rows.items()}
        self.logs, self.committed = {}, set()
        self._write_base(n)

    @invariant()
    def reads_as_the_model(self) -> None:
        expected = self.expected()
        positions, small = {"use_positions": False}, {"memory": MergeMemory(1)}
        for changes in ({}, self._turn(positions, small)):
            rows = self.slice.read(self.context(), **changes)
            assert {row["_hoodie_record_key"]: {c: row[c] for c in "oab"} for row in rows} == expected, changes
            assert len(rows) == len(expected)
        changes = self._turn(positions, {})
        in_halves = self.slice.overlaid(self.context(), **changes)
        assert sorted(in_halves, key=str) == sorted(rows, key=str), changes

    @invariant()
    def reads_some_keys(self) -> None:
        """The records of some keys, without the versions of others being merged."""
        expected = self.expected()
        keys = (*sorted(expected)[::2], "k9")
        by_id = Condition(pc.field("id").isin(pa.array(keys)), ("id",))
        by_key = Condition(pc.field(RECORD_KEY).isin(pa.array(keys)), (RECORD_KEY,))
        key_rows = self._turn(KeyFilter(by_id), KeyFilter(by_id, keys), KeyFilter(by_key, keys))
        for read in (self.slice.read, self.slice.overlaid):
            rows = read(self.context(), key_rows=key_rows)
            found = [row for row in rows if row[RECORD_KEY] in keys]
            assert {row[RECORD_KEY]: {c: row[c] for c in "oab"} for row in found} == {
                key: row for key, row in expected.items() if key in keys
            }, key_rows
            assert len({row[RECORD_KEY] for row in found}) == len(found)

    def _turn(self, *ways: T) -> T:
        """Return the way to read that is due: one after another as the clock goes on, because each takes as long."""
        return ways[self.clock % len(ways)]

    def expected(self) -> dict[str, dict[str, Any]]:
        found = {}
        for key in {**self.base, **self.logs}:
            versions = self.logs.get(key)
            row = self.base.get(key)
            if versions:
                row = merge_base(row, fold(versions, self.model), self.model)
            if row is not None:
                found[key] = {"o": row.ordering, **row.values}
        return found

    def context(self) -> SliceContext:
        instants = frozenset(map(at, self.committed))
        committed = CommittedInstants(instants, frozenset(), None) if self.version < 8 else None
        columns = ("_hoodie_record_key", *SCHEMA.names)
        view = BlockView(committed=committed)
        return SliceContext(self.slice.storage, self.slice.whole_schema, columns, self.merging, view=view)

    def _remember(self, rows: dict[str, tuple[int, Any]], deletes: dict[str, int | None]) -> None:
        for key, (o, values) in rows.items():
            self.logs.setdefault(key, []).append(Version(values, o))
        for key, o in deletes.items():
            natural = o is None or not self.merging.ordering_fields
            self.logs.setdefault(key, []).append(Version({"a": None, "b": None}, None if natural else o, True))

    def _log(
        self,
        n: int,
        rows: dict[str, tuple[int, Any]],
        deletes: dict[str, int | None],
        positions: bool,
        data_format: str,
        compacted: list[int] | None = None,
    ) -> None:
        known = positions and {*rows, *deletes} <= set(self.slice.positions)
        self.slice.data_format = data_format
        self.slice.log(
            n,
            [{"id": k, "o": o, **values} for k, (o, values) in rows.items()],
            list(deletes.items()),
            with_positions=known,
            compacted=compacted or (),
        )

    def _write_base(self, n: int) -> None:
        self.slice.base(n, [{"id": k, "o": v.ordering, **v.values} for k, v in self.base.items()])


def machine(name: str, rules_: MergeRules, version: int) -> Any:
    """The test of one merge mode."""
    kind = type(name, (FileGroup,), {"merging": rules_, "version": version})
    case = kind.TestCase
    case.settings = settings(max_examples=examples(8), stateful_step_count=12)
    return case


TestCommitTime = machine("CommitTime", MergeRules(), 9)
TestEventTime = machine("EventTime", MergeRules(("o",)), 9)
TestIgnoreDefaults = machine("IgnoreDefaults", MergeRules(partial=PartialUpdateMode.IGNORE_DEFAULTS), 9)
TestEventTimeIgnoreDefaults = machine(
    "EventTimeIgnoreDefaults", MergeRules(("o",), partial=PartialUpdateMode.IGNORE_DEFAULTS), 8
)
TestVersion6 = machine("Version6", MergeRules(("o",)), 6)
