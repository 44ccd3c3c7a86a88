"""Slices of every shape and block format; positions, partial updates, evolved schemas; what is damaged."""

from __future__ import annotations

import pickle
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from pyhudi.config.enums import PartialUpdateMode
from pyhudi.errors import CorruptTableError, FormatError, QueryError
from pyhudi.format.log import Header, scan_blocks
from pyhudi.keygen.key_spec import KeySpec
from pyhudi.merge import base_file_rows, base_row_matches, file_group_reader
from pyhudi.merge.base_file_rows import Condition
from pyhudi.merge.batch_sizes import MergeMemory
from pyhudi.merge.file_group_reader import read_slice
from pyhudi.merge.file_slice import SliceContext, StoredColumns
from pyhudi.merge.logs.valid_log_blocks import BlockView
from pyhudi.merge.modes.merge_rules import MergeRules
from pyhudi.read.execution.base_file_tasks import ReadTask, TaskReader
from pyhudi.schema.meta_fields import COMMIT_TIME, OPERATION, RECORD_KEY
from pyhudi.table.config.key_generator_type import KeyGenType
from tests.unit.format.log.samples import block
from tests.unit.merge.mergers import Total
from tests.unit.merge.slices import SCHEMA, Slice, at

EVENT = MergeRules(("o",))


def row(key: str, o: int | None, a: str | None = None, b: int | None = None) -> dict[str, Any]:
    return {"id": key, "o": o, "a": a, "b": b}


@pytest.fixture
def plain(tmp_path: Path) -> Slice:
    """Two base rows, an update, an insert and a delete in logs."""
    made = Slice(tmp_path)
    made.base(1, [row("x", 5, "base", 1), row("y", 5, "base", 2), row("z", 5, "base", 3)])
    made.log(2, [row("x", 9, "log", 10), row("n", 1, "new", 0)])
    made.log(3, [row("z", 1, "late", 30)], [("y", None)])
    return made


def test_base_rows_keep_their_order_and_new_ones_follow(plain: Slice) -> None:
    assert plain.read(rules=EVENT) == [row("x", 9, "log", 10), row("z", 5, "base", 3), row("n", 1, "new", 0)]
    assert plain.read() == [row("x", 9, "log", 10), row("z", 1, "late", 30), row("n", 1, "new", 0)]


@pytest.mark.parametrize("extension", ["parquet", "orc"])
@pytest.mark.parametrize("data_format", ["avro", "parquet"])
@pytest.mark.parametrize("with_positions", [False, True])
@pytest.mark.parametrize("budget", [1, 1 << 30])
def test_every_format(tmp_path: Path, extension: str, data_format: str, with_positions: bool, budget: int) -> None:
    made = Slice(tmp_path / "table", extension=extension, data_format=data_format)
    spill = tmp_path / "spill"
    made.base(1, [row(f"k{i}", 5, "base", i) for i in range(1000)])
    made.log(2, [row(f"k{i}", 6, "log", -i) for i in range(0, 1000, 7)], with_positions=with_positions)
    made.log(3, [], [(f"k{i}", 7) for i in range(0, 1000, 21)], with_positions=with_positions)
    made.log(4, [row("k0", 8, "again", 0)], with_positions=with_positions)
    expected = [row(f"k{i}", 5 if i % 7 else 6, "base" if i % 7 else "log", i if i % 7 else -i) for i in range(1000)]
    expected = [row("k0", 8, "again", 0), *(r for r in expected if int(r["id"][1:]) % 21)]
    assert made.read(rules=EVENT, memory=MergeMemory(budget, str(spill))) == expected
    assert not spill.exists() or not list(spill.iterdir())


def test_a_slice_of_logs_alone(tmp_path: Path) -> None:
    made = Slice(tmp_path)
    made.log(1, [row("x", 1, "a"), row("y", 1, "a")])
    made.log(2, [row("x", 2, "b")], [("y", 5), ("nowhere", None)])
    assert made.read(rules=EVENT) == [row("x", 2, "b")]


def test_a_slice_of_a_base_file_alone(tmp_path: Path) -> None:
    made = Slice(tmp_path)
    made.base(1, [row("x", 1)])
    assert made.read() == [row("x", 1)]


def test_only_what_is_asked_for_is_read(plain: Slice) -> None:
    batches = plain.batches(columns=("b",), rules=EVENT)
    assert [batch.schema.names for batch in batches] == [["b"]] * len(batches)
    assert [value for batch in batches for value in batch.column("b").to_pylist()] == [10, 3, 0]
    assert [batch.num_rows for batch in plain.batches(columns=())] == [2, 1]


def test_keys_that_the_base_file_has_twice_are_updated_twice(tmp_path: Path) -> None:
    made = Slice(tmp_path)
    made.base(1, [row("x", 1, "one"), row("x", 1, "two"), row("y", 1, "three")])
    made.log(2, [row("x", 2, "new")])
    assert made.read() == [row("x", 2, "new"), row("x", 2, "new"), row("y", 1, "three")]


@pytest.mark.parametrize(("matched_bytes", "lookups"), [(1 << 30, 1), (1, 7)])
def test_keys_are_looked_up_in_several_batches_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, matched_bytes: int, lookups: int
) -> None:
    monkeypatch.setattr(file_group_reader, "BATCH_ROWS", 100)
    monkeypatch.setattr(base_row_matches, "_MATCHED_BYTES", matched_bytes)
    index_in = Mock(side_effect=pc.index_in)
    monkeypatch.setattr(base_row_matches.pc, "index_in", index_in)
    made = Slice(tmp_path)
    made.base(1, [row(f"k{i}", 5, "base", i) for i in range(650)])
    updated = {0, 99, 100, 299, 300, 649, *range(400, 490)}
    made.log(2, [row(f"k{i}", 6, "log", -i) for i in sorted(updated)], [("k200", None), ("k399", None)])
    rows = [row(f"k{i}", 6, "log", -i) if i in updated else row(f"k{i}", 5, "base", i) for i in range(650)]
    assert made.read() == [r for r in rows if r["id"] not in ("k200", "k399")]
    numbers_of_keys = [len(call.kwargs.get("value_set", ())) for call in index_in.call_args_list]
    assert numbers_of_keys.count(len(updated) + 2) == lookups


def test_base_rows_are_released_before_more_are_collected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = Slice(tmp_path)
    made.base(1, [row(f"k{i}", 5) for i in range(1000)])
    made.log(2, [row(f"k{i}", 6) for i in range(50)])  # 400 base rows are looked up at a time
    read: list[weakref.ref[pa.RecordBatch]] = []
    in_memory: list[int] = []

    def read_base(*args: Any) -> Iterator[pa.RecordBatch]:
        for batch in base_file_rows.read_base(*args):
            read.append(weakref.ref(batch))
            in_memory.append(sum(one() is not None for one in read))
            yield batch

    monkeypatch.setattr(file_group_reader, "BATCH_ROWS", 100)
    monkeypatch.setattr(file_group_reader, "read_base", read_base)
    assert len(made.read()) == 1000
    assert max(in_memory) <= 5, "four that are looked up, and the last one before"


def test_positions_count_only_in_their_own_base_file(tmp_path: Path) -> None:
    made = Slice(tmp_path)
    made.base(1, [row("x", 1), row("y", 1)])
    made.log(2, [row("y", 2, "new")], with_positions=True)
    logs = list(made.log_paths)
    made.base(3, [row("a", 1), row("b", 1), row("y", 1)])
    made.log_paths = logs  # as after a compaction that another writer's log went past
    assert made.read() == [row("a", 1), row("b", 1), row("y", 2, "new")]


def test_one_block_without_positions_makes_all_go_by_key(tmp_path: Path) -> None:
    made = Slice(tmp_path)
    made.base(1, [row("x", 1), row("y", 1)])
    made.log(2, [row("y", 2, "new")], with_positions=True)
    made.log(3, [row("y", 3, "newer"), row("n", 1)])
    assert made.read() == [row("x", 1), row("y", 3, "newer"), row("n", 1)]


def test_positions_beyond_the_base_file(tmp_path: Path) -> None:
    made = Slice(tmp_path)
    made.base(1, [row("x", 1)])
    made.positions["y"] = 7
    made.log(2, [row("y", 2)], with_positions=True)
    with pytest.raises(CorruptTableError, match=r"has 1 rows.*row 7"):
        made.read()
    assert made.read(use_positions=False) == [row("x", 1), row("y", 2)]


def test_partial_updates(tmp_path: Path) -> None:
    made = Slice(tmp_path)
    made.base(1, [row("x", 5, "base", 1), row("y", 5, "base", 2), row("z", 5, "base", 3)])
    made.log(2, [{"id": "x", "o": 6, "b": 10}, {"id": "y", "o": 4, "b": 20}], columns=("o", "b"))
    made.log(3, [{"id": "x", "o": 7, "a": None}, {"id": "n", "o": 1, "a": "new"}], columns=("o", "a"))
    made.log(4, [row("z", 9, None, None)])
    expected = [row("x", 7, None, 10), row("y", 5, "base", 2), row("z", 9, None, None)]
    assert made.read(rules=EVENT)[:3] == expected
    assert made.read(rules=EVENT)[3] == {"id": None, "o": 1, "a": "new", "b": None}
    ignoring = MergeRules(("o",), PartialUpdateMode.IGNORE_DEFAULTS)
    assert made.read(rules=ignoring)[:3] == [row("x", 7, "base", 10), row("y", 5, "base", 2), row("z", 9, "base", 3)]


def test_an_older_schema_in_files_and_logs(tmp_path: Path) -> None:
    old = pa.schema([("id", pa.string()), ("o", pa.int32()), ("b", pa.int32())])
    made = Slice(tmp_path, schema=old)
    made.base(1, [{"id": "x", "o": 5, "b": 1}, {"id": "y", "o": 5, "b": 2}])
    made.log(2, [{"id": "x", "o": 6, "b": 3}], [("y", 2)])
    made.schema = SCHEMA
    made.log(3, [row("x", 2**40, "wide", 4)])
    assert made.read(rules=EVENT) == [row("x", 2**40, "wide", 4), row("y", 5, None, 2)]


@pytest.mark.parametrize("data_format", ["avro", "parquet"])
@pytest.mark.parametrize("with_positions", [False, True])
def test_records_whose_operation_is_a_delete(tmp_path: Path, data_format: str, with_positions: bool) -> None:
    """Changelog writers log deletes as records; the columns of the table do not name the operation."""
    made = Slice(tmp_path, data_format=data_format)
    made.base(1, [row("x", 5, "base"), row("y", 5, "base"), row("z", 5, "base"), row("w", 5, "base")])
    operations = {"x": "U", "y": "D", "z": "-U", "w": None}
    changes = [{**row(key, 6, "log"), OPERATION: operation} for key, operation in operations.items()]
    schema = pa.schema([*SCHEMA, pa.field(OPERATION, pa.string())])
    made.log(2, changes, schema=schema, with_positions=with_positions)
    for rules in (EVENT, MergeRules()):
        assert made.read(rules=rules) == [row("x", 6, "log"), row("w", 6, "log")]


def test_renamed_columns(tmp_path: Path) -> None:
    made = Slice(tmp_path)
    made.base(1, [row("x", 1, "base", 1), row("y", 1, "base", 1)])
    made.log(2, [row("x", 2, "log", 2)])
    schema = pa.schema([*[*made.whole_schema][:-1], pa.field("c", pa.int64()), pa.field("b", pa.string())])
    made.schema = pa.schema([f for f in schema if not f.name.startswith("_hoodie")])
    made.log(3, [{"id": "y", "o": 2, "a": "new", "c": 3, "b": "other"}])
    names = {at(1): {"c": "b", "b": None}, at(2): {"c": "b", "b": None}}
    context = SliceContext(
        made.storage, schema, ("id", "c", "b"), stored=StoredColumns(names_at=lambda i: names.get(i, {}))
    )
    assert made.read(context) == [{"id": "x", "c": 2, "b": None}, {"id": "y", "c": 3, "b": "other"}]


def test_keys_that_are_not_stored(tmp_path: Path) -> None:
    made = Slice(tmp_path, extension="parquet")
    made.base(1, [row("x", 1, "base"), row("y", 1, "base"), row("z", 1, "base")])
    made.log(2, [row("x", 2, "log"), row("n", 2, "log")], [("a,id:y", None)])
    spec = KeySpec(KeyGenType.SIMPLE, ("id",), False, ())
    without = pa.schema([f for f in made.whole_schema if f.name != RECORD_KEY])
    context = SliceContext(made.storage, without, ("id", "a"), stored=StoredColumns(keys=spec))
    assert made.read(context) == [
        {"id": k, "a": a} for k, a in (("x", "log"), ("y", "base"), ("z", "base"), ("n", "log"))
    ]
    made.log(3, deletes=[("y", None)])
    assert [r["id"] for r in made.read(context)] == ["x", "z", "n"]


def test_an_incremental_read_merges_only_what_is_in_its_range(tmp_path: Path) -> None:
    made = Slice(tmp_path)
    made.base(2, [{**row("x", 9, "old"), "_n": 1}, {**row("y", 9, "new"), "_n": 2}])
    made.log(3, [row("x", 1, "late"), row("y", 1, "late")], with_positions=True)
    made.log(4, [row("y", 10, "after")], with_positions=True)
    within = {at(2), at(3)}
    only = pc.field(COMMIT_TIME).isin(sorted(within))
    context = SliceContext(made.storage, made.whole_schema, ("id", "a"), EVENT, view=BlockView(within=within))
    context = pickle.loads(pickle.dumps(context))
    got = made.read(context, base_rows=Condition(only, (COMMIT_TIME,)))
    # the row that beats the late one in a snapshot is outside the range
    assert got == [{"id": "y", "a": "new"}, {"id": "x", "a": "late"}]


def test_partial_updates_in_an_incremental_read_are_whole_rows(tmp_path: Path) -> None:
    made = Slice(tmp_path)
    made.base(1, [row("x", 5, "base", 1), row("y", 5, "base", 2)])
    made.log(2, [{"id": "x", "o": 6, "b": 10}], columns=("o", "b"))
    made.log(3, [{"id": "x", "o": 7, "a": "log"}], columns=("o", "a"))
    for within, b in (({at(3)}, 10), ({at(2), at(3)}, 10)):
        only = Condition(pc.field(COMMIT_TIME).isin(sorted(within)), (COMMIT_TIME,))
        columns = (COMMIT_TIME, *SCHEMA.names)
        context = SliceContext(made.storage, made.whole_schema, columns, EVENT, view=BlockView(within=within))
        got = {r["id"]: r for r in made.read(context, base_rows=only)}
        assert got["x"] == {COMMIT_TIME: at(3), **row("x", 7, "log", b)}


UNAVAILABLE = "__debezium_unavailable_value"


@pytest.mark.parametrize(
    ("rules", "left_out"),
    [
        (MergeRules(("o",), partial=PartialUpdateMode.IGNORE_DEFAULTS), None),
        (MergeRules(("o",), partial=PartialUpdateMode.FILL_UNAVAILABLE), UNAVAILABLE),
    ],
)
def test_values_that_stand_for_unchanged_are_filled_in_an_incremental_read(
    tmp_path: Path, rules: MergeRules, left_out: str | None
) -> None:
    made = Slice(tmp_path)
    made.base(1, [row("x", 5, "base", 1)])
    made.log(2, [row("x", 6, left_out, 10)])
    made.log(3, [row("x", 7, left_out, 20)])
    context = SliceContext(made.storage, made.whole_schema, (COMMIT_TIME, *SCHEMA.names), rules)
    snapshot = made.read(context)
    assert snapshot == [{COMMIT_TIME: at(3), **row("x", 7, "base", 20)}]
    only = Condition(pc.field(COMMIT_TIME) == at(3), (COMMIT_TIME,))
    assert made.read(context, view=BlockView(within={at(3)}), base_rows=only) == snapshot


def test_a_merger_sees_all_versions_in_an_incremental_read(tmp_path: Path) -> None:
    made = Slice(tmp_path, pa.schema([("id", pa.string()), ("n", pa.int64())]), ordering=())
    made.base(1, [{"id": "x", "n": 1}])
    made.log(2, [{"id": "x", "n": 10}])
    made.log(3, [{"id": "x", "n": 100}])
    context = SliceContext(made.storage, made.whole_schema, ("id", "n"), MergeRules(merger=Total()))
    only = Condition(pc.field(COMMIT_TIME) == at(3), (COMMIT_TIME,))
    assert made.read(context, view=BlockView(within={at(3)}), base_rows=only) == [{"id": "x", "n": 111}]


def test_a_condition_on_keys_leaves_no_half_of_a_row(tmp_path: Path) -> None:
    made = Slice(tmp_path)
    made.base(1, [row("x", 5, "base", 1), row("y", 5, "base", 2)])
    made.log(2, [{"id": "x", "o": 6, "b": 10}], columns=("o", "b"))
    for key, x in (("y", row("x", 6, "base", 10)), ("x", row("x", 6, "base", 10))):
        got = {r["id"]: r for r in made.read(base_rows=Condition(pc.field("id") == key, ("id",)))}
        assert got.get("x", x) == x
        assert None not in got


@pytest.mark.parametrize("with_positions", [False, True])
def test_a_condition_on_keys_skips_row_groups(tmp_path: Path, with_positions: bool) -> None:
    made = Slice(tmp_path)
    rows = [row(f"k{i:04}", 1, "base", i) for i in range(1000)]
    made.base(1, rows)
    pq.write_table(pq.read_table(tmp_path / str(made.base_path)), tmp_path / str(made.base_path), row_group_size=100)
    made.log(2, [row("k0150", 2, "log", 0), row("k0950", 2, "log", 0)], with_positions=with_positions)
    only = Condition((pc.field("id") >= "k0149") & (pc.field("id") <= "k0151"), ("id",))
    got = made.read(base_rows=only)
    assert got[:3] == [rows[149], row("k0150", 2, "log", 0), rows[151]]
    # of other records only what is in logs is left, for whoever asks to filter
    assert [r["id"] for r in got[3:]] == ["k0950"]


def test_constant_columns(tmp_path: Path) -> None:
    made = Slice(tmp_path)
    made.base(1, [row("x", 1), row("y", 1)])
    made.log(2, [row("y", 2)])
    schema = made.whole_schema.append(pa.field("part", pa.int32()))
    context = SliceContext(made.storage, schema, ("part", "id", "o"), stored=StoredColumns(("part",)))
    from dataclasses import replace

    placed = replace(made.slice, values={"part": 7})
    rows = [r for batch in read_slice(context, placed) for r in batch.to_pylist()]
    assert rows == [{"part": 7, "id": "x", "o": 1}, {"part": 7, "id": "y", "o": 2}]


@pytest.mark.parametrize("budget", [1, 1 << 30])
def test_a_merger_of_the_user(tmp_path: Path, budget: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyhudi.merge.logs.log_record_versions._CUSTOM_ROWS", 2)
    schema = pa.schema([("id", pa.string()), ("o", pa.int64()), ("n", pa.int32())])
    made = Slice(tmp_path, schema=schema)
    made.base(1, [{"id": k, "o": 1, "n": 1} for k in "abc"])
    for i in range(2, 7):
        made.log(i, [{"id": k, "o": i, "n": 10**i} for k in "bcd"], [("a", None)] if i == 4 else ())
    rules = MergeRules(("o",), merger=Total())
    total = sum(10**i for i in range(2, 7))
    expected = [{"id": "b", "n": 1 + total}, {"id": "c", "n": 1 + total}, {"id": "d", "n": total}]
    assert made.read(rules=rules, columns=("id", "n"), memory=MergeMemory(budget)) == expected


def test_gone_and_damaged_files(plain: Slice) -> None:
    log = plain.folder / plain.log_paths[0]
    data = log.read_bytes()
    log.write_bytes(b"PK" + data)
    with pytest.raises(FormatError, match=plain.log_paths[0].replace(".", r"\.")):
        plain.read()
    log.unlink()
    with pytest.raises(QueryError, match=r"slice .*in partition '' no longer exists.*retained"):
        plain.read()
    log.write_bytes(data)
    (plain.folder / str(plain.base_path)).write_bytes(b"PAR1")
    with pytest.raises(FormatError, match=r"\.parquet"):
        plain.read()


def unsealed(data: bytes) -> bytes:
    """A log file's blocks as others write them, without checksums."""
    return b"".join(
        block(int(b.type), {k: v for k, v in b.headers.items() if k != Header.BLOCK_IDENTIFIER}, bytes(b.content()))
        for b in scan_blocks(data)
    )


def refusals(path: Path, whole: bytes, start: int, read: Callable[[], object]) -> list[str]:
    """What is said of the file when one of its bytes, every few of them, is another."""
    found = []
    for offset in range(start, len(whole), 11):
        path.write_bytes(whole[:offset] + bytes((whole[offset] ^ 0x80,)) + whole[offset + 1 :])
        try:
            read()
        except FormatError as e:
            found.append(str(e))
    assert len(found) > (len(whole) - start) // 11 // 4
    return found


def test_damaged_blocks_of_others_are_errors_that_name_the_slice(tmp_path: Path) -> None:
    s = Slice(tmp_path, data_format="parquet")
    s.base(1, [row("a", 1, "x", 1)])
    s.log(2, [row("a", 2, "y", 2)])
    path = s.folder / s.log_paths[0]
    whole = unsealed(path.read_bytes())
    assert all(
        text.startswith("cannot read slice 2026") for text in refusals(path, whole, whole.index(b"PAR1"), s.read)
    )


@pytest.mark.parametrize("extension", ["parquet", "orc"])
@pytest.mark.parametrize("reader", ["all", "condition", "local"])
def test_damaged_base_files_are_errors_that_name_them(tmp_path: Path, extension: str, reader: str) -> None:
    s = Slice(tmp_path, extension=extension)
    s.base(1, [row(key, 1, key * 9, 1) for key in "abc"])
    path = s.folder / str(s.base_path)
    local = TaskReader(s.storage, s.whole_schema, tuple(s.whole_schema.names))
    ways: dict[str, Callable[[], object]] = {
        "all": s.read,
        "condition": lambda: s.read(base_rows=Condition(pc.field("id") >= "a", ("id",))),
        "local": lambda: [batch.to_pylist() for batch in local.read(ReadTask(path.name, {}, {}))],
    }
    assert all(path.name in text for text in refusals(path, path.read_bytes(), 0, ways[reader]))


def test_a_cut_log_file_gives_what_is_whole(plain: Slice) -> None:
    log = plain.folder / plain.log_paths[0]
    log.write_bytes(log.read_bytes()[:-1])
    assert [r["id"] for r in plain.read(rules=EVENT)] == ["x", "z"]


def test_stopping_early_leaves_nothing_behind(plain: Slice, tmp_path: Path) -> None:
    spill = tmp_path / "spill"
    context = SliceContext(plain.storage, plain.whole_schema, ("id",), memory=MergeMemory(1, str(spill)))
    batches = read_slice(context, plain.slice)
    next(batches)
    assert list(spill.iterdir())
    batches.close()
    assert not list(spill.iterdir())
