"""Source of the file listing of a plan: the metadata table, if it is valid, or the storage."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import partial

import pyarrow as pa

from pyhudi.config import Options, options
from pyhudi.errors import HudiError, MetadataTableAheadError, MetadataTableWarning, TransactionError, warn
from pyhudi.metadata.metadata_layout import FILES
from pyhudi.metadata.reader.file_lists import FileLists
from pyhudi.metadata.reader.metadata_file_listing import list_from_metadata
from pyhudi.metadata.reader.metadata_table import MAX_READ_ATTEMPTS, MetadataTable
from pyhudi.storage import Storage
from pyhudi.table.moved_instants import refuse_moved_instants
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.table.view.file_listing import DATA_KINDS, list_files
from pyhudi.table.view.file_system_view import FileSystemView, Lister

_MAX_LISTED_FOLDERS = 64
"""Folders of a table up to which they are listed; the threads that list need four requests each then."""
_warned: set[str] = set()
_guard = threading.Lock()


class TableFiles:
    """The files of a table at one point in time.

    ``table`` is the table for planning: as passed, or its current state if its metadata table was ahead. ``metadata``
    is the metadata table, None if it is not used; ``why`` is the reason. ``kinds`` of files are listed, by default base
    and log files. ``may_reload``: ``table`` may become the current state; otherwise a metadata table that is ahead
    is not used.
    """

    def __init__(
        self,
        table: TableSnapshot,
        opts: Options | None = None,
        kinds: Sequence[str] = DATA_KINDS,
        *,
        may_reload: bool = True,
    ) -> None:
        self.table = table
        self._may_reload = may_reload
        self._kinds = kinds
        self.metadata: MetadataTable | None = None
        self._listed: FileLists | None = None
        self.why = ""
        parsed = opts or Options.parse({})
        if not parsed.get_typed(options.METADATA_ENABLE):
            self.why = f"{options.METADATA_ENABLE.key} is false"
        elif FILES not in table.config.metadata_partitions:
            self.why = "the table has no metadata table"
        else:
            self._open()

    def _open(self) -> None:
        for attempt in range(MAX_READ_ATTEMPTS):
            try:
                self.metadata = MetadataTable.open(self.table)
                return
            except MetadataTableAheadError as error:
                if not self._may_reload:
                    self.why = "the metadata table describes a later state of the table"
                    return
                if attempt == MAX_READ_ATTEMPTS - 1:
                    self.disable_metadata(error)
                else:
                    self.table = self.table.reload()
            except TransactionError:  # The table is being upgraded: a listing would lack commits, too.
                raise
            except HudiError as error:
                self.disable_metadata(error)
                return

    @property
    def source(self) -> str:
        """Description of the source of the files, for messages."""
        return "the metadata table" if self.metadata is not None else f"a listing of the storage ({self.why})"

    def disable_metadata(self, error: HudiError) -> None:
        """Stop using the metadata table. Warns once per table and reason."""
        self.metadata, self.why = None, f"the metadata table cannot be used: {error}"
        self._warn(
            f"the metadata table of {self.table.storage.uri()} is not used, files are listed instead: {error}. "
            "Apache Hudi rebuilds it at its next write if the property hoodie.table.metadata.partitions is "
            "removed"
        )

    def disable_indexes(self, error: HudiError) -> None:
        """Warn, once per table and reason, that no files can be pruned by the metadata table's indexes."""
        root = self.table.storage.uri()
        self._warn(f"indexes of the metadata table of {root} are not used, more files are read: {error}")

    def _warn(self, text: str) -> None:
        with _guard:
            is_repeated = text in _warned
            _warned.add(text)
        if not is_repeated:
            warn(text, MetadataTableWarning)

    def keep_listed(self, listed: FileLists) -> None:
        """Keep files that pruning has listed in the metadata table, so that `list` need not list them again."""
        self._listed = listed

    def partitions(self) -> list[str] | None:
        """Return the partition paths; None if only a complete listing determines them."""
        if self.metadata is None:
            return None
        try:
            return self.metadata.partition_paths
        except HudiError as error:
            self.disable_metadata(error)
            return None

    def list(self, storage: Storage, partitions: Sequence[str] | None) -> tuple[pa.Table, list[str]]:
        """Return the files, all or those of some partitions, and the partition paths; see `list_files`.

        Raises:
            TransactionError: Apache Hudi has changed the version of the table halfway.
        """
        if self.metadata is not None:
            try:
                return list_from_metadata(self.metadata, partitions, self._kinds, self._listed)
            except HudiError as error:
                self.disable_metadata(error)
                # The request may have been derived from the same metadata table.
                return list_files(storage, None, self._kinds)
        refuse_moved_instants(self.table.active)
        return list_files(storage, partitions, self._kinds)


def load_view(table: TableSnapshot, opts: Options) -> FileSystemView:
    """Return the files of a table, to plan a write or a service.

    The metadata table names the files, if it is valid, of a table with many folders: to list each of them takes a
    request. Before version 8 the folders are listed, because log files that others are writing count, too.

    Raises:
        TransactionError: Apache Hudi has changed the version of the table halfway.
    """
    lister: Lister | None = None
    if table.config.version >= 8:
        folders = table.storage.list_dirs()
        is_large = len(folders) > _MAX_LISTED_FOLDERS
        lister = TableFiles(table, opts, may_reload=False).list if is_large else partial(_list, folders)
    return FileSystemView.load(table, lister=lister)


def _list(folders: Sequence[str], storage: Storage, partitions: Sequence[str] | None) -> tuple[pa.Table, list[str]]:
    return list_files(storage, partitions, folders=folders)
