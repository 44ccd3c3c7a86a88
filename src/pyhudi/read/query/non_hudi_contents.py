"""Contents of a path without a Hudi table, for messages: tables of other formats, data files, or tables in folders."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from pyhudi.errors import StorageError
from pyhudi.storage import Storage, open_storage
from pyhudi.storage.concurrent_reads import concurrent_map
from pyhudi.storage.local_storage import LocalStorage
from pyhudi.storage.table_paths import META_FOLDER
from pyhudi.table.config.properties_file import PATH

_DELTA_LOG = "_delta_log"
_ICEBERG_METADATA = "metadata"
_MAX_FOLDERS = 50
"""Number of folders in which tables are looked for."""
_MAX_NAMES = 3


def describe_contents(path: str, options: Mapping[str, str] | None) -> str:
    """Return what is at a path that is no Hudi table, and how to read it; empty if nothing is known.

    Errors of the storage are ignored, because the message is about another one.
    """
    try:
        return _file(path, options) or _folder(open_storage(path, options))
    except StorageError:
        return ""


def describe_other_format(path: str, options: Mapping[str, str] | None) -> str:
    """Return which table of another format is at a path; empty if there is none, or nothing can be listed."""
    try:
        storage = open_storage(path, options)
        return _other_format(storage, storage.list_dirs())
    except StorageError:
        return ""


def describe_file(path: str, options: Mapping[str, str] | None) -> str:
    """Return that a path is a file; empty if it is not, or that is unknown."""
    try:
        return _file(path, options)
    except StorageError:
        return ""


def _file(path: str, options: Mapping[str, str] | None) -> str:
    parent, slash, name = path.rstrip("/").rpartition("/")
    if parent.endswith(("/", ":")) or not name or (slash and not parent):
        return ""
    storage = open_storage(parent or ".", options)
    found = storage.stat(name)
    # In an object store, an empty object may be Hadoop's mark of a folder.
    is_file = found is not None and (found.size > 0 or isinstance(storage, LocalStorage))
    return "it is a file; a table is given by its root folder" if is_file else ""


def _folder(storage: Storage) -> str:
    folders = storage.list_dirs()
    other = _other_format(storage, folders)
    if other:
        return other
    if META_FOLDER in folders:
        return (
            f"it has the folder {META_FOLDER}, but {PATH} is missing; if the file was lost, recreate it with "
            "pyhudi.overwrite_properties"
        )
    folders = folders[:_MAX_FOLDERS]
    is_table = concurrent_map(storage.exists, [f"{name}/{PATH}" for name in folders])
    tables = [name for name, yes in zip(folders, is_table, strict=True) if yes]
    if tables:
        shown = ", ".join(map(repr, tables[:_MAX_NAMES])) + (", …" if len(tables) > _MAX_NAMES else "")
        return f"it has tables in its folders: {shown}"
    if _has(storage, "", ".parquet", ".orc"):
        return (
            "it has data files without a table: spark.read.parquet or .orc reads them, and pyhudi.bootstrap_table "
            "makes a table over them"
        )
    return ""


def _other_format(storage: Storage, folders: Collection[str]) -> str:
    if _DELTA_LOG in folders:
        return f"it is a Delta Lake table ({_DELTA_LOG}), which Delta's package reads by format('delta')"
    if _ICEBERG_METADATA in folders and _has(storage, _ICEBERG_METADATA, ".metadata.json"):
        return f"it is an Iceberg table ({_ICEBERG_METADATA}/*.metadata.json), which Iceberg's package reads"
    return ""


def _has(storage: Storage, folder: str, *endings: str) -> bool:
    return any(str(path).endswith(endings) for path in storage.list(folder)["path"].to_pylist())
