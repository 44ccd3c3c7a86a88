"""Names of key generators and of partition fields in table properties and options.

``hoodie.table.keygenerator.type`` holds a type (version 8 and later), ``hoodie.table.keygenerator.class`` a Java class
name (version 6). Both are equivalent here; classes are never loaded.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from pyhudi.config.options import KEYGENERATOR_TYPE, PARTITIONPATH_FIELD
from pyhudi.errors import ConfigError, InvalidOptionError

_PACKAGE = "org.apache.hudi.keygen."


class KeyGenType(StrEnum):
    """Key generators that a table can have."""

    SIMPLE = "SIMPLE"
    COMPLEX = "COMPLEX"
    TIMESTAMP = "TIMESTAMP"
    CUSTOM = "CUSTOM"
    NON_PARTITION = "NON_PARTITION"
    GLOBAL_DELETE = "GLOBAL_DELETE"
    AUTO_RECORD = "AUTO_RECORD"
    HOODIE_TABLE_METADATA = "HOODIE_TABLE_METADATA"
    SPARK_SQL = "SPARK_SQL"
    SPARK_SQL_UUID = "SPARK_SQL_UUID"
    SPARK_SQL_MERGE_INTO = "SPARK_SQL_MERGE_INTO"
    USER_PROVIDED = "USER_PROVIDED"


UNPARTITIONED_GENERATORS = (KeyGenType.NON_PARTITION, KeyGenType.GLOBAL_DELETE)
"""Generators that ignore partition columns."""
GENERATOR_CLASSES: Mapping[KeyGenType, str] = {
    KeyGenType.SIMPLE: _PACKAGE + "SimpleKeyGenerator",
    KeyGenType.COMPLEX: _PACKAGE + "ComplexKeyGenerator",
    KeyGenType.TIMESTAMP: _PACKAGE + "TimestampBasedKeyGenerator",
    KeyGenType.CUSTOM: _PACKAGE + "CustomKeyGenerator",
    KeyGenType.NON_PARTITION: _PACKAGE + "NonpartitionedKeyGenerator",
    KeyGenType.GLOBAL_DELETE: _PACKAGE + "GlobalDeleteKeyGenerator",
    KeyGenType.AUTO_RECORD: _PACKAGE + "AutoRecordGenWrapperKeyGenerator",
    KeyGenType.HOODIE_TABLE_METADATA: "org.apache.hudi.metadata.HoodieTableMetadataKeyGenerator",
    KeyGenType.SPARK_SQL: "org.apache.spark.sql.hudi.command.SqlKeyGenerator",
    KeyGenType.SPARK_SQL_UUID: "org.apache.spark.sql.hudi.command.UuidKeyGenerator",
    KeyGenType.SPARK_SQL_MERGE_INTO: "org.apache.spark.sql.hudi.command.MergeIntoKeyGenerator",
}
"""Names of Apache Hudi's generators in version 6 tables and options."""

# Simple class name without "Avro" → type. Some moved between packages, so the package is ignored.
_BY_SIMPLE_NAME = {name.rsplit(".", 1)[-1]: kind for kind, name in GENERATOR_CLASSES.items()} | {
    "AutoRecordKeyGenerator": KeyGenType.AUTO_RECORD,
    "AutoRecordGenWrapperKeyGenerator": KeyGenType.AUTO_RECORD,
    "NonPartitionedKeyGenerator": KeyGenType.NON_PARTITION,
}


def parse_keygen(text: str, key: str = KEYGENERATOR_TYPE.key) -> KeyGenType:
    """Return the generator of a type name (any case, also with ``_AVRO``) or of a Java class name of Apache Hudi.

    Other classes are ``USER_PROVIDED``. Raises InvalidOptionError for other texts; ``key`` is the option in its
    message.
    """
    name = text.strip()
    if "." in name:
        simple = name.rsplit(".", 1)[-1]
        kind = _BY_SIMPLE_NAME.get(simple) or _BY_SIMPLE_NAME.get(simple.replace("Avro", ""))
        return kind or KeyGenType.USER_PROVIDED
    upper = name.upper().removesuffix("_AVRO")
    if upper in KeyGenType.__members__:
        return KeyGenType[upper]
    allowed = ", ".join(KeyGenType.__members__) + f", or a class name such as {GENERATOR_CLASSES[KeyGenType.SIMPLE]}"
    raise InvalidOptionError(key, text, allowed)


def class_name(kind: KeyGenType) -> str:
    """Return the Java class name that version 6 tables store for *kind*."""
    try:
        return GENERATOR_CLASSES[kind]
    except KeyError:
        raise ConfigError(f"the key generator {kind} has no class name in Apache Hudi") from None


def infer_keygen(record_keys: tuple[str, ...], partition_spec: str) -> KeyGenType:
    """Return the default generator for a new table.

    *partition_spec* is the text of ``hoodie.datasource.write.partitionpath.field``: with ``name:type`` entries the
    result is CUSTOM, without fields NON_PARTITION, with one field and at most one key field SIMPLE, otherwise COMPLEX.
    """
    fields = [part for part in partition_spec.split(",") if part.strip()]
    if not fields:
        return KeyGenType.NON_PARTITION
    if ":" in partition_spec:
        return KeyGenType.CUSTOM
    return KeyGenType.SIMPLE if len(fields) == 1 and len(record_keys) <= 1 else KeyGenType.COMPLEX


class PartitionKind(StrEnum):
    """Conversion of the value of a partition field to text."""

    SIMPLE = "simple"
    TIMESTAMP = "timestamp"


@dataclass(frozen=True, slots=True)
class PartitionField:
    """One partition field: its (possibly dotted) column name and the conversion of its value to text."""

    name: str
    kind: PartitionKind = PartitionKind.SIMPLE


def parse_partition_fields(text: str) -> tuple[PartitionField, ...]:
    """Parse ``"city:simple,ts:timestamp"`` or ``"city,ts"``; empty text has no fields."""
    fields: list[PartitionField] = []
    for part in text.split(","):
        name, _, kind = part.strip().partition(":")
        if not name:
            continue
        if kind and kind.upper() not in PartitionKind.__members__:
            raise InvalidOptionError(PARTITIONPATH_FIELD.key, text, "field:simple or field:timestamp")
        fields.append(PartitionField(name, PartitionKind(kind.lower()) if kind else PartitionKind.SIMPLE))
    return tuple(fields)


def with_conversions(text: str) -> str:
    """Return the partition fields in *text* with ``:simple`` after each name that has no conversion."""
    fields = (part.strip() for part in text.split(","))
    return ",".join(field if ":" in field else f"{field}:{PartitionKind.SIMPLE}" for field in fields if field)
