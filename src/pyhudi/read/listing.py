"""Where a plan has the table's files from: the metadata table, where it can be trusted, or the storage."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from pyhudi.config import Options, options
from pyhudi.errors import HudiError, MetadataTableWarning, warn
from pyhudi.metadata.files import FILES, list_from_metadata, partition_paths
from pyhudi.metadata.table import MetadataTable
from pyhudi.table.listing import list_files

if TYPE_CHECKING:
    from pyhudi.read.pinned import PinnedTable
    from pyhudi.storage.base import Storage

_warned: set[str] = set()
_guard = threading.Lock()


class TableFiles:
    """The files of a table at one moment.

    ``metadata`` is the metadata table, None where it is not used; ``why`` says why it is not.
    """

    def __init__(self, table: PinnedTable, opts: Options | None = None) -> None:
        self._table = table
        self.metadata: MetadataTable | None = None
        self.why = ""
        given = opts or Options.parse({})
        if not given.get_typed(options.METADATA_ENABLE):
            self.why = f"{options.METADATA_ENABLE.key} is false"
        elif FILES not in table.config.metadata_partitions:
            self.why = "the table has no metadata table"
        else:
            try:
                self.metadata = MetadataTable.open(table.storage, table.config, table.active)
            except HudiError as e:
                self.distrust(e)

    @property
    def source(self) -> str:
        """Where files come from, for people."""
        return "the metadata table" if self.metadata is not None else f"a listing of the storage ({self.why})"

    def distrust(self, error: HudiError) -> None:
        """Do without the metadata table from now on; warns of it once for each table and reason."""
        self.metadata, self.why = None, f"the metadata table cannot be used: {error}"
        self._warn(
            f"the metadata table of {self._table.storage.uri()} is not used, files are listed instead: {error}. "
            "Apache Hudi builds it anew at its next write if the property hoodie.table.metadata.partitions is removed"
        )

    def distrust_indexes(self, error: HudiError) -> None:
        """Warn, once for each table and reason, that no files can be skipped by the metadata table's indexes."""
        root = self._table.storage.uri()
        self._warn(f"indexes of the metadata table of {root} are not used, more files are read: {error}")

    def _warn(self, text: str) -> None:
        with _guard:
            known = text in _warned
            _warned.add(text)
        if not known:
            warn(text, MetadataTableWarning)

    def partitions(self) -> list[str] | None:
        """The partition paths; None where only a listing of everything tells them."""
        if self.metadata is None:
            return None
        try:
            return partition_paths(self.metadata)
        except HudiError as e:
            self.distrust(e)
            return None

    def list(self, storage: Storage, partitions: Sequence[str] | None) -> tuple[pa.Table, list[str]]:
        """The files, all or those of some partitions, and the partition paths; see `list_files`."""
        if self.metadata is not None:
            try:
                return list_from_metadata(self.metadata, partitions)
            except HudiError as e:
                self.distrust(e)
                # what is asked for may have been chosen by the same metadata table
                return list_files(storage, None)
        return list_files(storage, partitions)
