"""Comparison of a metadata table with the storage."""

from __future__ import annotations

from contextlib import suppress

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.arrow.arrays import contiguous
from pyhudi.errors import CorruptInstantError, HudiError
from pyhudi.metadata.metadata_layout import FILES
from pyhudi.metadata.reader.metadata_file_listing import list_from_metadata
from pyhudi.metadata.reader.metadata_table import MetadataTable
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.table.view.file_system_view import FileSystemView
from pyhudi.timeline.markers import Markers, marked_instants

DIFFERENCE_SCHEMA = pa.schema(
    [
        ("problem", pa.string()),
        ("path", pa.string()),
        ("size_in_metadata", pa.int64()),
        ("size_in_storage", pa.int64()),
    ]
)
"""``problem`` is a text; ``path`` is that of the file, null for a general problem; sizes are those of the file in
both."""

UNUSABLE, NOT_LISTED, NOT_THERE, OTHER_SIZE = (
    "the metadata table cannot be used",
    "not in the metadata table",
    "not in the storage",
    "of another size",
)


def metadata_differences(table: TableSnapshot) -> pa.Table:
    """Compare the files listed in the metadata table with the committed files in storage (`DIFFERENCE_SCHEMA`), and
    read all other partitions completely."""
    if FILES not in table.config.metadata_partitions:
        return DIFFERENCE_SCHEMA.empty_table()
    broken = []
    try:
        metadata = MetadataTable.open(table)
        from_metadata = FileSystemView.load(
            table, lister=lambda _, partitions: list_from_metadata(metadata, partitions)
        )
    except HudiError as error:
        return _problems([f"{UNUSABLE}: {error}"])
    for partition in metadata.partitions:
        try:
            for group in metadata.file_slices(partition):
                metadata.scan_groups([group])  # a record index is larger than memory
        except HudiError as error:
            broken.append(f"{UNUSABLE}: {error}")
    listed, stored = _files(from_metadata), _files(FileSystemView.load(table))
    joined = listed.join(stored, "path", join_type="full outer", left_suffix="_in_metadata", right_suffix="_in_storage")
    in_metadata, in_storage = joined["size_in_metadata"], joined["size_in_storage"]
    problem = pc.case_when(
        pc.make_struct(pc.is_null(in_metadata), pc.is_null(in_storage), pc.not_equal(in_metadata, in_storage)),
        NOT_LISTED,
        NOT_THERE,
        OTHER_SIZE,
    )
    if table.config.version < 8:
        # Recorded sizes of log files may be outdated, and the names of log files do not contain the instants of writes.
        is_log = pc.match_substring_regex(joined["path"], r"/?\.[^/]*$")
        is_outdated = pc.and_(pc.equal(problem, OTHER_SIZE), is_log)
        # Rollbacks do not list log files without a block.
        is_empty = pc.and_(is_log, pc.fill_null(pc.equal(in_storage, 0), fill_value=False))
        is_unlisted = pc.or_(is_empty, pc.is_in(joined["path"], value_set=_pending_files(table)))
        is_expected = pc.or_(is_outdated, pc.and_(pc.equal(problem, NOT_LISTED), is_unlisted))
        problem = pc.if_else(is_expected, pa.scalar(None, pa.string()), problem)
    compared = pa.Table.from_arrays([problem, joined["path"], in_metadata, in_storage], schema=DIFFERENCE_SCHEMA)
    return pa.concat_tables([_problems(broken), compared.filter(pc.is_valid(compared["problem"])).sort_by("path")])


def is_usable(differences: pa.Table) -> bool:
    """Return True unless one of the differences is that the metadata table cannot be used."""
    return not pc.any(pc.starts_with(differences["problem"], UNUSABLE)).as_py()


def _problems(texts: list[str]) -> pa.Table:
    count = len(texts)
    columns = [pa.array(texts, pa.string()), *(pa.nulls(count, field.type) for field in list(DIFFERENCE_SCHEMA)[1:])]
    return pa.Table.from_arrays(columns, schema=DIFFERENCE_SCHEMA)


def _pending_files(table: TableSnapshot) -> pa.Array:
    """Return the paths of the files for which pending writes have markers."""
    pending = set(table.active.timeline.pending().requested_times)
    marked = [instant for instant in marked_instants(table.storage) if instant in pending]
    found: list[pa.Array] = []
    for instant in marked:
        with suppress(CorruptInstantError):  # its writer is killed, or is writing them anew
            found += Markers(table.storage, instant).list()["data_path"].chunks
    return pa.chunked_array(found, pa.string()).combine_chunks()


def _files(view: FileSystemView) -> pa.Table:
    slices = view.all_slices()
    base = slices.filter(pc.is_valid(slices["base_path"]))
    return pa.table(
        {
            "path": pa.concat_arrays(
                [contiguous(base["base_path"]), pc.list_flatten(contiguous(slices["log_paths"])).cast(pa.string())]
            ),
            "size": pa.concat_arrays(
                [contiguous(base["base_size"]), pc.list_flatten(contiguous(slices["log_sizes"])).cast(pa.int64())]
            ),
        }
    )
