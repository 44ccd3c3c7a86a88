"""Bytes of blobs as a column.

Those in the table are taken from it by Spark. References are read by a function of Arrow arrays, only for the rows that
a query is left with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import pyarrow as pa
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import BinaryType

from pyhudi.read.functions.blob_ranges import BlobRanges
from pyhudi.schema.logical_types.blobs import DATA, INLINE, LENGTH, OFFSET, PATH, REFERENCE, TYPE
from pyhudi.spark.execution.arrow_udfs import arrow_pieces_function

FUNCTION = "_pyhudi_read_blob"
"""Name of the function that reads references, in SQL."""
_INPUTS = [pa.string(), pa.string(), pa.int64(), pa.int64()]


def read_blob(blob: Column | str, options: Mapping[str, str] | None = None) -> Column:
    """Return the bytes of blobs: those in the table, and those of files that references point to.

    Files are read by the tasks of the query, for the rows for which it needs them.

    Args:
        blob: A column of the type BLOB, or its name.
        options: Options of the storages that files are in, such as ``pyhudi.storage.region``; without them, the
            environment of the executors decides.

    Returns:
        A column of binary values; null where the blob is, or has no bytes.
    """
    column = sf.col(blob) if isinstance(blob, str) else blob
    reference = column.getField(REFERENCE)
    members = [column.getField(TYPE), *(reference.getField(name) for name in (PATH, OFFSET, LENGTH))]
    inline = sf.when(column.getField(TYPE) == INLINE, column.getField(DATA))
    return sf.coalesce(inline, _function(options or {})(*members))


def register_read_blob(spark: SparkSession, options: Mapping[str, str]) -> None:
    """Register `FUNCTION` in a session.

    Args:
        spark: The session.
        options: Options of the storages that files are in.
    """
    spark.udf.register(FUNCTION, _function(options))


def read_blob_sql(blob: str) -> str:
    """Return the SQL of the bytes of a blob, which calls `FUNCTION`."""
    place = f"({blob}).{REFERENCE}"
    members = f"({blob}).{TYPE}, {place}.{PATH}, {place}.`{OFFSET}`, {place}.{LENGTH}"
    return f"coalesce(IF(({blob}).{TYPE} = '{INLINE}', ({blob}).{DATA}, NULL), {FUNCTION}({members}))"


def _function(options: Mapping[str, str]) -> Callable[..., Column]:
    ranges = BlobRanges(dict(options))

    def pieces(*columns: pa.Array) -> Iterator[pa.BinaryArray]:
        return ranges.pieces(*columns)

    return arrow_pieces_function(pieces, _INPUTS, BinaryType())
