"""The merge kernel against what Apache Hudi 1.2.0 answered, for every payload class and both table types."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from pyhudi.config.enums import MergeMode
from pyhudi.merge.base_file_merge import merge_base
from pyhudi.merge.modes.delete_marker import DeleteMarker
from pyhudi.merge.modes.merge_by_mode import dense
from pyhudi.merge.modes.merge_rules import MergeRules
from pyhudi.merge.modes.record_versions import RecordVersions, fold_record_versions, joined
from pyhudi.merge.sorted_deduplication import SortedDeduplicator, dedupe
from pyhudi.table.config.merge_settings import MergeSettings
from pyhudi.table.config.resolved_merge_settings import resolve_merge_settings
from tests.unit.merge.recorded_merges import FAULTS, RECORDED, SCENARIOS, STEPS, batch_of, schema_of, several


class Table:
    """A table of one file group, held in memory."""

    def __init__(self, kind: str, settings: MergeSettings, *, logs: bool) -> None:
        self.kind, self.logs = kind, logs
        self.schema = schema_of(kind)
        self.rules = MergeRules.for_table(settings).present(self.schema)
        self.batch_rules = MergeRules.for_batch(settings).present(self.schema)
        self.marks = DeleteMarker.from_settings(settings)
        self.base = batch_of(kind, [(key, steps[0]) for key, steps in SCENARIOS.items()])
        self.log: RecordVersions | None = None

    def upsert(self, rows: list[tuple[str, Any]]) -> None:
        batch = batch_of(self.kind, rows)
        marked = batch.append_column("gone", pa.array(self.marks.mask(batch)))
        kept = dedupe(marked, SortedDeduplicator(("k",), "gone", self.batch_rules))
        gone = kept.column("gone").to_numpy(zero_copy_only=False)
        self._write(RecordVersions.from_rows(kept.drop_columns(["gone"]), gone, self.rules, self.schema))

    def delete(self, keys: list[str]) -> None:
        batch = batch_of(self.kind, [(key, [3, "z", "z"]) for key in keys])
        gone = np.ones(len(keys), dtype=bool)
        self._write(RecordVersions.from_rows(batch, gone, self.rules, self.schema, hard_deletes=True))

    def _write(self, changes: RecordVersions) -> None:
        if self.logs:
            self.log = changes if self.log is None else joined(self.log, changes)
            return
        known = np.isin(changes.rows.column("k").to_pylist(), self.base.column("k").to_pylist())
        new = changes.rows.filter(pa.array(~known & ~changes.is_delete))
        self.base = pa.concat_batches([self._merged(changes.take(np.flatnonzero(known))), new])

    def _merged(self, changes: RecordVersions) -> pa.RecordBatch:
        if not len(changes):
            return self.base
        keys = self.base.column("k").to_pylist()
        positions = np.array([keys.index(key) for key in changes.rows.column("k").to_pylist()])
        order = np.argsort(positions)
        return merge_base(self.base, positions[order], changes.take(order), self.rules).rows

    def read(self) -> dict[str, list[Any]]:
        rows = self.base
        if self.log is not None:
            numbers = {key: i for i, key in enumerate(SCENARIOS)}
            record, _ = dense(np.array([numbers[key] for key in self.log.rows.column("k").to_pylist()]))
            rows = self._merged(fold_record_versions(self.log, record, self.rules))
        ordering = {"pg": "_event_lsn", "my": "_event_pos"}.get(self.kind, "o")
        return {row["k"]: [row[ordering], row["a"], row["b"]] for row in rows.to_pylist()}


@pytest.mark.parametrize("name", list(RECORDED["tables"]))
def test_merges_as_apache_hudi(name: str) -> None:
    version, table_type, kind = name.split("_")
    kinds = {"cow": "COPY_ON_WRITE", "mor": "MERGE_ON_READ"}
    properties = {**RECORDED["tables"][name]["properties"], "hoodie.table.type": kinds[table_type]}
    fields = properties.get("hoodie.table.ordering.fields", properties.get("hoodie.table.precombine.field", ""))
    settings = resolve_merge_settings(properties, int(version[1:]), tuple(fields.split(",")))
    assert settings.mode is not MergeMode.CUSTOM
    table = Table(kind, settings, logs=table_type == "mor")
    answers = RECORDED["tables"][name]["answers"]
    faults = FAULTS.get(name, ("", ()))[1]
    for step, place in STEPS.items():
        if step not in answers:
            continue
        given = {key: steps[place] for key, steps in SCENARIOS.items() if steps[place]}
        if step == "d":
            table.delete(list(given))
        else:
            rows = [(key, row) for key, value in given.items() for row in several(value)]
            table.upsert(rows)
        got = table.read()
        ours = {key: got.get(key) for key in given}
        theirs = answers[step]
        if step in faults:
            assert ours != theirs, "the exception is not needed any more"
        else:
            assert ours == theirs, step
