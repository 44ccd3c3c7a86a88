"""Mergers of users: registering, running, what is refused, and the suite that checks them."""

from __future__ import annotations

import pickle
import re
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pyhudi
from pyhudi import Records, choose
from pyhudi.config.enums import MergeMode
from pyhudi.errors import ConfigError, MergerError, UnsupportedTableError
from pyhudi.merge.base_file_merge import merge_base
from pyhudi.merge.modes.merge_by_mode import dense
from pyhudi.merge.modes.merge_rules import MergeRules
from pyhudi.merge.modes.record_versions import RecordVersions, fold_record_versions
from pyhudi.merge.sorted_deduplication import SortedDeduplicator, dedupe
from pyhudi.table.config.merge_settings import EVENT_TIME_STRATEGY, PAYLOAD_STRATEGY, MergeSettings
from pyhudi.table.config.payload_classes import DEFAULT_PAYLOAD
from pyhudi.testing import MergerTests, check_merger
from tests.properties import examples
from tests.unit.merge.mergers import Average, ByOrdering, First, Resurrecting, Total

SCHEMA = pa.schema([("_hoodie_record_key", pa.string()), ("ts", pa.int64()), ("n", pa.int32())])


class TestByOrdering(MergerTests):
    merger = ByOrdering()


class TestFirst(MergerTests):
    merger = First()
    partial = True


class TestTotal(MergerTests):
    merger = Total()


def test_gaps_are_filled_from_what_a_merger_chose() -> None:
    with pytest.raises(AssertionError, match="partial_merge is not associative"):
        check_merger(ByOrdering(), partial=True)


@given(seed=st.integers(0, 2**32))
@settings(max_examples=examples(10), deadline=None)
def test_any_schema(seed: int) -> None:
    kinds = [pa.float64(), pa.decimal128(12, 2), pa.date32(), pa.timestamp("us", "UTC"), pa.bool_(), pa.binary()]
    nested = [pa.list_(pa.int64()), pa.struct([("x", pa.string())]), pa.map_(pa.string(), pa.int32())]
    schema = pa.schema([pa.field(f"c{i}", kind) for i, kind in enumerate([*kinds, *nested])])
    check_merger(ByOrdering(), schema, ordering_fields=("c2", "c0"), seed=seed)


def test_what_is_not_associative_is_found() -> None:
    with pytest.raises(AssertionError, match=r"(?s)Average: merge is not associative \(\d+ of 256.*\(\(a b\) c\)"):
        check_merger(Average(), partial=False)


def test_a_merger_that_forgets_deletes_is_found() -> None:
    with pytest.raises(AssertionError, match=r"(?s)Resurrecting: merge is not associative.*  b +delete"):
        check_merger(Resurrecting())


def test_what_mixes_up_rows_is_found() -> None:
    class Mixing(First):
        def merge(self, older: Records, newer: Records) -> Records:
            # the first half is taken from the older versions
            return choose(older, newer, pa.array([i >= len(newer) // 2 for i in range(len(newer))]))

    with pytest.raises(AssertionError, match="depends on other records"):
        check_merger(Mixing(), partial=False)


@pytest.fixture
def registered() -> Iterator[None]:
    for merger in (Total(), First()):
        pyhudi.register_merger(merger)
    yield
    for merger in (Total(), First()):
        pyhudi.unregister_merger(merger.strategy_id)


def custom(strategy: str) -> MergeSettings:
    return MergeSettings(MergeMode.CUSTOM, strategy, ("ts",), dedupe_mode=MergeMode.CUSTOM)


def test_a_class_is_no_merger() -> None:
    with pytest.raises(ConfigError, match=r"not the class First: write register_merger\(First\(\)\)"):
        pyhudi.register_merger(First)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="takes an instance of a RecordMerger, not 'first'"):
        pyhudi.register_merger("first")  # type: ignore[arg-type]


def test_an_unknown_merger_is_refused_with_the_way_out() -> None:
    with pytest.raises(UnsupportedTableError, match=r"strategy id abc-1, .*strategy_id is 'abc-1'.*register_merger"):
        MergeRules.for_table(custom("abc-1"))
    payload = MergeSettings(MergeMode.CUSTOM, PAYLOAD_STRATEGY, payload_class="com.me.Mine")
    with pytest.raises(UnsupportedTableError, match=r"payload class com\.me\.Mine .*strategy_id is 'com\.me\.Mine'"):
        MergeRules.for_table(payload)


def test_a_payload_class_without_its_package_is_named_in_full() -> None:
    payload = MergeSettings(MergeMode.CUSTOM, PAYLOAD_STRATEGY, payload_class="DefaultHoodieRecordPayloads")
    with pytest.raises(UnsupportedTableError, match=re.escape(f"did you mean {DEFAULT_PAYLOAD}?)")):
        MergeRules.for_table(payload)


@pytest.mark.usefixtures("registered")
def test_a_merger_is_found_by_its_id_in_any_case() -> None:
    merger = MergeRules.for_table(custom(Total.strategy_id.upper())).merger
    assert isinstance(merger, Total)
    travelled = pickle.loads(pickle.dumps(MergeRules.for_table(custom(Total.strategy_id))))
    assert isinstance(travelled.merger, Total)


def test_ids_of_the_original_are_not_to_be_had() -> None:
    class Mine(First):
        strategy_id = EVENT_TIME_STRATEGY

    with pytest.raises(ConfigError, match="EVENT_TIME_ORDERING"):
        pyhudi.register_merger(Mine())
    Mine.strategy_id = ""
    with pytest.raises(ConfigError, match="strategy_id"):
        pyhudi.register_merger(Mine())


def rows_of(rows: list[tuple[str, int, int | None, bool]]) -> RecordVersions:
    """Key, ordering value, n, delete."""
    batch = pa.RecordBatch.from_pylist([{"_hoodie_record_key": k, "ts": t, "n": n} for k, t, n, _ in rows], SCHEMA)
    rules = MergeRules(("ts",), merger=Total())
    return RecordVersions.from_rows(batch, np.array([d for *_, d in rows], dtype=bool), rules, SCHEMA)


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.integers(0, 9), st.booleans()), min_size=1, max_size=40))
@settings(deadline=None)
def test_versions_are_folded_in_their_order(history: list[tuple[str, int, bool]]) -> None:
    expected: dict[str, int | None] = {}
    for key, n, delete in history:
        before = expected.get(key, 0)
        expected[key] = None if delete or before is None else before + n
    record, _ = dense(np.array([ord(k) for k, *_ in history]))
    changes = rows_of([(k, 1, None if d else n, d) for k, n, d in history])
    folded = fold_record_versions(changes, record, MergeRules(("ts",), merger=Total()))
    got = zip(folded.rows.column(0).to_pylist(), folded.rows.column("n").to_pylist(), folded.is_delete, strict=True)
    assert {k: None if d else n for k, n, d in got} == expected


def test_base_rows_that_end_as_they_were_are_not_changed() -> None:
    base = pa.RecordBatch.from_pylist(
        [{"_hoodie_record_key": k, "ts": 5, "n": n} for k, n in (("a", 1), ("b", 2), ("c", 3))], SCHEMA
    )
    updates = rows_of([("a", 7, 10, False), ("b", 7, 0, False), ("c", 7, None, True)])
    merged = merge_base(base, np.arange(3), updates, MergeRules(("ts",), merger=Total()))
    assert merged.rows.to_pylist() == [
        {"_hoodie_record_key": "a", "ts": 7, "n": 11},
        {"_hoodie_record_key": "b", "ts": 7, "n": 2},
    ]
    assert (merged.changed.tolist(), merged.deleted.tolist()) == ([True, True, False], [False, False, True])
    kept = merge_base(base, np.arange(2), updates.take(np.arange(2)), MergeRules(("ts",), merger=First()))
    assert kept.rows.slice(0, 2).to_pylist() == base.slice(0, 2).to_pylist()
    assert not kept.changed.any()


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (lambda newer: newer.take(pa.array([0])), "1 records for 2 pairs"),
        (lambda newer: newer.rows, "RecordBatch; it must return pyhudi.Records"),
        (lambda newer: newer.with_rows(newer.rows.drop_columns(["n"])), "the columns"),
        (lambda _: 1 / 0, "failed on 2 records: ZeroDivisionError"),
    ],
)
def test_a_merger_that_breaks_its_contract(result: object, message: str) -> None:
    class Broken(First):
        def merge(self, older: Records, newer: Records) -> Records:  # noqa: ARG002
            return result(newer)  # type: ignore[operator]

    base = rows_of([("a", 1, 1, False), ("b", 1, 1, False)])
    with pytest.raises(MergerError, match=rf"the merger Broken \({First.strategy_id}\).*{message}"):
        merge_base(base.rows, np.arange(2), base, MergeRules(("ts",), merger=Broken()))


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 3), st.integers(0, 9), st.booleans()), max_size=30),
    st.integers(1, 8),
    st.sampled_from([MergeRules(), MergeRules(("ts",)), MergeRules(("ts",), merger=Total())]),
)
@settings(deadline=None)
def test_deduping_in_batches_equals_one_fold(
    rows: list[tuple[str, int, int, bool]], size: int, rules: MergeRules
) -> None:
    names = ["k", "ts", "n", "gone"]
    batch = pa.RecordBatch.from_pydict(
        {name: [row[i] for row in rows] for i, name in enumerate(names)},
        schema=pa.schema([("k", pa.string()), ("ts", pa.int64()), ("n", pa.int32()), ("gone", pa.bool_())]),
    )
    how = SortedDeduplicator(("k",), "gone", rules)
    whole = dedupe(batch, how)
    assert whole.column("k").to_pylist() == list(dict.fromkeys(row[0] for row in rows))
    ordered = batch.take(pa.array(sorted(range(len(rows)), key=lambda i: rows[i][0]), pa.int64()))
    pieces = [ordered.slice(i, size) for i in range(0, ordered.num_rows, size)]
    streamed = [row for piece in how.run(pieces) for row in piece.to_pylist()]
    assert streamed == sorted(whole.to_pylist(), key=lambda row: row["k"])
