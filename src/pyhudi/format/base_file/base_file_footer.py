"""Footers of base files: keys of the entries, their content, and its computation while rows are written."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import FormatError, RecordKeyError
from pyhudi.format import bloom_filter as bloom

AVRO_SCHEMA_KEY = "parquet.avro.schema"
WRITER_MODEL_KEY = "writer.model.name"
BLOOM_KEY = "org.apache.hudi.bloomfilter"
OLD_BLOOM_KEY = "com.uber.hoodie.bloomfilter"
BLOOM_TYPE_KEY = "hoodie_bloom_filter_type_code"
MIN_KEY = "hoodie_min_record_key"
MAX_KEY = "hoodie_max_record_key"
NAN_KEY = "pyhudi.nan.columns"
"""Entry of files written by pyhudi: the columns with NaN (a JSON list), which the bounds do not include."""
CREATED_BY_KEY = "original.created.by"
"""Entry with the writers of all files whose row groups a file has, one per line, as in Apache Hudi."""
_OUT_OF_ORDER = r"[\x{E000}-\x{10FFFF}]"
_OUT_OF_ORDER_BYTES = re.compile(rb"[\xEE-\xF4]")
_PRIVATE, _MOVED = b"\xee\xef", b"\xf8\xf9"
"""First bytes of U+E000 to U+FFFF in UTF-8, and bytes that UTF-8 does not have. These are greater than the first bytes
of characters outside the basic plane, whose UTF-16 units are less than U+E000."""
_BACK = bytes.maketrans(_MOVED, _PRIVATE)


@dataclass(frozen=True, slots=True)
class BloomOptions:
    """Settings of the bloom filter of a base file (`hoodie.index.bloom.*`, `hoodie.bloom.index.filter.*`)."""

    num_entries: int = bloom.DEFAULT_ENTRIES
    fpp: float = bloom.DEFAULT_FPP
    dynamic_max: int = bloom.DEFAULT_MAX_ENTRIES
    kind: str = bloom.DYNAMIC


@dataclass(frozen=True, slots=True)
class Footer:
    """Hudi's entries in the footer of a base file; absent entries are None.

    ``schema`` is the Arrow schema of the file. ``metadata`` is the description of the format itself
    (``pyarrow.parquet.FileMetaData`` for Parquet, None for ORC).
    """

    num_rows: int
    schema: pa.Schema
    avro_schema: str | None
    min_key: str | None
    max_key: str | None
    bloom_type: str | None
    bloom_text: bytes | None
    metadata: Any

    def bloom_filter(self) -> bloom.BloomFilter | None:
        """Return the bloom filter, or None if the file has none."""
        if self.bloom_text is None:
            return None
        # Files of the first releases have a filter without type code, which is a simple one.
        return bloom.BloomFilter.parse(self.bloom_text, self.bloom_type or bloom.SIMPLE)


class KeyRecorder:
    """Collects the record keys of a file while it is written and creates the footer entries.

    ``earlier`` is the footer of the file that is rewritten. If possible, its bloom filter is continued, so that the
    keys of its rows are not hashed again. Deleted keys remain in the filter, which adds false positives but no false
    negatives.
    """

    def __init__(self, options: BloomOptions, earlier: Footer | None = None) -> None:
        self._kind = options.kind
        self._builder = bloom.BloomBuilder(options.num_entries, options.fpp, options.dynamic_max, options.kind)
        self._min: bytes | None = None
        self._max: bytes | None = None
        earlier_bloom = earlier.bloom_filter() if earlier is not None and earlier.bloom_type == self._kind else None
        self._resumed = (
            earlier is not None and earlier_bloom is not None and self._builder.resume(earlier_bloom, earlier.num_rows)
        )

    def add(self, keys: pa.Array | pa.ChunkedArray, *, old: bool = False) -> None:
        """Add the keys of the next rows. ``old``: they are in the file that is rewritten."""
        if keys.null_count:
            raise RecordKeyError(f"{keys.null_count} of {len(keys)} records have no record key")
        if len(keys) == 0:
            return
        if not (old and self._resumed):
            self._builder.add(keys)
        low, high = _span(keys.cast(pa.binary()))
        self._min = low if self._min is None else min(self._min, low)
        self._max = high if self._max is None else max(self._max, high)

    @property
    def min_key(self) -> str | None:
        """Minimum key so far, in the order of UTF-16."""
        return None if self._min is None else _restored(self._min)

    @property
    def max_key(self) -> str | None:
        """Maximum key so far, in the order of UTF-16."""
        return None if self._max is None else _restored(self._max)

    def footer(self) -> dict[str, str]:
        """Return the footer entries. A file without rows has no key range, as in Apache Hudi."""
        entries = {BLOOM_KEY: self._builder.finish().serialize(), BLOOM_TYPE_KEY: self._kind}
        if self.min_key is not None and self.max_key is not None:
            entries |= {MIN_KEY: self.min_key, MAX_KEY: self.max_key}
        return entries


def _span(keys: pa.Array | pa.ChunkedArray) -> tuple[bytes, bytes]:
    """Return the least and the greatest of binary keys as Java compares texts, by UTF-16 units, with bytes that compare
    in this order (`_restored`).

    Two texts are ordered otherwise by bytes only if both have a character from U+E000 on, so the least key by bytes is
    the least one unless it has such a character; likewise the greatest.
    """
    bounds = pc.min_max(keys)
    span: list[bytes] = [bounds["min"].as_py(), bounds["max"].as_py()]
    if any(_OUT_OF_ORDER_BYTES.search(key) for key in span):
        for byte, moved in zip(_PRIVATE, _MOVED, strict=True):
            keys = pc.replace_substring(keys, bytes([byte]), bytes([moved]))
        bounds = pc.min_max(keys)
        span = [bounds["min"].as_py(), bounds["max"].as_py()]
    return span[0], span[1]


def _restored(key: bytes) -> str:
    return key.translate(_BACK).decode()


def is_in_one_order(key: str) -> bool:
    """Return True if a bound of record keys is valid in the order of bytes and in that of UTF-16 (`in_one_order`)."""
    return _OUT_OF_ORDER_BYTES.search(key.encode()) is None


def in_one_order(texts: pa.Array) -> pa.Array:
    """Return the bounds of record keys that are valid in the order of bytes and in that of UTF-16, null in place of
    others. Apache Hudi's writers determine them in either order. Two texts have the same order in both if one of them
    has no character from U+E000 on."""
    odd = pc.fill_null(pc.match_substring_regex(texts, _OUT_OF_ORDER), False)
    return pc.if_else(odd, pa.scalar(None, pa.string()), texts)


def entry_text(entries: dict[bytes, bytes], key: str) -> str | None:
    """Return a footer entry as text.

    Raises:
        FormatError: The entry is not valid UTF-8.
    """
    value = entries.get(key.encode())
    try:
        return None if value is None else value.decode()
    except UnicodeDecodeError as error:
        raise FormatError(f"footer entry {key!r} is not valid UTF-8: {error}") from error
