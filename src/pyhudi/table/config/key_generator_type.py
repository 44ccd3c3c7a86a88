"""Names of key generators and of partition fields, as table properties and options spell them.

The names are facts of the format: ``hoodie.table.keygenerator.type`` holds a type (version 8 and later),
``hoodie.table.keygenerator.class`` a Java class name (version 6). Both mean the same here; no class is ever loaded.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from pyhudi.errors import ConfigError, InvalidOptionError

_PACKAGE = "org.apache.hudi.keygen."


class KeyGenType(StrEnum):
    """The key generators that a table can name."""

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


_CLASSES: dict[KeyGenType, str] = {
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

# simple class name without "Avro" → type; releases moved some of these between packages, so the package is not compared
_BY_SIMPLE_NAME = {name.rsplit(".", 1)[-1]: kind for kind, name in _CLASSES.items()} | {
    "AutoRecordKeyGenerator": KeyGenType.AUTO_RECORD,
    "AutoRecordGenWrapperKeyGenerator": KeyGenType.AUTO_RECORD,
    "NonPartitionedKeyGenerator": KeyGenType.NON_PARTITION,
}


def parse_keygen(text: str) -> KeyGenType:
    """The generator that a type name (any case, ``_AVRO`` twins too) or a Java class name of Apache Hudi stands for.

    A class of somebody else is ``USER_PROVIDED``. Raises InvalidOptionError for anything that is neither.
    """
    name = text.strip()
    if "." in name:
        simple = name.rsplit(".", 1)[-1]
        kind = _BY_SIMPLE_NAME.get(simple) or _BY_SIMPLE_NAME.get(simple.replace("Avro", ""))
        return kind or KeyGenType.USER_PROVIDED
    upper = name.upper().removesuffix("_AVRO")
    if upper in KeyGenType.__members__:
        return KeyGenType[upper]
    allowed = ", ".join(KeyGenType.__members__) + f", or a class name such as {_CLASSES[KeyGenType.SIMPLE]}"
    raise InvalidOptionError("hoodie.datasource.write.keygenerator.type", text, allowed)


def class_name(kind: KeyGenType) -> str:
    """The Java class name that version 6 tables store for *kind*."""
    try:
        return _CLASSES[kind]
    except KeyError:
        raise ConfigError(f"the key generator {kind} has no class name of Apache Hudi's") from None


def infer_keygen(record_keys: tuple[str, ...], partition_spec: str) -> KeyGenType:
    """The generator for a new table that names none.

    *partition_spec* is the text of ``hoodie.datasource.write.partitionpath.field``: one with ``name:type`` entries
    means CUSTOM, none NON_PARTITION, one field with at most one key field SIMPLE, otherwise COMPLEX.
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
    """One partition field: its (possibly dotted) column name and how its value becomes text."""

    name: str
    kind: PartitionKind = PartitionKind.SIMPLE


def parse_partition_fields(text: str) -> tuple[PartitionField, ...]:
    """``"city:simple,ts:timestamp"`` or ``"city,ts"`` as fields; empty text is no field."""
    found: list[PartitionField] = []
    for part in text.split(","):
        name, _, kind = part.strip().partition(":")
        if not name:
            continue
        if kind and kind.upper() not in PartitionKind.__members__:
            raise InvalidOptionError(
                "hoodie.datasource.write.partitionpath.field", text, "field:simple or field:timestamp"
            )
        found.append(PartitionField(name, PartitionKind(kind.lower()) if kind else PartitionKind.SIMPLE))
    return tuple(found)
