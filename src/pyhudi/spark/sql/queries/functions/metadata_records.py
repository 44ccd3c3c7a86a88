"""Records of the metadata table as a DataFrame: the table function ``hudi_metadata``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from pyhudi.errors import MetadataTableError, QueryError
from pyhudi.metadata.reader.metadata_table import MetadataTable
from pyhudi.spark.execution.row_tasks import map_in_arrow
from pyhudi.spark.spark_types import spark_schema
from pyhudi.table.meta_client import TableMetaClient


def metadata_records(spark: SparkSession, client: TableMetaClient) -> DataFrame:
    """Return the records of all partitions of the metadata table as it is now; each of its file groups is read by a
    task. The columns are those of Apache Hudi: ``key``, ``type``, and one for each kind of record.

    Raises:
        QueryError: The table has no metadata table, or it must not be used.
    """
    try:
        table = MetadataTable.open_now(client.storage, client.config)
        groups = [group for partition in table.partitions for group in table.file_slices(partition)]
    except MetadataTableError as reason:
        raise QueryError(f"the table at {client.storage.uri()} has no metadata table to read: {reason}") from reason
    schema = pa.schema([field.with_type(_without_times(field.type)) for field in table.record_schema()])

    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                for records in table.scan_groups([groups[number]]).to_batches():
                    columns = zip(records.columns, schema.types, strict=True)
                    yield pa.RecordBatch.from_arrays([_converted(*column) for column in columns], schema=schema)

    return map_in_arrow(spark.range(0, len(groups), 1, max(1, len(groups))), read, spark_schema(schema))


def _without_times(data_type: pa.DataType) -> pa.DataType:
    """Return the type with numbers instead of times of day, which Spark does not support."""
    if pa.types.is_time(data_type):
        return pa.int64()
    if pa.types.is_struct(data_type):
        return pa.struct([field.with_type(_without_times(field.type)) for field in data_type])
    if pa.types.is_list(data_type):
        return pa.list_(data_type.value_field.with_type(_without_times(data_type.value_type)))
    return data_type


def _converted(array: pa.Array, data_type: pa.DataType) -> pa.Array:
    """The array in a type of `_without_times`; Arrow's own cast does not go into structs."""
    if array.type == data_type:
        return array
    if pa.types.is_struct(data_type):
        members = [_converted(array.field(i), field.type) for i, field in enumerate(data_type)]
        return pa.StructArray.from_arrays(members, fields=list(data_type), mask=pc.is_null(array))
    if pa.types.is_list(data_type):
        values = _converted(array.values, data_type.value_type)
        offsets = pa.array(array.offsets.to_numpy())  # Arrow refuses a mask beside the offsets of a slice
        return pa.ListArray.from_arrays(offsets, values, type=data_type, mask=pc.is_null(array))
    return array.cast(data_type)
