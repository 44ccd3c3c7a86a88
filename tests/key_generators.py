"""A key generator in Python, and the same one in Java."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812

import pyhudi

CLASS = "com.example.TenantKeyGenerator"
OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.keygenerator.class": CLASS,
    "hoodie.datasource.write.recordkey.field": "tenant,id",
    "hoodie.datasource.write.partitionpath.field": "day",
    "hoodie.datasource.write.precombine.field": "ts",
}
COLUMNS = "tenant string, id bigint, day string, ts bigint, v bigint"

JAVA = """
package com.example;

import org.apache.avro.generic.GenericRecord;
import org.apache.hudi.common.config.TypedProperties;
import org.apache.hudi.keygen.ComplexKeyGenerator;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;

public class TenantKeyGenerator extends ComplexKeyGenerator {
  public TenantKeyGenerator(TypedProperties properties) {
    super(properties);
  }

  private static String key(String tenant, long id) {
    return tenant.toLowerCase() + "-" + id;
  }

  private static String path(String day) {
    return day.substring(0, 7).replace("-", "/");
  }

  public String getRecordKey(GenericRecord row) {
    return key(row.get("tenant").toString(), ((Long) row.get("id")).longValue());
  }

  public String getPartitionPath(GenericRecord row) {
    return path(row.get("day").toString());
  }

  public String getRecordKey(Row row) {
    return key(row.getString(row.fieldIndex("tenant")), row.getLong(row.fieldIndex("id")));
  }

  public String getPartitionPath(Row row) {
    return path(row.getString(row.fieldIndex("day")));
  }

  public UTF8String getRecordKey(InternalRow row, StructType schema) {
    String tenant = row.getUTF8String(schema.fieldIndex("tenant")).toString();
    return UTF8String.fromString(key(tenant, row.getLong(schema.fieldIndex("id"))));
  }

  public UTF8String getPartitionPath(InternalRow row, StructType schema) {
    return UTF8String.fromString(path(row.getUTF8String(schema.fieldIndex("day")).toString()));
  }
}
"""


class TenantKeyGenerator(pyhudi.KeyGenerator):
    """The same as `JAVA`."""

    class_name = CLASS

    def record_key(self) -> Column:
        return F.concat_ws("-", F.lower("tenant"), F.col("id"))

    def partition_path(self) -> str:
        return "replace(substring(day, 1, 7), '-', '/')"


@contextmanager
def registered(generator: pyhudi.KeyGenerator) -> Iterator[pyhudi.KeyGenerator]:
    """Register a generator for the duration of a block."""
    pyhudi.register_key_generator(generator)
    try:
        yield generator
    finally:
        pyhudi.unregister_key_generator(generator.class_name)
