"""Contents of a table as Arrow tables, on request: files, slices, partitions, commits, log blocks."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial
from pathlib import Path
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.arrow.arrays import contiguous, list_sums
from pyhudi.keygen.partition_value_extractor import as_formatted, decode_partition_paths
from pyhudi.read.inspection.bootstrap_inspection import bootstrap_mapping, bootstrap_partitions
from pyhudi.read.inspection.deletions import deleted_files, deletions
from pyhudi.read.inspection.instant_export import EXPORTED_ACTIONS, export_instants
from pyhudi.read.inspection.log_inspection import LOG_RECORDS_SCHEMA, log_blocks, log_records
from pyhudi.read.inspection.metadata_inspection import metadata_partitions
from pyhudi.read.inspection.result_table import ResultTable
from pyhudi.read.inspection.table_history import files_by_write
from pyhudi.read.inspection.write_statistics import file_sizes, write_amplification
from pyhudi.read.schema.table_columns import resolve_table_schema
from pyhudi.read.selection.table_files import TableFiles
from pyhudi.table.table_snapshot import TableSnapshot, with_snapshot
from pyhudi.table.view.file_system_view import FileSystemView

_Result = TypeVar("_Result")


class Inspect:
    """Contents of a table at the time of the call, as Arrow tables with a readable display (`ResultTable`)."""

    def __init__(self, now: Callable[[], TableSnapshot]) -> None:
        self._now = now

    def _read(self, read: Callable[[TableSnapshot], _Result]) -> _Result:
        return with_snapshot(self._now, read)[1]

    def __repr__(self) -> str:
        return "Inspect(not read yet: files(), file_slices(), partitions(), commits(), deletions() … read it)"

    def files(self, *, all_versions: bool = False) -> ResultTable:
        """Return the data files of the latest snapshot.

        Args:
            all_versions: Return all data files in the storage, uncommitted ones, too.

        Returns:
            One row per file, with the columns partition, path (relative to the table), kind (base or log), file_id,
            instant (as in the name) and size (bytes).
        """
        view = self._read(FileSystemView.load)
        columns = ["partition", "path", "kind", "file_id", "instant", "size"]
        files = view.files.select(columns).sort_by([("partition", "ascending"), ("path", "ascending")])
        if all_versions:
            return ResultTable(files)
        slices = view.latest_slices()
        visible = pa.concat_arrays([contiguous(slices["base_path"]), contiguous(pc.list_flatten(slices["log_paths"]))])
        return ResultTable(files.filter(pc.is_in(files["path"], value_set=visible)))

    def file_slices(self, *, all_versions: bool = False) -> ResultTable:
        """Return the newest file slice of every file group.

        Args:
            all_versions: Return all file slices.

        Returns:
            One row per file slice (:data:`pyhudi.table.view.file_slicing.SLICE_SCHEMA`).
        """
        view = self._read(FileSystemView.load)
        return ResultTable(view.all_slices() if all_versions else view.latest_slices())

    def partitions(self) -> ResultTable:
        """Return the partitions of the latest snapshot: path, values of the partition fields (null if the path does not
        determine them), and the numbers of file groups, log files and bytes, with the newest base instant. As for a
        query, the metadata table names the files, if it is valid."""
        return ResultTable(self._read(_partitions))

    def commits(self) -> ResultTable:
        """Return the files written by each completed write of the active timeline.

        Returns:
            One row per file, oldest write first (:data:`pyhudi.read.inspection.table_history.WRITTEN_FILES_SCHEMA`).
        """
        return ResultTable(self._read(lambda now: files_by_write(now.active)))

    def metadata_partitions(self) -> ResultTable:
        """Return the partitions of the metadata table (its indexes), with the numbers and sizes of their files.

        Returns:
            One row per partition (:data:`pyhudi.read.inspection.metadata_inspection.METADATA_PARTITIONS_SCHEMA`); none
            without a metadata table.

        Raises:
            MetadataTableError: The metadata table must not be used.
        """
        return ResultTable(metadata_partitions(self._now()))

    def log_blocks(self, pattern: str = "*") -> ResultTable:
        """Return the blocks of the committed log files.

        Args:
            pattern: Pattern with ``*``, ``?`` and ``[…]`` of the paths of the log files, relative to the table.

        Returns:
            One row per block (:data:`pyhudi.read.inspection.log_inspection.LOG_BLOCKS_SCHEMA`): its file, instant,
            type, number of records and headers.
        """
        return ResultTable(self._read(partial(log_blocks, pattern=pattern)))

    def log_records(self, pattern: str = "*") -> pa.RecordBatchReader:
        """Return the records in the committed log files as they were written, older versions included, block by block.

        Args:
            pattern: As of `log_blocks`.

        Returns:
            A stream with one row per record (:data:`pyhudi.read.inspection.log_inspection.LOG_RECORDS_SCHEMA`): its
            file, the instant of its block, and the record as JSON.
        """
        return pa.RecordBatchReader.from_batches(LOG_RECORDS_SCHEMA, self._read(partial(log_records, pattern=pattern)))

    def export_instants(
        self,
        folder: str | Path,
        actions: Collection[str] | None = None,
        *,
        limit: int | None = None,
        newest_first: bool = False,
    ) -> int:
        """Write the metadata of completed instants, archived ones included, as JSON to files of a local folder.

        Args:
            folder: The folder, which is created if it does not exist.
            actions: Actions of the instants, as in the timeline; None: those that Apache Hudi exports
                (:data:`pyhudi.read.inspection.instant_export.EXPORTED_ACTIONS`).
            limit: Maximum number of instants; None: no maximum.
            newest_first: The newest instants are written first.

        Returns:
            The number of instants.

        Raises:
            QueryError: The folder cannot be created, or is a file.
        """
        chosen = EXPORTED_ACTIONS if actions is None else actions
        export = partial(export_instants, folder=Path(folder), actions=chosen, limit=limit, newest_first=newest_first)
        return self._read(export)

    def deletions(self) -> ResultTable:
        """Return the completed cleans, rollbacks and restores of the active timeline, newest first.

        Returns:
            One row per instant (:data:`pyhudi.read.inspection.deletions.DELETIONS_SCHEMA`): its times, the writes that
            it has undone, and the numbers of deleted files and of those that could not be deleted.
        """
        return ResultTable(self._read(deletions))

    def deleted_files(self, instant: str) -> ResultTable:
        """Return the files that a clean, rollback or restore has deleted.

        Args:
            instant: Its requested time.

        Returns:
            One row per file (:data:`pyhudi.read.inspection.deletions.DELETED_FILES_SCHEMA`).

        Raises:
            InstantNotFoundError: The active timeline has no such completed instant.
        """
        return ResultTable(self._read(lambda now: deleted_files(now, instant)))

    def file_sizes(self) -> ResultTable:
        """Return how large the files of each completed write of the active timeline are, and those of all.

        Returns:
            One row per write, newest first (:data:`pyhudi.read.inspection.write_statistics.FILE_SIZES_SCHEMA`).
        """
        return ResultTable(self._read(lambda now: file_sizes(now.active)))

    def write_amplification(self) -> ResultTable:
        """Return how many rows each completed write of the active timeline has written for each that it has updated,
        and all of them.

        Returns:
            One row per write, newest first (:data:`pyhudi.read.inspection.write_statistics.AMPLIFICATION_SCHEMA`).
        """
        return ResultTable(self._read(lambda now: write_amplification(now.active)))

    def bootstrap_mapping(self, partition: str | None = None, file_ids: Collection[str] | None = None) -> ResultTable:
        """Return the source files of skeleton files, which a bootstrap by metadata only has written.

        Args:
            partition: Partition of the skeleton files; None: all.
            file_ids: Their file groups; None: all.

        Returns:
            One row per skeleton file
            (:data:`pyhudi.read.inspection.bootstrap_inspection.BOOTSTRAP_MAPPING_SCHEMA`); none of a table that was not
            bootstrapped so.

        Raises:
            FormatError: The bootstrap index is corrupt.
        """
        return ResultTable(bootstrap_mapping(self._now().storage, partition, file_ids))

    def bootstrap_partitions(self) -> ResultTable:
        """Return the partitions that were bootstrapped by metadata only.

        Returns:
            One row per partition (:data:`pyhudi.read.inspection.bootstrap_inspection.BOOTSTRAP_PARTITIONS_SCHEMA`).

        Raises:
            FormatError: The bootstrap index is corrupt.
        """
        return ResultTable(bootstrap_partitions(self._now().storage))


def _partitions(now: TableSnapshot) -> pa.Table:
    """Return the partitions of a snapshot (`Inspect.partitions`)."""
    files = TableFiles(now)
    slices = FileSystemView.load(now, lister=files.list).latest_slices()
    logs = pc.list_value_length(slices["log_paths"])
    log_bytes = list_sums(slices["log_sizes"])
    table = pa.table(
        {
            "partition": slices["partition"],
            "log_files": logs.cast(pa.int64()),
            "size": pc.add(pc.fill_null(slices["base_size"], 0), log_bytes),
            "instant": slices["base_instant"],
        }
    )
    summary = table.group_by("partition").aggregate(
        [("instant", "count"), ("log_files", "sum"), ("size", "sum"), ("instant", "max")]
    )
    summary = summary.rename_columns(["partition", "file_groups", "log_files", "size", "latest_instant"])
    summary = summary.sort_by("partition")
    columns = resolve_table_schema(now)
    schema = as_formatted(now.config, columns.schema if columns is not None else pa.schema([]))
    decoded = decode_partition_paths(now.config, schema, summary["partition"].to_pylist())
    for name in reversed(decoded.column_names):
        if not name.startswith("exact_"):
            summary = summary.add_column(1, name, decoded[name])
    return summary
