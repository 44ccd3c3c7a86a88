"""MERGE by record key, executed as an upsert of the source without a join with the table.

``ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *`` is equivalent to an upsert, which looks
up stored records file by file. So is a MERGE whose clauses assign the same values of the source to all columns. There
are two differences: a MERGE refuses source rows with the same key, but an upsert merges them; and null keys equal
nothing in SQL. The job that counts the rows of the upsert also detects such rows
(`pyhudi.spark.lookup.key_constraint`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame

from pyhudi.config import options
from pyhudi.config.enums import IndexType, MergeMode
from pyhudi.keygen.key_spec import KeySpec
from pyhudi.merge.modes.delete_marker import IS_DELETED
from pyhudi.schema.meta_columns import is_reserved
from pyhudi.spark.column_names import quoted
from pyhudi.spark.dml.assignments.column_assignments import as_column, convert_values, resolve_assignments
from pyhudi.spark.dml.merge.merge_clauses import Clause, MergeAction
from pyhudi.spark.dml.target_table import TargetSnapshot
from pyhudi.spark.lookup.key_constraint import are_equal_as_key_text
from pyhudi.spark.session_settings import is_case_sensitive
from pyhudi.sql.conditions.merge_condition import MergeSides, column_of_source, equalities, value_of_source
from pyhudi.sql.statements import ClauseKind
from pyhudi.table.config.key_generator_type import KeyGenType
from pyhudi.table.config.merge_settings import DELETE_FIELD

_PLAIN_KEYS = frozenset({KeyGenType.SIMPLE, KeyGenType.COMPLEX, KeyGenType.NON_PARTITION})
_PLAIN_MODES = frozenset({MergeMode.COMMIT_TIME_ORDERING, MergeMode.EVENT_TIME_ORDERING})


def rows_to_upsert(
    source: DataFrame, target: TargetSnapshot, on: object, sides: MergeSides, clauses: Sequence[Clause]
) -> DataFrame | None:
    """Return the rows whose upsert is equivalent to a MERGE; None if there are none, or a column is missing or has a
    reserved name.

    Args:
        source: The source.
        target: The table.
        on: Condition of the MERGE.
        sides: The table and the source in it.
        clauses: Clauses of the MERGE.

    Raises:
        SchemaMismatchError: A clause assigns a value to a column that the table does not have.
        QueryError: A clause assigns a column twice.
    """
    by_kind = {(clause.kind, clause.action): clause for clause in clauses if clause.condition is None}
    update = by_kind.get((ClauseKind.MATCHED, MergeAction.UPDATE))
    insert = by_kind.get((ClauseKind.NOT_MATCHED, MergeAction.INSERT))
    if len(clauses) != 2 or update is None or insert is None or any(map(is_reserved, source.columns)):
        return None
    if is_case_sensitive(source.sparkSession) and not (
        update.values is None and insert.values is None and set(target.schema.names) <= set(source.columns)
    ):
        return None  # the condition and the values are compared ignoring case
    keys = _equated_keys(source, target, on, sides)
    if keys is None:
        return None
    assigned = _assigned(insert, target, sides)
    updated = _comparable_values(update, _assigned(update, target, sides), sides)
    if update.values is not None:  # it may omit the key columns
        updated = {**keys, **updated}
    if not _are_the_same(updated, _comparable_values(insert, assigned, sides), target, keys):
        return None
    try:
        columns = {name: as_column(assigned[name]) for name in target.schema.names}
        values = convert_values(source, columns, target.schema)
    except AnalysisException:  # a value is not of the source alone, as IDENTIFIER('t.fare'), or the join fails, too
        return None
    return source.select(*(value.alias(name) for name, value in values.items()))


def _equated_keys(source: DataFrame, target: TargetSnapshot, on: object, sides: MergeSides) -> Mapping[str, str] | None:
    """Return the column of the source (`column_of_source`) that a condition equates with each key column of the table,
    if it joins exactly the rows that an upsert considers versions of the same record; otherwise None."""
    if not isinstance(on, str) or not _is_upserted_by_key(target):
        return None
    pairs, names = equalities(on, sides) or frozenset(), key_columns(target)
    equated = dict(pairs)
    if len(pairs) != len(names) or set(equated) != {name.lower() for name in names}:
        return None
    kinds = {field.name.lower(): field.dataType for field in source.schema.fields}
    table_types = {field.name: field.dataType for field in target.schema.fields}
    comparable = are_equal_as_key_text((table_types.get(name), kinds.get(equated[name.lower()])) for name in names)
    return {name: column_of_source(equated[name.lower()]) for name in names} if comparable else None


def _is_upserted_by_key(target: TargetSnapshot) -> bool:
    """Return True if an upsert replaces whole records of a table, which it finds by the plain texts of their keys."""
    spec, merging = target.spec, target.merging
    index = target.opts.get_typed(options.INDEX_TYPE)
    return (
        has_plain_keys(spec)
        # With buckets, an upsert does not report which rows are new, and a row may be marked as a delete.
        and index is not IndexType.BUCKET
        # Such an upsert finds records in other partitions, which the condition does not join.
        and not (index.is_global and spec.partition_fields)
        and IS_DELETED not in target.schema.names
        and DELETE_FIELD not in merging.properties
        and merging.mode in _PLAIN_MODES
        and merging.partial_update_mode is None
    )


def _are_the_same(
    updated: Mapping[str, str | None],
    inserted: Mapping[str, str | None],
    target: TargetSnapshot,
    keys: Mapping[str, str],
) -> bool:
    """Return True if all columns of a table are assigned the same values of the source by two clauses, and the key
    columns those that are equated with them (``keys``)."""
    return all(
        inserted.get(name) is not None
        and inserted[name] == updated.get(name)
        and inserted[name] == keys.get(name, inserted[name])
        for name in target.schema.names
    )


def _comparable_values(clause: Clause, assigned: Mapping[str, object], sides: MergeSides) -> dict[str, str | None]:
    """Return the values of the source (`value_of_source`) that a clause assigns; None for other values."""
    if clause.values is None:
        return {name: column_of_source(name) for name in assigned if name.lower() in sides.source_columns}
    return {name: value_of_source(value, sides) if isinstance(value, str) else None for name, value in assigned.items()}


def _assigned(clause: Clause, target: TargetSnapshot, sides: MergeSides) -> dict[str, object]:
    """Return the values that a clause assigns to whole columns, by the names of the table."""
    if clause.values is None:
        return {name: quoted([name]) for name in target.schema.names}
    inserts = clause.action is MergeAction.INSERT
    assignments = resolve_assignments(
        clause.values, target.schema, case_sensitive=False, alias=sides.target, inserts=inserts
    )
    return {path[0]: value for path, value in assignments.items() if len(path) == 1}


def has_plain_keys(spec: KeySpec) -> bool:
    """Return True if record keys and partition paths are the plain texts of the values of their columns."""
    plain_paths = not spec.slash_dates and not spec.sql_timestamps
    return bool(spec.record_fields) and spec.keygen in _PLAIN_KEYS and plain_paths


def key_columns(target: TargetSnapshot) -> list[str]:
    """Return the columns of record key and partition path, in the order of the table's key."""
    partitions = [field.name for field in target.spec.partition_fields]
    return list(dict.fromkeys([*target.spec.record_fields, *partitions]))
