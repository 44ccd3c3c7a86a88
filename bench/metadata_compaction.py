"""``python -m bench.metadata_compaction KEYS GROUPS``: compaction of a record index: peak memory and keys a second.

A record index of so many keys (36 bytes each) in so many file groups is generated without a table and without Spark:
base files, ten delta commits of a thousandth of the keys each, and one large delta commit of a twentieth, half of all
these new. A process of its own compacts it; its peak resident size is what the kernel recorded. Environment:
``BENCH_DIR`` (where files are written, the system's temporary folder).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.format.hfile.hfile_reader import HFileReader
from pyhudi.merge.logs.valid_log_blocks import BlockView
from pyhudi.metadata.file_groups.delta_commit_writer import GroupFiles, GroupSlice
from pyhudi.metadata.file_groups.hfile_sources import MetadataSlice, SliceFile
from pyhudi.metadata.maintenance.metadata_compaction_job import MetadataCompactionJob, run_job
from pyhudi.metadata.metadata_layout import RECORD_INDEX, file_group_ids
from pyhudi.metadata.records.metadata_record import RecordType, encode
from pyhudi.metadata.records.record_changes import RecordChanges
from pyhudi.storage import Storage, open_storage
from pyhudi.storage.table_paths import METADATA_FOLDER

VERSION = 9
_FIRST, _COMPACTION = "20260101000000000", "20260201000000000"
_CHUNK = 200_000
_SMALL_DELTAS, _SMALL_SHARE, _LARGE_SHARE = 10, 1000, 20


def main() -> None:
    """Generate, compact in a process of its own, check, and report."""
    if sys.argv[1] == "--work":
        _work(sys.argv[2])
        return
    keys, groups = int(sys.argv[1]), int(sys.argv[2])
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DIR")) as root:
        begun = time.perf_counter()
        total = generate(Path(root), keys, groups)
        size = sum(path.stat().st_size for path in Path(root).rglob("*") if path.is_file())
        print(
            f"{keys:,} keys in {groups} file groups, {size >> 20:,} MiB, generated in "
            f"{time.perf_counter() - begun:.0f} s",
            flush=True,
        )
        command = [sys.executable, "-m", "bench.metadata_compaction", "--work", root]
        found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        assert found["records"] == total, (found, total)
        print(
            f"compacted {found['records']:,} records in {found['seconds']:.1f} s ({found['cpu']:.1f} s of CPU): "
            f"{found['records'] / found['seconds']:,.0f} keys a second; peak {found['peak_mib']:,} MiB, "
            f"{found['before_mib']:,} MiB of it before the work began"
        )


def generate(root: Path, keys: int, groups: int) -> int:
    """Write base and log files; returns the number of records that a compaction keeps."""
    storage = open_storage(root, {"pyhudi.storage.fsync": "none"})
    storage.make_dirs(f"{METADATA_FOLDER}/{RECORD_INDEX}")
    each, total = keys // groups, 0
    for file_id in file_group_ids(RECORD_INDEX, groups):
        GroupFiles(storage, RECORD_INDEX, _FIRST, VERSION).write_sorted(file_id, _entries(each))
        added = 0
        for number in range(_SMALL_DELTAS + 1):
            count = each // (_SMALL_SHARE if number < _SMALL_DELTAS else _LARGE_SHARE)
            instant = f"202601{number + 2:02d}000000000"
            files = GroupFiles(storage, RECORD_INDEX, instant, VERSION)
            files.write_log(GroupSlice(file_id), _delta(each, count, number))
            added += count - count // 2
        total += each + added
    return total


def _entries(count: int) -> Iterator[tuple[pa.Array, pa.Array]]:
    """Entries of a base file: each key is a multiple of 64."""
    for start in range(0, count, _CHUNK):
        numbers = np.arange(start, min(count, start + _CHUNK)) * 64
        yield _texts(numbers).cast(pa.binary()), _values(numbers)


def _delta(each: int, count: int, number: int) -> RecordChanges:
    """Changes to ``count // 2`` keys, and the rest new ones, which no other delta has."""
    random = np.random.default_rng(number)
    numbers = np.sort(random.choice(each, count, replace=False)) * 64
    numbers[count // 2 :] += number + 1
    return RecordChanges(_texts(numbers), _values(numbers))


def _texts(numbers: np.ndarray[Any, Any]) -> pa.Array:
    return pc.utf8_lpad(pc.cast(pa.array(numbers), pa.string()), 36, "0")


def _values(numbers: np.ndarray[Any, Any]) -> pa.Array:
    count = len(numbers)
    random = np.random.default_rng(int(numbers[0]) if count else 0)
    payload = pa.table(
        {
            "partitionName": pa.repeat(pa.scalar("2026/01/01"), count),
            "fileIdHighBits": pa.array(random.integers(0, 2**62, count)),
            "fileIdLowBits": pa.array(random.integers(0, 2**62, count)),
            "fileIndex": pa.repeat(pa.scalar(0, pa.int32()), count),
            "fileId": pa.repeat(pa.scalar(""), count),
            "instantTime": pa.repeat(pa.scalar(1_767_225_600_000), count),
            "fileIdEncoding": pa.repeat(pa.scalar(0, pa.int32()), count),
        }
    )
    return encode(RecordType.RECORD_INDEX, payload, VERSION)


def _work(root: str) -> None:
    storage = open_storage(root, {"pyhudi.storage.fsync": "none"})
    job = MetadataCompactionJob(storage, VERSION, _COMPACTION, BlockView(), tuple(_slices(storage)))
    before = _peak()
    begun, cpu = time.perf_counter(), time.process_time()
    stats = run_job(job)
    seconds, cpu = time.perf_counter() - begun, time.process_time() - cpu
    peak = _peak()
    for stat in stats:
        reader = HFileReader(storage.read_range(f"{METADATA_FOLDER}/{stat['path']}", 0, stat["fileSizeInBytes"]))
        assert reader.num_entries == stat["numWrites"]
    records = sum(stat["numWrites"] for stat in stats)
    found = {"records": records, "seconds": seconds, "cpu": cpu, "peak_mib": peak >> 10, "before_mib": before >> 10}
    print(json.dumps(found))


def _peak() -> int:
    """The highest resident size of this process so far, in KiB; not that of the one that it was forked from."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0])


def _slices(storage: Storage) -> Iterator[MetadataSlice]:
    listing = storage.list(f"{METADATA_FOLDER}/{RECORD_INDEX}").select(["path", "size", "mtime_ms"])
    files = sorted(SliceFile(*row.values()) for row in listing.to_pylist())
    for base in (file for file in files if file.path.endswith(".hfile")):
        file_id = base.path.rpartition("/")[2].split("_")[0]
        logs = tuple(file for file in files if f"/.{file_id}_" in file.path)
        yield MetadataSlice(RECORD_INDEX, file_id, _FIRST, base, logs)


if __name__ == "__main__":
    main()
