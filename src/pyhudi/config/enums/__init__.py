"""Values of options and table properties, spelled as in Apache Hudi, by subject: tables, keys, writes, files,
concurrency, queries and services."""

from __future__ import annotations

from pyhudi.config.enums.concurrency_enums import (
    ConcurrencyMode,
    DynamoDbBillingMode,
    FailedWritesPolicy,
    Fsync,
    MarkerType,
    TimeGeneratorType,
)
from pyhudi.config.enums.file_enums import (
    BloomType,
    LogBlockFormat,
    OrcCodec,
    OutputTimestampType,
    ParquetCodec,
)
from pyhudi.config.enums.key_enums import (
    TimestampType,
    TimeUnit,
)
from pyhudi.config.enums.query_enums import (
    HollowPolicy,
    IncrementalFormat,
    InvalidText,
    PartitionValues,
    QueryType,
    ReadEngine,
    ReadMergeType,
)
from pyhudi.config.enums.service_enums import (
    CleanPolicy,
    CleanTrigger,
    CompactionTrigger,
    DatadogSite,
    LayoutStrategy,
    MetricsReporter,
    PartitionFilterMode,
    SyncTableStrategy,
    TtlStrategy,
)
from pyhudi.config.enums.table_enums import (
    BootstrapMode,
    BucketIndexEngine,
    CdcMode,
    FileFormat,
    MergeMode,
    PartialUpdateMode,
    TableType,
    TimelineTimezone,
)
from pyhudi.config.enums.write_enums import (
    DuplicatePolicy,
    IndexType,
    Operation,
    SortMode,
    SqlInsertMode,
)

__all__ = [
    "BloomType",
    "BootstrapMode",
    "BucketIndexEngine",
    "CdcMode",
    "CleanPolicy",
    "CleanTrigger",
    "CompactionTrigger",
    "ConcurrencyMode",
    "DatadogSite",
    "DuplicatePolicy",
    "DynamoDbBillingMode",
    "FailedWritesPolicy",
    "FileFormat",
    "Fsync",
    "HollowPolicy",
    "IncrementalFormat",
    "IndexType",
    "InvalidText",
    "LayoutStrategy",
    "LogBlockFormat",
    "MarkerType",
    "MergeMode",
    "MetricsReporter",
    "Operation",
    "OrcCodec",
    "OutputTimestampType",
    "ParquetCodec",
    "PartialUpdateMode",
    "PartitionFilterMode",
    "PartitionValues",
    "QueryType",
    "ReadEngine",
    "ReadMergeType",
    "SortMode",
    "SqlInsertMode",
    "SyncTableStrategy",
    "TableType",
    "TimeGeneratorType",
    "TimeUnit",
    "TimelineTimezone",
    "TimestampType",
    "TtlStrategy",
]
