"""Check that no key was added to a second file group while a record index was built, which has one location per key."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.arrow.group_runs import by_group
from pyhudi.format.hfile.hfile_reader import HFileReader
from pyhudi.format.hfile.key_values import ENTRY_SCHEMA
from pyhudi.metadata.file_groups.hfile_sources import NO_CACHE, StorageRanges
from pyhudi.metadata.records.metadata_record import RECORD_INDEX_PAYLOAD, decode, record_schema
from pyhudi.metadata.records.record_locations import decode_locations
from pyhudi.read.execution.file_slice_reader import column_names, slice_context
from pyhudi.read.schema.table_columns import resolve_table_schema
from pyhudi.schema.meta_fields import RECORD_KEY
from pyhudi.spark.execution.row_tasks import Batches, map_in_arrow
from pyhudi.spark.helper_columns import INDEX_GROUP, INDEX_LOCATION
from pyhudi.spark.indexes.key_ranges import sorted_by_index_group, task_count
from pyhudi.spark.indexes.record_index.initial_keys import InitialKeys
from pyhudi.spark.indexes.record_index.record_index_keys import KeyRouting, slice_keys
from pyhudi.spark.spark_errors import task_errors
from pyhudi.storage import Storage
from pyhudi.storage.table_paths import METADATA_FOLDER
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.table.view.file_system_view import FileSystemView
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.commit_metadata import WriteStat


def count_duplicate_keys(first: InitialKeys, stats: Sequence[WriteStat], active: ActiveTimeline) -> int:
    """Return the number of keys that are in several file groups now (``active``), but were in one when the base files
    of ``stats`` were written. Runs a Spark job over the file groups that have changed since; none if there are
    none."""
    storage, config = first.table.storage, first.table.config
    table = TableSnapshot(storage, config, active)
    slices = FileSystemView.load(table, active.timeline).latest_slices()
    before, after = _contents(first.slices), _contents(slices)
    changed = slices.filter(pc.invert(pc.is_in(after, value_set=before)))
    removed = first.slices.filter(pc.invert(pc.is_in(before, value_set=after)))
    table_schema = resolve_table_schema(table)
    if not changed.num_rows or table_schema is None:
        return 0
    indexed_locations = pa.concat_arrays([_location_texts(changed), _location_texts(removed)])
    context = slice_context(table, table_schema.schema, names=column_names(table, table_schema.schema), opts=first.opts)
    numbered = changed.append_column("number", pa.array(range(changed.num_rows), pa.int32()))
    tasks = task_count(len(first.groups), first.spark)
    keys = slice_keys(first.spark, context, numbered, KeyRouting(first.groups, tasks))
    written = {first.groups.ids.index(str(stat["fileId"])): stat for stat in stats}
    version = config.version

    def count(batches: Iterable[pa.RecordBatch]) -> Batches:
        for number, rows in by_group(batches, INDEX_GROUP):
            keys_of_group = pc.unique(rows[RECORD_KEY])
            pairs = rows.group_by([RECORD_KEY, INDEX_LOCATION]).aggregate([]).num_rows
            others = _keys_of_unchanged(storage, written.get(number), indexed_locations, version)
            twice = pairs - len(keys_of_group) + (pc.sum(pc.is_in(others, value_set=keys_of_group)).as_py() or 0)
            yield pa.RecordBatch.from_arrays([pa.array([twice], pa.int64())], names=["twice"])

    with task_errors():
        counts = map_in_arrow(sorted_by_index_group(keys, tasks), count, "twice long").collect()
    return sum(int(row[0]) for row in counts)


def _keys_of_unchanged(storage: Storage, stat: WriteStat | None, left: pa.Array, version: int) -> pa.ChunkedArray:
    """Return the keys of a base file of the index whose file groups have not changed."""
    if stat is None:
        return pa.chunked_array([], pa.string())
    path, size = f"{METADATA_FOLDER}/{stat['path']}", int(stat["fileSizeInBytes"])
    reader = HFileReader(StorageRanges(storage, path, size), cache=NO_CACHE, name=(path,))
    entries = pa.Table.from_batches(reader.batches(), ENTRY_SCHEMA)
    locations = decode_locations(
        decode(entries["value"], reader.schema or record_schema(version), [RECORD_INDEX_PAYLOAD])[RECORD_INDEX_PAYLOAD]
    )
    changed = pc.is_in(_location_texts(locations), value_set=left)
    return entries["key"].cast(pa.string()).filter(pc.invert(changed))


def _contents(slices: pa.Table) -> pa.Array:
    """Return file slices as texts."""
    parts = [_location_texts(slices), pc.fill_null(slices["base_path"], "").combine_chunks()]
    logs = pc.fill_null(pc.binary_join(slices["log_paths"].combine_chunks(), "\0"), "")
    return pc.binary_join_element_wise(*parts, logs, "\0")


def _location_texts(rows: pa.Table) -> pa.Array:
    """Return partition and file id as one text."""
    columns = (rows[name].combine_chunks().cast(pa.string()) for name in ("partition", "file_id"))
    return pc.binary_join_element_wise(*columns, "\0")
