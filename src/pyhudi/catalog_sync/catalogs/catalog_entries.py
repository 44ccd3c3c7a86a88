"""Tables and partitions of a catalog as immutable values, in Hive's terms, which AWS Glue shares."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

EXTERNAL_TABLE = "EXTERNAL_TABLE"
MANAGED_TABLE = "MANAGED_TABLE"
VIEW = "VIRTUAL_VIEW"


@dataclass(frozen=True, slots=True)
class CatalogColumn:
    """A column: its name, Hive type and comment."""

    name: str
    type: str
    comment: str = ""


@dataclass(frozen=True, slots=True)
class StorageFormat:
    """Java classes by which Hive reads and writes files: input format, output format, SerDe."""

    input: str
    output: str
    serde: str


@dataclass(frozen=True, slots=True)
class CatalogEntry:
    """A table.

    Attributes:
        database: Database.
        name: Name.
        columns: Columns of the files.
        partition_columns: Partition columns.
        location: URI of the folder.
        format: How files are read.
        serde_properties: Properties of the SerDe.
        properties: Properties of the table.
        type: Kind of table, such as `EXTERNAL_TABLE`.
    """

    database: str
    name: str
    columns: tuple[CatalogColumn, ...]
    partition_columns: tuple[CatalogColumn, ...]
    location: str
    format: StorageFormat
    serde_properties: Mapping[str, str]
    properties: Mapping[str, str]
    type: str

    @property
    def full_name(self) -> str:
        """``database.name``."""
        return f"{self.database}.{self.name}"


@dataclass(frozen=True, slots=True)
class CatalogPartition:
    """A partition: the texts of its values, in the order of the partition columns, and the URI of its folder."""

    values: tuple[str, ...]
    location: str
