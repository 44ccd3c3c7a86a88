"""The data files of a table as its metadata table lists them: one Arrow table, no Python object a file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import MetadataTableError
from pyhudi.format.filenames import BASE, LOG, parse_names
from pyhudi.metadata import keys
from pyhudi.metadata.records import FILES as LISTS
from pyhudi.metadata.table import KEY, MetadataTable
from pyhudi.table.listing import FILE_SCHEMA

FILES = "files"
"""The partition of the metadata table that lists files."""

_MANY = 4
"""Above one in so many partitions, all of them are read rather than looked up."""


def partition_paths(table: MetadataTable) -> list[str]:
    """The partitions of the table, by path, sorted.

    Raises:
        MetadataTableError: the metadata table cannot be read, or does not list partitions.
    """
    if table.partition_paths is None:
        found = table.lookup(FILES, pa.array([keys.ALL_PARTITIONS]), [LISTS])
        names = keys.partition_paths(_flat(found)["name"]).to_pylist() if found.num_rows else []
        table.partition_paths = sorted(names)
    return table.partition_paths


@dataclass(frozen=True, slots=True)
class FileLists:
    """The files of some partitions (paths) as the metadata table lists them: of each the ``row`` of its partition,
    ascending, its name and its size. Files of any kind are there, also those that do not count."""

    partitions: pa.StringArray
    rows: npt.NDArray[np.int64]
    names: pa.StringArray
    sizes: pa.Int64Array

    def among(self, paths: pa.StringArray) -> FileLists:
        """Those of some of the partitions."""
        kept = pc.is_in(self.partitions, value_set=paths).to_numpy(zero_copy_only=False)
        if kept.all():
            return self
        places = np.flatnonzero(kept[self.rows])
        numbers, some = np.cumsum(kept) - 1, pa.array(places)
        return FileLists(
            self.partitions.filter(pa.array(kept)),
            numbers[self.rows[places]],
            self.names.take(some),
            self.sizes.take(some),
        )


def file_lists(table: MetadataTable, partitions: Sequence[str]) -> FileLists:
    """What is listed of partitions that there are.

    Raises:
        MetadataTableError: the metadata table cannot be read, or has no record of one of them.
    """
    names = keys.partition_names(partitions)
    if len(partitions) * _MANY > len(partition_paths(table)):
        records = table.scan(FILES, [LISTS])
        records = records.filter(pc.is_in(records[KEY], value_set=names))
    else:
        records = table.lookup(FILES, names, [LISTS])
    if records.num_rows != len(partitions):
        there = set(records[KEY].to_pylist())
        missing = [name for name in names.to_pylist() if name not in there]
        raise MetadataTableError(
            f"{table.storage.uri('.hoodie/metadata/files')} lists the partition {missing[0]!r}, but not its files"
        )
    flat = _flat(records)
    sizes, texts = (flat[name].combine_chunks() for name in ("size", "name"))
    return FileLists(keys.partition_paths(records[KEY]), flat["row"].to_numpy(), texts, sizes)


def list_from_metadata(table: MetadataTable, partitions: Sequence[str] | None = None) -> tuple[pa.Table, list[str]]:
    """Base and log files (:data:`pyhudi.table.listing.FILE_SCHEMA`) of the table, or of the given partitions, and the
    sorted partition paths.

    Raises:
        MetadataTableError: the metadata table cannot be read, or has no record of a partition that it lists.
    """
    known = partition_paths(table)
    found = known if partitions is None else sorted(set(partitions) & set(known))
    held, table.listed = table.listed, None
    if held is None or not set(found) <= set(held.partitions.to_pylist()):
        held = file_lists(table, found)
    return _files(held.among(pa.array(found, pa.string()))), found if partitions is None else sorted(set(partitions))


def _files(lists: FileLists) -> pa.Table:
    """The data files of lists."""
    partition = lists.partitions.take(pa.array(lists.rows))
    names = lists.names
    parsed = parse_names(names)
    parts = [parsed[name] for name in ("kind", "file_id", "token", "instant", "log_version")]
    path = pc.binary_join_element_wise(partition, names, "/")
    if pc.any(pc.equal(partition, "")).as_py():
        path = pc.if_else(pc.equal(partition, ""), names, path)
    table = pa.Table.from_arrays([partition, path, lists.sizes, *parts], schema=FILE_SCHEMA)
    known = pc.is_in(table["kind"], value_set=pa.array([BASE, LOG]))
    return table if pc.all(known).as_py() else table.filter(known)


def _flat(records: pa.Table) -> pa.Table:
    """The live entries of file lists: ``row`` of the record, ``name``, ``size``."""
    rows, names, sizes = [], [], []
    start = 0
    for chunk in records[LISTS].chunks:
        offsets = chunk.offsets.to_numpy().astype(np.int64)
        first, count = int(offsets[0]), int(offsets[-1] - offsets[0])
        infos = chunk.items.slice(first, count)
        owner = np.repeat(np.arange(start, start + len(chunk)), np.diff(offsets))
        live = pc.invert(infos.field("isDeleted"))
        every = pc.all(live).as_py()
        rows.append(pa.array(owner) if every else pa.array(owner).filter(live))
        names.append(chunk.keys.slice(first, count) if every else chunk.keys.slice(first, count).filter(live))
        sizes.append(infos.field("size") if every else infos.field("size").filter(live))
        start += len(chunk)
    schema = pa.schema([("row", pa.int64()), ("name", pa.string()), ("size", pa.int64())])
    columns = [
        pa.chunked_array(parts, field.type).combine_chunks()
        for parts, field in zip((rows, names, sizes), schema, strict=True)
    ]
    return pa.Table.from_arrays(columns, schema=schema)
