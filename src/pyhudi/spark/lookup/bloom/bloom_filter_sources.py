"""Sources of the key ranges and bloom filters of a lookup: the metadata table, or the files' footers."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.arrow.arrays import contiguous
from pyhudi.config import options
from pyhudi.errors import FormatError, HudiError
from pyhudi.format.base_file.base_file_footer import in_one_order
from pyhudi.format.bloom_filter import BloomFilter
from pyhudi.format.file_names import file_names_of
from pyhudi.merge.base_file_readers import read_footer
from pyhudi.metadata.metadata_layout import BLOOM_FILTERS, COLUMN_STATS
from pyhudi.metadata.reader.metadata_table import KEY, MetadataTable
from pyhudi.metadata.records.metadata_keys import bloom_filter_keys
from pyhudi.metadata.records.metadata_record import BLOOM_FILTER_PAYLOAD
from pyhudi.read.pruning.statistics.column_statistics import file_bounds
from pyhudi.schema.meta_fields import RECORD_KEY
from pyhudi.spark.lookup.key_lookup import KeyLookup
from pyhudi.spark.lookup.scan.base_file_keys import BaseFiles
from pyhudi.storage import Storage

_TOGETHER = 64
"""Number of filters per lookup; one may take some 100 kB."""
_log = logging.getLogger(__name__)


class BloomFilters(Protocol):
    """Bloom filters of files, by file number."""

    def expect(self, numbers: Sequence[int]) -> None:
        """Set the files whose filters are requested next, in this order."""

    def filter_of(self, number: int) -> BloomFilter | None:
        """Return the filter of a file; None: it has none, so it may contain any key."""


@dataclass(frozen=True, slots=True)
class FooterFilters:
    """Filters in the footers of files with these ``paths``."""

    storage: Storage
    paths: pa.Array

    def expect(self, numbers: Sequence[int]) -> None:
        """Do nothing: each file has its own filter."""

    def filter_of(self, number: int) -> BloomFilter | None:
        return read_footer(self.storage, self.paths[number].as_py()).bloom_filter()


class StoredFilters:
    """Filters in the metadata table, looked up many at a time; missing ones are read from footers."""

    def __init__(self, table: MetadataTable, keys: pa.Array, footers: FooterFilters) -> None:
        self._table, self._keys, self._footers = table, keys, footers
        self._expected: Sequence[int] = ()
        self._loaded: dict[int, BloomFilter | None] = {}

    def expect(self, numbers: Sequence[int]) -> None:
        self._expected = numbers

    def filter_of(self, number: int) -> BloomFilter | None:
        if number not in self._loaded:
            at = self._expected.index(number)
            self._loaded = self._load(self._expected[at : at + _TOGETHER])
        return self._loaded[number]

    def _load(self, numbers: Sequence[int]) -> dict[int, BloomFilter | None]:
        filter_keys = self._keys.take(pa.array(numbers, pa.int64()))
        records = self._table.lookup(BLOOM_FILTERS, filter_keys, [BLOOM_FILTER_PAYLOAD])
        stored = dict(zip(records[KEY].to_pylist(), records[BLOOM_FILTER_PAYLOAD].to_pylist(), strict=True))
        return {
            number: self._parsed(number, stored.get(key))
            for number, key in zip(numbers, filter_keys.to_pylist(), strict=True)
        }

    def _parsed(self, number: int, stored: dict[str, Any] | None) -> BloomFilter | None:
        if stored is not None and not stored["isDeleted"]:
            try:
                return BloomFilter.parse(stored["bloomFilter"], stored["type"])
            except FormatError as reason:
                _log.warning("a bloom filter of the metadata table is not used: %s", reason)
        return self._footers.filter_of(number)


@dataclass(frozen=True, slots=True)
class FilterSource:
    """Source of `BloomFilters` in tasks. ``table`` is the metadata table (None: footers are read), and ``keys`` are
    those of the files' filters in it."""

    storage: Storage
    paths: pa.Array
    table: MetadataTable | None = None
    keys: pa.Array | None = None

    @classmethod
    def from_files(cls, lookup: KeyLookup, files: BaseFiles, table: MetadataTable | None) -> FilterSource:
        """Return the source for files."""
        paths = files.table["base_path"].combine_chunks()
        storage = lookup.client.storage
        if table is None or BLOOM_FILTERS not in table.partitions:
            return cls(storage, paths)
        names = file_names_of(paths)
        keys = bloom_filter_keys(files.table["partition"].combine_chunks(), contiguous(names))
        return cls(storage, paths, table, keys)

    def open(self) -> BloomFilters:
        """Return the filters, for one task."""
        footers = FooterFilters(self.storage, self.paths)
        if self.table is None or self.keys is None:
            return footers
        return StoredFilters(self.table, self.keys, footers)


def metadata_of(lookup: KeyLookup) -> MetadataTable | None:
    """Return the metadata table, if filters and key ranges are to be looked up there and it is readable."""
    client = lookup.client
    if not lookup.opts.get_typed(options.BLOOM_USE_METADATA):
        return None
    if not {BLOOM_FILTERS, COLUMN_STATS} & set(client.config.metadata_partitions):
        return None
    try:
        table = MetadataTable.open_now(client.storage, client.config)
        for partition in (BLOOM_FILTERS, COLUMN_STATS):
            if partition in table.partitions:
                table.groups(partition)
    except HudiError as reason:
        _log.warning("bloom filters of the metadata table are not used, footers are read: %s", reason)
        return None
    return table


def stored_ranges(table: MetadataTable, files: BaseFiles) -> tuple[pa.Array, pa.Array] | None:
    """Return the minimum and maximum key of each file from the metadata table, null where it has none; None if it has
    no statistics of keys."""
    if COLUMN_STATS not in table.partitions:
        return None
    entries = files.table.select(["partition", "base_path"])
    named = pa.table([entries["partition"], file_names_of(entries["base_path"])], names=["partition", "name"])
    partitions: list[str] = pc.unique(entries["partition"]).to_pylist()
    try:
        column = pa.field(RECORD_KEY, pa.string())
        bounds, has_statistics = file_bounds(
            table, column, named.combine_chunks(), partitions=partitions, known_partitions=len(partitions)
        )
    except HudiError as reason:
        _log.warning("statistics of the metadata table are not used, footers are read: %s", reason)
        return None
    return (in_one_order(bounds.minimum), in_one_order(bounds.maximum)) if has_statistics.any() else None
