"""Java classes by which Hive, Trino and Presto read the files of a table."""

from __future__ import annotations

from pyhudi.catalog_sync.catalogs.catalog_entries import StorageFormat
from pyhudi.config.enums import FileFormat

_PARQUET = "org.apache.hadoop.hive.ql.io.parquet."
_ORC = "org.apache.hadoop.hive.ql.io.orc."
_HUDI = "org.apache.hudi.hadoop."
_PRE_APACHE = "com.uber.hoodie.hadoop."


def storage_format(file_format: FileFormat, *, realtime: bool, pre_apache: bool = False) -> StorageFormat:
    """Return the classes of a table.

    Args:
        file_format: Format of base files.
        realtime: Queries merge log files.
        pre_apache: The package of the input format is that of before Apache Hudi.
    """
    if file_format is FileFormat.ORC:
        return StorageFormat(f"{_ORC}OrcInputFormat", f"{_ORC}OrcOutputFormat", f"{_ORC}OrcSerde")
    if pre_apache:
        read = f"{_PRE_APACHE}realtime.HoodieRealtimeInputFormat" if realtime else f"{_PRE_APACHE}HoodieInputFormat"
    elif realtime:
        read = f"{_HUDI}realtime.HoodieParquetRealtimeInputFormat"
    else:
        read = f"{_HUDI}HoodieParquetInputFormat"
    return StorageFormat(read, f"{_PARQUET}MapredParquetOutputFormat", f"{_PARQUET}serde.ParquetHiveSerDe")
