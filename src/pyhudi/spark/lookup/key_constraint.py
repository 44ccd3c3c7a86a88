"""Condition on the keys of a batch under which a MERGE can run as an upsert: no key is repeated, and each key text
represents a single value."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

from pyhudi.errors import HudiError
from pyhudi.schema.meta_fields import PARTITION_PATH
from pyhudi.spark.column_names import quoted
from pyhudi.spark.execution.slice_tasks import coalesced

KEY_TEXT_TYPES = (T.StringType, T.ByteType, T.ShortType, T.IntegerType, T.LongType, T.DateType, T.BooleanType)
"""Types whose values are equal exactly if their texts in a key are."""
_PLACEHOLDERS = ("", "__null__", "__empty__", "__HIVE_DEFAULT_PARTITION__", "default")
"""Texts that stand for null and empty values in keys, and for null in partition paths."""
_ROWS, _AMBIGUOUS = "_pyhudi_rows", "_pyhudi_ambiguous"


def are_equal_as_key_text(pairs: Iterable[tuple[T.DataType | None, T.DataType | None]]) -> bool:
    """Return True if values of two columns each, of a table and of its source, are equal if and only if their texts in
    a key are the same."""
    return all(isinstance(data_type, KEY_TEXT_TYPES) and data_type == other for data_type, other in pairs)


class KeyConstraintError(HudiError):
    """Rows share a key, or have a key that is not the text of its value."""


@dataclass(frozen=True, slots=True)
class KeyConstraint:
    """Condition under which a batch may be written: no two rows have the same values in ``columns``, from which record
    keys and partition paths are made, and no value is null or a text that represents null."""

    columns: tuple[str, ...]

    def count_partitions(self, rows: DataFrame) -> list[tuple[str, int]]:
        """Count the rows of a keyed batch by partition path. Runs a Spark job.

        Raises:
            KeyConstraintError: The batch does not meet the condition.
        """
        summaries = coalesced(summarize_keys(rows, self.columns, [PARTITION_PATH])).collect()
        if any(max_rows_of_key > 1 or ambiguous for _, _, max_rows_of_key, ambiguous in summaries):
            raise KeyConstraintError("rows of the batch share a key, or have a key that is not the text of its value")
        return [(path, count) for path, count, _, _ in summaries]


def summarize_keys(rows: DataFrame, columns: Sequence[str], by: Sequence[str] = ()) -> DataFrame:
    """Return the number of rows, the most rows that share values of ``columns``, and whether values are null or
    represent null, for each value of the columns ``by``."""
    names = [quoted([name]) for name in columns]
    kinds = {field.name.lower(): field.dataType for field in rows.schema.fields}
    ambiguous = reduce(
        or_, [_is_ambiguous(F.col(name), kinds[plain.lower()]) for name, plain in zip(names, columns, strict=True)]
    )
    counted = rows.groupBy(*by, *names).agg(F.count(F.lit(1)).alias(_ROWS), F.max(ambiguous).alias(_AMBIGUOUS))
    return counted.groupBy(*by).agg(F.sum(_ROWS), F.max(_ROWS), F.max(_AMBIGUOUS))


def _is_ambiguous(column: Column, data_type: T.DataType) -> Column:
    is_invalid = column.isNull()
    return is_invalid | column.isin(*_PLACEHOLDERS) if isinstance(data_type, T.StringType) else is_invalid
