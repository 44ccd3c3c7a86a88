"""Where new records go."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from pyhudi.table.view.file_slicing import SLICE_SCHEMA
from pyhudi.write.planning.record_size import average_record_size
from pyhudi.write.planning.small_files import (
    INSERTS_SCHEMA,
    SMALL_FILES_SCHEMA,
    Sizing,
    assign_inserts,
    find_small_files,
    target_lookup_table,
)


def sizing(**changes: int) -> Sizing:
    values = {"max_file_size": 1000, "small_file_limit": 500, "split_size": 40, "default_record_size": 10} | changes
    return Sizing(**values, auto_split=True, estimation_threshold=1.0)


def small(*files: tuple[str, str, int]) -> pa.Table:
    rows = [{"partition": p, "file_id": f, "base_path": f"{p}/{f}", "size": s} for p, f, s in files]
    return pa.Table.from_pylist(rows, SMALL_FILES_SCHEMA)


def inserts(**rows: int) -> pa.Table:
    return pa.table([list(rows), list(rows.values())], schema=INSERTS_SCHEMA)


def summary(table: pa.Table) -> list[tuple[str, str | None, int]]:
    return [(r["partition"], r["base_path"], r["rows"]) for r in table.to_pylist()]


def test_small_files_are_below_the_limit_without_log_files_and_in_no_plan() -> None:
    rows = [
        {"partition": partition, "file_id": name, "base_path": name, "base_size": size, "log_paths": logs}
        for partition, name, size, logs in [
            ("a", "large", 500, []),
            ("a", "small", 499, []),
            ("a", "smaller", 30, []),
            ("a", "logged", 10, ["l"]),
            ("b", "planned", 10, []),
            ("c", "planned", 10, []),
            ("a", "logs only", None, ["l"]),
        ]
    ]
    busy = pa.table({"partition": ["b"], "file_id": ["planned"]})
    slices = pa.Table.from_pylist(rows, SLICE_SCHEMA)
    found = find_small_files(slices, busy, 500, None)
    assert found.schema == SMALL_FILES_SCHEMA
    assert found["file_id"].to_pylist() == ["planned", "small", "smaller"]
    assert find_small_files(slices, busy, 500, 1)["file_id"].to_pylist() == ["smaller", "planned"]


def test_small_files_are_filled_first_then_new_ones_opened() -> None:
    files = small(("b", "f1", 400), ("a", "f2", 800), ("x", "f3", 3), ("b", "f4", 900))
    targets = assign_inserts(inserts(a=50, b=300, c=7), files, sizing(), 10)
    assert summary(targets) == [
        ("a", "a/f2", 20),
        ("a", None, 30),
        ("b", "b/f1", 60),
        ("b", "b/f4", 10),
        ("b", None, 100),
        ("b", None, 100),
        ("b", None, 30),
        ("c", None, 7),
    ]
    assert len(set(targets["file_id"].to_pylist())) == targets.num_rows


def test_a_file_that_is_not_needed_is_left_alone() -> None:
    targets = assign_inserts(inserts(a=5), small(("a", "f1", 400), ("a", "f2", 400)), sizing(), 10)
    assert summary(targets) == [("a", "a/f1", 5)]


def test_split_size_counts_when_it_is_not_automatic() -> None:
    fixed = Sizing(1000, 500, 40, False, 10, 1.0)
    assert summary(assign_inserts(inserts(a=90), small(), fixed, 10)) == [
        ("a", None, 40),
        ("a", None, 40),
        ("a", None, 10),
    ]


def test_no_inserts_no_targets() -> None:
    assert assign_inserts(INSERTS_SCHEMA.empty_table(), small(("a", "f1", 1)), sizing(), 10).num_rows == 0


@settings(deadline=None)
@given(
    st.dictionaries(st.sampled_from("abcd"), st.integers(1, 500), min_size=1),
    st.lists(st.tuples(st.sampled_from("abcde"), st.integers(0, 1200)), max_size=12),
    st.integers(1, 2000),
)
def test_every_record_goes_somewhere_and_no_file_overflows(
    rows: dict[str, int], files: list[tuple[str, int]], record_size: int
) -> None:
    table = small(*((p, f"f{i}", s) for i, (p, s) in enumerate(files)))
    targets = assign_inserts(inserts(**rows), table, sizing(), record_size).to_pylist()
    sizes = {f"{p}/f{i}": s for i, (p, s) in enumerate(files)}
    for partition, wanted in rows.items():
        own = [b for b in targets if b["partition"] == partition]
        assert sum(b["rows"] for b in own) == wanted
        assert all(b["rows"] > 0 for b in own)
    for target in targets:
        if target["base_path"] is not None:
            assert sizes[target["base_path"]] + target["rows"] * record_size <= 1000


def test_average_record_size_of_the_newest_commit_that_wrote_enough() -> None:
    def stats(size: int, rows: int) -> pa.Table:
        return pa.table({"totalWriteBytes": [size], "numWrites": [rows]})

    history = [stats(100, 1), stats(501, 2), stats(9000, 1)]
    assert average_record_size(history, sizing()) == 251
    assert average_record_size(history[:1], sizing()) == 10
    assert average_record_size([stats(10_000, 0)], sizing()) == 10


@settings(deadline=None)
@given(st.lists(st.integers(1, 1000), min_size=1, max_size=20))
def test_slots_spread_in_proportion(rows: list[int]) -> None:
    table = target_lookup_table(np.array(rows, dtype=np.int64), resolution=64)
    shares = np.bincount(table, minlength=len(rows)) / len(table)
    assert np.allclose(shares, np.array(rows) / sum(rows), atol=2 / len(table))
