"""Deletion vectors: positions of base rows that logs update or delete, which an anti join excludes from Spark's scan.

Spark numbers the rows of a file (``_metadata.row_index``). A file is identified by a salted hash of its name, which is
checked to be unique among the files of the query. The deletion vectors are a broadcast table in one of two forms:

- `BitmapDeletionVectors`: one row per file, with a bitmap of its excluded rows. The join accesses the same few rows
  repeatedly, so it costs almost nothing, regardless of the number of excluded rows. The size grows with the table.
- `PositionDeletes`: one number per excluded row. The join costs a tenth of the scan, and more with more rows. The
  size grows with the changes only.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import xxhash
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from pyhudi.format.file_names import file_names_of
from pyhudi.spark.helper_columns import SCANNED_FILE, SCANNED_ROW

_POSITION, _WORDS = "_pyhudi_place", "_pyhudi_words"
_KEY = "_pyhudi_excluded_of"
_ROW_BITS = 31
_SPARKS_SEED = 42
_SALTS = 16
_BATCH = 262_144
LARGEST_WITH_BITMAPS = 64 * 1024**3
"""Bytes of base files in total that hardly have more than a few thousand million rows: half a gigabyte of bits."""

BITMAP_SCHEMA = pa.schema([(_KEY, pa.int64()), (_WORDS, pa.list_(pa.int64()))])
"""One row per file with a deletion vector: the number of the file, and its bitmap."""


def bitmap(rows: np.ndarray) -> pa.ListArray:
    """Return the bitmap of some row numbers (ascending, at least one) as an array with one list of longs. Row n is
    bit ``n % 64`` of word ``n // 64``."""
    words = np.zeros((int(rows[-1]) >> 6) + 1, np.uint64)
    np.bitwise_or.at(words, rows >> 6, np.uint64(1) << (rows & 63).astype(np.uint64))
    return pa.ListArray.from_arrays(pa.array([0, len(words)], pa.int32()), pa.array(words.view(np.int64)))


def without_row_numbers(rows: DataFrame) -> DataFrame:
    """Drop the numbers of files and rows from a scan."""
    return rows.drop(SCANNED_FILE, SCANNED_ROW)


class DeletionVectors(Protocol):
    """Form of the deletion vectors of a scan; pickled with the tasks that determine them."""

    @property
    def schema(self) -> pa.Schema:
        """Columns of the broadcast table."""
        ...

    def encode_file(self, name: str, rows: np.ndarray) -> Iterator[pa.RecordBatch]:
        """Yield the deletion vector of a base file, given its row numbers in ascending order."""
        ...

    @property
    def files(self) -> FileNameHash:
        """Numbers of the files."""
        ...

    def exclude(self, rows: DataFrame, excluded: DataFrame) -> DataFrame:
        """Exclude rows from a scan with numbers of files and rows, which keeps these columns."""
        ...


def deletion_vectors_for(tasks: pa.Table, *, large: bool | None = None) -> DeletionVectors | None:
    """Return the form of deletion vectors for a scan.

    Args:
        tasks: Slices with their base files (``base_path``, ``base_size``).
        large: The files with excluded rows are too large for bitmaps; None: decided by the size of all files.

    Returns:
        The form; None if file names are not unique, or have special characters.
    """
    names = file_names_of(tasks["base_path"])
    if not pc.all(pc.match_substring_regex(names, "^[A-Za-z0-9_.=-]+$")).as_py():
        return None
    if large is None:
        large = (pc.sum(tasks["base_size"]).as_py() or 0) > LARGEST_WITH_BITMAPS
    form, bits = (PositionDeletes, 64 - _ROW_BITS) if large else (BitmapDeletionVectors, 64)
    texts = names.to_pylist()
    for salt in map(str, range(_SALTS)):
        files = FileNameHash(salt, bits)
        if len(set(map(files.number, texts))) == len(texts):
            return form(files)
    return None


@dataclass(frozen=True, slots=True)
class FileNameHash:
    """Numbers of files: bits of a hash of their names. The ``salt`` makes them unique."""

    salt: str
    bits: int

    def number(self, name: str) -> int:
        """Return the number of a file, as a signed long; `column` computes the same on Spark."""
        seed = xxhash.xxh64_intdigest(self.salt.encode(), _SPARKS_SEED)
        number = xxhash.xxh64_intdigest(name.encode(), seed) << (64 - self.bits) & (2**64 - 1)
        return number - (number >> 63 << 64)

    def numbers_of(self, paths: pa.ChunkedArray) -> pa.Int64Array:
        """Return the numbers of files at these paths."""
        names = file_names_of(paths)
        return pa.array([self.number(name) for name in names.to_pylist()], pa.int64())

    def column(self) -> Column:
        """Return a column with the number of the file of each row of a scan, if folders do not provide it. Takes 0.03
        microseconds per row."""
        return self.number_of_name(sf.col("_metadata.file_name"))

    def number_of_name(self, name: Column) -> Column:
        """Return a column with the number of the file whose name another column has."""
        number = sf.xxhash64(sf.lit(self.salt), name)
        return number if self.bits == 64 else sf.shiftleft(number, 64 - self.bits)


@dataclass(frozen=True, slots=True)
class BitmapDeletionVectors:
    """One row per file with excluded rows: bit ``n % 64`` of word ``n // 64`` represents row n."""

    files: FileNameHash

    @property
    def schema(self) -> pa.Schema:
        return BITMAP_SCHEMA

    def encode_file(self, name: str, rows: np.ndarray) -> Iterator[pa.RecordBatch]:
        if len(rows):
            number = pa.array([self.files.number(name)])
            yield pa.RecordBatch.from_arrays([number, bitmap(rows)], schema=BITMAP_SCHEMA)

    def exclude(self, rows: DataFrame, excluded: DataFrame) -> DataFrame:
        # A single SQL text takes less time than a dozen calls to the JVM.
        word = f"get({_WORDS}, int(shiftright({SCANNED_ROW}, 6)))"
        is_excluded = sf.expr(f"{SCANNED_FILE} = {_KEY} AND getbit({word}, int({SCANNED_ROW} & 63)) = 1")
        return rows.join(sf.broadcast(excluded), is_excluded, "left_anti")


@dataclass(frozen=True, slots=True)
class PositionDeletes:
    """One number per excluded row: that of the file, with that of the row in the lower bits."""

    files: FileNameHash

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([(_POSITION, pa.int64())])

    def encode_file(self, name: str, rows: np.ndarray) -> Iterator[pa.RecordBatch]:
        first = np.int64(self.files.number(name))
        for start in range(0, len(rows), _BATCH):
            yield pa.RecordBatch.from_arrays([pa.array(rows[start : start + _BATCH] | first)], schema=self.schema)

    def exclude(self, rows: DataFrame, excluded: DataFrame) -> DataFrame:
        position = sf.col(SCANNED_FILE).bitwiseOR(sf.col(SCANNED_ROW))
        return rows.join(sf.broadcast(excluded), position == sf.col(_POSITION), "left_anti")
