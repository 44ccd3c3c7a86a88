"""Merging of incoming rows with the stored records that they move."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from pyhudi.config.enums import PartialUpdateMode
from pyhudi.merge.mergers.record_merger import RecordMerger, Records, choose
from pyhudi.merge.modes.merge_rules import MergeRules
from pyhudi.spark.lookup.partition_updates.partition_update_merge import merge_pairs_of_rows

INCOMING = pa.schema([("id", pa.string()), ("part", pa.string()), pa.field("ts", pa.int64(), nullable=False)])
STORED = pa.schema([("id", pa.string()), ("part", pa.string()), ("ts", pa.int64())])


def pairs(*rows: tuple[tuple[Any, ...], tuple[Any, ...] | None]) -> pa.RecordBatch:
    def structs(schema: pa.Schema, number: int) -> pa.Array:
        found = [None if (row := pair[number]) is None else dict(zip(schema.names, row, strict=True)) for pair in rows]
        return pa.array(found, pa.struct(list(schema)))

    columns = [structs(INCOMING, 0), structs(STORED, 1), pa.array(range(len(rows)))]
    return pa.RecordBatch.from_arrays(columns, names=["new", "old", "places"])


def merged(rules: MergeRules, *rows: tuple[tuple[Any, ...], tuple[Any, ...] | None]) -> list[tuple[Any, ...]]:
    found = merge_pairs_of_rows(pairs(*rows), rules)
    assert [row["id"] for row in found.column(5).to_pylist()] == [row[0][0] for row in rows], "the incoming rows"
    assert found.column(6).to_pylist() == list(range(len(rows)))
    return [tuple(found.column(i)[row].as_py() for i in range(5)) for row in range(found.num_rows)]


def test_partial_updates() -> None:
    rules = MergeRules(("ts",), PartialUpdateMode.IGNORE_DEFAULTS)
    assert merged(
        rules,
        (("a", None, 2), ("a", "p", 1)),
        (("b", "q", 1), None),
        (("c", "q", 1), ("c", None, 2)),
        (("d", "q", 1), ("d", "p", 2)),
    ) == [
        ("a", "p", 2, False, False),
        ("b", "q", 1, False, False),
        ("c", "q", 2, False, False),
        ("d", "p", 2, False, False),
    ]


class Largest(RecordMerger):
    """Keeps the version with the greater ``ts``, deletes included; deletes records with a negative one."""

    strategy_id = "0c5a3f8e-0000-4000-8000-000000000005"

    def merge(self, older: Records, newer: Records) -> Records:
        found = choose(older, newer, pc.greater(newer.rows.column("ts"), older.rows.column("ts")))
        return Records(found.rows, pc.or_(found.is_delete, pc.less(found.rows.column("ts"), 0)), found.ordering)


@pytest.mark.parametrize(("ts", "expected"), [(5, ("a", "q", 5, False, False)), (1, ("a", "p", 3, False, True))])
def test_mergers(ts: int, expected: tuple[Any, ...]) -> None:
    """The last flag says that the stored record would survive the delete of the merged one."""
    rules = MergeRules(("ts",), merger=Largest())
    found = merged(rules, (("b", "q", -1), ("b", "p", -2)), (("a", "q", ts), ("a", "p", 3)), (("c", "q", 1), None))
    assert found == [("b", "q", -1, True, False), expected, ("c", "q", 1, False, False)]


def test_no_pairs_to_merge() -> None:
    assert merged(MergeRules(merger=Largest()), (("c", "q", 1), None)) == [("c", "q", 1, False, False)]
