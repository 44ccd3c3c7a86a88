"""Target of a write: a table, which may not exist yet, and the settings with which it is written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from pyhudi.config import Options, options
from pyhudi.errors import NotAHudiTableError
from pyhudi.schema.converters.arrow_avro import to_avro
from pyhudi.storage import Storage
from pyhudi.table.config.merge_settings import MergeSettings
from pyhudi.table.config.table_config import TableConfig
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.transaction.locks.lock_factory import make_lock_provider


@dataclass(frozen=True, slots=True)
class WriteTarget:
    """Table to which rows are written.

    Attributes:
        storage: Storage of the table.
        config: Its configuration, or that of the table to create.
        merging: Merge settings of the write.
        opts: Options of the write.
    """

    storage: Storage
    config: TableConfig
    merging: MergeSettings
    opts: Options

    @classmethod
    def from_options(cls, storage: Storage, client: TableMetaClient | None, opts: Options) -> WriteTarget:
        """Return the target of a write with these options.

        Args:
            storage: Storage of the table.
            client: The table; None: the write creates it.
            opts: Options of the write, which must match an existing table.

        Raises:
            ConfigError: Options contradict each other or the table, or the lock of a new table lacks some.
            SetupError: The lock of a new table requires a package that is not installed.
        """
        if client is None:
            config = TableConfig.for_new_table(opts)
            # its options are checked before the table is created
            make_lock_provider(storage, {**opts, options.TABLE_NAME.key: config.name})
        else:
            config, opts = client.config, client.config.validate_against(opts)
        return cls(storage, config, config.merging_of_write(opts), opts)

    def extra_metadata(self, schema: pa.Schema) -> Mapping[str, str]:
        """Return the entries of commit metadata that every write has: its columns, and the options to be kept."""
        prefix = self.opts.get_typed(options.COMMIT_METADATA_KEY_PREFIX)
        prefixed = self.opts.with_prefix(prefix) if prefix else {}
        return {"schema": to_avro(schema, self.config.name), **prefixed}


def open_existing(storage: Storage, opts: Options) -> TableMetaClient | None:
    """Open the table at a location; None if there is none."""
    try:
        return TableMetaClient.open(storage, opts)
    except NotAHudiTableError:
        return None
