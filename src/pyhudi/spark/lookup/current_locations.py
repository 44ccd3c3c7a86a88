"""Current locations of keys: those whose rows log files have not deleted.

A key that was deleted from a merge-on-read table is in its base file still, and its next version goes there again: that
needs no look at the log files. But the key may have got another location meanwhile, because an insert looks for no
keys. Then only the location that holds it now counts: written to both, there would be two records of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from pyhudi.schema.meta_fields import PARTITION_PATH, RECORD_KEY
from pyhudi.spark.execution.driver_frames import small_frame
from pyhudi.spark.lookup.base_file_keys import FILE_NO, OLD_PARTITION, BaseFiles, KeyLookup
from pyhudi.spark.lookup.batch_summary import Batch
from pyhudi.spark.lookup.key_columns import TEXT, KeyColumns, scan_locations

_SINCE, _FILLED, _RANK = "_pyhudi_since", "_pyhudi_filled", "_pyhudi_rank"


def current_locations(
    rows: DataFrame,
    locations: DataFrame,
    keys: KeyColumns,
    lookup: KeyLookup,
    files: BaseFiles,
    batch: Batch,
    broadcast: bool,
    persist: Callable[[DataFrame], DataFrame],
) -> DataFrame:
    """Return, of the locations of keys that have several in their partition, those that hold the key now; where none
    does, the newest one.

    Runs a Spark job over *locations*. Slices are read only where keys of the batch have several locations, of which the
    slice has one and has log files. *persist* may persist what is found.
    """
    by = [RECORD_KEY, PARTITION_PATH]
    same = keys.matches(rows) & (F.col(PARTITION_PATH) == F.col(OLD_PARTITION))
    held = rows.join(F.broadcast(locations) if broadcast else locations, same)
    mine = held.select(*by, *keys.in_locations, FILE_NO).distinct()
    several = mine.withColumn(_RANK, F.count(F.lit(1)).over(Window.partitionBy(*by))).where(F.col(_RANK) > 1)
    several = persist(several.drop(_RANK))
    asked = _logged(files, [row[0] for row in several.select(FILE_NO).distinct().collect()])
    if not len(asked):
        return locations
    alive = _alive(rows, lookup, asked, batch, broadcast)
    since = files.table.select(["file_no", "base_instant"]).rename_columns([FILE_NO, _SINCE])
    known = several.join(F.broadcast(small_frame(rows.sparkSession, since)), FILE_NO)
    known = known.join(alive, [*by, FILE_NO], "left")
    without_logs = ~F.col(FILE_NO).isin(asked.table["file_no"].to_pylist())
    known = known.withColumn(_FILLED, without_logs | F.col(_FILLED).isNotNull())
    newest = Window.partitionBy(*by).orderBy(F.col(_FILLED).desc(), F.col(_SINCE).desc(), F.col(FILE_NO))
    ranked = known.withColumn(_RANK, F.row_number().over(newest))
    outdated = ranked.where(~F.col(_FILLED) & (F.col(_RANK) > 1))
    # keys are compared in the partitions that their files are in
    outdated = persist(outdated.select(*keys.in_locations, FILE_NO))
    return locations.join(F.broadcast(outdated) if broadcast else outdated, [*keys.in_locations, FILE_NO], "left_anti")


def _logged(files: BaseFiles, numbers: list[int]) -> BaseFiles:
    """Files with these numbers whose slices have log files."""
    _, logged = files.split()
    return BaseFiles(logged.table.filter(pc.is_in(logged.table["file_no"], value_set=pa.array(numbers, pa.int32()))))


def _alive(rows: DataFrame, lookup: KeyLookup, files: BaseFiles, batch: Batch, broadcast: bool) -> DataFrame:
    """The keys of the batch that slices hold now: key, partition path and file number, marked."""
    held, _ = scan_locations(
        *(rows, replace(lookup, include_deleted=False), files, batch, ()),
        broadcast=broadcast,
        everywhere=False,
        merge_logs=True,
    )
    found = held.select(
        held[TEXT.in_locations[0]].alias(RECORD_KEY), held[OLD_PARTITION].alias(PARTITION_PATH), FILE_NO
    )
    return found.distinct().withColumn(_FILLED, F.lit(True))
