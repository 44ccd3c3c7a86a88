"""Metadata tables for tables that tests and benchmarks create directly: one build, every partition with base files."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.format.hfile.hfile_writer import write_hfile
from pyhudi.metadata.records import file_group_hash, metadata_keys
from pyhudi.metadata.records.metadata_record import RecordType, encode, payload_type, record_schema
from pyhudi.metadata.records.stats_values import value_type, wrap_values
from pyhudi.storage import Storage
from pyhudi.table.config.table_config import TableConfig
from pyhudi.timeline.commit_metadata import CommitMetadata, write_stats
from pyhudi.timeline.instant import Action

FOLDER = ".hoodie/metadata"
PREFIXES = {"column_stats": "col-stats"}


def attach(storage: Storage, partitions: Mapping[str, Sequence[tuple[pa.Array, pa.Array]]], completion: str) -> None:
    """Write a metadata table of version 9: partition → (keys, values) of each file group, in any order of the keys."""
    config = TableConfig.load(storage)
    own = {
        "hoodie.table.name": f"{config.name}_metadata",
        "hoodie.table.version": "9",
        "hoodie.timeline.layout.version": "2",
        "hoodie.table.type": "MERGE_ON_READ",
        "hoodie.table.base.file.format": "HFILE",
        "hoodie.table.keygenerator.type": "HOODIE_TABLE_METADATA",
    }
    text = "".join(f"{key}={value}\n" for key, value in own.items())
    storage.write(f"{FOLDER}/.hoodie/hoodie.properties", text.encode())
    for number, (partition, groups) in enumerate(partitions.items()):
        instant = f"{number:017d}"
        stats = []
        for group, (key, value) in enumerate(groups):
            order = pc.sort_indices(key.cast(pa.binary()))
            data = write_hfile(key.take(order), value.take(order), schema=record_schema(9))
            file_id = f"{PREFIXES.get(partition, partition.replace('_', '-'))}-{group:04d}-0"
            path = f"{partition}/{file_id}_0-0-0_{instant}.hfile"
            storage.write(f"{FOLDER}/{path}", data)
            row = {"partitionPath": partition, "fileId": file_id, "path": path, "fileSizeInBytes": len(data)}
            stats.append(row)
        metadata = CommitMetadata("BULK_INSERT_PREPPED", write_stats(stats), {})
        content = metadata.encode(9, Action.DELTA_COMMIT)
        for suffix in ("deltacommit.requested", "deltacommit.inflight"):
            storage.write(f"{FOLDER}/.hoodie/timeline/{instant}.{suffix}", b"")
        storage.write(f"{FOLDER}/.hoodie/timeline/{instant}_{completion}.deltacommit", content)
    config.updated(storage, set={"hoodie.table.metadata.partitions": ",".join(sorted(partitions))})


def grouped(key: pa.Array, value: pa.Array, groups: int) -> list[tuple[pa.Array, pa.Array]]:
    """Return the records grouped by the file groups that their keys belong to."""
    number = file_group_hash.file_group_index_of(key, groups)
    return [(key.filter(pa.array(number == n)), value.filter(pa.array(number == n))) for n in range(groups)]


def file_lists(files: pa.Table) -> list[tuple[pa.Array, pa.Array]]:
    """Return the partition ``files`` for files (``partition``, ``name``, ``size``), sorted by partition."""
    names = metadata_keys.partition_names(files["partition"].combine_chunks())
    runs = pc.run_end_encode(names)
    ends = np.append(0, runs.run_ends.to_numpy()).astype(np.int32)
    found = runs.values
    infos = pa.StructArray.from_arrays(
        [files["size"].combine_chunks(), pa.repeat(pa.scalar(False), files.num_rows)],
        fields=list(payload_type(RecordType.FILES, 9).item_type),
    )
    kind = payload_type(RecordType.FILES, 9)
    lists = pa.MapArray.from_arrays(pa.array(ends), files["name"].combine_chunks(), infos, type=kind)
    size = pa.repeat(pa.scalar(0, pa.int64()), len(found))
    nothing = pa.StructArray.from_arrays([size, pa.repeat(pa.scalar(False), len(found))], fields=list(kind.item_type))
    every = pa.MapArray.from_arrays(pa.array([0, len(found)], pa.int32()), found, nothing, type=kind)
    key = pa.concat_arrays([pa.array([metadata_keys.ALL_PARTITIONS]), found])
    value = pa.concat_arrays([encode(RecordType.PARTITIONS, every, 9), encode(RecordType.FILES, lists, 9)])
    return [(key, value)]


def statistics(
    kind: RecordType,
    columns: Sequence[str],
    partitions: pa.Array,
    names: pa.Array,
    least: pa.Array,
    greatest: pa.Array,
    rows: pa.Array,
    nulls: pa.Array,
) -> tuple[pa.Array, pa.Array]:
    """Return keys and values of statistics of one column of a type, row by row; ``names`` are those of files or
    partitions."""
    column = pa.array(columns, pa.string())
    empty = pc.and_(least.is_null(), greatest.is_null())
    payload = pa.table(
        {
            "fileName": names,
            "columnName": column,
            "minValue": wrap_values(least, 9),
            "maxValue": wrap_values(greatest, 9),
            "valueCount": rows,
            "nullCount": nulls,
            "isTightBound": pa.repeat(pa.scalar(kind is RecordType.PARTITION_STATS), len(column)),
            "valueType": value_type(least.type, empty),
        }
    )
    if kind is RecordType.PARTITION_STATS:
        return metadata_keys.partition_stats_keys(column, partitions), encode(kind, payload, 9)
    return metadata_keys.column_stats_keys(column, partitions, names), encode(kind, payload, 9)


def definitions(columns: Sequence[str]) -> bytes:
    """Return ``index.json`` for column statistics."""
    entry: dict[str, Any] = {"indexName": "column_stats", "indexType": "column_stats", "sourceFields": list(columns)}
    return json.dumps({"indexDefinitions": {"column_stats": {**entry, "indexOptions": {}, "version": "V2"}}}).encode()
