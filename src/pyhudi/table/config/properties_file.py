"""Storage of ``.hoodie/hoodie.properties``: created once, rewritten with a backup, readable at any time.

A rewrite copies the old content to ``hoodie.properties.backup``, replaces the main file, and deletes the backup (Apache
Hudi's protocol, so that its writers and pyhudi's can recover each other's). pyhudi's replacement is atomic and
conditional: of two concurrent rewrites, the second one starts again from the result of the first. A non-atomic writer
may leave a missing, empty or truncated main file; then the backup is used until the next rewrite restores it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from datetime import UTC, datetime

from pyhudi.config.property_keys import TABLE_CHECKSUM as CHECKSUM
from pyhudi.errors import (
    AlreadyExistsError,
    CorruptTableError,
    FormatError,
    NotAHudiTableError,
    NotFoundError,
    PreconditionFailedError,
    TableExistsError,
)
from pyhudi.storage import Storage
from pyhudi.storage.table_paths import META_FOLDER
from pyhudi.table.config.properties_text import format_properties, is_intact, parse_properties, table_checksum

PATH = f"{META_FOLDER}/hoodie.properties"
BACKUP_PATH = f"{PATH}.backup"

_WAITS = (0.0, 0.02, 0.1, 0.4, 1.0)  # Seconds before each attempt while another writer rewrites the file.
_REWRITES = 20


def load_properties(storage: Storage) -> dict[str, str]:
    """Return the table's properties from the main file, or else from its backup.

    Raises NotAHudiTableError if neither exists, CorruptTableError if neither is complete, after a short wait for a
    rewrite in progress.
    """
    broken: list[str] = []
    for wait in _WAITS:
        if wait:  # even a sleep of no time lets other processes run first
            time.sleep(wait)
        broken = []
        # Main, backup, and main again: a rewrite may complete (and delete the backup) between the first two reads.
        for path in (PATH, BACKUP_PATH, PATH):
            properties, problem = _read(storage, path)
            if properties is not None:
                return properties
            if problem is not None:
                broken.append(problem)
        if not broken and not (storage.list(META_FOLDER).num_rows or storage.list_dirs(META_FOLDER)):
            break
    else:
        if not broken:
            raise NotAHudiTableError(
                f"there is no Hudi table at {storage.root}: {PATH} does not exist, although other files in "
                f"{META_FOLDER} do; check the path or, if the file was lost, recreate it with "
                "pyhudi.overwrite_properties"
            )
    if broken:
        raise CorruptTableError(
            f"{broken[0]}, and {BACKUP_PATH} is missing or also invalid; restore the file, for instance from the "
            "properties of a table created with the same options, or recreate it with pyhudi.overwrite_properties"
        )
    raise NotAHudiTableError(
        f"there is no Hudi table at {storage.root}: {PATH} does not exist; check the path, or create the table first"
    )


def create_properties(storage: Storage, properties: Mapping[str, str]) -> None:
    """Create the file if the table does not exist. Of concurrent creators one succeeds, the others get
    TableExistsError."""
    now = datetime.now(UTC)
    data = format_properties(properties, (f"Properties saved on {_instant(now)}",), now)
    try:
        storage.create(PATH, data)
    except AlreadyExistsError as error:
        raise TableExistsError(f"a Hudi table exists at {storage.root}; open it, or choose another path") from error


def update_properties(
    storage: Storage,
    *,
    put: Mapping[str, str] | None = None,
    remove: Collection[str] = (),
    change: Callable[[dict[str, str]], None] | None = None,
) -> dict[str, str]:
    """Rewrite the file: set *put*, remove *remove*, then apply *change* to the rest. Return the new properties.

    Nothing is written if nothing changes. Leftovers of an interrupted rewrite are recovered first. Raises the errors of
    :func:`load_properties`, and PreconditionFailedError if other writers keep rewriting the file.
    """
    for _ in range(_REWRITES):
        recover_properties(storage)
        before = storage.stat(PATH)
        if before is None:
            continue
        data = storage.read(PATH)
        current = _parse(data)
        if current is None:
            continue
        target = {key: value for key, value in current.items() if key not in remove} | dict(put or {})
        if change is not None:
            change(target)
        target[CHECKSUM] = table_checksum(target)
        if target == current:
            return target
        now = datetime.now(UTC)
        text = format_properties(target, (f"Updated at {_instant(now)}",), now)
        storage.write(BACKUP_PATH, data)
        try:
            storage.replace(PATH, text, before.version)
        except PreconditionFailedError:
            continue
        storage.delete(BACKUP_PATH)
        return target
    raise PreconditionFailedError(f"{storage.uri(PATH)} is being rewritten by other processes repeatedly; try again")


def overwrite_properties(storage: Storage, properties: Mapping[str, str]) -> dict[str, str]:
    """Replace the content of the file by *properties*, also if it is corrupt or missing. Return them with their
    checksum.

    Raises PreconditionFailedError if another writer rewrites the file concurrently.
    """

    def replaced(current: dict[str, str]) -> None:
        current.clear()
        current.update(properties)

    try:
        return update_properties(storage, change=replaced)
    except (CorruptTableError, NotAHudiTableError):
        main = storage.stat(PATH)
    checked = {**properties, CHECKSUM: table_checksum(properties)}
    now = datetime.now(UTC)
    text = format_properties(checked, (f"Updated at {_instant(now)}",), now)
    storage.replace(PATH, text, main.version if main is not None else None)
    storage.delete(BACKUP_PATH)
    return checked


def recover_properties(storage: Storage) -> None:
    """Complete or undo an interrupted rewrite: restore a corrupt main file from a good backup, or delete an obsolete
    backup.

    Does nothing if there is no backup and the main file is complete. Raises the errors of :func:`load_properties`.
    """
    main = storage.stat(PATH)
    if main is not None and _read(storage, PATH)[0] is not None:
        if storage.exists(BACKUP_PATH):
            storage.delete(BACKUP_PATH)
        return
    load_properties(storage)  # Waits for non-atomic writers; raises an error if there is nothing to recover from.
    if _read(storage, PATH)[0] is not None:
        return
    try:
        data = storage.read(BACKUP_PATH)
    except NotFoundError:
        return  # Another writer recovered it.
    main = storage.stat(PATH)
    try:
        storage.replace(PATH, data, main.version if main is not None else None)
    except PreconditionFailedError:
        return
    storage.delete(BACKUP_PATH)


def _read(storage: Storage, path: str) -> tuple[dict[str, str] | None, str | None]:
    """Return the properties at *path* if complete, otherwise the problem; neither if the file does not exist."""
    try:
        data = storage.read(path)
    except NotFoundError:
        return None, None
    try:
        properties = parse_properties(data)
    except FormatError as error:
        return None, f"{storage.uri(path)} is corrupt: {error}"
    if is_intact(properties):
        # An incomplete last line during a rewrite: the correct checksum preceded the cut.
        if path == PATH and not data.endswith((b"\n", b"\r")) and storage.exists(BACKUP_PATH):
            return None, f"{storage.uri(path)} is truncated"
        return properties, None
    if not data:
        return None, f"{storage.uri(path)} is empty"
    if CHECKSUM not in properties:
        return (
            None,
            f"{storage.uri(path)} has no {CHECKSUM}, so it is truncated or was created manually",
        )
    return None, (
        f"{storage.uri(path)} contains {CHECKSUM}={properties[CHECKSUM]}, but the checksum of its table and "
        f"database name is {table_checksum(properties)}"
    )


def _parse(data: bytes) -> dict[str, str] | None:
    try:
        properties = parse_properties(data)
    except FormatError:
        return None
    return properties if is_intact(properties) else None


def _instant(now: datetime) -> str:
    return now.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
