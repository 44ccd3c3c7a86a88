"""Rows of file groups, taken apart however the batches fall."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from pyhudi.schema.meta_fields import PARTITION_PATH
from pyhudi.write.location_columns import BASE_PATH, FILE_ID, IS_DELETE, ROW_POSITION
from pyhudi.write.rows.incoming_rows import GroupKey, rows_by_file_group

SCHEMA = pa.schema(
    [
        ("v", pa.int64()),
        (PARTITION_PATH, pa.string()),
        (FILE_ID, pa.string()),
        (BASE_PATH, pa.string()),
        (ROW_POSITION, pa.int64()),
        (IS_DELETE, pa.bool_()),
    ]
)


def row(group: int, position: int | None, value: int) -> dict[str, Any]:
    return {
        "v": value,
        PARTITION_PATH: f"p{group // 2}",
        FILE_ID: f"f{group}",
        BASE_PATH: f"b{group}",
        ROW_POSITION: position,
        IS_DELETE: False,
    }


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 3), st.one_of(st.none(), st.integers(0, 9))), max_size=40),
    st.lists(st.integers(1, 7), min_size=40, max_size=40),
    st.integers(1, 10),
)
def test_groups_come_whole_and_in_order(drawn: list[tuple[int, int | None]], sizes: list[int], window: int) -> None:
    drawn = sorted(drawn, key=lambda d: (d[0], 99 if d[1] is None else d[1]))
    rows = [row(group, position, i) for i, (group, position) in enumerate(drawn)]
    batches, at = [], 0
    for size in sizes:
        batches.append(pa.RecordBatch.from_pylist(rows[at : at + size], SCHEMA))
        at += size
    seen: list[tuple[GroupKey, int | None, int]] = []
    for key, grouped in rows_by_file_group(batches):
        for limit in range(window, 10 + window, window):
            found = grouped.updates_below(limit)
            if found is None:
                continue
            batch, positions = found
            assert batch.column(ROW_POSITION).to_pylist() == positions.tolist()
            assert all(limit - window <= p < limit for p in positions)
            seen += [(key, p, v) for p, v in zip(positions.tolist(), batch.column("v").to_pylist(), strict=True)]
        for batch in grouped.inserts():
            assert batch.column(ROW_POSITION).null_count == batch.num_rows
            seen += [(key, None, v) for v in batch.column("v").to_pylist()]
    expected = [(GroupKey(f"p{g // 2}", f"f{g}", f"b{g}"), p, i) for i, (g, p) in enumerate(drawn)]
    assert seen == expected


def test_a_group_that_nobody_reads_is_skipped() -> None:
    batch = pa.RecordBatch.from_pylist([row(0, 1, 0), row(0, None, 1), row(1, None, 2)], SCHEMA)
    assert [key.file_id for key, _ in rows_by_file_group([batch, batch.slice(0, 0)])] == ["f0", "f1"]


def test_a_group_that_is_read_in_part_is_skipped() -> None:
    batches = [pa.RecordBatch.from_pylist([row(0, v, 0), row(0, v + 3, 0)], SCHEMA) for v in (1, 5)]
    groups = rows_by_file_group([*batches, pa.RecordBatch.from_pylist([row(1, None, 2)], SCHEMA)])
    _, first = next(groups)
    assert first.updates_below(2) is not None
    key, second = next(groups)
    assert (key.file_id, [batch.column("v").to_pylist() for batch in second.inserts()]) == ("f1", [[2]])
