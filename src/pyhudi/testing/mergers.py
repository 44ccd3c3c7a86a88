"""Test kit for mergers: checks the properties that every merger must have.

With plain pytest::

    class TestMine(pyhudi.testing.MergerTests):
        merger = MyMerger()
        schema = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("amount", pa.decimal128(10, 2))])
        ordering_fields = ("ts",)

or ``check_merger(MyMerger(), schema, seed=…)`` with seeds of any source, such as hypothesis.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from pyhudi.merge.mergers.merger_invocation import merge_pairs
from pyhudi.merge.mergers.record_merger import RecordMerger, Records
from pyhudi.merge.modes.value_equality import equal_rows, same_values
from pyhudi.merge.ordering_values import Mask, as_mask
from pyhudi.testing.values import random_column, random_rows

KEY = "_hoodie_record_key"
DEFAULT_SCHEMA = pa.schema([("ts", pa.int64()), ("a", pa.string()), ("n", pa.int32()), ("tags", pa.list_(pa.string()))])


def check_merger(
    merger: RecordMerger,
    schema: pa.Schema = DEFAULT_SCHEMA,
    *,
    ordering_fields: Sequence[str] = ("ts",),
    rows: int = 256,
    seed: int = 0,
    partial: bool = False,
) -> None:
    """Test a merger with random versions of records: values, nulls, deletes and ordering values.

    Args:
        merger: Merger to test.
        schema: Columns of the table.
        ordering_fields: Names of the ordering fields in ``schema``.
        rows: Number of records in each of the three versions.
        seed: Seed of the random values.
        partial: Also test partial updates (among versions that are no deletes). Only mergers by which the newer, or the
            older, version wins can pass: where values decide, the value that fills a gap depends on which versions met
            first.

    Raises:
        AssertionError: The merger is not associative, mixes up rows, is not deterministic, changes the record key, or
            cannot be pickled. The message shows the versions on which it failed.
        MergerError: The merger failed, or did not return one record for each pair.
    """
    random = np.random.default_rng(seed)
    for leave_out in (False, True) if partial else (False,):
        versions = [_versions(schema, ordering_fields, rows, random, leave_out=leave_out) for _ in range(3)]
        a, b, c = versions
        left = merge_pairs(merge_pairs(a, b, merger), c, merger)
        right = merge_pairs(a, merge_pairs(b, c, merger), merger)
        what = "partial_merge is not associative" if leave_out else "merge is not associative"
        _require(_same(left, right), what, merger, versions, {"((a b) c)": left, "(a (b c))": right})
        _check_rows(merger, a, b, random)
    pickle.loads(pickle.dumps(merger))


def _check_rows(merger: RecordMerger, a: Records, b: Records, random: np.random.Generator) -> None:
    merged = merge_pairs(a, b, merger)
    again = merge_pairs(a, b, merger)
    _require(_same(merged, again), "two runs differ", merger, [a, b], {"first": merged, "second": again})
    shuffle = pa.array(random.permutation(len(a)))
    shuffled = merge_pairs(a.take(shuffle), b.take(shuffle), merger)
    expected = merged.take(shuffle)
    inputs = [a.take(shuffle), b.take(shuffle)]
    results = {"alone": expected, "shuffled": shuffled}
    _require(_same(expected, shuffled), "a record's result depends on other records", merger, inputs, results)
    kept = as_mask(merged.is_delete) | same_values(merged.rows.column(KEY), b.rows.column(KEY))
    _require(kept, "the record key changes", merger, [a, b], {"merged": merged})


def _versions(
    schema: pa.Schema, ordering_fields: Sequence[str], rows: int, random: np.random.Generator, *, leave_out: bool
) -> Records:
    value_schema = pa.schema([f.with_nullable(True) for f in schema if f.name != KEY])
    batch = random_rows(value_schema, rows, random)
    # The result of a partial update after a delete depends on the grouping of versions, so nothing is required.
    dead = random.random(rows) < (0.0 if leave_out else 0.2)
    ordering = []
    for name in ordering_fields:
        # Deletes have their own ordering value, or none.
        column = batch.column(name)
        other = random_column(column.type, rows, random)
        picks = np.arange(rows) + np.where(dead, rows, 0)
        ordering.append(pa.concat_arrays([column, other]).take(pa.array(picks)))
    given = {n: random.random(rows) < 0.7 for n in value_schema.names if leave_out and n not in ordering_fields}
    columns = [
        column.take(pa.array(np.arange(rows), mask=dead | ~given.get(name, np.ones(rows, dtype=np.bool_))))
        for name, column in zip(value_schema.names, batch.columns, strict=True)
    ]
    keys = pa.array([f"key-{i}" for i in range(rows)])
    whole = pa.RecordBatch.from_arrays([keys, *columns], schema=pa.schema([pa.field(KEY, pa.string()), *value_schema]))
    masks = {name: pa.array(mask | dead) for name, mask in given.items()}
    return Records(whole, pa.array(dead), tuple(ordering), masks)


def _same(left: Records, right: Records) -> Mask:
    """Return a mask of the equal records: both deleted with the same ordering values, or equal rows with the same
    omitted columns."""
    dead, also = as_mask(left.is_delete), as_mask(right.is_delete)
    ordering = np.ones(len(left), dtype=np.bool_)
    for left_value, right_value in zip(left.ordering, right.ordering, strict=True):
        ordering &= same_values(left_value, right_value)
    values = equal_rows(left.rows, right.rows, left.rows.schema.names)
    is_equal = np.ones(len(left), dtype=np.bool_)
    for name in {*left.assigned, *right.assigned}:
        is_equal &= _assigned(left, name) == _assigned(right, name)
    same: Mask = (dead == also) & ordering & (dead | (values & is_equal))
    return same


def _assigned(records: Records, name: str) -> Mask:
    mask = records.assigned.get(name)
    return np.ones(len(records), dtype=np.bool_) if mask is None else as_mask(mask)


def _require(
    good: Mask, what: str, merger: RecordMerger, versions: Sequence[Records], results: dict[str, Records]
) -> None:
    if good.all():
        return
    at = int(np.flatnonzero(~good)[0])
    shown = {**dict(zip("abc", versions, strict=False)), **results}
    lines = [f"  {name:<10} {_text(records, at)}" for name, records in shown.items()]
    failed = int((~good).sum())
    raise AssertionError(
        f"{type(merger).__name__}: {what} ({failed} of {len(good)} records), here:\n" + "\n".join(lines)
    )


def _text(records: Records, at: int) -> str:
    ordering = tuple(column[at].as_py() for column in records.ordering)
    if records.is_delete[at].as_py():
        return f"delete, ordering {ordering}"
    out = sorted(name for name, mask in records.assigned.items() if not mask[at].as_py())
    left_out = f", omits {', '.join(out)}" if out else ""
    return f"{records.rows.slice(at, 1).to_pylist()[0]}, ordering {ordering}{left_out}"


class MergerTests:
    """Tests of a merger for pytest, to be subclassed as ``Test…``.

    Attributes:
        merger: Merger to test.
        schema: Columns of a table for which the merger is designed.
        ordering_fields: Names of the ordering fields in ``schema``.
        partial: Also test partial updates; see `check_merger`.
    """

    merger: RecordMerger
    schema: pa.Schema = DEFAULT_SCHEMA
    ordering_fields: Sequence[str] = ("ts",)
    partial: bool = False

    def test_merger(self) -> None:
        for seed in range(20):
            check_merger(
                self.merger, self.schema, ordering_fields=self.ordering_fields, seed=seed, partial=self.partial
            )
