"""The secondary index that the options of a write ask for."""

from __future__ import annotations

import pyarrow as pa

from pyhudi.config import Options, options
from pyhudi.errors import InvalidOptionError, OptionWithoutEffectWarning, warn
from pyhudi.metadata.indexes.secondary_index_definition import secondary_indexes, secondary_partition
from pyhudi.metadata.metadata_layout import RECORD_INDEX
from pyhudi.services.indexing.index_requests import IndexRequest
from pyhudi.services.indexing.index_support import check_secondary_column
from pyhudi.storage import Storage
from pyhudi.table.config.table_config import TableConfig


def check_index_of_write(storage: Storage, config: TableConfig, schema: pa.Schema, opts: Options) -> None:
    """Check, before a write, the secondary index that its options ask for. Issue OptionWithoutEffectWarning if it is
    left out, as by Apache Hudi, because the table cannot have one, or lacks the global record index that it requires.

    Args:
        storage: Storage of the table.
        config: The table.
        schema: Columns of the table after the write.
        opts: Options of the write.

    Raises:
        InvalidOptionError: As `IndexRequest.from_options`, or the index of that name is of another column.
        ConfigError, UnsupportedTableError: As `check_secondary_column`.
    """
    request = IndexRequest.from_options(opts)
    record_index = options.METADATA_GLOBAL_RECORD_INDEX_ENABLE
    if request is None:
        return
    if config.version < 8:
        reason = f"tables of version {config.version} have no secondary indexes; upgrade the table"
    elif RECORD_INDEX not in config.metadata_partitions and not opts.get_typed(record_index):
        reason = f"a secondary index requires a global record index, which the table lacks; set {record_index.key}=true"
    else:
        _check_new_index(request, storage, config, schema)
        return
    option = options.METADATA_SECONDARY_COLUMN
    warn(f"{option.key}={request.columns[0]} has no effect: {reason}", OptionWithoutEffectWarning)


def _check_new_index(request: IndexRequest, storage: Storage, config: TableConfig, schema: pa.Schema) -> None:
    """Refuse a secondary index that cannot be built, unless its column has one: of another column than those of the
    table, or by the name of another index."""
    existing = secondary_indexes(storage, config, include_building=True)
    if any(index.column in request.columns for index in existing):
        return
    check_secondary_column(request, config, schema)
    for index in (index for index in existing if index.partition == request.partition):
        name = index.partition.removeprefix(secondary_partition(""))
        allowed = f"another name, because this index is of column {index.column!r}; or drop it, by DROP INDEX {name}"
        raise InvalidOptionError(options.INDEX_NAME.key, name, allowed)
