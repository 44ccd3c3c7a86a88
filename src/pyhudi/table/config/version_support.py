"""Check for tables that this release can read and write; others are refused before anything is changed."""

from __future__ import annotations

from pyhudi.config.enums import FileFormat
from pyhudi.errors import CorruptTableError, UnsupportedTableError
from pyhudi.table.config.key_generator_type import KeyGenType
from pyhudi.table.config.typed_properties import TableProperties

READABLE_VERSIONS = (5, 6, 8, 9)
WRITABLE_VERSIONS = (6, 8, 9)


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


def check_writable(config: TableProperties) -> None:
    """Raise UnsupportedTableError for a table that can be read but not written."""
    if config.version not in WRITABLE_VERSIONS:
        raise UnsupportedTableError(
            f"table {config.name!r} has version {config.version}; this release writes versions "
            f"{_listed(WRITABLE_VERSIONS)}: upgrade the table first"
        )
    if config.keygen is KeyGenType.USER_PROVIDED:
        raise UnsupportedTableError(
            f"table {config.name!r} uses the Java key generator {config.keygen_class}, which pyhudi cannot run"
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
    layout = config.integer("hoodie.timeline.layout.version", expected)
    if layout != expected:
        raise CorruptTableError(
            f"table {config.name!r} of version {version} has hoodie.timeline.layout.version={layout}; releases of "
            f"Apache Hudi write {expected}"
        )


def _check_features(config: TableProperties) -> None:
    table_format = config.properties.get("hoodie.table.format") or "native"
    if table_format != "native":
        raise UnsupportedTableError(
            f"table {config.name!r} has the table format {table_format!r} (hoodie.table.format); only native Hudi "
            "tables are supported"
        )
    if config.flag("hoodie.table.multiple.base.file.formats.enable"):
        raise UnsupportedTableError(
            f"table {config.name!r} may mix base file formats "
            "(hoodie.table.multiple.base.file.formats.enable=true), which is not supported"
        )
    if config.base_file_format not in (FileFormat.PARQUET, FileFormat.ORC) and not config.is_metadata_table:
        raise UnsupportedTableError(
            f"table {config.name!r} has base files of format {config.base_file_format}; only PARQUET and ORC are "
            "supported"
        )


def _listed(versions: tuple[int, ...]) -> str:
    return ", ".join(map(str, versions))
