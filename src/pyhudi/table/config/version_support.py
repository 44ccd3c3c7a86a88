"""Check for tables that this release can read and write; others are refused before anything is changed."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

from pyhudi.config import property_keys
from pyhudi.config.enums import FileFormat
from pyhudi.errors import ConfigError, CorruptTableError, UnsupportedTableError
from pyhudi.table.config.typed_properties import TableProperties

READABLE_VERSIONS = (5, 6, 8, 9)
WRITABLE_VERSIONS = (6, 8, 9)
_NAMES = ("ZERO", "ONE", "TWO", "THREE", "FOUR", "FIVE", "SIX", "SEVEN", "EIGHT", "NINE")
"""Names of table versions in commands and procedures of Apache Hudi, from version 0 on."""
_LOST_TYPES = {"vector"}
"""Logical types that files written by pyhudi would not have inside of columns."""


def parse_version(text: str) -> int:
    """Return the table version with a name of Apache Hudi (``SIX``), in any case, or a number.

    Raises:
        ConfigError: It is neither.
    """
    if text.upper() in _NAMES:
        return _NAMES.index(text.upper())
    if not text.isdigit():
        raise ConfigError(f"{text!r} is no table version, such as 'EIGHT' or '8'")
    return int(text)


def check_readable(config: TableProperties) -> None:
    """Check that this release can read the table.

    Raises:
        UnsupportedTableError: The table has an unsupported version or feature.
        CorruptTableError: A property has a value that no release writes.
    """
    _check_version(config)
    _check_features(config)
    # Each of these properties raises an error for unknown values.
    _ = (config.table_type, config.timezone, config.keygen, config.partition_fields, config.merging, config.cdc_mode)


def check_version_writable(config: TableProperties) -> None:
    """Check that this release can write a table that it can read.

    Raises:
        UnsupportedTableError: The table has an unsupported version or feature.
        CorruptTableError: The schema with which the table was created is not JSON.
    """
    if config.version not in WRITABLE_VERSIONS:
        raise UnsupportedTableError(
            f"table {config.name!r} has version {config.version}; this release writes versions "
            f"{_listed(WRITABLE_VERSIONS)}: upgrade the table first"
        )
    if config.flag(property_keys.MULTIPLE_BASE_FILE_FORMATS):
        raise UnsupportedTableError(
            f"table {config.name!r} may mix base file formats (hoodie.table.multiple.base.file.formats.enable=true): "
            "pyhudi reads such tables; write the table with Apache Hudi"
        )
    types = _lost_types_of(config.create_schema) if config.create_schema else frozenset()
    if types:
        raise UnsupportedTableError(
            f"table {config.name!r} has columns of the types {', '.join(sorted(types))} of Apache Hudi 1.2, which "
            "pyhudi would store as plain bytes and structs; write the table with Apache Hudi"
        )


@lru_cache(maxsize=64)
def _lost_types_of(create_schema: str) -> frozenset[str]:
    """Return the lost types of an Avro schema given as JSON text; cached, because every transaction requires them."""
    try:
        schema = json.loads(create_schema)
    except ValueError as error:
        raise CorruptTableError(
            f"hoodie.properties contains {property_keys.CREATE_SCHEMA}={create_schema!r}, which is not JSON ({error}); "
            "replace the properties of the table by corrected ones with pyhudi.overwrite_properties"
        ) from None
    return frozenset(_lost_types(_without_vectors(schema)))


def _without_vectors(schema: Any) -> list[Any]:
    """Return the types of the columns of an Avro schema, except vectors."""
    fields = schema.get("fields") if isinstance(schema, dict) else None
    kinds = [field["type"] for field in fields or () if isinstance(field, dict) and "type" in field]
    branches = [branch for kind in kinds for branch in (kind if isinstance(kind, list) else [kind])]
    return [one for one in branches if not (isinstance(one, dict) and one.get("logicalType") == "vector")]


def _lost_types(schema: Any) -> set[str]:
    """Return the logical types in an Avro schema that files written by pyhudi would not have."""
    if isinstance(schema, list):
        return set().union(*map(_lost_types, schema))
    if not isinstance(schema, dict):
        return set()
    kind = schema.get("logicalType")
    unsupported = {kind} & _LOST_TYPES if isinstance(kind, str) else set()
    return unsupported.union(
        *(_lost_types(schema[key]) for key in ("type", "fields", "items", "values") if key in schema)
    )


def _check_version(config: TableProperties) -> None:
    version = config.version
    if version not in READABLE_VERSIONS:
        if version > max(READABLE_VERSIONS):
            cure = "use a newer release of pyhudi"
        elif version == 7:
            cure = (
                "version 7 exists only during an upgrade, which was interrupted; upgrade the table again with "
                "Apache Hudi 1.x"
            )
        else:
            cure = "upgrade it with Apache Hudi first"
        raise UnsupportedTableError(
            f"table {config.name!r} has version {version}; this release reads {_listed(READABLE_VERSIONS)}: {cure}"
        )
    expected = 2 if version >= 8 else 1
    layout = config.integer(property_keys.TIMELINE_LAYOUT_VERSION, expected)
    if layout != expected:
        raise CorruptTableError(
            f"table {config.name!r} of version {version} has hoodie.timeline.layout.version={layout}; releases of "
            f"Apache Hudi write {expected}"
        )


def _check_features(config: TableProperties) -> None:
    table_format = config.properties.get(property_keys.TABLE_FORMAT) or "native"
    if table_format != "native":
        raise UnsupportedTableError(
            f"table {config.name!r} has the table format {table_format!r} (hoodie.table.format); only native Hudi "
            "tables are supported"
        )
    if config.base_file_format not in (FileFormat.PARQUET, FileFormat.ORC) and not config.is_metadata_table:
        raise UnsupportedTableError(
            f"table {config.name!r} has base files of format {config.base_file_format}; only PARQUET and ORC are "
            "supported"
        )


def _listed(versions: tuple[int, ...]) -> str:
    return ", ".join(map(str, versions))
