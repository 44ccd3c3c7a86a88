"""Wide rows: batches of few of them. The limits are set low, so that a KB is wide."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from pyhudi.config.enums import PartialUpdateMode
from pyhudi.merge.batch_sizes import MergeMemory, bounded_runs, joined_within, pieces, rows_within
from pyhudi.merge.logs import spillable_log_rows
from pyhudi.merge.logs.spillable_log_rows import NO_ROW, SpillableLogRows
from pyhudi.merge.modes.merge_rules import MergeRules
from tests.unit.merge.slices import Slice

LIMIT = 16 * 1024
EVENT = MergeRules(("o",))
FILLING = MergeRules(("o",), partial=PartialUpdateMode.IGNORE_DEFAULTS)


def rows_of(sizes: list[int]) -> pa.RecordBatch:
    return pa.record_batch({"a": ["x" * size for size in sizes]})


def test_pieces_stay_within_the_limit() -> None:
    batch = rows_of([10, 5_000, 20, 3_000, 3_000, 1])
    parts = list(pieces(batch, 4_000))
    assert pa.Table.from_batches(parts).combine_chunks().to_batches() == [batch]
    assert all(part.nbytes <= 4_000 or part.num_rows == 1 for part in parts)
    assert list(pieces(batch, 1 << 20)) == [batch]


def test_runs_and_rows_within() -> None:
    sizes = np.array([1, 1, 9, 30, 1, 1, 1], dtype=np.float64)
    assert [(run.start, run.stop) for run in bounded_runs(sizes, 10, 2)] == [(0, 2), (2, 3), (3, 4), (4, 6), (6, 7)]
    assert not list(bounded_runs(sizes[:0], 10, 2))
    assert (rows_within(100, 30, 1000), rows_within(100, 0, 1000), rows_within(100, 500, 1000)) == (3, 100, 1)


def test_neighbours_are_joined_within_the_limit() -> None:
    batches = [rows_of([size]) for size in (100, 100, 900, 100, 5_000, 100)]
    joined = list(joined_within(list(batches), 1_200))
    assert [batch.num_rows for batch in joined] == [3, 1, 1, 1]
    assert pa.Table.from_batches(joined) == pa.Table.from_batches(batches)


@pytest.mark.parametrize("budget", [1, 1 << 30])
def test_rows_of_several_joined_batches(monkeypatch: pytest.MonkeyPatch, budget: int) -> None:
    monkeypatch.setattr(spillable_log_rows, "JOINED_BYTES", 2_000)
    texts = [f"{i}" * (200 * (1 + i % 3)) for i in range(20)]
    with SpillableLogRows(pa.schema([("a", pa.string())]), budget) as store:
        for i in range(0, 20, 2):
            store.append(pa.record_batch({"a": texts[i : i + 2]}))
        store.freeze()
        numbers = np.array([19, 0, NO_ROW, 7, 7, 12, 3])
        taken = store.take_column(0, numbers).to_pylist()
        assert taken == [None if n == NO_ROW else texts[n] for n in numbers]
        sizes = store.bytes_of(0, np.arange(20))
        assert sizes.sum() == pytest.approx(sum(map(len, texts)), rel=0.1)
        assert store.bytes_of(0, numbers[2:3]).tolist() == [0]
        assert store.widest >= max(sizes) > store.row_bytes


@pytest.mark.parametrize("rules", [EVENT, MergeRules(), FILLING])
@pytest.mark.parametrize("with_positions", [False, True])
@pytest.mark.parametrize("extension", ["parquet", "orc"])
def test_wide_rows(tmp_path: Path, rules: MergeRules, with_positions: bool, extension: str) -> None:
    made = Slice(tmp_path, extension=extension)
    made.base(1, [{"id": f"k{i}", "o": 5, "a": f"{i:04}" * 300, "b": i} for i in range(200)])
    changed = [
        {"id": f"k{i}", "o": 4 + i % 3, "a": f"{i:03}" * 500 if i % 5 else None, "b": i} for i in range(0, 200, 2)
    ]
    made.log(2, changed, with_positions=with_positions)
    new = [{"id": f"n{i}", "o": 1, "a": "n" * 2_000, "b": i} for i in range(50)]
    made.log(3, [] if with_positions else new, [(f"k{i}", 9) for i in range(0, 200, 8)], with_positions=with_positions)
    whole = made.read(rules=rules)
    few = made.batches(rules=rules, memory=MergeMemory(batch_bytes=LIMIT))
    assert [row for batch in few for row in batch.to_pylist()] == whole
    assert max(batch.nbytes for batch in few) < 3 * LIMIT
    assert len(few) > 15

    def by_key(rows: list[dict[str, object]]) -> list[dict[str, object]]:
        return sorted(rows, key=lambda row: str(row["id"]))

    assert by_key(made.overlaid(rules=rules, memory=MergeMemory(batch_bytes=LIMIT))) == by_key(whole)
