"""Keys of the metadata table's records; see docs/format/metadata.md, 1.5 and 2.3 to 2.9. All functions take and return
Arrow columns."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias
from urllib.parse import quote_plus

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import xxhash

from pyhudi.errors import FormatError

ALL_PARTITIONS = "__all_partitions__"
"""Key of the record that lists the partitions of the table."""

NON_PARTITIONED = "."
"""Key of the empty partition path of an unpartitioned table."""

SHORT_ID = 12
"""Number of characters of the id of a column or a partition."""
FILE_ID = 24
"""Number of characters of the id of a file."""
PARTITION_STAT = "__partition_stat__"
"""Marker in keys of expression indexes, whose id precedes that of a partition."""

HASH_SEED = 0xFFFFFFFFDABADABA
"""Seed of Apache Hudi's ``HashID``."""

Texts: TypeAlias = Iterable[str] | Any
"""Texts as an Arrow column, or one by one."""


def column_ids(names: Texts) -> pa.StringArray:
    """Return the ids of columns from their (dotted) names."""
    return _encoded(b"".join(xxhash.xxh64_digest(name, HASH_SEED) + b"\0" for name in _utf8(names)), SHORT_ID, 1)


def partition_ids(paths: Texts) -> pa.StringArray:
    """Return the ids of partitions from their relative paths (`NON_PARTITIONED` or ``""`` without partitions)."""
    return column_ids(partition_names(paths))


def hashed_file_names(names: Texts) -> pa.StringArray:
    """Return the ids of files from their names without folders."""
    digests = b"".join(hashlib.md5(name, usedforsecurity=False).digest() + b"\0\0" for name in _utf8(names))
    return _encoded(digests, FILE_ID, 2)


def partition_names(paths: Texts) -> pa.StringArray:
    """Return partition paths as in keys: the empty one as `NON_PARTITIONED`."""
    array = _array(paths)
    return pc.if_else(pc.equal(array, ""), NON_PARTITIONED, array)


def paths_of_keys(names: Texts) -> pa.StringArray:
    """Return relative paths of the partitions in keys: `NON_PARTITIONED` as the empty one."""
    array = _array(names)
    return pc.if_else(pc.equal(array, NON_PARTITIONED), "", array)


def column_stats_keys(columns: pa.Array, partitions: pa.Array, files: pa.Array) -> pa.StringArray:
    """Return keys of column statistics from names of columns, paths of partitions and names of files, row by row."""
    return pc.binary_join_element_wise(
        apply_by_value(columns, column_ids), apply_by_value(partitions, partition_ids), hashed_file_names(files), ""
    )


def partition_stats_keys(columns: pa.Array, partitions: pa.Array) -> pa.StringArray:
    """Return keys of partition statistics from names of columns and paths of partitions, row by row."""
    return pc.binary_join_element_wise(
        apply_by_value(columns, column_ids), apply_by_value(partitions, partition_ids), ""
    )


def expression_partition_keys(columns: pa.Array, partitions: pa.Array) -> pa.StringArray:
    """Return keys of the statistics of whole partitions in an expression index, row by row."""
    (mark,) = column_ids([PARTITION_STAT])
    return pc.binary_join_element_wise(
        apply_by_value(columns, column_ids), mark, apply_by_value(partitions, partition_ids), ""
    )


def bloom_filter_keys(partitions: pa.Array, files: pa.Array) -> pa.StringArray:
    """Return keys of bloom filters from paths of partitions and names of files, row by row."""
    return pc.binary_join_element_wise(apply_by_value(partitions, partition_ids), hashed_file_names(files), "")


def escape(texts: pa.Array) -> pa.Array:
    r"""Escape texts so that they can be separated by ``$``: a backslash precedes ``\``, ``$`` and NUL."""
    for letter in ("\\", "$", "\0"):
        texts = pc.replace_substring(texts, letter, "\\" + letter)
    return texts


def unescape(texts: pa.Array) -> pa.Array:
    """Invert `escape`."""
    return pc.replace_substring_regex(texts, pattern=r"(?s)\\(.)", replacement=r"\1")


def secondary_prefix(secondary: pa.Array) -> pa.Array:
    """Return the prefix of the keys of a secondary index for values of the indexed column as text; null is a value."""
    return pc.binary_join_element_wise(pc.fill_null(escape(secondary), "\0"), "$", "")


def secondary_key(secondary: pa.Array, record_keys: pa.Array) -> pa.Array:
    """Return keys of a secondary index from values of the indexed column, as text, and record keys."""
    return pc.binary_join_element_wise(secondary_prefix(secondary), escape(record_keys), "")


def split_secondary_key(keys: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Split keys of a secondary index into values (null for null) and record keys. An invalid key returns two nulls."""
    parts = pc.extract_regex(keys, r"(?s)^(?P<secondary>(?:[^\\$]|\\.)*)\$(?P<record>(?:[^\\$]|\\.)*)$")
    secondary, record = pc.struct_field(parts, 0), pc.struct_field(parts, 1)
    secondary = pc.if_else(pc.equal(secondary, "\0"), pa.scalar(None, pa.string()), secondary)
    return unescape(secondary), unescape(record)


def data_partition_id(path: str) -> str:
    """Return the name of a table's partition in file group ids of a partitioned record index: that of an unpartitioned
    table is empty, unlike in keys."""
    return quote_plus(path, safe="*").replace("-", "%2D").replace("_", "%5F").replace("~", "%7E")


def key_texts(keys: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Return the keys in a file of a metadata table, which are bytes there, as texts.

    Raises:
        FormatError: A key is not valid UTF-8.
    """
    try:
        return keys.cast(pa.string())
    except pa.ArrowInvalid as error:
        raise FormatError(f"a key of a metadata table is not valid UTF-8: {error}") from error


def _array(texts: Texts) -> pa.StringArray:
    if isinstance(texts, pa.ChunkedArray):
        texts = texts.combine_chunks()
    array = texts if isinstance(texts, pa.Array) else pa.array(list(texts), pa.string())
    return array if array.type == pa.string() else array.cast(pa.string())


def _utf8(texts: Texts) -> list[bytes]:
    values: list[bytes] = _array(texts).cast(pa.binary()).to_pylist()
    return values


def _encoded(padded: bytes, width: int, padding: int) -> pa.StringArray:
    """Return base64 texts of values that were padded with ``padding`` zero bytes."""
    text = np.frombuffer(base64.b64encode(padded), np.uint8).reshape(-1, width).copy()
    text[:, width - padding :] = ord("=")
    offsets = np.arange(len(text) + 1, dtype=np.int32) * width
    return pa.Array.from_buffers(
        pa.string(), len(text), [None, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(text.reshape(-1))]
    )


def apply_by_value(texts: pa.Array, make: Callable[[pa.StringArray], pa.StringArray]) -> pa.StringArray:
    """Apply ``make`` once per distinct text."""
    encoded = _array(texts).dictionary_encode()
    return make(encoded.dictionary).take(encoded.indices)
