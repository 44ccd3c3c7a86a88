"""Listing of the data files of a table in storage, as an Arrow table without a Python object per file."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.format.file_names import BASE, LOG, parse_names, split_paths
from pyhudi.storage import Storage
from pyhudi.storage.concurrent_reads import concurrent_map
from pyhudi.storage.storage_protocol import LISTING_SCHEMA
from pyhudi.storage.table_paths import META_FOLDER, PARTITION_METADATA

FILE_SCHEMA = pa.schema(
    [
        ("partition", pa.string()),
        ("path", pa.string()),
        ("size", pa.int64()),
        ("kind", pa.string()),
        ("file_id", pa.string()),
        ("token", pa.string()),
        ("instant", pa.string()),
        ("log_version", pa.int32()),
    ]
)
"""Base and log files as listed: ``path`` relative to the root, ``size`` in bytes, ``instant`` as in the name."""


DATA_KINDS = (BASE, LOG)
"""Kinds of files that hold the rows of a table, in contrast to change data files."""


def list_files(
    storage: Storage,
    partitions: Sequence[str] | None = None,
    kinds: Sequence[str] = DATA_KINDS,
    *,
    folders: Sequence[str] | None = None,
) -> tuple[pa.Table, list[str]]:
    """Return base and log files (`FILE_SCHEMA`) of the table, or of the given partitions, and the sorted partition
    paths.

    Without ``partitions`` the whole tree is listed; a folder with a partition metadata file is a partition. Given
    partitions are not checked, and missing ones are empty. ``kinds`` are other kinds of files to list
    (`pyhudi.format.file_names`). ``folders`` are the names of the folders of the table, if the caller has listed them.
    """
    listing = _list_tree(storage, folders) if partitions is None else _list_folders(storage, partitions)
    if partitions is None:
        parents, names = split_paths(listing["path"])
        marks = pc.starts_with(names, PARTITION_METADATA)
        partition_paths = sorted(pc.unique(parents.filter(marks)).to_pylist())
        listing = listing.filter(pc.is_in(parents, value_set=pa.array(partition_paths, pa.string())))
    else:
        partition_paths = sorted(set(partitions))
    return files_of_listing(listing, kinds), partition_paths


def files_of_listing(listing: pa.Table, kinds: Sequence[str] = DATA_KINDS) -> pa.Table:
    """Return the files of these kinds (`FILE_SCHEMA`) in a listing
    (`pyhudi.storage.storage_protocol.LISTING_SCHEMA`)."""
    folders, names = split_paths(listing["path"])
    parsed = parse_names(names)
    table = pa.Table.from_arrays(
        [
            folders,
            listing["path"],
            listing["size"],
            *(parsed[name] for name in ("kind", "file_id", "token", "instant", "log_version")),
        ],
        schema=FILE_SCHEMA,
    )
    return table.filter(pc.is_in(table["kind"], value_set=pa.array(kinds)))


def _list_tree(storage: Storage, folders: Sequence[str] | None) -> pa.Table:
    # Not one recursive listing, because .hoodie can be larger than the table.
    names = storage.list_dirs("") if folders is None else folders
    dirs = [name for name in names if name != META_FOLDER]
    below = concurrent_map(lambda name: storage.list(name, recursive=True), dirs)
    return pa.concat_tables([storage.list(""), *below])


def _list_folders(storage: Storage, partitions: Sequence[str]) -> pa.Table:
    folders = sorted(set(partitions))
    return pa.concat_tables([LISTING_SCHEMA.empty_table(), *concurrent_map(storage.list, folders)])
