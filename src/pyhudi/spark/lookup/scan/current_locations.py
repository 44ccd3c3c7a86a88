"""Current locations of keys: those whose rows are not deleted by log files.

A key that was deleted from a merge-on-read table is still in its base file, and its next version goes there again, so
log files need not be read. However, the key may have another location since, because inserts do not look up keys. Then
only the location with the current record is valid; writing to both would create two records.
"""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from pyhudi.schema.meta_fields import PARTITION_PATH, RECORD_KEY
from pyhudi.spark.execution.cached_frames import PersistFrame
from pyhudi.spark.execution.local_relations import small_frame
from pyhudi.spark.helper_columns import OLD_PARTITION, SEARCHED_FILE
from pyhudi.spark.lookup.scan.base_file_keys import BaseFiles
from pyhudi.spark.lookup.scan.key_columns import TEXT, KeyColumns
from pyhudi.spark.lookup.scan.key_scan import scan_locations
from pyhudi.spark.lookup.scan.key_search import KeySearch

_SINCE, _FILLED, _RANK = "_pyhudi_since", "_pyhudi_filled", "_pyhudi_location_rank"


def current_locations(
    search: KeySearch,
    locations: DataFrame,
    keys: KeyColumns,
    persist: PersistFrame,
) -> DataFrame:
    """Remove outdated locations of keys that have several locations in their partition.

    A location is outdated if its slice no longer has the key; if none has it, all but the newest are. Runs a Spark job
    over ``locations``. A slice is read only if it has log files and one of several locations of a key of the batch.

    Args:
        search: The search that found the locations.
        locations: Locations of `scan_locations` or `bloom_locations`.
        keys: Columns by which keys are compared.
        persist: May persist intermediate results.

    Returns:
        The locations to be used.
    """
    rows, files, broadcast = search.rows, search.files, search.broadcast
    by = [RECORD_KEY, PARTITION_PATH]
    same = keys.matches(rows) & (F.col(PARTITION_PATH) == F.col(OLD_PARTITION))
    located = rows.join(F.broadcast(locations) if broadcast else locations, same)
    row_locations = located.select(*by, *keys.in_locations, SEARCHED_FILE).distinct()
    several = row_locations.withColumn(_RANK, F.count(F.lit(1)).over(Window.partitionBy(*by))).where(F.col(_RANK) > 1)
    several = persist(several.drop(_RANK))
    logged = _with_log_files(files, [row[0] for row in several.select(SEARCHED_FILE).distinct().collect()])
    if not len(logged):
        return locations
    alive = _current_keys(replace(search, files=logged))
    since = files.table.select(["file_no", "base_instant"]).rename_columns([SEARCHED_FILE, _SINCE])
    candidates = several.join(F.broadcast(small_frame(rows.sparkSession, since)), SEARCHED_FILE)
    candidates = candidates.join(alive, [*by, SEARCHED_FILE], "left")
    without_logs = ~F.col(SEARCHED_FILE).isin(logged.table["file_no"].to_pylist())
    candidates = candidates.withColumn(_FILLED, without_logs | F.col(_FILLED).isNotNull())
    newest = Window.partitionBy(*by).orderBy(F.col(_FILLED).desc(), F.col(_SINCE).desc(), F.col(SEARCHED_FILE))
    ranked = candidates.withColumn(_RANK, F.row_number().over(newest))
    outdated = ranked.where(~F.col(_FILLED) & (F.col(_RANK) > 1))
    # Keys are compared in the partitions of their files.
    outdated = persist(outdated.select(*keys.in_locations, SEARCHED_FILE))
    return locations.join(
        F.broadcast(outdated) if broadcast else outdated, [*keys.in_locations, SEARCHED_FILE], "left_anti"
    )


def _with_log_files(files: BaseFiles, numbers: list[int]) -> BaseFiles:
    """Return the files with these numbers whose slices have log files."""
    _, logged = files.split()
    return BaseFiles(logged.table.filter(pc.is_in(logged.table["file_no"], value_set=pa.array(numbers, pa.int32()))))


def _current_keys(search: KeySearch) -> DataFrame:
    """Return the keys of the batch that slices have now: key, partition path and file number, marked."""
    lookup = replace(search.lookup, include_deleted=False)
    merged, _ = scan_locations(replace(search, lookup=lookup), (), merge_logs=True)
    keys = merged.select(
        merged[TEXT.in_locations[0]].alias(RECORD_KEY), merged[OLD_PARTITION].alias(PARTITION_PATH), SEARCHED_FILE
    )
    return keys.distinct().withColumn(_FILLED, F.lit(True))
