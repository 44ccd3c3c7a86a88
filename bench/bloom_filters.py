"""``python -m bench.bloom_filters``: building and looking up bloom filters, on one core, in process time."""

from __future__ import annotations

import pyarrow as pa

from bench.hfile import best
from pyhudi.format import bloom_filter

KEYS = 1_000_000


def main() -> int:
    """Print what was measured of filters as base files have them: full ones, and all keys are in them."""
    pa.set_cpu_count(1)
    kinds = {
        "16 bytes": pa.array([f"k{i:015d}" for i in range(KEYS)]),
        "lineitem, 28 to 34 bytes": pa.array([f"l_orderkey:{i},l_linenumber:{i % 7}" for i in range(KEYS)]),
    }
    for name, keys in kinds.items():
        building, made = best(lambda keys=keys: bloom_filter.BloomFilter.build(keys))  # type: ignore[misc]
        asking, found = best(lambda keys=keys, made=made: made.might_contain(keys))  # type: ignore[misc]
        assert found.true_count == KEYS
        print(f"keys of {name}: {KEYS / building / 1e6:.1f} million a second built, {KEYS / asking / 1e6:.1f} asked")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
