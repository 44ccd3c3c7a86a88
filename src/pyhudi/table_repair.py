"""Repairs of tables that cannot be opened."""

from __future__ import annotations

import os
from collections.abc import Mapping

import pyarrow as pa

from pyhudi.config import Options
from pyhudi.table_services import TableServices


def overwrite_properties(
    path: str | os.PathLike[str],
    properties: Mapping[str, str],
    options: Mapping[str, object] | None = None,
    *,
    dry_run: bool = False,
) -> pa.Table:
    """Replace all properties in a table's ``hoodie.properties``, also if the file is corrupt or missing, so that
    :class:`pyhudi.HudiTable` cannot open the table.

    Args:
        path: Path or URI of the table's root folder.
        properties: All properties of the table, without the checksum.
        options: Options of storage, locks and heartbeats.
        dry_run: Change nothing, and return what would be changed.

    Returns:
        One row per property before or after: ``property``, ``old_value``, ``new_value`` (null: does not exist).

    Raises:
        NotAHudiTableError: There is no ``.hoodie`` folder.
        ConfigError: The name, type or version is missing, or the version differs from the table's.
        UnsupportedTableError: A table with such properties is not supported.
        BusyError: A write or service is running on the table.
    """
    return TableServices(os.fspath(path), Options.parse(options or {})).overwrite_properties(
        properties, dry_run=dry_run
    )
