"""Checks of the location of a table that is created."""

from __future__ import annotations

import pyarrow.compute as pc
from pyspark.sql import SparkSession

from pyhudi.config import Options
from pyhudi.errors import TableExistsError
from pyhudi.spark.read.load_table import session_settings
from pyhudi.spark.sql.catalog import CatalogTable
from pyhudi.sql.string_literals import string_literal
from pyhudi.storage import Storage, open_sibling, open_storage, resolved_root

_LEFT_BEHIND = (
    r"^\.hoodie/(\.temp/|\.aux/\.writing/|\.locks/|lock$)|(^|/)\.hoodie_partition_metadata(\.parquet|\.orc)?$"
)
"""Files of a location without a table that are of failed writes and have no rows."""


def refuse_overlap(old: CatalogTable | None, storage: Storage) -> None:
    """Refuse a location inside or above the folder of the managed table that is replaced, because that folder is
    deleted with the table. The location of that table itself is allowed, unless symbolic links lead there.

    Raises:
        TableExistsError: The message has both locations.
    """
    if old is None or not old.managed:
        return
    root = open_sibling(storage, old.location).root
    new_root, old_root = (resolved_root(path).rstrip("/") + "/" for path in (storage.root, root))
    if root != storage.root and (new_root.startswith(old_root) or old_root.startswith(new_root)):
        raise TableExistsError(
            f"the location {storage.uri()!r} overlaps {old.location!r}, the folder of {old.sql}, which replacing the "
            "table deletes; choose another location, or leave LOCATION out to keep the folder"
        )


def table_exists_at(location: str) -> TableExistsError:
    """Return the error of CREATE TABLE … AS at the location of a Hudi table."""
    return TableExistsError(
        f"there is a Hudi table at {location!r} already, which AS would overwrite. To use it, leave AS out and "
        f"register it with LOCATION {string_literal(location)}, for INSERT or INSERT OVERWRITE; if an interrupted "
        "statement has left it, delete its files"
    )


def is_location_of(replaced: CatalogTable | None, storage: Storage) -> bool:
    """Return True if a storage has the files of a managed table, which are deleted with it."""
    return replaced is not None and replaced.managed and open_sibling(storage, replaced.location).root == storage.root


def refuse_files(storage: Storage) -> None:
    """Refuse a location with files, because a table treats every file below its root as its own, and one with the
    timeline of a table that has lost its properties, which would be that of the new table. Leftovers of a failed first
    write are allowed: a task that outlives the write may create the folders of its markers, and the metadata file of
    its partition, again.

    Raises:
        TableExistsError: The message has one of the files.
    """
    for folder in ("", *storage.list_dirs()):
        paths = storage.list(folder, recursive=bool(folder))["path"]
        files = paths.filter(pc.invert(pc.match_substring_regex(paths, _LEFT_BEHIND)))
        if len(files):
            raise TableExistsError(
                f"cannot create a table at {storage.uri()!r}, which has files: {files[0].as_py()!r}; choose an "
                "empty location, or delete the files. CALL run_bootstrap creates a table over existing files"
            )


def table_storage(spark: SparkSession, table: CatalogTable) -> Storage:
    """Return the storage of a table, which need not exist yet."""
    return open_storage(table.location, Options.parse({**session_settings(spark, table.location), **table.options}))
