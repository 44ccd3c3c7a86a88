"""Data files of a table as listed in its metadata table: one Arrow table, without a Python object per file."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import MetadataTableError
from pyhudi.format.file_names import file_paths, parse_names
from pyhudi.metadata.metadata_layout import FILES
from pyhudi.metadata.reader.file_lists import FileLists, listed_files
from pyhudi.metadata.reader.metadata_table import KEY, MetadataTable
from pyhudi.metadata.records import metadata_keys
from pyhudi.metadata.records.metadata_record import FILES_PAYLOAD
from pyhudi.storage.table_paths import METADATA_FOLDER
from pyhudi.table.view.file_listing import DATA_KINDS, FILE_SCHEMA

_MANY = 4
"""If more than one in this number of partitions is requested, all of them are read instead of looked up."""


def file_lists(table: MetadataTable, partitions: Sequence[str]) -> FileLists:
    """Return the file lists of the partitions that exist.

    Raises:
        MetadataTableError: The metadata table cannot be read, or has no record of one of them.
    """
    names = metadata_keys.partition_names(partitions)
    if len(partitions) * _MANY > len(table.partition_paths):
        records = table.scan(FILES, [FILES_PAYLOAD])
        records = records.filter(pc.is_in(records[KEY], value_set=names))
    else:
        records = table.lookup(FILES, names, [FILES_PAYLOAD])
    if records.num_rows != len(partitions):
        listed = set(records[KEY].to_pylist())
        missing = [name for name in names.to_pylist() if name not in listed]
        raise MetadataTableError(
            f"{table.storage.uri(f'{METADATA_FOLDER}/files')} lists the partition {missing[0]!r}, but not its files"
        )
    flat = listed_files(records)
    sizes, texts = (flat[name].combine_chunks() for name in ("size", "name"))
    return FileLists(metadata_keys.paths_of_keys(records[KEY]), flat["row"].to_numpy(), texts, sizes)


def list_from_metadata(
    table: MetadataTable,
    partitions: Sequence[str] | None = None,
    kinds: Sequence[str] = DATA_KINDS,
    listed: FileLists | None = None,
) -> tuple[pa.Table, list[str]]:
    """Return files (:data:`pyhudi.table.view.file_listing.FILE_SCHEMA`) of the table, or of some partitions, and the
    sorted partition paths.

    Args:
        table: The metadata table.
        partitions: Paths of partitions, of which missing ones are empty; None: all.
        kinds: Kinds of files.
        listed: Files of the table that have been listed before.

    Raises:
        MetadataTableError: The metadata table cannot be read, or has no record of a partition that it lists.
    """
    all_partitions = table.partition_paths
    existing = all_partitions if partitions is None else sorted(set(partitions) & set(all_partitions))
    if listed is None or not set(existing) <= set(listed.partitions.to_pylist()):
        listed = file_lists(table, existing)
    files = _files(listed.among(pa.array(existing, pa.string())), kinds)
    return files, existing if partitions is None else sorted(set(partitions))


def _files(lists: FileLists, kinds: Sequence[str]) -> pa.Table:
    """Return the files of some kinds in the lists."""
    partition = lists.partitions.take(pa.array(lists.rows))
    names = lists.names
    parsed = parse_names(names)
    parts = [parsed[name] for name in ("kind", "file_id", "token", "instant", "log_version")]
    table = pa.Table.from_arrays([partition, file_paths(partition, names), lists.sizes, *parts], schema=FILE_SCHEMA)
    is_of_kind = pc.is_in(table["kind"], value_set=pa.array(kinds))
    return table if pc.all(is_of_kind).as_py() else table.filter(is_of_kind)
