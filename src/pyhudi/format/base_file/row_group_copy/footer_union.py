"""Footer entries of a file that consists of the row groups of others."""

from __future__ import annotations

import json
from collections.abc import Iterable

from pyhudi.format.base_file import base_file_footer
from pyhudi.format.base_file.base_file_footer import (
    BLOOM_KEY,
    BLOOM_TYPE_KEY,
    CREATED_BY_KEY,
    MAX_KEY,
    MIN_KEY,
    NAN_KEY,
    OLD_BLOOM_KEY,
)
from pyhudi.format.bloom_filter import SIMPLE, BloomFilter
from pyhudi.format.bloom_filter_union import BloomFilterUnion

_OF_KEYS = frozenset((MIN_KEY, MAX_KEY, BLOOM_KEY, OLD_BLOOM_KEY, BLOOM_TYPE_KEY))
_JOINED = _OF_KEYS | {NAN_KEY, CREATED_BY_KEY}
_ARROW = "parquet-cpp"


class FooterUnion:
    """Merges the footer entries of files: the key range and the bloom filter cover the keys of all files. Other entries
    are kept if they are the same in all files.

    Args:
        max_keys: Maximum number of keys for which the bloom filter is designed.
    """

    def __init__(self, max_keys: int) -> None:
        self._bloom = BloomFilterUnion(max_keys)
        self._kind: str | None = None
        self._has_range: bool | None = None
        self._range: tuple[str, str] | None = None
        self._other: dict[bytes, bytes] | None = None
        self._nan: set[str] | None = set()
        self._writers: dict[str, None] = {}

    def add(self, entries: dict[bytes, bytes], created_by: str, num_rows: int) -> str | None:
        """Add the entries of a file. Return the reason if they cannot be merged with the previous ones.

        Raises:
            FormatError: Entries are corrupt.
        """
        low, high = (base_file_footer.entry_text(entries, key) for key in (MIN_KEY, MAX_KEY))
        ranged = low is not None and high is not None
        if num_rows and self._has_range not in (None, ranged):
            return "only some files have the range of their record keys"
        if not all(base_file_footer.is_in_one_order(key) for key in (low, high) if key is not None):
            return "its range of record keys may be in another order than those of others"  # that of bytes or of UTF-16
        reason = self._add_bloom(entries)
        if reason is not None:
            return reason
        if num_rows:
            self._has_range = ranged
        if low is not None and high is not None:
            key_range = self._range or (low, high)
            self._range = min(low, key_range[0]), max(high, key_range[1])
        other = {key: text for key, text in entries.items() if key.decode("utf-8", "replace") not in _JOINED}
        self._other = other if self._other is None else dict(self._other.items() & other.items())
        nan = entries.get(NAN_KEY.encode())
        self._nan = None if nan is None or self._nan is None else self._nan.union(json.loads(nan))
        for writer in [*(base_file_footer.entry_text(entries, CREATED_BY_KEY) or "").splitlines(), created_by]:
            if writer:
                self._writers[writer] = None
        return None

    def remove_nan(self, columns: Iterable[str]) -> frozenset[str]:
        """Remove the NaN of top-level columns, whose values are replaced. Return the leaves that had some."""
        names = frozenset(columns)
        nan_leaves = frozenset(leaf for leaf in self._nan or () if leaf.partition(".")[0] in names)
        if self._nan is not None:
            self._nan -= nan_leaves
        return nan_leaves

    def add_nan(self, leaves: Iterable[str]) -> None:
        """Note columns, or leaves of nested ones, whose new values include NaN."""
        if self._nan is not None:
            self._nan = self._nan.union(leaves)

    def finish(self) -> tuple[dict[bytes, bytes], bytes]:
        """Return the entries and the writer of the file."""
        entries = dict(self._other or {})
        bloom = self._bloom.finish()
        if bloom is not None:
            entries |= {BLOOM_KEY.encode(): bloom.serialize().encode(), BLOOM_TYPE_KEY.encode(): bloom.kind.encode()}
        if self._range is not None:
            entries |= {MIN_KEY.encode(): self._range[0].encode(), MAX_KEY.encode(): self._range[1].encode()}
        if self._nan is not None:
            entries[NAN_KEY.encode()] = json.dumps(sorted(self._nan)).encode()
        if len(self._writers) > 1:
            entries[CREATED_BY_KEY.encode()] = "\n".join(self._writers).encode()
        # Readers of the file must know that bounds may omit NaN.
        created_by = min(self._writers, key=lambda name: not name.startswith(_ARROW), default="")
        return entries, created_by.encode()

    def _add_bloom(self, entries: dict[bytes, bytes]) -> str | None:
        text = entries.get(BLOOM_KEY.encode()) or entries.get(OLD_BLOOM_KEY.encode())
        kind = None if text is None else base_file_footer.entry_text(entries, BLOOM_TYPE_KEY) or SIMPLE
        if self._other is not None and kind != self._kind:
            return f"its bloom filter has type {kind}, those of others have {self._kind}"
        self._kind = kind
        if text is not None and kind is not None and not self._bloom.add(BloomFilter.parse(text, kind)):
            return "its bloom filter has a different size"
        return None
