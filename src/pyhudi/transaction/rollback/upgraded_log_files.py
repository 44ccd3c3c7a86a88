"""Log files that a commit of version 6 has written, in a table that has been upgraded since.

Their names contain the instant of their slice, not that of the commit, and version 8 counts all blocks of a log file.
So the rollback of such a commit deletes the files that have no other blocks. Version 6 appends to an existing log file
only if a write is attempted again; commits with such files cannot be rolled back.
"""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import NotFoundError, TransactionError
from pyhudi.format.file_names import LOG, file_names_of, parse_names
from pyhudi.format.log import scan_blocks
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.instant import Instant


def check_log_files(active: ActiveTimeline, version: int, targets: Iterable[Instant]) -> None:
    """Check that all blocks of commits can be rolled back.

    Args:
        active: The timeline.
        version: Version of the table now.
        targets: Writes that are to be rolled back.

    Raises:
        TransactionError: A log file also has blocks of another commit.
    """
    if version < 8:
        return
    for target in targets:
        if target.is_completed:
            log_files_of_slices(active, target)


def log_files_of_slices(active: ActiveTimeline, target: Instant) -> pa.Array:
    """Return the paths of the log files of a completed write whose names do not contain its instant.

    Raises:
        TransactionError: One of them also has blocks of another commit.
    """
    paths = pc.unique(active.commit_metadata(target).stats["path"].drop_null())
    parsed = parse_names(file_names_of(paths))
    is_other = pc.and_(pc.equal(parsed["kind"], LOG), pc.not_equal(parsed["instant"], target.requested))
    paths = paths.filter(pc.fill_null(is_other, False))
    for path in paths.to_pylist():
        others = _other_instants(active, path, target.requested)
        if others:
            raise TransactionError(
                f"{target} cannot be rolled back: the log file {active.storage.uri(path)} of an earlier table version "
                f"has its rows and those of {', '.join(others[:3])}. Read the snapshot before it (time travel), and "
                "write its rows"
            )
    return paths


def _other_instants(active: ActiveTimeline, path: str, instant: str) -> list[str]:
    try:
        with active.storage.open_input(path) as source:
            return sorted({block.instant or "?" for block in scan_blocks(source)} - {instant})
    except NotFoundError:
        return []  # cleaned, or deleted by an attempt that died
