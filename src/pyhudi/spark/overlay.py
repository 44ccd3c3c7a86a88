"""Slices with log files, their base files read by Spark.

Spark scans all base files, with its own column pruning and filter push-down, and leaves out the rows that the logs
replace or delete: an anti join with their places, which a small job finds in the logs first and which is broadcast. The
rows that come instead are merged on the executors and added. So only what the logs touch goes through Python.

A place is one number: a hash of the file's name, and the row in the file.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import xxhash
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from pyhudi.config import Options, options
from pyhudi.config.values import ReadEngine
from pyhudi.merge.filegroup import FileSlice, SliceContext
from pyhudi.merge.overlay import hidden_rows
from pyhudi.read.merged import MergedReader
from pyhudi.spark.native import read_natively
from pyhudi.spark.slices import SlicePieces, parallelism, run_on_slices

if TYPE_CHECKING:
    from pyhudi.read.pinned import PinnedTable
    from pyhudi.read.plan import ScanPlan

PLACE = "_pyhudi_place"
_ROW_BITS = 31
_HASH_BITS = 64 - _ROW_BITS
_SPARKS_SEED = 42
_SALTS = 16
_MOST_LOG_BYTES = 1024 * 1024 * 1024
"""Above so many bytes of logs the places could be too many to be broadcast."""
_BATCH = 262_144


def overlaid_rows(
    spark: SparkSession, table: PinnedTable, plan: ScanPlan, context: SliceContext, settings: Options
) -> tuple[DataFrame, DataFrame] | None:
    """The base rows that stay, with all columns of the plan and without its conditions; and the rows that come from the
    logs, with the plan's columns and conditions (SQL aside). None where slices had better be merged as a whole."""
    engine = settings.get_typed(options.READ_ENGINE)
    with_base = replace(plan, tasks=plan.tasks.filter(pc.is_valid(plan.tasks["base_path"])))
    places = _Places.of(with_base.tasks) if engine is not ReadEngine.ARROW and _fits(with_base) else None
    if places is None:
        return None
    rows = read_natively(
        spark, table, with_base, settings, required=engine is ReadEngine.SPARK, extra={PLACE: places.column()}
    )
    if rows is None:
        return None
    cores = parallelism(spark)
    pieces = SlicePieces.of(with_base, cores, whole=False)
    work = _HiddenPlaces(context, places)
    hidden = run_on_slices(spark, pieces, work, pa.schema([(PLACE, pa.int64())]))
    stay = rows.join(sf.broadcast(hidden), PLACE, "left_anti").drop(PLACE)
    reader = MergedReader.of(plan, context)
    changed = run_on_slices(spark, SlicePieces.of(plan, cores, whole=False), reader.read_changed, plan.output_schema)
    return stay, changed


def _fits(plan: ScanPlan) -> bool:
    """Whether there are base files, all of which say which row is which to Spark, and logs that are not too large.

    Conditions on commit times (incremental queries) skip most of the base files' rows in any case, and may have to look
    behind their range for what partial updates leave out.
    """
    tasks = plan.tasks
    if not tasks.num_rows or plan.commit_times is not None:
        return False
    logs = pc.sum(pc.list_flatten(tasks["log_sizes"])).as_py() or 0
    return logs <= _MOST_LOG_BYTES and bool(pc.all(pc.ends_with(tasks["base_path"], ".parquet")).as_py())


@dataclass(frozen=True, slots=True)
class _Places:
    """How rows of base files are numbered: ``salt`` makes the hashes of all file names different."""

    salt: str

    @classmethod
    def of(cls, tasks: pa.Table) -> _Places | None:
        """For the base files of slices; None where their names are not all different, or not plain."""
        names = pc.replace_substring_regex(tasks["base_path"], "^.*/", "")
        if not pc.all(pc.match_substring_regex(names, "^[A-Za-z0-9_.=-]+$")).as_py():
            return None
        texts = names.to_pylist()
        for salt in map(str, range(_SALTS)):
            places = cls(salt)
            if len(set(map(places.hash_of, texts))) == len(texts):
                return places
        return None

    def hash_of(self, name: str) -> int:
        """What a file name counts for; `column` computes the same on Spark."""
        seed = xxhash.xxh64_intdigest(self.salt.encode(), _SPARKS_SEED)
        return xxhash.xxh64_intdigest(name.encode(), seed) & ((1 << _HASH_BITS) - 1)

    def of_rows(self, name: str, rows: np.ndarray) -> pa.Array:
        """Places of rows of a file."""
        first = np.array([self.hash_of(name) << _ROW_BITS], dtype=np.uint64).view(np.int64)
        return pa.array(rows + first)

    def column(self) -> Column:
        """The place of each row of a scan."""
        name = sf.xxhash64(sf.lit(self.salt), sf.col("_metadata.file_name"))
        return sf.shiftleft(name, _ROW_BITS).bitwiseOR(sf.col("_metadata.row_index"))


@dataclass(frozen=True, slots=True)
class _HiddenPlaces:
    """Finds the places of a slice's hidden rows."""

    context: SliceContext
    places: _Places

    def __call__(self, file_slice: FileSlice) -> Iterator[pa.RecordBatch]:
        rows = hidden_rows(self.context, file_slice)
        name = (file_slice.base_path or "").rpartition("/")[2]
        for start in range(0, len(rows), _BATCH):
            part = self.places.of_rows(name, rows[start : start + _BATCH])
            yield pa.RecordBatch.from_arrays([part], names=[PLACE])
