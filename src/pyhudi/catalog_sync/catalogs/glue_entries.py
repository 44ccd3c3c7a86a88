"""Entries of AWS Glue in the form of its requests and answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pyhudi.catalog_sync.catalogs.catalog_entries import (
    EXTERNAL_TABLE,
    CatalogColumn,
    CatalogEntry,
    CatalogPartition,
    StorageFormat,
)

METADATA_LISTING = "hudi.metadata-listing-enabled"
"""Property of a table by which queries of Athena list its files in the metadata table."""
_S3A = ("s3a://", "s3n://")


def entry_of(database: str, stored: Mapping[str, Any]) -> CatalogEntry:
    """Return a table as Glue has it."""
    sd = stored.get("StorageDescriptor", {})
    serde = sd.get("SerdeInfo", {})
    properties = {key: value for key, value in stored.get("Parameters", {}).items() if key != METADATA_LISTING}
    return CatalogEntry(
        database,
        stored["Name"],
        _catalog_columns(sd.get("Columns", ())),
        _catalog_columns(stored.get("PartitionKeys", ())),
        sd.get("Location", ""),
        StorageFormat(sd.get("InputFormat", ""), sd.get("OutputFormat", ""), serde.get("SerializationLibrary", "")),
        dict(serde.get("Parameters", {})),
        properties,
        stored.get("TableType", EXTERNAL_TABLE),
    )


def partition_of(stored: Mapping[str, Any]) -> CatalogPartition:
    """Return a partition as Glue has it."""
    return CatalogPartition(tuple(stored["Values"]), stored.get("StorageDescriptor", {}).get("Location", ""))


def glue_columns(columns: Iterable[CatalogColumn]) -> list[dict[str, str]]:
    """Return Glue's ``Column`` of each column."""
    return [{"Name": column.name, "Type": column.type, "Comment": column.comment} for column in columns]


def storage_descriptor(table: CatalogEntry, location: str) -> dict[str, Any]:
    """Return Glue's ``StorageDescriptor`` of a table or one of its partitions at a location."""
    return {
        "Columns": glue_columns(table.columns),
        "Location": s3_uri(location),
        "InputFormat": table.format.input,
        "OutputFormat": table.format.output,
        "SerdeInfo": {"SerializationLibrary": table.format.serde, "Parameters": dict(table.serde_properties)},
    }


def partition_input(table: CatalogEntry, partition: CatalogPartition) -> dict[str, Any]:
    """Return Glue's ``PartitionInput`` of a partition with the columns and the format of its table."""
    return {"Values": list(partition.values), "StorageDescriptor": storage_descriptor(table, partition.location)}


def s3_uri(location: str) -> str:
    """Return a URI with the scheme that Athena takes."""
    scheme = next((one for one in _S3A if location.startswith(one)), "")
    return f"s3://{location.removeprefix(scheme)}" if scheme else location


def _catalog_columns(columns: Iterable[Mapping[str, str]]) -> tuple[CatalogColumn, ...]:
    return tuple(CatalogColumn(one["Name"], one.get("Type", ""), one.get("Comment", "")) for one in columns)
