"""Table in which the keys of a write are looked up, and settings of the lookup."""

from __future__ import annotations

from dataclasses import dataclass

from pyhudi.config import Options, options
from pyhudi.config.enums import IndexType, InvalidText, MergeMode
from pyhudi.index.record_index import RecordIndex
from pyhudi.keygen.key_spec import KeySpec
from pyhudi.table.config.merge_settings import MergeSettings
from pyhudi.table.meta_client import TableMetaClient


@dataclass(frozen=True, slots=True)
class KeyLookup:
    """Table in which keys are looked up, and settings of the lookup.

    Attributes:
        client: The table.
        spec: Specification of its keys.
        merging: Merge settings of the write.
        opts: Options of the write.
        merge_logs: Slices with log files are searched with their logs merged, not only their base files.
        include_deleted: Rows of base files that are deleted in log files are found, too. Their next version goes to
            the same file group, as without ``merge_logs``, so a key must not get another location elsewhere.
        has_log_deletes: Log files may have deleted rows of base files, so that some of several locations of a key may
            be outdated.
        records: The record index; None: keys are looked up in files.
        stored_keys: Rows have the keys with which they were read, so generated keys are looked up, too.
        hard_deletes: Rows are deletes that win regardless of ordering values.
    """

    client: TableMetaClient
    spec: KeySpec
    merging: MergeSettings
    opts: Options
    merge_logs: bool = False
    include_deleted: bool = False
    has_log_deletes: bool = False
    records: RecordIndex | None = None
    stored_keys: bool = False
    hard_deletes: bool = False

    @property
    def index(self) -> IndexType:
        """Index type of the lookup."""
        return self.opts.get_typed(options.INDEX_TYPE)

    @property
    def invalid_text(self) -> InvalidText:
        """Treatment of text that is not UTF-8 in base files that our reader reads."""
        return self.opts.get_typed(options.READ_INVALID_TEXT)

    @property
    def ordering_fields(self) -> tuple[str, ...]:
        """Ordering columns by which a stored record can win over an incoming one."""
        if self.merging.mode is not MergeMode.EVENT_TIME_ORDERING:
            return ()
        return self.merging.ordering_fields

    @property
    def stored_partition_fields(self) -> tuple[str, ...]:
        """Partition columns that are stored in base files."""
        config = self.client.config
        return () if config.drop_partition_columns else tuple(field.name for field in self.spec.partition_fields)

    @property
    def virtual_keys(self) -> bool:
        """True if files do not store keys, only the columns from which keys are made."""
        return not self.client.config.populate_meta_fields
