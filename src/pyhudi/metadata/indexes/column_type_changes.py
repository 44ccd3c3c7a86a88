"""Indexes of columns whose type changes in a write: their entries are texts, or function values, of the old type."""

from __future__ import annotations

from pyhudi.metadata.indexes.expression_index_definition import expression_indexes
from pyhudi.metadata.indexes.secondary_index_definition import secondary_indexes
from pyhudi.schema.converters.arrow_avro import from_avro
from pyhudi.schema.name_resolution import field_type
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline.commit_metadata import CommitMetadata
from pyhudi.timeline.latest_schema import newest_columns
from pyhudi.timeline.operation_types import REWRITING_OPERATIONS


def retyped_indexes(table: TableSnapshot, metadata: CommitMetadata) -> list[str]:
    """Return the partitions of secondary and expression indexes whose columns have another type, or are missing, in the
    columns recorded by a write.

    A date is a number in a secondary index, but a text once its column is a string; ``5`` may have been ``5.0`` before.
    A compaction or clustering records the columns as of its plan, and changes none.
    """
    if metadata.operation in REWRITING_OPERATIONS:
        return []
    storage, config = table.storage, table.config
    indexes = [(one.partition, one.column) for one in secondary_indexes(storage, config, include_building=True)]
    indexes += [
        (one.partition, one.expression.column) for one in expression_indexes(storage, config, include_building=True)
    ]
    before = newest_columns(table.active) if indexes and metadata.schema_json is not None else None
    if before is None:
        return []
    old, new = (from_avro(text) for text in (before[1].schema_json, metadata.schema_json) if text is not None)
    return [partition for partition, column in indexes if field_type(old, column) != field_type(new, column)]
