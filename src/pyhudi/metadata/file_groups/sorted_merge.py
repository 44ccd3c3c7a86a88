"""K-way merge of the sorted files of one slice of the metadata table, with one window of each in memory.

All HFiles, and the lists of deleted keys after sorting, are ordered by key. All versions of all keys up to the minimum
of the last keys read from each source are known, so these entries are merged as columns, by the common rules
(`pyhudi.metadata.records.combine_records`), and yielded. Memory: the windows and the merge of their entries, regardless
of the number of entries; no array is larger.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import FormatError
from pyhudi.metadata.file_groups.hfile_sources import DeleteSource, Source
from pyhudi.metadata.records.combine_records import Version, fold_versions
from pyhudi.metadata.records.metadata_keys import key_texts

WINDOW_BYTES = 8 * 1024 * 1024
"""Bytes of keys and values that are read at a time from all files of a slice together."""
_MIN_WINDOW = 256 * 1024

_NO_BYTES = pa.array([], pa.binary())


def merge_sorted(
    partition: str, sources: Sequence[Source], table_version: int, *, window_bytes: int = WINDOW_BYTES
) -> Iterator[tuple[pa.Array, pa.Array]]:
    """Merge the sources of a slice, given the oldest first. Yields keys (bytes, ascending) and values.

    Args:
        partition: Partition of the metadata table.
        sources: The base file and the blocks of log files (`pyhudi.metadata.file_groups.hfile_sources.slice_sources`).
        table_version: Version of the table, in whose schema the values are written.
        window_bytes: Bytes that are read at a time, of all sources together.

    Raises:
        FormatError: A source is corrupt, or not ordered by key.
    """
    # The first one is the base file, which provides most entries.
    shares = [window_bytes // 2, *[window_bytes // (2 * max(1, len(sources) - 1))] * (len(sources) - 1)]
    cursors = [_Cursor(source, max(_MIN_WINDOW, share)) for source, share in zip(sources, shares, strict=True)]
    while True:
        live = [cursor for cursor in cursors if cursor.fill()]
        if not live:
            return
        bounds = [cursor.last for cursor in live if not cursor.is_exhausted]
        bound = min(bounds) if bounds else None
        versions = [version for version in (cursor.take(bound) for cursor in live) if version is not None]
        keys, values = _merged(partition, versions, table_version)
        if len(keys):
            yield keys, values


def _merged(partition: str, versions: Sequence[Version], table_version: int) -> tuple[pa.Array, pa.Array]:
    records = fold_versions(partition, versions, table_version)
    if len(versions) == 1:
        return records.keys.cast(pa.binary()), records.values
    return records.sorted()


class _Cursor:
    """Position in one source, with the entries that were read and not merged yet."""

    def __init__(self, source: Source, window_bytes: int) -> None:
        self._window = window_bytes
        self._version: Callable[[pa.Array, pa.Array], Version]
        if isinstance(source, DeleteSource):
            keys = source.keys.cast(pa.binary())
            keys = keys.take(pc.sort_indices(keys))
            self._batches = iter([(keys, pa.nulls(len(keys), pa.binary()))])
            self._version = _deletes
        else:
            schema = source.schema
            self._batches = ((batch["key"], batch["value"]) for batch in source.reader.batches())
            self._version = lambda keys, values: Version(key_texts(keys), values, schema)
        self._keys, self._values = _NO_BYTES, _NO_BYTES
        self.is_exhausted = False
        """True if nothing follows the entries that were read."""

    @property
    def last(self) -> bytes:
        """Return the last key that was read; there must be one."""
        key: bytes = self._keys[-1].as_py()
        return key

    def fill(self) -> bool:
        """Read the next window if the previous one is used up. Return False at the end of the source.

        Raises:
            FormatError: Its keys are not in order.
        """
        if len(self._keys):
            return True
        before = self._previous
        keys, values, size = [], [], 0
        while size < self._window and not self.is_exhausted:
            batch = next(self._batches, None)
            if batch is None:
                self.is_exhausted = True
            elif len(batch[0]):
                keys.append(batch[0])
                values.append(batch[1])
                size += batch[0].nbytes + batch[1].nbytes
        if not keys:
            return False
        self._keys, self._values = pa.concat_arrays(keys), pa.concat_arrays(values)
        if before is not None and before >= self._keys[0].as_py():
            raise FormatError("keys in a file of the metadata table are not in order")
        self._previous = self.last
        return True

    _previous: bytes | None = None

    def take(self, bound: bytes | None) -> Version | None:
        """Remove and return the entries up to and including a key (None: all); None if there are none."""
        keys, values = self._keys, self._values
        count = len(keys)
        if bound is not None and self.last > bound:
            count = bisect_right(range(len(keys)), bound, key=lambda place: keys[place].as_py())
        self._keys, self._values = (keys[count:], values[count:]) if count < len(keys) else (_NO_BYTES, _NO_BYTES)
        return self._version(keys[:count], values[:count]) if count else None


def _deletes(keys: pa.Array, _: pa.Array) -> Version:
    return Version(deletes=key_texts(keys))
