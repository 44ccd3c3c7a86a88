"""File groups of the metadata table as listed in its folders."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import CorruptTableError
from pyhudi.format.file_names import BASE, LOG, file_names_of, parse_names
from pyhudi.metadata.file_groups.delta_commit_writer import GroupFiles, GroupSlice
from pyhudi.metadata.records.record_changes import RecordChanges
from pyhudi.storage import Storage, join_path
from pyhudi.storage.concurrent_reads import concurrent_map
from pyhudi.storage.table_paths import METADATA_FOLDER
from pyhudi.timeline.commit_metadata import WriteStat
from pyhudi.timeline.timeline import Timeline


def write_logs(files: GroupFiles, metadata_timeline: Timeline, records: RecordChanges) -> list[WriteStat]:
    """Write the records of a partition, one log file per file group with records, on threads. Return their write stats.

    ``metadata_timeline`` is the metadata table's timeline.

    Raises:
        CorruptTableError: The partition has no files.
    """
    groups = group_slices(files.storage, metadata_timeline, files.partition, files.version)
    parts = records.by_group(len(groups)).items()
    return concurrent_map(lambda part: files.write_log(groups[part[0]], part[1]), parts)


def group_slices(storage: Storage, metadata_timeline: Timeline, partition: str, version: int) -> list[GroupSlice]:
    """Return the file groups of a partition ordered by number, with the names of their next log files.

    ``metadata_timeline`` is the metadata table's timeline. Costs one listing.

    Raises:
        CorruptTableError: The partition has no files.
    """
    folder = join_path(METADATA_FOLDER, partition)
    names = file_names_of(storage.list(folder)["path"])
    files = parse_names(names)
    files = files.filter(pc.is_in(files["kind"], value_set=pa.array([BASE, LOG])))
    ids = sorted(pc.unique(files["file_id"]).to_pylist())
    if not ids:
        raise CorruptTableError(
            f"{storage.uri(folder)} is empty, although {partition} is declared; create the index again, or remove "
            "hoodie.table.metadata.partitions from the table's hoodie.properties, then the next write rebuilds "
            "the metadata table"
        )
    if version >= 8:
        return [GroupSlice(file_id) for file_id in ids]
    pending = set(metadata_timeline.pending().requested_times)
    slices = []
    for file_id in ids:
        group_files = files.filter(pc.equal(files["file_id"], file_id))
        every = pc.unique(group_files["instant"]).to_pylist()
        # A group under construction has no other files yet.
        instants = [i for i in every if i not in pending] or every
        slices.append(GroupSlice.after(group_files["name"], file_id, max(instants)))
    return slices
