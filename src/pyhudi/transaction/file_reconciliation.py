"""Reconciliation before a commit: deletes files of retried or speculative tasks that are not in the commit."""

from __future__ import annotations

import pyarrow.compute as pc

from pyhudi.storage import Storage
from pyhudi.timeline.commit_metadata import CommitMetadata
from pyhudi.timeline.markers import Markers


def reconcile_against_markers(storage: Storage, instant: str, metadata: CommitMetadata) -> list[str]:
    """Delete every file that has a marker of ``instant`` but is not in ``metadata``. Return their paths.

    The write is one of pyhudi, which does not append to existing log files in any table version.
    """
    paths = Markers(storage, instant).list()["data_path"]
    extra: list[str] = paths.filter(pc.invert(pc.is_in(paths, value_set=metadata.named_files()))).unique().to_pylist()
    if extra:
        storage.delete_many(extra)
    return extra
