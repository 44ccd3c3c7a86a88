"""``.hoodie/hoodie.properties`` in storage: created once, rewritten with a backup, readable at every moment.

A rewrite puts the old content into ``hoodie.properties.backup``, replaces the main file, and deletes the backup
(Apache Hudi's protocol, so that its writers and ours recover each other). Our replacement is atomic and conditional:
of two rewriters one comes second and starts again from what the first one wrote. A writer that is not atomic may leave
a missing, empty or cut-off main file; the backup then stands in until the next rewrite puts it back.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from datetime import UTC, datetime

from pyhudi.errors import (
    AlreadyExistsError,
    CorruptTableError,
    FormatError,
    NotAHudiTableError,
    NotFoundError,
    PreconditionFailedError,
    TableExistsError,
)
from pyhudi.storage.storage_protocol import Storage
from pyhudi.table.config.properties_text import CHECKSUM, format_properties, is_intact, parse_properties, table_checksum

META_FOLDER = ".hoodie"
PATH = f"{META_FOLDER}/hoodie.properties"
BACKUP_PATH = f"{PATH}.backup"

_WAITS = (0.0, 0.02, 0.1, 0.4, 1.0)  # seconds before each look, while another writer rewrites the file
_REWRITES = 20


def load_properties(storage: Storage) -> dict[str, str]:
    """The table's properties: the main file, else its backup.

    Raises NotAHudiTableError when neither is there, CorruptTableError when neither is whole, after waiting a little
    for a rewrite in progress.
    """
    broken: list[str] = []
    for wait in _WAITS:
        time.sleep(wait)
        broken = []
        # main, backup, and main again: a rewrite may end (the backup goes) between the first two looks
        for path in (PATH, BACKUP_PATH, PATH):
            found, problem = _read(storage, path)
            if found is not None:
                return found
            if problem is not None:
                broken.append(problem)
        if not broken and not (storage.list(META_FOLDER).num_rows or storage.list_dirs(META_FOLDER)):
            break
    else:
        if not broken:
            raise NotAHudiTableError(
                f"there is no Hudi table at {storage.root}: {PATH} does not exist, but other files in {META_FOLDER} "
                "do; check the path, or, if the file is lost, write it anew by pyhudi.overwrite_properties"
            )
    if broken:
        raise CorruptTableError(
            f"{broken[0]}, and {BACKUP_PATH} is missing or no better; restore the file, for instance from the "
            "properties of a table made with the same options, or write it anew by pyhudi.overwrite_properties"
        )
    raise NotAHudiTableError(
        f"there is no Hudi table at {storage.root}: {PATH} does not exist; check the path, or create the table first"
    )


def create_properties(storage: Storage, properties: Mapping[str, str]) -> None:
    """Make the file if the table does not exist; of racing creators one returns, the others get TableExistsError."""
    now = datetime.now(UTC)
    data = format_properties(properties, (f"Properties saved on {_instant(now)}",), now)
    try:
        storage.create(PATH, data)
    except AlreadyExistsError as e:
        raise TableExistsError(
            f"there is a Hudi table at {storage.root} already; open it, or choose another path"
        ) from e


def update_properties(
    storage: Storage,
    *,
    put: Mapping[str, str] | None = None,
    remove: Collection[str] = (),
    change: Callable[[dict[str, str]], None] | None = None,
) -> dict[str, str]:
    """Rewrite the file: set *put*, drop *remove*, then let *change* edit the rest; return the new properties.

    What changes nothing writes nothing. Leftovers of a rewrite that was cut off are recovered first. Raises as
    :func:`load_properties`, and PreconditionFailedError when other writers keep rewriting the file.
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
        wanted = {key: value for key, value in current.items() if key not in remove} | dict(put or {})
        if change is not None:
            change(wanted)
        wanted[CHECKSUM] = table_checksum(wanted)
        if wanted == current:
            return wanted
        now = datetime.now(UTC)
        text = format_properties(wanted, (f"Updated at {_instant(now)}",), now)
        storage.write(BACKUP_PATH, data)
        try:
            storage.replace(PATH, text, before.version)
        except PreconditionFailedError:
            continue
        storage.delete(BACKUP_PATH)
        return wanted
    raise PreconditionFailedError(f"{storage.uri(PATH)} is being rewritten by others all the time; try again")


def overwrite_properties(storage: Storage, properties: Mapping[str, str]) -> dict[str, str]:
    """Put *properties* in place of all that the file has, also where it is damaged or lost; return them with their
    checksum. Raises PreconditionFailedError when another writer rewrites the file meanwhile.
    """

    def replaced(found: dict[str, str]) -> None:
        found.clear()
        found.update(properties)

    try:
        return update_properties(storage, change=replaced)
    except (CorruptTableError, NotAHudiTableError):
        main = storage.stat(PATH)
    wanted = {**properties, CHECKSUM: table_checksum(properties)}
    now = datetime.now(UTC)
    text = format_properties(wanted, (f"Updated at {_instant(now)}",), now)
    storage.replace(PATH, text, main.version if main is not None else None)
    storage.delete(BACKUP_PATH)
    return wanted


def recover_properties(storage: Storage) -> None:
    """Finish or undo a rewrite that was cut off: put a good backup over a broken main file, or drop a needless one.

    Does nothing when there is no backup and the main file is whole; raises as :func:`load_properties`.
    """
    main = storage.stat(PATH)
    if main is not None and _read(storage, PATH)[0] is not None:
        if storage.exists(BACKUP_PATH):
            storage.delete(BACKUP_PATH)
        return
    load_properties(storage)  # waits for writers that are not atomic; raises when there is nothing to recover from
    if _read(storage, PATH)[0] is not None:
        return
    try:
        data = storage.read(BACKUP_PATH)
    except NotFoundError:
        return  # another writer recovered it
    main = storage.stat(PATH)
    try:
        storage.replace(PATH, data, main.version if main is not None else None)
    except PreconditionFailedError:
        return
    storage.delete(BACKUP_PATH)


def _read(storage: Storage, path: str) -> tuple[dict[str, str] | None, str | None]:
    """The properties at *path* when whole; otherwise what is wrong, or nothing when there is no file."""
    try:
        data = storage.read(path)
    except NotFoundError:
        return None, None
    try:
        found = parse_properties(data)
    except FormatError as e:
        return None, f"{storage.uri(path)} is broken: {e}"
    if is_intact(found):
        # a line that does not end, while a rewrite is under way: the right checksum came before the cut
        if path == PATH and not data.endswith((b"\n", b"\r")) and storage.exists(BACKUP_PATH):
            return None, f"{storage.uri(path)} is cut off"
        return found, None
    if not data:
        return None, f"{storage.uri(path)} is empty"
    if CHECKSUM not in found:
        return None, f"{storage.uri(path)} has no {CHECKSUM}, so it is cut off or was made by hand"
    return None, (
        f"{storage.uri(path)} says {CHECKSUM}={found[CHECKSUM]}, but its table and database name give "
        f"{table_checksum(found)}"
    )


def _parse(data: bytes) -> dict[str, str] | None:
    try:
        found = parse_properties(data)
    except FormatError:
        return None
    return found if is_intact(found) else None


def _instant(now: datetime) -> str:
    return now.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
