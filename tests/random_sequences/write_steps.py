"""Steps that change rows: writes of DataFrames, statements, and new columns."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pyarrow as pa

from pyhudi.api.schema_update import SchemaUpdate
from tests.random_sequences.conditions import draw_condition
from tests.random_sequences.life import Life
from tests.random_sequences.model import Place, Records, Stored, TableModel
from tests.random_sequences.rows import IS_DELETED, Row
from tests.random_sequences.steps import step
from tests.random_sequences.table_kinds import CONSISTENT_BUCKETS, CUSTOM, FILLING, TableKind


def _can_overwrite(kind: TableKind) -> bool:
    return kind.index != CONSISTENT_BUCKETS


def _is_partitioned(kind: TableKind) -> bool:
    return bool(kind.layout.path(0))


def _has_statements(kind: TableKind) -> bool:
    """An UPDATE is a version like others to a merger, which would join it with the stored one."""
    return kind.merging != CUSTOM


@step(0)
def load(life: Life, rng: Random) -> None:
    """Make the table."""
    rows = life.some_rows(rng, rng.randint(8, 25), new=True)
    operation = rng.choice(("bulk_insert", "insert", "upsert"))
    life.write(operation, [row for _, row in rows], life.model.insert(rows))


@step(8)
def upsert(life: Life, rng: Random) -> None:
    """Upsert rows, some of which may be marked as deleted, or come twice."""
    rows = draw_upsert(life, rng)
    life.write("upsert", [row for _, row in rows], life.model.upsert(rows))


def draw_upsert(life: Life, rng: Random) -> list[tuple[Place, Row]]:
    """Draw the rows of an upsert."""
    rows = life.some_rows(rng, rng.randint(1, 12))
    if life.kind.flagged:
        rows = [
            (where, {**row, IS_DELETED: True}) if rng.random() < 0.2 and where in life.model.records else (where, row)
            for where, row in rows
        ]
    if life.kind.merging != CUSTOM and rng.random() < 0.3:
        again = [(where, life.row(rng, where[0])) for where, _ in rows[:3]]
        # what is filled from the other one is in one partition
        again = [(where, row) for where, row in again if row[0] == where or life.kind.merging not in FILLING]
        # not equal, which would leave open which of the two comes first
        more = [(where, {**row, "seq": row["seq"] + 20}) for _, (where, row) in again]
        if life.kind.flagged:
            more = [(where, {**row, IS_DELETED: rng.random() < 0.3}) for where, row in more]
        rows = more + rows if rng.random() < 0.5 else rows + more
    return rows


@step(3)
def insert(life: Life, rng: Random) -> None:
    """Insert rows of new keys."""
    _add(life, rng, "insert", rng.randint(1, 6))


@step(2)
def bulk_insert(life: Life, rng: Random) -> None:
    """Insert rows of new keys in bulk."""
    _add(life, rng, "bulk_insert", rng.randint(1, 8))


def _add(life: Life, rng: Random, operation: str, count: int) -> None:
    rows = life.some_rows(rng, count, new=True)
    if rows:
        life.write(operation, [row for _, row in rows], life.model.insert(rows))


@step(3)
def delete(life: Life, rng: Random) -> None:
    """Delete records by their keys, of which the table does not have all."""
    rows = life.some_rows(rng, rng.randint(1, 8))
    life.write("delete", [row for _, row in rows], life.model.delete(where for where, _ in rows))


@step(1, _can_overwrite)
def insert_overwrite(life: Life, rng: Random) -> None:
    """Replace the partitions of some rows."""
    _overwrite(life, rng, "insert_overwrite")


@step(1, _can_overwrite)
def insert_overwrite_table(life: Life, rng: Random) -> None:
    """Replace all rows."""
    _overwrite(life, rng, "insert_overwrite_table")


def _overwrite(life: Life, rng: Random, operation: str) -> None:
    rows = life.some_rows(rng, rng.randint(1, 6))
    paths = {where[1] for where, _ in rows}
    left = life.model.without(paths) if operation == "insert_overwrite" else {}
    if life.kind.is_global:
        rows = [(where, row) for where, row in rows if all(place[0] != where[0] for place in left)]
        paths = {where[1] for where, _ in rows}
        left = life.model.without(paths) if operation == "insert_overwrite" else {}
    if rows:
        gone = life.model.records.keys() - left.keys()
        life.write(operation, [row for _, row in rows], life.model.insert(rows, left), replaced=gone)


@step(1, lambda kind: _can_overwrite(kind) and _is_partitioned(kind))
def delete_partition(life: Life, rng: Random) -> None:
    """Drop the partitions of some rows."""
    rows = life.some_rows(rng, rng.randint(1, 2))
    left = life.model.without({where[1] for where, _ in rows})
    gone = life.model.records.keys() - left.keys()
    life.write("delete_partition", [row for _, row in rows], left, replaced=gone)


@step(2, _has_statements)
def sql_update(life: Life, rng: Random) -> None:
    """Run an UPDATE of the rows that meet a condition."""
    condition = draw_condition(rng, life.model)
    sets = {"tag": f"concat('u{life.step}.', num)", "qty": "qty + 1"}
    clears = life.kind.merging not in FILLING and rng.random() < 0.3
    if clears:
        sets["name"] = "NULL"

    def change(row: Row) -> Row | None:
        if not condition.holds(row):
            return row
        qty = None if row["qty"] is None else row["qty"] + 1
        return {**row, "tag": f"u{life.step}.{row['num']}", "qty": qty, **({"name": None} if clears else {})}

    records = life.model.changed(change)
    if rng.random() < 0.5:
        life.expect(lambda: life.table.update(sets, condition.sql, spark=life.spark), records)
    else:
        assigned = ", ".join(f"{name} = {value}" for name, value in sets.items())
        life.expect(lambda: _statement(life, f"UPDATE {{}} SET {assigned} WHERE {condition.sql}"), records)


@step(2, _has_statements)
def sql_delete(life: Life, rng: Random) -> None:
    """Run a DELETE of the rows that meet a condition."""
    condition = draw_condition(rng, life.model)
    records = life.model.changed(lambda row: None if condition.holds(row) else row)
    if rng.random() < 0.5:
        life.expect(lambda: life.table.delete(condition.sql, spark=life.spark), records)
    else:
        life.expect(lambda: _statement(life, f"DELETE FROM {{}} WHERE {condition.sql}"), records)


def _statement(life: Life, text: str) -> None:
    """Run a statement on the table, which is in the catalog while it runs."""
    name = f"random_table_{life.step}"
    life.spark.sql(f"CREATE TABLE {name} USING hudi LOCATION '{life.path}'")
    options = {key: value for key, value in life.options.items() if key != "hoodie.table.name"}
    try:
        for key, value in options.items():
            life.spark.conf.set(key, value)
        life.spark.sql(text.format(name))
    finally:
        for key in options:
            life.spark.conf.unset(key)
        life.spark.sql(f"DROP TABLE {name}")


@step(2, _has_statements)
def merge_into(life: Life, rng: Random) -> None:
    """Run a MERGE that updates, deletes and inserts."""
    rows = [_complete(life, where, row) for where, row in life.some_rows(rng, rng.randint(1, 8))]
    rows = [(where, row) for where, row in rows if row["place"]]
    options = life.kind.layout.options
    named = options["hoodie.datasource.write.recordkey.field"].split(",")
    if not life.kind.is_global:
        named += [name.partition(":")[0] for name in options["hoodie.datasource.write.partitionpath.field"].split(",")]
    sets = {name: f"source.{name}" for name in ("tag", "qty", "seq")}
    merge = life.table.merge(
        life.frame(row for _, row in rows).alias("source"),
        " AND ".join(f"target.`{name}` = source.`{name}`" for name in named),
    )
    merge = merge.when_matched_delete("source.num % 5 = 0").when_matched_update(sets).when_not_matched_insert_all()
    life.expect(merge.execute, _merged(life, rows, list(sets)))


def _complete(life: Life, where: Place, row: Row) -> tuple[Place, Row]:
    """Return a row that wins whatever is stored."""
    row = {**row, "seq": life.model.highest.get(where[0], 5) + 1}
    return where, {**row, "qty": row["qty"] or 0, "name": row["name"] or "", "price": row["price"] or 0.5}


def _merged(life: Life, rows: list[tuple[Place, Row]], names: list[str]) -> Records:
    found = dict(life.model.records)
    for where, row in rows:
        at = life.model.stored_at(where)
        if at is not None and where[0] % 5 == 0:
            del found[at]
            life.model.deleted.add(where[0])
            continue
        life.model.highest[where[0]] = row["seq"]
        stored = found.get(at) if at is not None else None
        if stored is None:
            found[where] = Stored(row)
        elif at is not None:
            found[at] = Stored({**stored.row, **{name: row[name] for name in names}}, filled=stored.filled)
    return found


@step(1)
def add_column(life: Life, rng: Random) -> None:
    """Let an upsert, or ALTER TABLE, add a column."""
    name = f"added{life.step}"
    if rng.random() < 0.3:
        _alter(life, lambda columns: columns.add_column(name, "string"), lambda model: model.add_column(name))
        return
    life.model.add_column(name)
    upsert(life, rng)


@step(0.7, lambda kind: not kind.cdc)
def rename_column(life: Life, rng: Random) -> None:
    """Let ALTER TABLE rename a column that was added, or replace it by a new one of the same name."""
    names = [name for name in life.model.schema.names if name.startswith(("added", "renamed"))]
    if not names or life.theirs is not None:  # which reads such tables with a setting of its own
        return
    life.finish_plans()
    name, new = rng.choice(names), f"renamed{life.step}"
    if rng.random() < 0.3:
        _alter(life, lambda columns: columns.drop_column(name), lambda model: model.drop_column(name))
        _alter(life, lambda columns: columns.add_column(name, "string"), lambda model: model.add_column(name))
    else:
        _alter(life, lambda columns: columns.rename_column(name, new), lambda model: model.rename_column(name, new))


def _alter(life: Life, change: Callable[[SchemaUpdate], object], of_model: Callable[[TableModel], object]) -> None:
    """Change the columns of the table and of its model."""
    with life.table.alter_schema() as columns:
        change(columns)
    of_model(life.model)
    for found in life.new_writes():
        life.model.commit(life.model.records, found.instant, found.completion)


@step(0.5)
def widen_column(life: Life, rng: Random) -> None:
    """Let an upsert make an int column long."""
    at = life.model.schema.get_field_index("qty")
    life.model.schema = life.model.schema.set(at, pa.field("qty", pa.int64()))
    upsert(life, rng)
