"""Checks that a table is what its model says: every kind of query, the indexes, and the files of a table."""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random
from typing import Any

import pyarrow as pa

from pyhudi.api.hudi_table import HudiTable
from pyhudi.errors import QueryError
from tests.index_contents import indexed_locations, secondary_entries, stored_locations
from tests.random_sequences.conditions import draw_condition, draw_condition_on
from tests.random_sequences.life import Life
from tests.random_sequences.model import Place, Records
from tests.random_sequences.rows import NUMBERS, Row
from tests.random_sequences.service_steps import SECONDARY
from tests.random_sequences.table_kinds import FILLING
from tests.rows import compare, encode_table
from tests.spark_arrow import to_arrow

INSTANT, KEY, PATH = "_hoodie_commit_time", "_hoodie_record_key", "_hoodie_partition_path"
_IMAGE = ("id", "num", "tag", "seq", "qty", "name")
"""Columns of change data that are compared."""


def check(life: Life, rng: Random) -> None:
    """Check the snapshot, and some of the other queries."""
    snapshot(life)
    checks: list[Callable[[Life, Random], None]] = [filters, lookups, secondary_lookup, incremental, time_travel]
    checks += [read_optimized, change_data, metadata, filters_of_other_queries]
    for one in rng.sample(checks, 4):
        one(life, rng)
    if rng.random() < 0.35:
        on_spark(life, rng)


def snapshot(life: Life) -> None:
    """Check all columns of all rows, read without Spark."""
    _same(life, "snapshot", HudiTable.for_path(life.path).scan().to_arrow(), life.model.records)


def on_spark(life: Life, rng: Random) -> None:
    """Check the snapshot, filtered and not, as Spark reads it."""
    df = life.spark.read.format("hudi").load(life.path)
    _same(life, "snapshot on Spark", to_arrow(df), life.model.records)
    condition = draw_condition(rng, life.model)
    expected = {p: stored for p, stored in life.model.records.items() if condition.holds(stored.row)}
    _same(life, f"{condition.sql} on Spark", to_arrow(df.where(condition.sql)), expected)


def filters(life: Life, rng: Random) -> None:
    """Check filters, with and without data skipping, of some columns."""
    for _ in range(3):
        condition = draw_condition(rng, life.model)
        expected = {p: stored for p, stored in life.model.records.items() if condition.holds(stored.row)}
        columns = rng.sample([name for name in life.model.schema.names if name != condition.column], 3)
        for options in ({}, {"hoodie.enable.data.skipping": "false"}, {"hoodie.metadata.enable": "false"}):
            table = HudiTable.for_path(life.path, options)
            found = table.scan(condition.filter, columns).to_arrow()
            assert found.column_names == columns
            what = f"{condition.sql} with {options or 'all indexes'}"
            _same(life, what, found, expected, columns)


def filters_of_other_queries(life: Life, rng: Random) -> None:
    """Check that filters of base files, of an earlier snapshot and of changes give the rows of the query that meet
    them, which nothing else tells."""
    table = HudiTable.for_path(life.path)
    times = [commit.completion for commit in life.model.history if commit.is_alone]
    queries: list[dict[str, Any]] = [{"read_optimized": True}]
    queries += [{name: rng.choice(times)} for name in ("as_of", "begin") if times]
    for query in queries:
        whole = _unless_cleaned(life, table.scan(**query).to_arrow)
        if whole is None or "num" not in whole.column_names:
            continue
        rows = whole.to_pylist()
        for _ in range(4):
            condition = draw_condition_on(rng, whole.schema, rows)
            expected = whole.filter(pa.array([condition.holds(row) for row in rows], pa.bool_()))
            found = table.scan(condition.filter, **query).to_arrow()
            columns = whole.column_names
            what = f"{condition.sql} of {query}"
            _named(what, encode_table(found, columns), encode_table(expected, columns), columns)


def lookups(life: Life, rng: Random) -> None:
    """Check look-ups of keys, of which the table does not have all."""
    numbers = rng.sample(range(NUMBERS), 6)
    keys = [life.kind.layout.key(number) for number in numbers]
    found = HudiTable.for_path(life.path).lookup(keys)
    expected = {place: stored for place, stored in life.model.records.items() if place[0] in numbers}
    _same(life, f"look-up of {keys}", found, expected)


def secondary_lookup(life: Life, rng: Random) -> None:
    """Check look-ups by the column of the secondary index, if there is one or not."""
    names = sorted({stored.row["name"] for stored in life.model.records.values() if stored.row["name"] is not None})
    if names:
        some = rng.sample(names, min(3, len(names)))
        found = HudiTable.for_path(life.path).lookup(some, by="name")
        expected = {p: stored for p, stored in life.model.records.items() if stored.row["name"] in some}
        _same(life, f"look-up of the names {some} ({SECONDARY})", found, expected)


def incremental(life: Life, rng: Random) -> None:
    """Check the changes between two commits."""
    drawn = _draw_range(life, rng)
    if drawn is None or life.kind.merging in FILLING:
        return  # which commit time a filled row has depends on the files
    begin, end = drawn
    history = life.model.history
    scan = HudiTable.for_path(life.path).scan(begin=history[begin].completion, end=history[end].completion)
    what = f"changes after {history[begin].completion} until {history[end].completion}"
    found = _unless_cleaned(life, scan.to_arrow)
    if found is None:
        return
    expected = life.model.changes_between(begin, end)
    left_out = life.model.lost_between(begin, end) if life.kind.merge_on_read else set()
    if _may_be_cleaned(life):
        # without its files, a range is answered from what is left of its rows in later files
        now = life.model.records
        gone = {place for place, stored in expected.items() if place not in now or now[place].instant != stored.instant}
        left_out |= gone - _places(life, found)
    texts = {(life.kind.layout.key(number), path) for number, path in left_out}
    keys = zip(found[KEY].to_pylist(), found[PATH].to_pylist(), strict=True)
    found = found.filter(pa.array([key not in texts for key in keys], pa.bool_()))
    expected = {place: stored for place, stored in expected.items() if place not in left_out}
    _same(life, what, found, expected, history[end].schema.names)


def _places(life: Life, found: pa.Table) -> set[Place]:
    """Return where rows belong."""
    numbers = {life.kind.layout.key(number): number for number in range(NUMBERS)}
    keys, paths = found[KEY].to_pylist(), found[PATH].to_pylist()
    return {(numbers[key], path) for key, path in zip(keys, paths, strict=True)}


def time_travel(life: Life, rng: Random) -> None:
    """Check the snapshot of an earlier commit."""
    alone = [commit for commit in life.model.history if commit.is_alone]
    if not alone:
        return
    commit = rng.choice(alone)
    scan = HudiTable.for_path(life.path).scan(as_of=commit.completion)
    found = _unless_cleaned(life, scan.to_arrow)
    if found is not None:
        what = f"as of {commit.instant}, completed {commit.completion}"
        _same(life, what, found, commit.records, commit.schema.names, commit.schema)


def change_data(life: Life, rng: Random) -> None:
    """Check the images before and after of the changes between two commits."""
    drawn = _draw_range(life, rng)
    if drawn is None or not life.kind.cdc:
        return
    begin, end = drawn
    history = life.model.history
    changes = HudiTable.for_path(life.path).changes(history[begin].completion, history[end].completion)
    found = _unless_cleaned(life, changes.to_arrow)
    if found is None:
        return
    rows = found.to_pylist()
    actual = [(r["op"], r["ts_ms"], _image(r["before"]), _image(r["after"])) for r in rows]
    expected = [
        (op, instant, _image(before), _image(after))
        for op, instant, before, after in life.model.change_data(begin, end)
    ]
    what = f"change data after {history[begin].completion} until {history[end].completion}"
    _named(what, sorted(actual, key=repr), sorted(expected, key=repr), ["op", "ts_ms", "before", "after"])


def read_optimized(life: Life, _: Random) -> None:
    """Check the read-optimized query where base files have everything."""
    table = HudiTable.for_path(life.path)
    if not any(table.inspect.file_slices()["log_paths"].to_pylist()):
        _same(life, "read-optimized", table.scan(read_optimized=True).to_arrow(), life.model.records)


def metadata(life: Life, _: Random) -> None:
    """Check the file lists of the metadata table, the record index and the secondary index."""
    table = HudiTable.for_path(life.path)
    differences = table.validate_metadata().to_pylist() if "files" in table.config.metadata_partitions else []
    assert not differences, f"metadata table: {differences}"
    if "record_index" in table.config.metadata_partitions:
        known, real = indexed_locations(life.path), stored_locations(life.path)
        lost = {place: file_id for place, file_id in real.items() if known.get(place) != file_id}
        assert not lost, f"record index: of {lost}, it has {[known.get(place) for place in lost]}"
        # a delete that may have lost, or that log files of buckets have, leaves its key
        if not life.kind.has_buckets and not life.kind.flagged:
            surplus = known.keys() - real.keys()
            assert not surplus, f"record index: surplus {surplus}"
    if f"secondary_index_{SECONDARY}" in table.config.metadata_partitions:
        _secondary_entries(life)


def _secondary_entries(life: Life) -> None:
    """Check that the secondary index has the value of every record."""
    known = set(secondary_entries(life.path, SECONDARY))
    records = life.model.records.items()
    real = {(stored.row["name"], life.kind.layout.key(number)) for (number, _), stored in records}
    assert not real - known, f"secondary index: lacks {real - known}"
    if not life.kind.has_buckets and not life.kind.flagged:
        assert not known - real, f"secondary index: surplus {known - real}"


def at_the_end(life: Life) -> None:
    """Check that nothing is pending once plans are executed, and that all files belong to the timeline."""
    life.finish_plans()
    snapshot(life)
    table = HudiTable.for_path(life.path)
    pending = [row for row in table.history().to_pylist() if row["state"] != "COMPLETED"]
    assert not pending, f"pending: {pending}"
    orphans = table.services.delete_orphan_files(life.options, dry_run=True).to_pylist()
    assert not orphans, f"files of no write: {[row['path'] for row in orphans]}"


def _draw_range(life: Life, rng: Random) -> tuple[int, int] | None:
    alone = [number for number, commit in enumerate(life.model.history) if commit.is_alone]
    if len(alone) < 2:
        return None
    begin, end = sorted(rng.sample(alone, 2))
    return begin, end


def _unless_cleaned(life: Life, query: Callable[[], pa.Table]) -> pa.Table | None:
    """Return the result of a query, or None if cleaning may have taken the files that it needs."""
    try:
        return query()
    except QueryError:
        if _may_be_cleaned(life):
            return None
        raise


def _may_be_cleaned(life: Life) -> bool:
    return life.cleaned or "hoodie.clean.commits.retained" in life.kind.more


def _same(
    life: Life,
    what: str,
    found: pa.Table,
    records: Records,
    columns: list[str] | None = None,
    schema: pa.Schema | None = None,
) -> None:
    """Compare rows with records: these columns, or all and the meta columns that are known."""
    schema = schema or life.model.schema
    expected = pa.Table.from_pylist([stored.row for stored in records.values()], schema=schema)
    if columns is None:
        columns = schema.names
        extra = (
            set(found.column_names) - {*columns} - {name for name in found.column_names if name.startswith("_hoodie")}
        )
        assert not extra, f"{what}: columns {extra} that nobody has written"
    if KEY in found.column_names:
        places = records.keys()
        keys = {KEY: [life.kind.layout.key(place[0]) for place in places], PATH: [place[1] for place in places]}
        if life.kind.merging not in FILLING:
            keys[INSTANT] = [stored.instant for stored in records.values()]
        for name, values in keys.items():
            expected = expected.append_column(name, pa.array(values, pa.string()))
        columns = [*columns, *keys]
    missing = [name for name in columns if name not in found.column_names]
    assert not missing, f"{what}: columns {missing} are missing"
    _named(what, encode_table(found, columns), encode_table(expected, columns), columns)


def _named(what: str, actual: list[Any], expected: list[Any], columns: list[str]) -> None:
    try:
        compare(actual, expected, columns)
    except AssertionError as error:
        raise AssertionError(f"{what}: {error}") from None


def _image(image: str | Row | None) -> list[Any] | None:
    """Return the compared columns of a record before or after a change."""
    if image is None:
        return None
    row = json.loads(image) if isinstance(image, str) else image
    return [row.get(name) for name in _IMAGE]
