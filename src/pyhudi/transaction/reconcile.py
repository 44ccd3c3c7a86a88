"""Before a commit: delete what retried or speculative tasks wrote and the commit does not name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.storage import join_path
from pyhudi.timeline.markers import Markers

if TYPE_CHECKING:
    from pyhudi.storage import Storage


def reconcile(storage: Storage, instant: str, stats: pa.Table) -> list[str]:
    """Delete every file that has a marker of ``instant`` but is not in ``stats``; returns their paths.

    The write is one of our own, which shares no log file with others in any table version.
    """
    paths = Markers(storage, instant).list()["data_path"]
    extra: list[str] = paths.filter(pc.invert(pc.is_in(paths, value_set=_named(stats)))).unique().to_pylist()
    if extra:
        storage.delete_many(extra)
    return extra


def _named(stats: pa.Table) -> pa.Array:
    """All paths that the write statistics name: data files, their change-data files, log files."""
    named = [stats["path"].drop_null().combine_chunks()]
    cdc = stats["cdcStats"].drop_null().combine_chunks()
    if len(cdc):
        named.append(cdc.keys.cast(pa.string()))
    logs = stats.filter(pc.is_valid(stats["logFiles"])).select(["partitionPath", "logFiles"]).to_pylist()
    named.append(pa.array([join_path(r["partitionPath"], f) for r in logs for f in r["logFiles"]], pa.string()))
    return pa.concat_arrays([chunk.cast(pa.string()) for chunk in named])
