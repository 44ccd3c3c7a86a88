"""Keys of new rows that rows of the table have, too."""

from __future__ import annotations

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F  # noqa: N812

from pyhudi.schema.meta_fields import PARTITION_PATH, RECORD_KEY
from pyhudi.spark.helper_columns import STORED_KEY, STORED_PATH


def stored_row_of_new_key(new: DataFrame, stored: DataFrame, *, is_global: bool) -> Row | None:
    """Return key and partition path of a stored row whose key a new row has; None if there is none. Runs a Spark job.

    Args:
        new: New rows, with their keys and partition paths.
        stored: Rows of the table, with theirs (`STORED_KEY`, `STORED_PATH`).
        is_global: Rows with the same key are one record even if they are in different partitions.
    """
    same = F.col(RECORD_KEY) == F.col(STORED_KEY)
    if not is_global:
        same &= F.col(PARTITION_PATH) == F.col(STORED_PATH)
    keys = new.select(RECORD_KEY, PARTITION_PATH)
    return stored.select(STORED_KEY, STORED_PATH).join(keys, same, "left_semi").first()
