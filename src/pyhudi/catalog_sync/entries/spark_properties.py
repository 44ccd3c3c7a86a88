"""Properties by which Spark with Apache Hudi's jar reads an entry of a Hive metastore as a Hudi table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from pyhudi.schema.converters.spark_json import to_spark_json

_SCHEMA = "spark.sql.sources.schema."


def spark_properties(
    schema: pa.Schema, partition_fields: Sequence[str], part_length: int, version: str
) -> dict[str, str]:
    """Return the properties of the table.

    Args:
        schema: Columns of the table.
        partition_fields: Partition columns.
        part_length: Maximum length of a property with a part of the schema.
        version: Version of Spark that created the table; empty: none.
    """
    data = [field for field in schema if field.name not in partition_fields]
    partitioning = [field for field in schema if field.name in partition_fields]
    unknown = [pa.field(name, pa.string(), nullable=False) for name in partition_fields if name not in schema.names]
    text = to_spark_json(pa.schema([*data, *partitioning, *unknown]))
    parts = [text[start : start + part_length] for start in range(0, len(text), part_length)]
    properties = {"spark.sql.sources.provider": "hudi", f"{_SCHEMA}numParts": str(len(parts))}
    properties |= {f"{_SCHEMA}part.{index}": part for index, part in enumerate(parts)}
    if version:
        properties["spark.sql.create.version"] = version
    if partition_fields:
        properties[f"{_SCHEMA}numPartCols"] = str(len(partition_fields))
        properties |= {f"{_SCHEMA}partCol.{index}": name for index, name in enumerate(partition_fields)}
    return properties


def without_spark_schema(properties: Mapping[str, str]) -> dict[str, str]:
    """Return properties without those of the columns, of which a new schema may have fewer."""
    return {key: value for key, value in properties.items() if not key.startswith(_SCHEMA)}
