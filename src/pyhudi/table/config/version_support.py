"""Tables that this release can read and write; everything else is refused before anything is touched."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyhudi.config.enums import FileFormat
from pyhudi.errors import CorruptTableError, UnsupportedTableError
from pyhudi.table.config.key_generator_type import KeyGenType

if TYPE_CHECKING:
    from pyhudi.table.config.table_config import TableConfig

READABLE_VERSIONS = (5, 6, 8, 9)
WRITABLE_VERSIONS = (6, 8, 9)


def check_readable(config: TableConfig) -> None:
    """Raise UnsupportedTableError for a version or feature that would be read wrongly, CorruptTableError for values
    that no release writes."""
    _check_version(config)
    _check_features(config)
    # each of these refuses a value that it does not know
    _ = (config.table_type, config.timezone, config.keygen, config.partition_fields, config.merging, config.cdc_mode)


def check_writable(config: TableConfig) -> None:
    """Raise UnsupportedTableError for a table that can be read but not written."""
    if config.version not in WRITABLE_VERSIONS:
        raise UnsupportedTableError(
            f"table {config.name!r} has version {config.version}; versions {_listed(WRITABLE_VERSIONS)} can be "
            "written: upgrade it first"
        )
    if config.keygen is KeyGenType.USER_PROVIDED:
        raise UnsupportedTableError(
            f"table {config.name!r} makes its keys with the Java class {config.keygen_class}, which cannot run here"
        )


def _check_version(config: TableConfig) -> None:
    version = config.version
    if version not in READABLE_VERSIONS:
        if version > max(READABLE_VERSIONS):
            cure = "a newer release of pyhudi may read it"
        elif version == 7:
            cure = (
                "version 7 only exists inside an upgrade that was cut off; upgrade the table again with Apache Hudi 1.x"
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
            f"table {config.name!r} of version {version} says hoodie.timeline.layout.version={layout}; releases of "
            f"Apache Hudi write {expected} there"
        )


def _check_features(config: TableConfig) -> None:
    table_format = config.properties.get("hoodie.table.format") or "native"
    if table_format != "native":
        raise UnsupportedTableError(
            f"table {config.name!r} has the table format {table_format!r} (hoodie.table.format); only native Hudi "
            "tables can be read here"
        )
    if config.flag("hoodie.table.multiple.base.file.formats.enable"):
        raise UnsupportedTableError(
            f"table {config.name!r} may mix base file formats (hoodie.table.multiple.base.file.formats.enable=true), "
            "which cannot be read here"
        )
    if config.base_file_format not in (FileFormat.PARQUET, FileFormat.ORC) and not config.is_metadata_table:
        raise UnsupportedTableError(
            f"table {config.name!r} has base files of format {config.base_file_format}; PARQUET and ORC can be "
            "read here"
        )


def _listed(versions: tuple[int, ...]) -> str:
    return ", ".join(map(str, versions))
