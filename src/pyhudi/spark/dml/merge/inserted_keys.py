"""Keys of the rows that a MERGE inserts, compared with those of the rows that it changes."""

from __future__ import annotations

from pyspark.sql import functions as F  # noqa: N812

from pyhudi.config import options
from pyhudi.errors import RecordKeyError
from pyhudi.schema.meta_fields import PARTITION_PATH, RECORD_KEY
from pyhudi.spark.dml.key_conflicts import stored_row_of_new_key
from pyhudi.spark.dml.merge.clause_evaluation import KIND
from pyhudi.spark.dml.merge.merge_clauses import MergeAction
from pyhudi.spark.dml.merge.merge_pairs import MergePairs
from pyhudi.spark.dml.target_table import TargetTable
from pyhudi.spark.execution.cached_frames import CachedFrames
from pyhudi.spark.helper_columns import STORED_KEY
from pyhudi.spark.keys.key_errors import key_errors
from pyhudi.spark.keys.key_generator import with_keys


def refuse_keys_of_changed_rows(pairs: MergePairs, target: TargetTable, cached: CachedFrames) -> None:
    """Refuse a MERGE that inserts a row with the key of a row that it updates or deletes: a record is one row, so one
    of the two changes would be lost. Runs a Spark job, unless the table generates its keys or inserted keys are new.

    Args:
        pairs: The rows that are updated, deleted and inserted.
        target: The table.
        cached: Persists the keys of inserted rows: in a join, Spark might evaluate keys of other rows, too, which fail.

    Raises:
        RecordKeyError: There is such a row.
    """
    if pairs.new_keys or target.spec.auto_keys:
        return
    is_inserted = F.col(KIND) == MergeAction.INSERT.value
    inserted = pairs.rows.where(is_inserted)
    keyed = cached.add(with_keys(inserted, target.spec, "").select(RECORD_KEY, PARTITION_PATH))
    is_global = target.opts.get_typed(options.INDEX_TYPE).is_global
    with key_errors(inserted, target.spec):
        example = stored_row_of_new_key(keyed, pairs.rows.where(~is_inserted), is_global=is_global)
    if example is not None:
        raise RecordKeyError(
            f"the MERGE changes the row with the record key {example[STORED_KEY]!r}, and inserts another one with this "
            "key, which would replace it; nothing was written. Add the columns that tell these rows apart to the "
            "record key of the table, or insert the new rows by a second MERGE if they are to replace others"
        )
