"""Metadata table during a version change of its table.

The metadata table has its own version, which must always equal the version of the table for readers. So it is disabled
first, by the property that declares its partitions. Then its version is changed, and it is declared again in the step
that changes the version of the table. A file records what was disabled; after an interruption the next process restores
it, unless the table was written in the meantime.
"""

from __future__ import annotations

import json
import logging
import zlib
from collections.abc import Sequence
from datetime import UTC, datetime

from pyhudi.config import Options
from pyhudi.config.property_keys import METADATA_PARTITIONS, METADATA_PARTITIONS_INFLIGHT, TABLE_CHECKSUM
from pyhudi.errors import FormatError, MetadataTableError, NotFoundError
from pyhudi.metadata.delete_metadata_table import delete_metadata_table, has_metadata_table
from pyhudi.metadata.file_groups.delta_commit_writer import MetadataCommit, begin_delta_commit, complete_delta_commit
from pyhudi.metadata.indexes.index_declarations import drop_inflight_partitions, drop_partitions
from pyhudi.metadata.maintenance.metadata_compaction import compact_now
from pyhudi.metadata.metadata_layout import FILES, PROPERTIES, load_metadata_timeline
from pyhudi.metadata.reader.metadata_slices import current_slices
from pyhudi.metadata.reader.metadata_timeline import open_timeline
from pyhudi.metadata.writer.locked_table import LockedTable
from pyhudi.services.upgrade.property_conversion import changed_properties
from pyhudi.storage import Storage
from pyhudi.storage.table_paths import AUX_FOLDER
from pyhudi.table.config.properties_text import format_properties, parse_properties, table_checksum
from pyhudi.table.config.table_config import TableConfig
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.instant import Action

JOURNAL = f"{AUX_FOLDER}/pyhudi_upgrade.json"
"""Record of the disabled partitions during a version change."""
_log = logging.getLogger(__name__)


def prepare_metadata_table(table: LockedTable, dropped: Sequence[str]) -> TableConfig:
    """Drop partitions of the metadata table, and compact the others. Return the table's configuration.

    An invalid metadata table is deleted. The lock is held, and nothing is pending in the table.
    """
    storage, config = table.storage, table.config
    if FILES not in config.metadata_partitions:
        return delete_metadata_table(storage, config) if has_metadata_table(config) else config
    if config.metadata_partitions_inflight:
        config = drop_inflight_partitions(storage, config, config.metadata_partitions_inflight)
    if dropped:
        config = drop_partitions(storage, config, dropped)
    table = table.with_config(config)
    try:
        open_timeline(table.snapshot)
        compact_now(table)
        problem = _reason_to_rebuild(storage, config)
    except (FormatError, MetadataTableError, NotFoundError) as failure:
        problem = str(failure)
    if problem:
        _log.warning("rebuilding the metadata table of %s: %s", storage.root, problem)
        return delete_metadata_table(storage, config)
    return config


def _reason_to_rebuild(storage: Storage, config: TableConfig) -> str | None:
    """Return the reason why the metadata table cannot change its version; None if it can."""
    active = load_metadata_timeline(storage, config.version)
    pending = active.timeline.pending().first
    if pending is not None:
        return f"{pending} is pending on its timeline"
    for partition in config.metadata_partitions:
        slices = current_slices(active, active.timeline, partition, config.version)
        if any(slices["log_paths"].to_pylist()):
            return f"log files of its partition {partition} cannot be compacted"
    return None


def disable_metadata_table(active: ActiveTimeline, config: TableConfig) -> TableConfig:
    """Disable the metadata table, so that it can be enabled again. Return the table's configuration."""
    storage = active.storage
    journal = {
        "partitions": config.properties.get(METADATA_PARTITIONS, ""),
        "timeline": _fingerprint(active),
        "properties": storage.read(PROPERTIES).decode("latin-1"),
    }
    storage.write(JOURNAL, json.dumps(journal).encode())
    return config.updated(storage, remove=(METADATA_PARTITIONS, METADATA_PARTITIONS_INFLIGHT))


def enable_metadata_table(active: ActiveTimeline, config: TableConfig) -> TableConfig:
    """Enable a metadata table that was disabled by an interrupted upgrade. Return the table's configuration. If the
    table was written since, or has another version, nothing is enabled."""
    storage = active.storage
    try:
        journal = json.loads(storage.read(JOURNAL))
    except NotFoundError:
        return config
    except ValueError:
        journal = {}  # Incomplete, so nothing was disabled.
    if not has_metadata_table(config) and journal.get("timeline") == _fingerprint(active):
        storage.write(PROPERTIES, journal["properties"].encode("latin-1"))
        config = config.updated(storage, set={METADATA_PARTITIONS: journal["partitions"]})
    storage.delete(JOURNAL)
    return config


def set_metadata_table_version(storage: Storage, to: int) -> None:
    """Set the version of the disabled metadata table."""
    properties = changed_properties(parse_properties(storage.read(PROPERTIES)), to, Options.parse({}))
    properties[TABLE_CHECKSUM] = table_checksum(properties)
    now = datetime.now(UTC)
    comment = f"Updated at {now.strftime('%Y-%m-%dT%H:%M:%S.%fZ')}"
    storage.write(PROPERTIES, format_properties(properties, (comment,), now))


def add_empty_commits(active: ActiveTimeline, instant: str) -> None:
    """Add empty delta commits to a metadata table that is converted to version 6.

    One is at ``instant``, because releases of that version compact after a delta commit and derive the name of the
    compaction, which must be later than earlier ones. Others are at all completed instants of the table (``active``:
    its timeline) without a delta commit in the metadata table: rollbacks, and writes from before it was built, which
    version 6 cannot distinguish from missed ones.
    """
    metadata = load_metadata_timeline(active.storage, 6)
    recorded = {i.requested for i in metadata.timeline if i.is_write}
    done = [i.requested for i in active.timeline.completed() if i.is_write or i.action == Action.ROLLBACK]
    for missing in (*(i for i in done if i not in recorded), instant):
        complete_delta_commit(metadata, begin_delta_commit(metadata, missing), MetadataCommit([]), 6, None)


def _fingerprint(active: ActiveTimeline) -> str:
    """Return a hash of the files of a timeline."""
    names = sorted(state.file_name for instant in active.timeline for state in active.states(instant))
    return f"{active.layout.version}:{zlib.crc32('/'.join(names).encode()):08x}"
