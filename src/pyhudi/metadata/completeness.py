"""Whether all files of a metadata table are there that its completed instants have written, and whole.

A file that is missing takes its records along, and nothing in the others tells: of a list of files, some would be
missing. So the instants are asked, those that are still on the timeline: what is older has been compacted.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import HudiError, MetadataTableError
from pyhudi.format.filenames import BASE, parse_names, split_paths
from pyhudi.metadata.builds import is_build
from pyhudi.metadata.detach import METADATA_FOLDER
from pyhudi.metadata.sources import CACHE
from pyhudi.timeline.instants import WRITE_ACTIONS, Instant

if TYPE_CHECKING:
    from pyhudi.storage import Storage
    from pyhudi.timeline.active import ActiveTimeline
    from pyhudi.timeline.timeline import Timeline

_READ_THREADS = 8
_FIRST_INSTANTS = "0" * 14
"""What instants begin with that build a partition."""
WRITTEN_SCHEMA = pa.schema([("path", pa.string()), ("size", pa.int64())])


def check_complete(
    storage: Storage, active: ActiveTimeline, counted: Timeline, partition: str, files: pa.Table
) -> None:
    """Check the ``files`` (`FILE_SCHEMA`) of a partition against what the ``counted`` instants have written.

    Raises:
        MetadataTableError: a file is missing, or shorter than it was written.
    """
    base = files.filter(pc.equal(files["kind"], BASE)).group_by("file_id").aggregate([("instant", "max")])
    newest = dict(zip(base["file_id"].to_pylist(), base["instant_max"].to_pylist(), strict=True))
    groups = set(files["file_id"].to_pylist())
    since = min(newest.values()) if newest and len(newest) == len(groups) else ""
    born = _built_at(files, counted)
    instants = [
        i
        for i in counted.completed()
        if i.action in WRITE_ACTIONS and i.requested >= since and (i.completion is None or i.completion >= born)
    ]
    sizes = dict(zip(files["path"].to_pylist(), files["size"].to_pylist(), strict=True))
    with ThreadPoolExecutor(_READ_THREADS) as pool:
        for instant, written in zip(
            instants, pool.map(lambda i: written_by(storage, active, i), instants), strict=True
        ):
            for path, size, file_id in _of_partition(written, partition):
                if newest.get(file_id, "") > instant.requested:
                    continue
                full = f"{METADATA_FOLDER}/{path}"
                if full not in sizes:
                    raise MetadataTableError(f"{storage.uri(full)}, which {instant.requested} has written, is missing")
                if sizes[full] < (size or 0):
                    raise MetadataTableError(f"{storage.uri(full)} has {sizes[full]} bytes instead of {size}")


def _built_at(files: pa.Table, counted: Timeline) -> str:
    """When the partition was built; what was written to it before went with an earlier one of its name."""
    instants = pc.unique(files["instant"]).drop_null().to_pylist()
    times = [counted.completion_of(i) for i in instants if i.startswith(_FIRST_INSTANTS)]
    return max((time for time in times if time is not None), default="")


def written_by(storage: Storage, active: ActiveTimeline, instant: Instant) -> pa.Table:
    """Return the files that an instant of the metadata table has written (`WRITTEN_SCHEMA`), paths relative to it."""

    def make() -> tuple[pa.Table, int]:
        if not active.read(instant):
            # readers of Apache Hudi take a completed file that says nothing
            return WRITTEN_SCHEMA.empty_table(), 1
        stats = active.commit_metadata(instant).stats
        table = pa.table([stats["path"], stats["fileSizeInBytes"]], schema=WRITTEN_SCHEMA)
        return table, table.nbytes

    try:
        if instant.completion is None and is_build(instant):
            return make()[0]  # nothing in their names tells them from those of a metadata table built before
        table: pa.Table = CACHE.get((storage.root, active.path(instant)), make)
    except HudiError as e:
        raise MetadataTableError(f"what {instant.requested} has written cannot be told: {e}") from e
    return table


def _of_partition(written: pa.Table, partition: str) -> list[tuple[str, int | None, str]]:
    mine = written.filter(pc.fill_null(pc.starts_with(written["path"], f"{partition}/"), False))
    if not mine.num_rows:
        return []
    ids = parse_names(split_paths(mine["path"])[1])["file_id"].to_pylist()
    return list(zip(mine["path"].to_pylist(), mine["size"].to_pylist(), ids, strict=True))
