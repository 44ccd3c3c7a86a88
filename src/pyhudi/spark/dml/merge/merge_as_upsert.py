"""MERGE by record key, executed as an upsert of the source without a join with the table.

``ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *`` is equivalent to an upsert, which looks
up stored records file by file. So is a MERGE whose clauses assign the same values of the source to all columns, or
delete, possibly under conditions on the source: each row of it has an action (`pyhudi.write.row_action`). There are
two differences: a MERGE refuses source rows with the same key, but an upsert merges them; and null keys equal nothing
in SQL. The job that counts the rows of the upsert also detects such rows (`pyhudi.spark.lookup.key_constraint`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import and_

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from pyhudi.config import options
from pyhudi.config.enums import IndexType, MergeMode
from pyhudi.keygen.key_spec import KeySpec
from pyhudi.merge.modes.delete_marker import IS_DELETED
from pyhudi.schema.meta_columns import is_reserved
from pyhudi.spark.column_names import quoted
from pyhudi.spark.dml.assignments.column_assignments import as_column, convert_values, resolve_assignments
from pyhudi.spark.dml.assignments.row_expressions import row_expression_types
from pyhudi.spark.dml.merge.merge_clauses import Clause, MergeAction
from pyhudi.spark.dml.target_snapshot import TargetSnapshot
from pyhudi.spark.lookup.key_constraint import are_equal_as_key_text, has_action
from pyhudi.spark.session_settings import is_case_sensitive
from pyhudi.sql.conditions.merge_condition import MergeSides, column_of_source, equalities, value_of_source
from pyhudi.sql.statements import ClauseKind
from pyhudi.table.config.key_generator_type import KeyGenType
from pyhudi.table.config.merge_settings import DELETE_FIELD
from pyhudi.write.row_action import ROW_ACTION, RowAction

_PLAIN_KEYS = frozenset({KeyGenType.SIMPLE, KeyGenType.COMPLEX, KeyGenType.NON_PARTITION})
_PLAIN_MODES = frozenset({MergeMode.COMMIT_TIME_ORDERING, MergeMode.EVENT_TIME_ORDERING})


def rows_to_upsert(
    source: DataFrame, target: TargetSnapshot, on: object, sides: MergeSides, clauses: Sequence[Clause]
) -> DataFrame | None:
    """Return the rows whose upsert is equivalent to a MERGE; None if there are none, or a column is missing or has a
    reserved name.

    They have the columns of the table, and `ROW_ACTION` unless all of them are updates or new records.

    Args:
        source: The source.
        target: The table.
        on: Condition of the MERGE.
        sides: The table and the source in it.
        clauses: Clauses of the MERGE.

    Raises:
        SchemaMismatchError: A clause assigns a value to a column that the table does not have.
        QueryError: A clause assigns a column twice, or a condition has no value for each row.
    """
    if any(map(is_reserved, source.columns)) or not _read_source_only(clauses, sides):
        return None
    if is_case_sensitive(source.sparkSession) and not (
        all(clause.values is None for clause in clauses) and set(target.schema.names) <= set(source.columns)
    ):
        return None  # the condition and the values are compared ignoring case
    keys = _equated_keys(source, target, on, sides)
    values = None if keys is None else _values(clauses, target, sides, keys)
    if keys is None or values is None:
        return None
    try:
        action = _row_action(source, clauses)
        written = convert_values(source, {name: as_column(value) for name, value in values.items()}, target.schema)
    except AnalysisException:  # a value is not of the source alone, as IDENTIFIER('t.fare'), or the join fails, too
        return None
    if action is None:
        return source.select(*(value.alias(name) for name, value in written.items()))
    needs_record = has_action(RowAction.UPDATE, RowAction.DELETE)
    has_key = reduce(and_, (written[name].isNotNull() for name in keys))
    # A row without a clause does nothing, nor does one with a null key, which equals no stored one.
    acting = source.withColumn(ROW_ACTION, action).where(F.col(ROW_ACTION).isNotNull() & (~needs_record | has_key))
    # A delete without an ordering value wins against the stored row, whichever value that has.
    stays = ~has_action(RowAction.DELETE)
    columns = {name: value if name in keys else F.when(stays, value) for name, value in written.items()}
    return acting.select(*(value.alias(name) for name, value in columns.items()), ROW_ACTION)


def _read_source_only(clauses: Sequence[Clause], sides: MergeSides) -> bool:
    """Return True if clauses apply to the rows of the source alone, and their conditions have only columns of it."""
    kinds = (ClauseKind.MATCHED, ClauseKind.NOT_MATCHED)
    return all(
        clause.kind in kinds and (clause.condition is None or _comparable(clause, clause.condition, sides) is not None)
        for clause in clauses
    )


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


def _values(
    clauses: Sequence[Clause], target: TargetSnapshot, sides: MergeSides, keys: Mapping[str, str]
) -> Mapping[str, object] | None:
    """Return the values of all columns of the table, if each clause assigns the same ones of the source, and to the key
    columns those that are equated with them (``keys``); otherwise None."""
    unassigned: dict[str, object] = {name: keys.get(name, "null") for name in target.schema.names}
    found, chosen = None, unassigned
    for clause in clauses:
        if clause.action is MergeAction.DELETE:
            continue
        assigned = _assigned(clause, target, sides)
        compared = _comparable_values(clause, assigned, sides)
        if clause.action is MergeAction.UPDATE:  # it may omit the key columns
            assigned, compared = {**keys, **assigned}, {**keys, **compared}
        for name in target.schema.names:
            if compared.get(name) is None or compared[name] != keys.get(name, compared[name]):
                return None
        if found is not None and found != compared:
            return None
        found, chosen = compared, assigned
    return {name: chosen[name] for name in target.schema.names}


def _comparable_values(clause: Clause, assigned: Mapping[str, object], sides: MergeSides) -> dict[str, str | None]:
    """Return the values of the source (`value_of_source`) that a clause assigns; None for other values."""
    if clause.values is None:
        return {name: column_of_source(name) for name in assigned if name.lower() in sides.source_columns}
    return {name: _comparable(clause, value, sides) for name, value in assigned.items()}


def _comparable(clause: Clause, value: object, sides: MergeSides) -> str | None:
    """Return the text by which a value or condition of a clause is compared; None if it may not be the source's."""
    if not isinstance(value, str):
        return None
    return value_of_source(value, sides, inserts=clause.kind is ClauseKind.NOT_MATCHED)


def _assigned(clause: Clause, target: TargetSnapshot, sides: MergeSides) -> dict[str, object]:
    """Return the values that a clause assigns to whole columns, by the names of the table."""
    if clause.values is None:
        return {name: quoted([name]) for name in target.schema.names}
    inserts = clause.action is MergeAction.INSERT
    assignments = resolve_assignments(
        clause.values, target.schema, case_sensitive=False, alias=sides.target, inserts=inserts
    )
    return {path[0]: value for path, value in assignments.items() if len(path) == 1}


def _row_action(source: DataFrame, clauses: Sequence[Clause]) -> Column | None:
    """Return the action of each row of a source (`ROW_ACTION`), null if no clause applies to it; None if all rows are
    updates or new records.

    Args:
        source: The source.
        clauses: Clauses for its rows, whose conditions have only its columns.

    Raises:
        QueryError: A condition has no value for each row.
        AnalysisException: Spark cannot resolve a condition.
    """
    conditions = {
        f"the condition of clause {number}": as_column(clause.condition)
        for number, clause in enumerate(clauses, 1)
        if clause.condition is not None
    }
    actions = {clause.action for clause in clauses}
    if not conditions and actions == {MergeAction.UPDATE, MergeAction.INSERT}:
        return None
    if conditions:
        row_expression_types(source, conditions)
    changes, inserts = (
        _chosen([clause for clause in clauses if clause.kind is kind])
        for kind in (ClauseKind.MATCHED, ClauseKind.NOT_MATCHED)
    )
    is_new = inserts.isNotNull()
    update = F.when(is_new, RowAction.UPSERT.value).otherwise(RowAction.UPDATE.value)
    delete = F.when(is_new, RowAction.DELETE_OR_INSERT.value).otherwise(RowAction.DELETE.value)
    return (
        F.when(changes == MergeAction.UPDATE.value, update)
        .when(changes == MergeAction.DELETE.value, delete)
        .when(is_new, RowAction.INSERT.value)
    )


def _chosen(clauses: Sequence[Clause]) -> Column:
    """Return the action of the first clause that applies to a row, as a number; null if none applies."""
    chosen = F.lit(None).cast("int")
    for clause in reversed(clauses):
        applies = F.lit(True) if clause.condition is None else F.coalesce(as_column(clause.condition), F.lit(False))
        chosen = F.when(applies, F.lit(clause.action.value)).otherwise(chosen)
    return chosen


def has_plain_keys(spec: KeySpec) -> bool:
    """Return True if record keys and partition paths are the plain texts of the values of their columns."""
    plain_paths = not spec.slash_dates and not spec.sql_timestamps
    return bool(spec.record_fields) and spec.keygen in _PLAIN_KEYS and plain_paths


def key_columns(target: TargetSnapshot) -> list[str]:
    """Return the columns of record key and partition path, in the order of the table's key."""
    partitions = [field.name for field in target.spec.partition_fields]
    return list(dict.fromkeys([*target.spec.record_fields, *partitions]))
