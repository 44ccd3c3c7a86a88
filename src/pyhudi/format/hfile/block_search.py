"""Search for keys and prefixes in the blocks of an HFile, by the first key of each block."""

from __future__ import annotations

import itertools
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator

import pyarrow as pa
import pyarrow.compute as pc

_ORDERED_OTHERWISE = r"[\xee-\xff]"
"""First bytes of letters from U+E000 on, which the order of UTF-16 units has in another place than that of bytes."""


def keys_by_block(firsts: list[bytes], keys: pa.Array) -> dict[int, pa.Array]:
    """Return the sorted keys that each block may contain, by numbers of blocks, ascending. ``firsts``: the first key of
    each block.

    Apache Hudi 1.2.0 writes files of the record index in the order of UTF-16 units. A key that is in another block then
    is looked for in both, and the blocks are not in the order of bytes.
    """
    found = dict(_by_block(firsts, keys))
    elsewhere = keys.filter(pc.match_substring_regex(keys, _ORDERED_OTHERWISE)).to_pylist()
    java_firsts = [_utf16(first) for first in firsts] if elsewhere else []
    if not elsewhere or any(a > b for a, b in itertools.pairwise(java_firsts)):
        return found
    for key in elsewhere:
        block = bisect_right(java_firsts, _utf16(key)) - 1
        if block >= 0:
            found.setdefault(block, keys[:0])
    return dict(sorted(found.items()))


def prefixes_by_block(firsts: list[bytes], prefixes: Iterable[bytes]) -> dict[int, list[bytes]]:
    """Return the numbers of the blocks that may have keys with these prefixes, ascending, with their prefixes.

    Args:
        firsts: First key of each block.
        prefixes: The prefixes; those that start with another one are left out.
    """
    # Prefixes that start with another one are redundant, and would return entries twice.
    distinct: list[bytes] = []
    for prefix in sorted(set(prefixes)):
        if not distinct or not prefix.startswith(distinct[-1]):
            distinct.append(prefix)
    by_block: dict[int, list[bytes]] = {}
    for prefix in distinct:
        start = max(0, bisect_left(firsts, prefix) - 1)
        for number in range(start, len(firsts)):
            if firsts[number] > prefix and not firsts[number].startswith(prefix):
                break
            by_block.setdefault(number, []).append(prefix)
    return by_block


def span_of_prefix(keys: pa.Array, prefix: bytes) -> tuple[int, int]:
    """Return the range of the sorted keys that start with a prefix."""
    start = _first_from(keys, prefix)
    # The range ends before the least key that is greater than all keys with the prefix.
    rest = prefix.rstrip(b"\xff")
    if not rest:
        return start, len(keys)
    return start, _first_from(keys, rest[:-1] + bytes([rest[-1] + 1]), start)


def _utf16(key: bytes) -> bytes:
    return key.decode(errors="replace").encode("utf-16-be")


def _by_block(firsts: list[bytes], keys: pa.Array) -> Iterator[tuple[int, pa.Array]]:
    """Yield the numbers of blocks, each with those of the sorted keys that it may contain."""
    texts = keys.to_pylist()
    start = 0
    while start < len(texts):
        block = bisect_right(firsts, texts[start]) - 1
        end = len(texts) if block + 1 >= len(firsts) else bisect_left(texts, firsts[block + 1], start)
        if block >= 0:
            yield block, keys.slice(start, end - start)
        start = end


def _first_from(keys: pa.Array, key: bytes, start: int = 0) -> int:
    """Return the index, at least ``start``, of the first of the sorted keys that is not less than ``key``."""
    low, high = start, len(keys)
    while low < high:
        middle = (low + high) // 2
        if keys[middle].as_py() < key:
            low = middle + 1
        else:
            high = middle
    return low
