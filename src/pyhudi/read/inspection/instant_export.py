"""Export of the metadata of completed instants to a local folder, as JSON."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from itertools import islice
from pathlib import Path

import pyarrow.compute as pc

from pyhudi.errors import QueryError
from pyhudi.format.avro.container import read_container
from pyhudi.format.file_names import file_name_of
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline.archive.archived_timeline import read_archived_timeline
from pyhudi.timeline.instant import Action

EXPORTED_ACTIONS = (
    Action.CLEAN,
    Action.COMMIT,
    Action.DELTA_COMMIT,
    Action.ROLLBACK,
    Action.SAVEPOINT,
    Action.RESTORE,
)
"""Actions that Apache Hudi exports unless others are named."""


def export_instants(
    table: TableSnapshot,
    folder: Path,
    actions: Collection[str],
    *,
    limit: int | None,
    newest_first: bool,
) -> int:
    """Write the metadata of completed instants, archived ones included, as files of a local folder, which is created
    if it does not exist.

    Args:
        table: The table.
        folder: The folder.
        actions: Actions of the instants.
        limit: Maximum number of instants; None: no maximum.
        newest_first: The newest instants are written first.

    Returns:
        The number of instants.

    Raises:
        QueryError: The folder cannot be created, or is a file.
    """
    archived, active = (of(table, actions, newest_first=newest_first) for of in (_archived, _active))
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise QueryError(f"the folder {str(folder)!r} cannot be created on this machine: {error}") from error
    count = 0
    for part in (active, archived) if newest_first else (archived, active):
        for name, content in islice(part, None if limit is None else limit - count):
            (folder / name).write_bytes(content)
            count += 1
    return count


def _active(table: TableSnapshot, actions: Collection[str], *, newest_first: bool) -> Iterator[tuple[str, bytes]]:
    """Names and contents of files for the active timeline."""
    active = table.active
    instants = [one for one in active.timeline.completed() if one.action in actions]
    for instant in reversed(instants) if newest_first else instants:
        with active.parsing(instant):
            yield file_name_of(active.path(instant)), _as_json(active.read(instant))


def _archived(table: TableSnapshot, actions: Collection[str], *, newest_first: bool) -> Iterator[tuple[str, bytes]]:
    """Names and contents of files for the archived timeline, one instant at a time."""
    history = read_archived_timeline(table.storage, table.config.layout)
    history = history.filter(pc.is_valid(history["metadata"]))
    rows = zip(*(history[name].to_pylist() for name in ("requested", "action")), history["metadata"], strict=True)
    selected = [row for row in rows if row[1] in actions]
    for requested, action, data in reversed(selected) if newest_first else selected:
        yield f"{requested}.{action}", _as_json(data.as_py())


def _as_json(data: bytes) -> bytes:
    """The record of a completed instant; before version 8 those of writes are JSON already."""
    if data[:1] == b"{":
        return data
    _, records = read_container(data)
    return json.dumps(records[0], indent=2, default=lambda value: value.decode("utf-8", "replace")).encode()
