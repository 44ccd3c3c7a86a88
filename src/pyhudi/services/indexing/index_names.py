"""Names of indexes in ``CREATE INDEX`` and ``DROP INDEX``, and their partitions of the metadata table."""

from __future__ import annotations

from collections.abc import Sequence

from pyhudi.errors import ConfigError
from pyhudi.metadata.indexes.expression_index_definition import expression_partition
from pyhudi.metadata.indexes.index_definitions import load_definitions
from pyhudi.metadata.indexes.secondary_index_definition import is_secondary, secondary_partition
from pyhudi.metadata.metadata_layout import BLOOM_FILTERS, COLUMN_STATS, FILES, PARTITION_STATS, RECORD_INDEX
from pyhudi.storage import Storage
from pyhudi.table.config.table_config import TableConfig

BUILT_IN = (COLUMN_STATS, PARTITION_STATS, BLOOM_FILTERS, RECORD_INDEX)
"""Indexes that exist at most once per table."""


def indexes_of(storage: Storage, config: TableConfig) -> list[str]:
    """Return the partitions of the metadata table that are indexes, including those that are defined but not in use."""
    definitions = load_definitions(storage, config) if config.version >= 8 else {}
    partitions = {*config.metadata_partitions, *config.metadata_partitions_inflight, *definitions}
    return sorted(partitions - {FILES})


def built_in_name(name: str) -> str:
    """Return the name of an index that exists once per table as its partition has it; Apache Hudi's indexer has it in
    capitals. Other names stay."""
    return name.lower() if name.lower() in BUILT_IN else name


def partitions_to_drop(storage: Storage, config: TableConfig, name: str, planned: Sequence[str]) -> list[str]:
    """Return the partitions of the metadata table to drop with the index of that name; none if there is no such index,
    and none ``planned``.

    Raises:
        ConfigError: A planned index requires it.
    """
    existing = sorted({*indexes_of(storage, config), *planned})
    names = (name, secondary_partition(name), expression_partition(name), built_in_name(name))
    partitions = [p for p in names if p in existing][:1]
    if partitions == [COLUMN_STATS] and PARTITION_STATS in existing:
        partitions.append(PARTITION_STATS)  # Built from the same statistics, and rebuilt with them.
    needing = [p for p in sorted(planned) if is_secondary(p)]
    if partitions == [RECORD_INDEX] and needing:
        raise ConfigError(f"record_index is required by {', '.join(needing)}, which is planned; drop that first")
    return partitions
