"""``python -m bench.hfile``: how fast HFiles are written, scanned and searched, on one core, in process time."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.format.hfile.hfile_reader import HFileReader
from pyhudi.format.hfile.hfile_writer import write_hfile
from pyhudi.format.hfile.key_values import ENTRY_SCHEMA
from pyhudi.metadata.records import file_group_hash
from pyhudi.metadata.records.metadata_record import RecordType, encode, record_schema
from pyhudi.storage.byte_bounded_cache import ByteBoundedCache

ENTRIES = 1_000_000
LOOKUPS = 100_000


def best(work: Callable[[], Any], times: int = 3) -> tuple[float, Any]:
    """The least process time, in seconds, of a piece of work, and its result."""
    found, result = [], None
    for _ in range(times):
        start = time.process_time()
        result = work()
        found.append(time.process_time() - start)
    return min(found), result


def record_index(entries: int) -> tuple[pa.Array, pa.Array]:
    """Keys and values of a record index as one write of one file group makes them."""
    random = np.random.default_rng(7)
    numbers = np.sort(random.choice(10**12, entries, replace=False))
    key = pc.utf8_lpad(pc.cast(pa.array(numbers), pa.string()), 12, "0")
    payload = pa.table(
        {
            "partitionName": pa.repeat(pa.scalar("year=1992"), entries),
            "fileIdHighBits": random.integers(-(2**62), 2**62, 100)[random.integers(0, 100, entries)],
            "fileIdLowBits": random.integers(-(2**62), 2**62, 100)[random.integers(0, 100, entries)],
            "fileIndex": pa.repeat(pa.scalar(0, pa.int32()), entries),
            "fileId": pa.repeat(pa.scalar(""), entries),
            "instantTime": pa.repeat(pa.scalar(1795253387775, pa.int64()), entries),
        }
    )
    return key, encode(RecordType.RECORD_INDEX, payload, 9)


def main() -> int:
    """Print what was measured."""
    pa.set_cpu_count(1)
    encoding, (key, value) = best(lambda: record_index(ENTRIES), 1)
    writing, data = best(lambda: write_hfile(key, value, schema=record_schema(9)), 2)
    scanning, table = best(lambda: pa.Table.from_batches(HFileReader(data).batches(), ENTRY_SCHEMA))
    assert table.num_rows == ENTRIES
    wanted = key.take(pa.array(np.random.default_rng(1).choice(ENTRIES, LOOKUPS, replace=False)))
    cold, found = best(lambda: HFileReader(data).lookup(wanted))
    assert found.num_rows == LOOKUPS
    reader = HFileReader(data, cache=ByteBoundedCache(), name="bench")
    reader.lookup(wanted)
    warm, found = best(lambda: reader.lookup(wanted))
    one, _ = best(lambda: [reader.lookup(wanted[i : i + 1]) for i in range(100)])
    hashing, _ = best(lambda: file_group_hash.file_group_index_of(key, 10))
    print(f"record-index values encoded   {ENTRIES / encoding:14,.0f} /s (with making them up)")
    print(f"HFile written                 {ENTRIES / writing:14,.0f} entries/s, {len(data):,} bytes")
    print(f"HFile scanned                 {ENTRIES / scanning:14,.0f} entries/s")
    print(f"{LOOKUPS:,} keys looked up        {cold * 1000:14,.0f} ms, blocks in memory {warm * 1000:,.0f} ms")
    print(f"one key looked up             {one * 10:14,.3f} ms, blocks in memory")
    print(f"file groups of keys           {ENTRIES / hashing:14,.0f} keys/s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
