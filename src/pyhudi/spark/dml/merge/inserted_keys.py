"""Keys of the rows that a MERGE inserts, compared with those of the rows that it changes."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F  # noqa: N812

from pyhudi.config import options
from pyhudi.config.enums import MergeMode
from pyhudi.errors import RecordKeyError
from pyhudi.schema.meta_fields import PARTITION_PATH, RECORD_KEY
from pyhudi.spark.dml.merge.clause_evaluation import KIND, ROW_ID
from pyhudi.spark.dml.merge.merge_clauses import MergeAction
from pyhudi.spark.dml.merge.merge_pairs import FEW_ROWS, MergePairs
from pyhudi.spark.dml.target_table import TargetTable
from pyhudi.spark.execution.cached_frames import CachedFrames
from pyhudi.spark.helper_columns import STORED_KEY, STORED_PATH
from pyhudi.spark.keys.deduplication import ordering_values
from pyhudi.spark.keys.key_errors import key_errors
from pyhudi.spark.keys.key_generator import with_keys

_ORDER, _STORED_ORDER = "_pyhudi_order", "_pyhudi_stored_order"
_DELETES_ONE, _WINS = "_pyhudi_deletes_one", "_pyhudi_wins"


def with_replaced_rows(pairs: MergePairs, target: TargetTable, cached: CachedFrames, *, count: int) -> MergePairs:
    """Return the pairs without the deletes of rows whose keys the MERGE inserts: the new rows replace them, as in an
    upsert. Runs a Spark job, unless the table generates its keys or inserted keys are new.

    Args:
        pairs: The rows that are updated, deleted and inserted.
        target: The table.
        cached: Persists the result, which is read more than once, and the keys of inserted rows: in a join, Spark might
            evaluate keys of other rows, too, which fail.
        count: Number of the pairs.

    Raises:
        RecordKeyError: A row with the key of a new one is updated, or the deleted one might win against the new one. A
            record is one row, so one of the two changes would be lost.
    """
    if pairs.new_keys or target.spec.auto_keys:
        return pairs
    # Spark describes an adaptive plan twice in that of each query that reads its cache, at each stage of the query.
    persist = partial(cached.add, rows=count, adaptive=False) if count <= FEW_ROWS else cached.add
    is_inserted = F.col(KIND) == MergeAction.INSERT.value
    inserted, changed = pairs.rows.where(is_inserted), pairs.rows.where(~is_inserted)
    order = F.struct(F.lit(0), *_ordering_values(target))
    keyed = with_keys(inserted, target.spec, "").select(RECORD_KEY, PARTITION_PATH, order.alias(_ORDER))
    both = changed.withColumn(_STORED_ORDER, order).join(persist(keyed), _has_same_key(target))
    replaced = persist(_by_key(both, target))
    with key_errors(inserted, target.spec):
        found = replaced.orderBy(F.col(_DELETES_ONE) & F.col(_WINS)).first()  # False comes first
    if found is None:
        return pairs
    _check_replaced(found, target)
    is_replaced = (F.col(KIND) == MergeAction.DELETE.value) & _has_same_key(target)
    return replace(pairs, rows=persist(pairs.rows.join(replaced, is_replaced, "left_anti")))


def _ordering_values(target: TargetTable) -> list[Column]:
    """Return the values that decide between two versions of a record; none if the later one wins."""
    merging = target.merging
    if merging.mode is not MergeMode.EVENT_TIME_ORDERING:
        return []
    return ordering_values(target.schema, merging.ordering_fields, compares_sequences=merging.compares_sequences)


def _has_same_key(target: TargetTable) -> Column:
    """Return the condition that a stored row and a new one are the same record."""
    same = F.col(STORED_KEY) == F.col(RECORD_KEY)
    is_global = target.opts.get_typed(options.INDEX_TYPE).is_global
    return same if is_global else same & (F.col(STORED_PATH) == F.col(PARTITION_PATH))


def _by_key(both: DataFrame, target: TargetTable) -> DataFrame:
    """Return one row for each key of new rows that changed rows have: whether one row is deleted, and none is updated
    (`_DELETES_ONE`), and whether each new row wins against it (`_WINS`)."""
    is_one_row = F.min(ROW_ID) == F.max(ROW_ID)
    deletes = F.min(F.col(KIND) == MergeAction.DELETE.value)
    wins = F.lit(False) if target.merging.combines_versions else F.min(F.col(_ORDER) >= F.col(_STORED_ORDER))
    return both.groupBy(RECORD_KEY, PARTITION_PATH).agg((is_one_row & deletes).alias(_DELETES_ONE), wins.alias(_WINS))


def _check_replaced(found: Row, target: TargetTable) -> None:
    """Check that a new row may replace the stored row of its key.

    Raises:
        RecordKeyError: It may not.
    """
    key, merging = found[RECORD_KEY], target.merging
    if not found[_DELETES_ONE]:
        raise RecordKeyError(
            f"the MERGE changes the row with the record key {key!r}, and inserts another one with this key, which "
            "would replace it; nothing was written. Add the columns that tell these rows apart to the record key of "
            "the table, or insert the new rows by a second MERGE if they are to replace others"
        )
    if found[_WINS]:
        return
    if merging.combines_versions:
        raise RecordKeyError(
            f"the MERGE deletes the row with the record key {key!r}, and inserts another one with this key, which the "
            "table would combine with the stored one by its merger or partial updates; nothing was written. Update the "
            "row instead"
        )
    raise RecordKeyError(
        f"the MERGE deletes the row with the record key {key!r}, and inserts another one with this key, whose value "
        f"of the ordering column {', '.join(merging.ordering_fields)} is less, so that the stored row would win; "
        "nothing was written. Give the new row at least the stored value"
    )
