"""``python -m bench.archived_timeline ACTIONS [FILES]``: milliseconds to load the archived timeline (layout 2) of many
actions.

Files are generated as levelled compaction leaves them, up to nine of 10, 100, 1,000 … instants each, with metadata of
commits of so many files (8). A process of its own reads them five times, from the page cache; the figures are the first
and the best.
"""

from __future__ import annotations

import datetime as dt
import json
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from pyhudi.storage import open_storage
from pyhudi.timeline.archive.archived_timeline import read_archived_timeline
from pyhudi.timeline.archive.lsm_timeline_reader import VERSION_FILE
from pyhudi.timeline.archive.lsm_timeline_writer import LSM_SCHEMA, LsmTimelineWriter
from pyhudi.timeline.commit_metadata import CommitMetadata, write_stats
from pyhudi.timeline.instant import Action, format_instant
from pyhudi.timeline.timeline_layout import Layout

LAYOUT = Layout(2, ".hoodie/timeline", ".hoodie/timeline/history")
_START = dt.datetime(2024, 1, 1)
_TIMES = 5
_WITH_METADATA = 100_000
"""Actions up to which metadata is read: that of more takes gigabytes."""


def main() -> None:
    """Generate, load in a process of its own, and report."""
    if sys.argv[1] == "--work":
        _work(sys.argv[2])
        return
    count, in_commit = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 8
    with tempfile.TemporaryDirectory() as root:
        files = generate(root, count, in_commit)
        size = sum(path.stat().st_size for path in Path(root).rglob("*.parquet"))
        print(f"{count:,} actions in {files} files, {size / 1e6:.1f} MB")
        command = [sys.executable, "-m", "bench.archived_timeline", "--work", root]
        for what, found in json.loads(subprocess.run(command, check=True, capture_output=True).stdout).items():
            assert found["rows"] == count
            print(
                f"{what:<14} first {found['first']:7.1f} ms, best {found['best']:7.1f} ms, peak {found['peak']:,} MiB"
            )


def generate(root: str, count: int, in_commit: int) -> int:
    """Write the archived timeline; returns the number of its files."""
    storage = open_storage(root, {"pyhudi.storage.fsync": "none"})
    content = _commit(in_commit)
    files, start = [], 0
    for level, size in _runs(count):
        instants = [format_instant(_START + dt.timedelta(seconds=n)) for n in range(start, start + size)]
        done = [format_instant(_START + dt.timedelta(seconds=n, milliseconds=500)) for n in range(start, start + size)]
        columns = {
            "instantTime": instants,
            "completionTime": done,
            "action": [str(Action.COMMIT)] * size,
            # times and file ids differ in each, as they do in real ones
            "metadata": [
                content.replace(b"20240101000000000", text.encode()).replace(b"142c-4d86-8445", _random_id())
                for text in instants
            ],
            "plan": [None] * size,
            "version": [1] * size,
        }
        files.append(LsmTimelineWriter(storage, LAYOUT).write_file(pa.table(columns, schema=LSM_SCHEMA), level))
        start += size
    storage.write(f"{LAYOUT.history}/manifest_1", json.dumps({"files": files}).encode())
    storage.write(f"{LAYOUT.history}/{VERSION_FILE}", b"1")
    return len(files)


def _runs(count: int) -> Iterator[tuple[int, int]]:
    """Level and size of each file, the oldest and largest first."""
    level, size = 0, 10
    while size * 10 < count:
        level, size = level + 1, size * 10
    while count:
        full = min(9, count // size)
        yield from [(level, size)] * full
        count -= full * size
        if level == 0:
            yield from [(0, min(10, count - at)) for at in range(0, count, 10)]
            return
        level, size = level - 1, size // 10


def _random_id() -> bytes:
    digits = secrets.token_hex(6)
    return f"{digits[:4]}-{digits[4:8]}-{digits[8:]}".encode()


def _commit(files: int) -> bytes:
    stats = [
        {
            "fileId": f"{n:08d}-142c-4d86-8445-86fbbd496c52-0",
            "path": f"2024/01/01/{n:08d}-142c-4d86-8445-86fbbd496c52-0_0-31-38_20240101000000000.parquet",
            "partitionPath": "2024/01/01",
            "numWrites": 1000,
            "numUpdateWrites": 10,
            "totalWriteBytes": 123_456,
            "fileSizeInBytes": 123_456,
        }
        for n in range(files)
    ]
    return CommitMetadata("UPSERT", write_stats(stats), {"schema": '{"type":"record"}'}).encode(9, Action.COMMIT)


def _work(root: str) -> None:
    storage = open_storage(root)
    found = {}
    count = read_archived_timeline(storage, LAYOUT, metadata=False).num_rows
    reads = [("instants only", False), ("with metadata", True)]
    for what, metadata in reads if count <= _WITH_METADATA else reads[:1]:
        times = []
        for _ in range(_TIMES):
            begun = time.perf_counter()
            table = read_archived_timeline(storage, LAYOUT, metadata=metadata)
            times.append((time.perf_counter() - begun) * 1000)
            rows = table.num_rows
            del table
        peak = int(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0]) >> 10
        found[what] = {"rows": rows, "first": times[0], "best": min(times), "peak": peak}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
