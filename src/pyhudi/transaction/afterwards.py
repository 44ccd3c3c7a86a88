"""What is done for the metadata table when a write is committed already: it may fail, and the write stays."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from pyhudi.metadata.maintain import build_all, columns_of, is_enabled
from pyhudi.metadata.serve import serve
from pyhudi.metadata.upkeep import Upkeep
from pyhudi.table.config import TableConfig
from pyhudi.timeline.active import ActiveTimeline
from pyhudi.transaction.rollback import newest

if TYPE_CHECKING:
    from pyhudi.config import Options
    from pyhudi.metadata.filefacts import FileFacts
    from pyhudi.storage import Storage
    from pyhudi.timeline.generator import InstantGenerator, Slot
    from pyhudi.timeline.metadata import CommitMetadata

_log = logging.getLogger(__name__)


def upkeep_of(storage: Storage, opts: Options, active: ActiveTimeline, slot: Slot, facts: FileFacts) -> Upkeep:
    """What is needed for changes of the metadata table; the table's lock is held."""
    return Upkeep(storage, opts, active, lambda: slot.take(newest(active)), facts)


def serve_metadata_table(upkeep: Upkeep, config: TableConfig) -> None:
    """Run the services of the metadata table that are due."""
    try:
        serve(upkeep, config)
    except Exception as failure:  # the next commit tries again
        _log.warning("the metadata table of %s was not compacted: %s", upkeep.storage.root, failure)


def build_metadata_table(
    storage: Storage, opts: Options, generator: InstantGenerator, metadata: CommitMetadata, facts: FileFacts
) -> None:
    """Build the metadata table of a table that has been made out of another one, which ``metadata`` tells of; without
    it readers list files. The caller holds the table's lock."""
    if not is_enabled(opts):
        return
    try:
        config = TableConfig.load(storage)
        active = ActiveTimeline.load(storage, config.layout)
        columns = columns_of(config, opts, metadata)
        with generator.reserve(locked=True) as slot:
            build_all(upkeep_of(storage, opts, active, slot, facts), config, columns)
    except Exception as failure:  # the next write tries again
        _log.warning("the table at %s has no metadata table yet: %s", storage.root, failure)
