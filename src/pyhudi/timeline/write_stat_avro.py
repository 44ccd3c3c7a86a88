"""Write stats as the Avro of commits in layout 2, made by columns: a commit has one for each file."""

from __future__ import annotations

import functools

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.format.avro.container import encode_long, load_schema, schema_json
from pyhudi.format.avro.encoder import encode_records
from pyhudi.format.avro.type_tree import Record, record_type


def stats_map(stats: pa.Table) -> bytes:
    """Return the Avro map of arrays of stats by partition path, in the order in which partitions come first.

    Args:
        stats: write stats, as `pyhudi.timeline.commit_metadata.WRITE_STAT_SCHEMA`.
    """
    if not stats.num_rows:
        return encode_long(0)
    encoded = stats.combine_chunks()["partitionPath"].combine_chunks().dictionary_encode()
    encoded = encoded if isinstance(encoded, pa.Array) else encoded.combine_chunks()
    stats = stats.take(pc.sort_indices(encoded.indices)).combine_chunks()
    is_plan = pc.is_null(stats["path"])
    of_plan = pc.if_else(is_plan, pa.scalar(None, pa.string()), stats["partitionPath"])
    record = _stat_type()
    stats = stats.set_column(stats.column_names.index("partitionPath"), "partitionPath", of_plan)
    columns = {field.name: _as(field.type, _whole(stats[field.name])) for field in record.arrow}
    rows = encode_records(record, columns, stats.num_rows).cast(pa.large_binary())
    offsets = np.frombuffer(rows.buffers()[1], np.int64)[rows.offset :]
    data = memoryview(rows.buffers()[2])
    counts = np.bincount(encoded.indices.to_numpy(zero_copy_only=False), minlength=len(encoded.dictionary))
    partitions = encoded.dictionary.to_pylist()
    found = [encode_long(len(partitions))]
    at = 0
    for partition, count in zip(partitions, counts.tolist(), strict=True):
        key = partition.encode()
        of_partition = bytes(data[offsets[at] : offsets[at + count]])
        found += [encode_long(len(key)), key, encode_long(count), of_partition, encode_long(0)]
        at += count
    found.append(encode_long(0))
    return b"".join(found)


@functools.cache
def _stat_type() -> Record:
    commit = load_schema("HoodieCommitMetadata.v8-v9")
    stats = next(field["type"] for field in commit["fields"] if field["name"] == "partitionToWriteStats")
    return record_type(schema_json(stats[1]["values"]["items"]))


def _as(wanted: pa.DataType, column: pa.Array) -> pa.Array:
    """The column in the type that the schema means: of structs, fields in its order."""
    if not pa.types.is_struct(wanted):
        return column.cast(wanted)
    fields = [pc.struct_field(column, wanted.field(i).name) for i in range(wanted.num_fields)]
    cast = [values.cast(wanted.field(i).type) for i, values in enumerate(fields)]
    return pa.StructArray.from_arrays(cast, fields=list(wanted), mask=pc.is_null(column))


def _whole(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    found = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    return found if isinstance(found, pa.Array) else pa.concat_arrays(found.chunks)
