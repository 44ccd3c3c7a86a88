"""Pruning by expression indexes."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from pyhudi.metadata.indexes.expression_index_definition import ExpressionIndex, expression_definition
from pyhudi.metadata.indexes.index_definitions import store_definitions
from pyhudi.metadata.records import metadata_keys
from pyhudi.metadata.records.metadata_record import RecordType
from pyhudi.read.filters.row_filter import RowFilter
from pyhudi.read.planning_context import FilterSession
from pyhudi.read.pruning.indexes import indexed_expressions
from pyhudi.read.scan_planner import plan_scan
from pyhudi.table.config.table_config import TableConfig
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.table.view.file_listing import list_files
from tests.metadata_tables import attach, file_lists, grouped
from tests.tables import at
from tests.unit.read.pruning.statistics_tables import build, one, plan, simple


def test_expressions_of_which_nothing_is_sure(tmp_path: Path):
    """Rows without a value are not counted among the values of an expression: as many of both are not nulls alone."""
    texts = {"f0-0": (None, None, 1, 1), "f1-0": (None, None, 0, 1), "f2-0": ("a", "b", 1, 0)}
    files = {("a", file_id): [simple(0, s="x"), simple(1)] for file_id in texts}
    table = build(tmp_path / "t", files)
    listed, _ = list_files(table.storage, None)
    names = pc.replace_substring_regex(listed["path"].combine_chunks(), "^.*/", "")
    every = pa.table({"partition": listed["partition"], "name": names, "size": listed["size"]})
    made, definitions = {"files": file_lists(every)}, {}
    for index, kind, stats in (
        ("lower", pa.string(), texts),
        ("unix_timestamp", pa.int64(), dict.fromkeys(texts, (1, 1, 1, 0))),
    ):
        parts = [
            one(RecordType.COLUMN_STATS, "s", "a", name, kind, *stats[file_id])
            for name, file_id in zip(names.to_pylist(), listed["file_id"].to_pylist(), strict=True)
        ]
        key, value = (pa.concat_arrays(column) for column in zip(*parts, strict=True))
        made[f"expr_index_{index}"] = grouped(key, value, 2)
        found = ExpressionIndex.from_options(f"expr_index_{index}", "column_stats", "s", {"expr": index})
        definitions[found.partition] = expression_definition(found, {"expr": index}, 9)
    attach(table.storage, made, at(9))
    store_definitions(table.storage, TableConfig.load(table.storage), definitions)
    assert plan(table, "lower(s) = 'x'").tasks["file_id"].to_pylist() == ["f0-0"]
    assert plan(table, "lower(s) > 'c'").tasks["file_id"].to_pylist() == ["f0-0"]
    assert plan(table, "lower(s) is not null").tasks["file_id"].to_pylist() == ["f0-0", "f2-0"]
    found = plan(table, "unix_timestamp(s) = 5")
    assert found.tasks.num_rows == 3
    assert "unix_timestamp(s, 'yyyy-MM-dd HH:mm:ss') depend on how" in found.skipped[-1]
    assert "spark.sql.legacy.timeParserPolicy" in found.skipped[-1]
    pinned = TableSnapshot.load(table.client())
    hidden = plan_scan(
        pinned, filter=RowFilter.parse("lower(s) = 'x'"), session=FilterSession(overridden_functions=["lower"])
    )
    assert hidden.tasks.num_rows == 3
    assert any("has redefined the functions lower" in line for line in hidden.skipped)


def test_whole_partitions_are_left_out_by_expressions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Where no value is null, and every write has told the index; files go next."""
    told = {"a": ("aa", "cc", 2, 0), "b": ("dd", "ff", 2, 0), "c": ("dd", "ff", 2, 1)}
    files = {(p, f"f{p}-{n}"): [simple(n, s="dd")] for p in told for n in range(2)}
    table = build(tmp_path / "t", files)
    listed, _ = list_files(table.storage, None)
    names = pc.replace_substring_regex(listed["path"].combine_chunks(), "^.*/", "")
    every = pa.table({"partition": listed["partition"], "name": names, "size": listed["size"]})
    index = ExpressionIndex.from_options("expr_index_low", "column_stats", "s", {"expr": "lower"})
    rows = [
        one(RecordType.COLUMN_STATS, "s", p, name, pa.string(), "dd", "dd", 1, 0)
        for p, name in zip(listed["partition"].to_pylist(), names.to_pylist(), strict=True)
    ]
    for p, stats in told.items():
        _, value = one(RecordType.PARTITION_STATS, "s", p, p, pa.string(), *stats)
        rows.append((metadata_keys.expression_partition_keys(pa.array(["s"]), pa.array([p])), value))
    key, value = (pa.concat_arrays(column) for column in zip(*rows, strict=True))
    attach(table.storage, {"files": file_lists(every), index.partition: grouped(key, value, 2)}, at(9))
    store_definitions(
        table.storage,
        TableConfig.load(table.storage),
        {index.partition: expression_definition(index, {"expr": "lower"}, 9)},
    )
    found = plan(table, "lower(s) = 'aa' or lower(s) = 'bb'")
    assert "expr_index_low: 1 of 3 partitions out, by lower(s)" in found.skipped
    assert "expr_index_low: 4 of 4 slices out, by lower(s)" in found.skipped
    assert not found.tasks.num_rows
    found = plan(table, "lower(s) = 'dd' and i >= 0")
    assert "expr_index_low: 1 of 3 partitions out, by lower(s)" in found.skipped
    assert sorted(found.tasks["partition"].to_pylist()) == ["b", "b", "c", "c"]
    assert "expr_index_low: 0 of 3 partitions out, by lower(s)" in plan(table, "lower(s) = 'dd' or i = 7").skipped
    assert "partitions out" not in str(plan(table, "lower(s) = 'dd'", as_of=at(1)).skipped)
    monkeypatch.setattr(indexed_expressions, "statistics_are_current", lambda *_: "20 has added files")
    found = plan(table, "lower(s) = 'dd'")
    assert "expr_index_low: not used for partitions: 20 has added files" in found.skipped
    assert found.tasks.num_rows == 6
