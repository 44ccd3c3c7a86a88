"""Changes of a commit to the metadata table, from its write stats; docs/format/metadata.md, section 6.2."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.arrow.arrays import contiguous
from pyhudi.format.base_file.column_bounds import bounds_type
from pyhudi.format.file_names import BASE, file_name_of, file_names_of, parse_names
from pyhudi.metadata.metadata_layout import BLOOM_FILTERS, COLUMN_STATS, FILES, PARTITION_STATS
from pyhudi.metadata.records.record_changes import RecordChanges
from pyhudi.metadata.records.record_factory import file_records, partition_stats_records
from pyhudi.metadata.writer.file_records import FileRecords
from pyhudi.metadata.writer.file_statistics import BOUNDS
from pyhudi.storage import Storage
from pyhudi.table.config.table_config import TableConfig
from pyhudi.timeline.commit_metadata import CommitMetadata
from pyhudi.timeline.operation_types import OVERWRITES


def commit_records(
    storage: Storage,
    config: TableConfig,
    metadata: CommitMetadata,
    instant: str,
    columns: pa.Schema,
    *,
    is_only_write: bool,
) -> dict[str, RecordChanges]:
    """Return the records of a commit, by partition of the metadata table.

    Bounds are part of the write stats (column BOUNDS); missing ones are read from the files. ``columns`` are those with
    statistics. ``is_only_write``: no other write has completed since this one was planned.
    """
    version = config.version
    used = {*config.metadata_partitions, *config.metadata_partitions_inflight}
    files = files_of_commit(metadata)
    touched = set(files["partition"].to_pylist())
    replaced = _emptied(metadata)
    new_files = pa.concat_tables([files.select(["partition", "name", "size"]), _change_files(metadata)])
    converted = FileRecords.from_table(storage, config, columns, instant)
    records = {FILES: file_records(new_files, touched | replaced, version)}
    if used & {COLUMN_STATS, PARTITION_STATS} and columns.names:
        bounds = _bounds_of(files, converted)
        if COLUMN_STATS in used:
            records[COLUMN_STATS] = converted.column_stats(files, bounds)
        if PARTITION_STATS in used:
            whole = is_only_write and metadata.operation in OVERWRITES
            records[PARTITION_STATS] = partition_stats_records(
                contiguous(files["partition"]),
                bounds,
                version,
                tight=touched & replaced if whole else (),
                dropped=sorted(replaced - touched) if whole else (),
            )
    if BLOOM_FILTERS in used:
        records[BLOOM_FILTERS] = converted.blooms(files.filter(pc.equal(files["kind"], BASE)).combine_chunks())
    return records


def _emptied(metadata: CommitMetadata) -> set[str]:
    """Return the partitions in which a commit has replaced file groups. It may list others without any, whose folders
    may not exist."""
    groups = metadata.replaced
    if groups is None:
        return set()
    return set(groups["partition"].filter(pc.is_valid(groups["file_id"])).to_pylist())


def files_of_commit(metadata: CommitMetadata) -> pa.Table:
    """Return the files of a commit: FILE_COLUMNS, ``path``, ``kind``, and BOUNDS if they are part of the write
    stats."""
    stats = metadata.stats.filter(pc.is_valid(metadata.stats["path"])).combine_chunks()
    names = file_names_of(stats["path"])
    table = pa.table(
        {
            "partition": stats["partitionPath"],
            "name": names,
            "size": stats["fileSizeInBytes"],
            "path": stats["path"],
            "kind": parse_names(names)["kind"],
        }
    )
    if BOUNDS in stats.column_names:
        table = table.append_column(BOUNDS, stats[BOUNDS])
    return table.combine_chunks()


def _change_files(metadata: CommitMetadata) -> pa.Table:
    """Return change data files that belong to the data files."""
    stats = metadata.stats.select(["partitionPath", "cdcStats"])
    rows = stats.filter(pc.is_valid(stats["cdcStats"])).to_pylist()
    pairs = [
        {"partition": row["partitionPath"], "name": file_name_of(path), "size": size}
        for row in rows
        for path, size in row["cdcStats"]
    ]
    return pa.Table.from_pylist(
        pairs, schema=pa.schema([("partition", pa.string()), ("name", pa.string()), ("size", pa.int64())])
    )


def _bounds_of(files: pa.Table, converted: FileRecords) -> pa.StructArray:
    target = bounds_type(converted.columns)
    if BOUNDS in files.column_names:
        bounds = contiguous(files[BOUNDS])
        types = {field.name: field.type for field in bounds.type}
        if not bounds.null_count and all(types.get(field.name) == field.type for field in target):
            children = [pc.struct_field(bounds, [field.name]) for field in target]
            return pa.StructArray.from_arrays(children, fields=list(target))
    return converted.bounds(files)
