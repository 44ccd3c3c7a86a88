"""Bytes of blobs in Arrow data."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import QueryError
from pyhudi.read.functions.blob_ranges import BlobRanges
from pyhudi.schema.logical_types.blobs import (
    BLOB,
    BLOB_SQL,
    BLOB_STRUCT,
    DATA,
    INLINE,
    LENGTH,
    OFFSET,
    PATH,
    REFERENCE,
    TYPE,
)


def read_blobs(blobs: pa.Array | pa.ChunkedArray, options: Mapping[str, str] | None = None) -> pa.ChunkedArray:
    """Return the bytes of blobs: those in the table, and those of files that references point to.

    Ranges that lie close together in a file are read together. All bytes are in memory then.

    Args:
        blobs: A column of the type BLOB, as in ``table.scan(columns=["b"]).to_arrow()["b"]``.
        options: Options of the storages that files are in, such as ``pyhudi.storage.region``.

    Returns:
        Binary values; null where the blob is, or has no bytes.

    Raises:
        QueryError: These are no blobs, or a reference has no path, or no valid range of its file.
        NotFoundError: There is no file that a reference points to.
    """
    if blobs.type not in (BLOB, BLOB_STRUCT):
        raise QueryError(f"read_blobs requires values of the type BLOB, {BLOB_SQL}, not {blobs.type}")
    ranges = BlobRanges(dict(options or {}))
    chunks = blobs.chunks if isinstance(blobs, pa.ChunkedArray) else [blobs]
    return pa.chunked_array([piece for chunk in chunks for piece in _read(chunk, ranges)], pa.binary())


def _read(blobs: pa.StructArray, ranges: BlobRanges) -> list[pa.BinaryArray]:
    kinds, data, references = (_member(blobs, name) for name in (TYPE, DATA, REFERENCE))
    inline = pc.if_else(pc.equal(kinds, INLINE), data, pa.scalar(None, data.type))
    read = [_member(references, name) for name in (PATH, OFFSET, LENGTH)]
    found, start = [], 0
    for piece in ranges.pieces(kinds, *read):
        found.append(pc.coalesce(inline.slice(start, len(piece)), piece))
        start += len(piece)
    return found


def _member(structs: pa.StructArray, name: str) -> pa.Array:
    """Return a field, null where the struct is."""
    return structs.flatten()[structs.type.get_field_index(name)]
