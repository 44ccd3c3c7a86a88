"""Pruning by the bloom filters in the metadata table: slices that certainly hold none of the keys of a filter."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import FormatError
from pyhudi.format.bloom_filter import BloomFilter
from pyhudi.format.file_names import file_names_of
from pyhudi.metadata.metadata_layout import BLOOM_FILTERS
from pyhudi.metadata.reader.metadata_table import KEY, MetadataTable
from pyhudi.metadata.records import metadata_keys
from pyhudi.metadata.records.metadata_record import BLOOM_FILTER_PAYLOAD
from pyhudi.read.pruning.indexes.record_index_pruner import selected_keys
from pyhudi.read.pruning.pruner_protocol import Indexes, Predicate, Pruning, pruned_line
from pyhudi.read.pruning.statistics.comparison_pruning import Mask
from pyhudi.table.view.file_slicing import has_log_files

_MAX_FILTERS = 2_000


class BloomFilterPruner:
    """Pruner of slices by the bloom filters of record keys."""

    def prune_slices(self, slices: pa.Table, predicate: Predicate, indexes: Indexes) -> Pruning:
        """Prune slices without any key that the filter selects."""
        if BLOOM_FILTERS not in indexes.metadata.partitions:
            return Pruning()
        keys = selected_keys(predicate)
        if keys is None:
            return Pruning()
        out, num_filters = slices_without_keys(indexes.metadata, keys, slices)
        return Pruning(out, (f"{pruned_line(BLOOM_FILTERS, 'slices', out)}, {num_filters} filters checked",))


def slices_without_keys(
    table: MetadataTable, keys: pa.Array, slices: pa.Table, index: str = BLOOM_FILTERS
) -> tuple[Mask, int]:
    """Return the slices that certainly hold none of the keys, by the bloom filters of their base files, and the number
    of filters checked. Slices with log files may hold any. ``index`` is the partition of the metadata table with the
    filters."""
    out = np.zeros(slices.num_rows, np.bool_)
    without_logs = pc.and_(pc.invert(has_log_files(slices)), pc.is_valid(slices["base_path"]))
    rows = np.flatnonzero(without_logs.to_numpy(zero_copy_only=False))
    if not len(rows) or len(rows) > _MAX_FILTERS:
        return out, 0
    some = slices.take(pa.array(rows))
    names = file_names_of(some["base_path"])
    filter_keys = metadata_keys.bloom_filter_keys(some["partition"].combine_chunks(), names)
    filters = table.lookup(index, filter_keys, [BLOOM_FILTER_PAYLOAD])
    texts = dict(zip(filters[KEY].to_pylist(), filters[BLOOM_FILTER_PAYLOAD].to_pylist(), strict=True))
    for row, key in zip(rows.tolist(), filter_keys.to_pylist(), strict=True):
        stored = texts.get(key)
        if stored is None:
            continue
        try:
            bloom = BloomFilter.parse(stored["bloomFilter"], stored["type"])
        except FormatError:
            continue
        out[row] = not pc.any(bloom.might_contain(keys)).as_py()
    return out, len(texts)
