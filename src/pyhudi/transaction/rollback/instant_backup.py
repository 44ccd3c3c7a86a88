"""Copies of the timeline files of writes that are rolled back (``hoodie.rollback.instant.backup.enabled``).

The place and the names are those of Apache Hudi 1.2.0: the files of all states of the write, under their own names, in
a folder below ``.hoodie``.
"""

from __future__ import annotations

from pathlib import PurePosixPath

from pyhudi.config import Options, options
from pyhudi.errors import InvalidOptionError
from pyhudi.storage import join_path
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.instant import Instant

_OF_THE_TABLE = frozenset(
    {
        "timeline",
        "archived",
        "metadata",
        ".temp",
        ".aux",
        ".heartbeat",
        ".schema",
        ".index_defs",
        ".bootstrap",
        ".bucket_index",
        ".locks",
        "lock",
        "hoodie.properties",
    }
)
"""Folders and files of a table. Copies in such a folder would be deleted with the instant, or be taken for files of the
table, and a folder with the name of such a file, for the lock of a dead process."""


def backup_folder(opts: Options) -> str | None:
    """Return the folder of the copies, relative to the table; None if none are made.

    Raises:
        InvalidOptionError: The folder is not below ``.hoodie``, or has files of the table.
    """
    if not opts.get_typed(options.ROLLBACK_BACKUP_ENABLED):
        return None
    folder = opts.get_typed(options.ROLLBACK_BACKUP_DIR)
    path = PurePosixPath(folder)
    if path.is_absolute() or not path.parts or ".." in path.parts or ":" in path.parts[0]:
        raise InvalidOptionError(opts.spelling(options.ROLLBACK_BACKUP_DIR), folder, "a folder relative to .hoodie")
    if path.parts[0] in _OF_THE_TABLE:
        raise InvalidOptionError(
            opts.spelling(options.ROLLBACK_BACKUP_DIR), folder, "a folder without files of the table"
        )
    return join_path(".hoodie", str(path))


def back_up_instant(active: ActiveTimeline, target: Instant | None, folder: str | None) -> None:
    """Copy the timeline files of a write into the folder, before the first of them is deleted. A rollback that is
    resumed copies those that are left."""
    if target is None or folder is None:
        return
    for state in active.states(target):
        active.storage.write(join_path(folder, state.file_name), active.storage.read(active.path(state)))
