"""Condition on the rows of a batch under which a MERGE can run as an upsert: no key is repeated, each key text
represents a single value, and the action of each row can be executed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from types import MappingProxyType

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

from pyhudi.errors import HudiError
from pyhudi.schema.meta_fields import PARTITION_PATH
from pyhudi.spark.column_names import quoted
from pyhudi.spark.execution.slice_tasks import coalesced
from pyhudi.write.row_action import CONDITIONAL, DELETING, ROW_ACTION, RowAction
from pyhudi.write.write_result import ChangeCounts

KEY_TEXT_TYPES = (T.StringType, T.ByteType, T.ShortType, T.IntegerType, T.LongType, T.DateType, T.BooleanType)
"""Types whose values are equal exactly if their texts in a key are."""
_PLACEHOLDERS = ("", "__null__", "__empty__", "__HIVE_DEFAULT_PARTITION__", "default")
"""Texts that stand for null and empty values in keys, and for null in partition paths."""
_ROWS, _AMBIGUOUS = "_pyhudi_rows", "_pyhudi_ambiguous"
_DELETES, _CONDITIONAL = "_pyhudi_deletes", "_pyhudi_conditional"


def are_equal_as_key_text(pairs: Iterable[tuple[T.DataType | None, T.DataType | None]]) -> bool:
    """Return True if values of two columns each, of a table and of its source, are equal if and only if their texts in
    a key are the same."""
    return all(isinstance(data_type, KEY_TEXT_TYPES) and data_type == other for data_type, other in pairs)


class KeyConstraintError(HudiError):
    """Rows share a key, have a key that is not the text of its value, or an action that cannot be executed."""


@dataclass(frozen=True, slots=True)
class CheckedBatch:
    """Rows of a batch that meets a `KeyConstraint`.

    Attributes:
        partitions: Number of rows by partition path.
        deletes: Number of rows that delete records, if the table has these.
        conditional: Some rows have `CONDITIONAL` actions.
    """

    partitions: Sequence[tuple[str, int]]
    deletes: int
    conditional: bool

    @property
    def changes(self) -> ChangeCounts:
        """Numbers of the rows."""
        return ChangeCounts(sum(count for _, count in self.partitions), self.deletes)


@dataclass(frozen=True, slots=True)
class KeyConstraint:
    """Condition under which a batch may be written: no two rows have the same values in some columns, no value of these
    is null or a text that represents null, and an upsert can execute the action of each row (`ROW_ACTION`).

    Attributes:
        columns: Columns from which record keys and partition paths are made.
        conditional: Rows may have `CONDITIONAL` actions.
        deletes: Rows may delete records.
    """

    columns: tuple[str, ...]
    conditional: bool
    deletes: bool

    def check(self, rows: DataFrame) -> CheckedBatch:
        """Check and count the rows of a keyed batch. Runs a Spark job.

        Raises:
            KeyConstraintError: The batch does not meet the condition.
        """
        totals = _action_totals() if ROW_ACTION in rows.columns else {}
        summaries = coalesced(summarize_keys(rows, self.columns, [PARTITION_PATH], totals)).collect()
        if any(max_rows_of_key > 1 or ambiguous for _, _, max_rows_of_key, ambiguous, *_ in summaries):
            raise KeyConstraintError("rows of the batch share a key, or have a key that is not the text of its value")
        actions = [summary[4:] for summary in summaries] if totals else []
        deletes, conditional = (sum(counts) for counts in zip(*actions, strict=True)) if actions else (0, 0)
        if (conditional and not self.conditional) or (deletes and not self.deletes):
            raise KeyConstraintError("rows of the batch have actions that are not executed without a join")
        return CheckedBatch([(path, count) for path, count, *_ in summaries], deletes, conditional > 0)


def _action_totals() -> dict[str, Column]:
    """Return the numbers of rows by their actions: deletes, and conditional ones."""
    kinds = {_DELETES: DELETING, _CONDITIONAL: CONDITIONAL}
    return {name: F.count(F.when(has_action(*actions), 1)) for name, actions in kinds.items()}


def has_action(*actions: RowAction) -> Column:
    """Return the condition that a row has one of some actions."""
    return F.col(ROW_ACTION).isin(*(action.value for action in actions))


def summarize_keys(
    rows: DataFrame, columns: Sequence[str], by: Sequence[str] = (), totals: Mapping[str, Column] = MappingProxyType({})
) -> DataFrame:
    """Return the number of rows, the most rows that share values of ``columns``, and whether values are null or
    represent null, for each value of the columns ``by``; and the sums of ``totals``, which are those of a key."""
    names = [quoted([name]) for name in columns]
    kinds = {field.name.lower(): field.dataType for field in rows.schema.fields}
    ambiguous = reduce(
        or_, [_is_ambiguous(F.col(name), kinds[plain.lower()]) for name, plain in zip(names, columns, strict=True)]
    )
    more = (total.alias(name) for name, total in totals.items())
    counted = rows.groupBy(*by, *names).agg(F.count(F.lit(1)).alias(_ROWS), F.max(ambiguous).alias(_AMBIGUOUS), *more)
    return counted.groupBy(*by).agg(F.sum(_ROWS), F.max(_ROWS), F.max(_AMBIGUOUS), *map(F.sum, totals))


def _is_ambiguous(column: Column, data_type: T.DataType) -> Column:
    is_invalid = column.isNull()
    return is_invalid | column.isin(*_PLACEHOLDERS) if isinstance(data_type, T.StringType) else is_invalid
