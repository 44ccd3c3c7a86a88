"""The metadata table on the way of its table to another version.

It is a table with a version of its own, which must be that of its table for whoever looks. So it is taken out of use
first, by the property that declares its partitions, then gets its version, and is declared again in the very moment in
which its table gets its own. A file tells what was taken out of use; whoever finds it after a death puts everything
back, unless the table was written meanwhile.
"""

from __future__ import annotations

import json
import logging
import zlib
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from pyhudi.errors import FormatError, MetadataTableError, NotFoundError
from pyhudi.metadata.disable_metadata import PARTITIONS, PARTITIONS_INFLIGHT, detach_metadata_table, is_attached
from pyhudi.metadata.file_groups.delta_files import begin, publish
from pyhudi.metadata.indexes.index_declarations import drop_partitions, withdraw_partitions
from pyhudi.metadata.metadata_layout import FILES, PROPERTIES, metadata_timeline
from pyhudi.metadata.reader.metadata_slices import current_slices
from pyhudi.metadata.reader.metadata_timeline import open_timeline
from pyhudi.metadata.services.metadata_compaction import compact_now
from pyhudi.services.upgrade.table_properties import changed_properties
from pyhudi.table.config.properties_text import CHECKSUM, format_properties, parse_properties, table_checksum
from pyhudi.timeline.instant import Action

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyhudi.metadata.writer.metadata_write_context import MetadataWriteContext
    from pyhudi.storage import Storage
    from pyhudi.table.config.table_config import TableConfig
    from pyhudi.timeline.active_timeline import ActiveTimeline

JOURNAL = ".hoodie/.aux/pyhudi_upgrade.json"
"""What is out of use while versions change."""
_log = logging.getLogger(__name__)


def settle_metadata(context: MetadataWriteContext, config: TableConfig, dropped: Sequence[str]) -> TableConfig:
    """Drop partitions of the metadata table, and compact the others; returns the table's configuration. One that
    cannot be trusted is taken away. The lock is held, and nothing is pending on the table."""
    storage = context.storage
    if FILES not in config.metadata_partitions:
        return detach_metadata_table(storage, config) if is_attached(config) else config
    if config.metadata_partitions_inflight:
        config = withdraw_partitions(storage, config, config.metadata_partitions_inflight)
    if dropped:
        config = drop_partitions(storage, config, dropped)
    try:
        open_timeline(storage, config, context.data)
        compact_now(context, config)
        problem = _unsettled(storage, config)
    except (FormatError, MetadataTableError, NotFoundError) as failure:
        problem = str(failure)
    if problem:
        _log.warning("the metadata table of %s is built anew: %s", storage.root, problem)
        return detach_metadata_table(storage, config)
    return config


def _unsettled(storage: Storage, config: TableConfig) -> str | None:
    """Return why the metadata table cannot change its version; None if it can."""
    active = metadata_timeline(storage, config.version)
    pending = active.timeline.pending().first
    if pending is not None:
        return f"{pending} is pending on its timeline"
    for partition in config.metadata_partitions:
        slices = current_slices(storage, active, active.timeline, partition, config.version)
        if any(slices["log_paths"].to_pylist()):
            return f"log files of its partition {partition} cannot be compacted"
    return None


def take_out_of_use(storage: Storage, config: TableConfig, active: ActiveTimeline) -> TableConfig:
    """Take the metadata table out of use, so that it can be put back; returns the table's configuration."""
    journal = {
        "partitions": config.properties.get(PARTITIONS, ""),
        "timeline": _fingerprint(active),
        "properties": storage.read(PROPERTIES).decode("latin-1"),
    }
    storage.write(JOURNAL, json.dumps(journal).encode())
    return config.updated(storage, remove=(PARTITIONS, PARTITIONS_INFLIGHT))


def put_back(storage: Storage, config: TableConfig, active: ActiveTimeline) -> TableConfig:
    """Put a metadata table back into use that was taken out of it by an upgrade that died; returns the table's
    configuration. If the table was written since, or has another version, there is nothing to put back."""
    try:
        journal = json.loads(storage.read(JOURNAL))
    except NotFoundError:
        return config
    except ValueError:
        journal = {}  # never whole, so nothing was taken out of use
    if not is_attached(config) and journal.get("timeline") == _fingerprint(active):
        storage.write(PROPERTIES, journal["properties"].encode("latin-1"))
        config = config.updated(storage, set={PARTITIONS: journal["partitions"]})
    storage.delete(JOURNAL)
    return config


def set_version(storage: Storage, to: int) -> None:
    """Give the metadata table its version; it is out of use."""
    found = changed_properties(parse_properties(storage.read(PROPERTIES)), to)
    found[CHECKSUM] = table_checksum(found)
    now = datetime.now(UTC)
    comment = f"Updated at {now.strftime('%Y-%m-%dT%H:%M:%S.%fZ')}"
    storage.write(PROPERTIES, format_properties(found, (comment,), now))


def add_empty_commits(storage: Storage, active: ActiveTimeline, instant: str) -> None:
    """Add delta commits without files to a metadata table that is of version 6 from now on: at ``instant``, as releases
    of that version compact after a delta commit and name the compaction after it, which must come after earlier ones;
    and at all that the table (``active``: its timeline) has completed and the metadata table has no delta commit of.
    These are rollbacks, and writes from before it was built, which version 6 cannot tell from those that it missed.
    """
    metadata = metadata_timeline(storage, 6)
    known = {i.requested for i in metadata.timeline if i.is_write}
    done = [i.requested for i in active.timeline.completed() if i.is_write or i.action == Action.ROLLBACK]
    for missing in (*(i for i in done if i not in known), instant):
        publish(metadata, begin(metadata, missing), [], 6, None)


def _fingerprint(active: ActiveTimeline) -> str:
    """The files of a timeline, in short."""
    names = sorted(state.file_name for instant in active.timeline for state in active.states(instant))
    return f"{active.layout.version}:{zlib.crc32('/'.join(names).encode()):08x}"
