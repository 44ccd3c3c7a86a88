"""Values that define a write: operations, and treatment of rows whose keys exist."""

from __future__ import annotations

from enum import StrEnum


class Operation(StrEnum):
    """Write operation (``hoodie.datasource.write.operation``)."""

    UPSERT = "upsert"
    INSERT = "insert"
    BULK_INSERT = "bulk_insert"
    DELETE = "delete"
    INSERT_OVERWRITE = "insert_overwrite"
    INSERT_OVERWRITE_TABLE = "insert_overwrite_table"
    DELETE_PARTITION = "delete_partition"
    UPSERT_PREPPED = "upsert_prepped"
    INSERT_PREPPED = "insert_prepped"
    BULK_INSERT_PREPPED = "bulk_insert_prepped"
    DELETE_PREPPED = "delete_prepped"
    BOOTSTRAP = "bootstrap"
    BUCKET_RESCALE = "bucket_rescale"

    @property
    def changes_records(self) -> bool:
        """True if it changes or deletes the stored records of its keys, which it looks up."""
        return self in (Operation.UPSERT, Operation.DELETE)


class IndexType(StrEnum):
    """Index that a write uses to find the current location of a key."""

    SIMPLE = "SIMPLE"
    GLOBAL_SIMPLE = "GLOBAL_SIMPLE"
    BLOOM = "BLOOM"
    GLOBAL_BLOOM = "GLOBAL_BLOOM"
    BUCKET = "BUCKET"
    RECORD_INDEX = "RECORD_INDEX"
    GLOBAL_RECORD_LEVEL_INDEX = "GLOBAL_RECORD_LEVEL_INDEX"
    RECORD_LEVEL_INDEX = "RECORD_LEVEL_INDEX"
    INMEMORY = "INMEMORY"
    FLINK_STATE = "FLINK_STATE"

    @property
    def is_global(self) -> bool:
        """True if a key is unique in the whole table, not only within its partition."""
        return self in _GLOBAL_INDEXES

    @property
    def is_bloom(self) -> bool:
        """True if keys are looked up with bloom filters."""
        return self in (IndexType.BLOOM, IndexType.GLOBAL_BLOOM)

    @property
    def is_record_index(self) -> bool:
        """True if keys are looked up in the record index of the metadata table."""
        return self in (
            IndexType.RECORD_INDEX,
            IndexType.GLOBAL_RECORD_LEVEL_INDEX,
            IndexType.RECORD_LEVEL_INDEX,
        )


_GLOBAL_INDEXES = frozenset(
    {
        IndexType.GLOBAL_SIMPLE,
        IndexType.GLOBAL_BLOOM,
        IndexType.RECORD_INDEX,
        IndexType.GLOBAL_RECORD_LEVEL_INDEX,
        IndexType.INMEMORY,
    }
)


class SortMode(StrEnum):
    """Order of the rows of a bulk insert (``hoodie.bulkinsert.sort.mode``)."""

    NONE = "NONE"
    GLOBAL_SORT = "GLOBAL_SORT"
    PARTITION_SORT = "PARTITION_SORT"
    PARTITION_PATH_REPARTITION = "PARTITION_PATH_REPARTITION"
    PARTITION_PATH_REPARTITION_AND_SORT = "PARTITION_PATH_REPARTITION_AND_SORT"


class DuplicatePolicy(StrEnum):
    """Treatment by an insert of keys that exist in the table (``hoodie.datasource.insert.dup.policy``)."""

    NONE = "none"
    DROP = "drop"
    FAIL = "fail"


class SqlInsertMode(StrEnum):
    """Treatment by SQL INSERT INTO of keys that the table already has (``hoodie.sql.insert.mode``)."""

    UPSERT = "upsert"
    STRICT = "strict"
    NON_STRICT = "non-strict"
