"""Changes of ``hoodie.properties``, and its replacement if it is missing, corrupt, or has wrong values."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import MappingProxyType

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.config import Options, property_keys
from pyhudi.config.property_keys import TABLE_CHECKSUM
from pyhudi.errors import ConfigError, CorruptTableError, NotAHudiTableError
from pyhudi.services.repair.active_writer_check import check_not_in_use
from pyhudi.storage import Storage
from pyhudi.storage.table_paths import META_FOLDER
from pyhudi.table.config.properties_file import load_properties, overwrite_properties, update_properties
from pyhudi.table.config.properties_text import table_checksum
from pyhudi.table.config.table_config import TableConfig
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.transaction.locks.lock_factory import make_lock_provider

PROPERTIES_SCHEMA = pa.schema([("property", pa.string()), ("old_value", pa.string()), ("new_value", pa.string())])
"""One row per property before or after; null if it does not exist."""
_NEEDED = (property_keys.NAME, property_keys.TYPE, property_keys.VERSION)
_FIXED = (property_keys.VERSION, property_keys.TIMELINE_LAYOUT_VERSION)


def repair_properties(storage: Storage, properties: Mapping[str, str], opts: Options, *, dry_run: bool) -> pa.Table:
    """Replace all properties of a table. The old file may be corrupt, or missing.

    Args:
        storage: Storage of the table.
        properties: All properties of the table; the checksum is computed.
        opts: Options of locks and heartbeats.
        dry_run: Write nothing.

    Returns:
        The properties before and after (`PROPERTIES_SCHEMA`), sorted by name.

    Raises:
        NotAHudiTableError: There is no ``.hoodie`` folder.
        ConfigError: The name, type or version is missing, or the version differs from the table's.
        UnsupportedTableError: A table with such properties is not supported.
        BusyError: A write or service is running on the table.
    """
    repaired = {**properties}
    repaired.pop(TABLE_CHECKSUM, None)
    before = _before(storage)
    config = _checked(repaired, before)
    if dry_run:
        repaired[TABLE_CHECKSUM] = table_checksum(repaired)
        return _compared(before, repaired)
    with make_lock_provider(storage, opts) as lock:
        check_not_in_use(ActiveTimeline.load(storage, config.layout), opts)
        lock.ensure_held()
        return _compared(before, overwrite_properties(storage, repaired))


def change_properties(
    storage: Storage, opts: Options, *, put: Mapping[str, str], remove: Collection[str] = (), dry_run: bool = False
) -> pa.Table:
    """Set and remove some properties of a table; the others stay.

    Args:
        storage: Storage of the table.
        opts: Options of locks and heartbeats.
        put: Properties to set.
        remove: Names of properties to remove; those that the table does not have are ignored.
        dry_run: Write nothing.

    Returns:
        The properties that change, before and after (`PROPERTIES_SCHEMA`), sorted by name.

    Raises:
        ConfigError: The name, type or version would be missing, or the version another one.
        UnsupportedTableError: A table with such properties is not supported.
        BusyError: A write or service is running on the table.
    """

    def changed(before: Mapping[str, str]) -> dict[str, str]:
        after = {key: value for key, value in before.items() if key not in remove and key != TABLE_CHECKSUM} | {**put}
        _checked(after, before)
        return after

    before = load_properties(storage)
    after = changed(before)
    if not dry_run:
        with make_lock_provider(storage, opts) as lock:
            check_not_in_use(ActiveTimeline.load(storage, _checked(after, before).layout), opts)
            before = load_properties(storage)
            changed(before)
            lock.ensure_held()
            after = update_properties(storage, put=put, remove=remove)
    rows = _compared(before, after)
    rows = rows.filter(pc.invert(pc.equal(rows["property"], TABLE_CHECKSUM)))
    same = pc.fill_null(pc.equal(rows["old_value"], rows["new_value"]), False)
    return rows.filter(pc.invert(same))


def _before(storage: Storage) -> dict[str, str]:
    """Return the current properties, empty if the file cannot be read."""
    try:
        return load_properties(storage)
    except CorruptTableError:
        return {}
    except NotAHudiTableError:
        if not storage.list(META_FOLDER, recursive=True).num_rows:
            raise
        return {}


def _checked(repaired: Mapping[str, str], before: Mapping[str, str]) -> TableConfig:
    missing = [name for name in _NEEDED if not repaired.get(name)]
    if missing:
        raise ConfigError(f"the new properties lack {missing[0]}; they replace all properties of the table")
    for name in _FIXED:
        if before.get(name, repaired.get(name)) != repaired.get(name):
            raise ConfigError(
                f"the table has {name}={before[name]}, but the new properties have {repaired.get(name, 'none')}, "
                "with which its files cannot be read; use upgrade or downgrade"
            )
    config = TableConfig(MappingProxyType(dict(repaired)))
    config.check_readable()
    _ = config.table_type, config.base_file_format, config.keygen, config.merging  # Parses them.
    return config


def _compared(before: Mapping[str, str], after: Mapping[str, str]) -> pa.Table:
    names = sorted({*before, *after})
    columns = [names, [before.get(name) for name in names], [after.get(name) for name in names]]
    return pa.Table.from_arrays([pa.array(c, pa.string()) for c in columns], schema=PROPERTIES_SCHEMA)
