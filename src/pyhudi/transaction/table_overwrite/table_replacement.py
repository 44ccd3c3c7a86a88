"""Replacement of a table by a new one in the same folder: the end of a write with the save mode overwrite.

The write has added its files to those of the old table, as a replacecommit in its timeline. The functions here complete
that replacecommit, with all other file groups as replaced, and then, before any other writer may start:

1. If the new table has another timeline layout, the replacecommit is also created in the folder of that layout, which
is not read yet.
2. The properties are replaced atomically.
3. Parts of the old table that are not kept are deleted.

`pyhudi.transaction.table_overwrite.overwrite_compatibility` determines which parts are kept for readers of the old
table: its data files, which are replaced file groups to be deleted by a cleaner, and its instants.

After a crash there is either the old table, or the new rows: with the old properties immediately before step 2, with
the new ones and leftovers after it. Leftovers are hidden by the replacecommit, and another overwrite deletes them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import LockError, StorageError, UnsupportedTableError
from pyhudi.format.file_names import split_paths
from pyhudi.storage import Storage
from pyhudi.storage.table_paths import (
    BUCKET_FOLDER,
    INDEX_DEFINITIONS_FOLDER,
    META_FOLDER,
    PARTITION_METADATA,
    SCHEMA_FOLDER,
)
from pyhudi.table.config.table_config import TableConfig
from pyhudi.table.view.file_listing import list_files
from pyhudi.timeline.action_avro import requested_replace
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.commit_metadata import REPLACED_SCHEMA, CommitMetadata
from pyhudi.timeline.instant import Action, Instant
from pyhudi.timeline.time_generator import TimeGenerator
from pyhudi.timeline.timeline_layout import Layout
from pyhudi.transaction.commit_outcome import Committed, Conflicted
from pyhudi.transaction.table_overwrite.overwrite_compatibility import RetainedParts
from pyhudi.transaction.transaction import Transaction

_DESCRIPTIONS = (SCHEMA_FOLDER, INDEX_DEFINITIONS_FOLDER)
"""Folders that describe the old table and do not apply to the new one."""
_UPGRADED = f"{META_FOLDER}/archived"
"""Folder of the older archive of a table that was upgraded from version 6."""

_HISTORY_FILE = r"/(\.commits_\.archive\..*|_version_|manifest_\d+|[^/]*\.parquet)$"

_log = logging.getLogger(__name__)


def replace_table(
    tx: Transaction,
    config: TableConfig,
    metadata: CommitMetadata,
    *,
    keep_index: Callable[[], None] = lambda: None,
    retained: RetainedParts = RetainedParts.NOTHING,
    validate: Callable[[CommitMetadata], None] = lambda _: None,
) -> tuple[Committed | Conflicted, CommitMetadata]:
    """Complete ``tx``, a replacecommit in the old table's timeline, and convert the table to one with ``config``.

    ``metadata`` describes the write; it is returned with the replaced file groups. ``keep_index`` stores the index
    metadata of the new table, replacing that of the old one. ``retained`` are the parts of the old table to keep.
    ``validate`` is called with the metadata before anything is changed, and may refuse the write. Every other write
    that is pending, or was completed since this one started, is a conflict, because its rows belong to the old table.

    Raises:
        UnsupportedTableError: Two timeline layouts would share a folder; nothing has been committed.
        StorageError: The rows were replaced, but the properties could not be.
        LockError: So they were, because the lock was lost.
        The errors of `Transaction.commit`.
    """
    old, new = tx.config.layout, config.layout
    if old.version != new.version and old.folder == new.folder:
        raise UnsupportedTableError(
            f"the timeline of the table at {tx.storage.root} is in {old.folder!r}, which cannot also hold one of "
            f"layout {new.version}; delete the table and write the new one with the save mode append"
        )
    metadata = replace(metadata, replaced=_groups_of_other_writes(tx.storage, metadata.stats))
    validate(metadata)

    entered: list[Instant] = []

    def replace_with(done: Instant) -> None:
        tx.storage.delete_tree(BUCKET_FOLDER)
        keep_index()
        entered.append(done if old.folder == new.folder else _complete_in_new_layout(config, tx, done, metadata))
        _ensure_lock_for_properties(tx, done)
        tx.config.updated(tx.storage, change=lambda properties: _replace(properties, config.properties))
        try:
            tx.lock.ensure_held()  # Other writers may have added files to the new table.
            _delete_old_table(tx.storage, old, new, published=done.requested, stats=metadata.stats, retained=retained)
        except (StorageError, LockError) as error:
            _log.warning("invisible leftovers of the old table at %s were not deleted: %s", tx.storage.root, error)
        tx.build_metadata_table(metadata)

    outcome = tx.commit(metadata, exchange_table=replace_with)
    return (replace(outcome, instant=entered[0]) if isinstance(outcome, Committed) else outcome), metadata


def _ensure_lock_for_properties(tx: Transaction, done: Instant) -> None:
    """Check that no other writer may have committed to the old table since its rows were replaced.

    Raises:
        LockError: The lock was lost.
    """
    try:
        tx.lock.ensure_held()
    except LockError as lost:
        raise LockError(
            f"the rows of the table at {tx.storage.uri()} were replaced ({done}), but it keeps its properties and "
            f"columns, because other writers may have added rows since: {lost}"
        ) from lost


def _replace(properties: dict[str, str], new_properties: Mapping[str, str]) -> None:
    properties.clear()
    properties.update(new_properties)


def _groups_of_other_writes(storage: Storage, stats: pa.Table) -> pa.Table:
    """Return all existing file groups (REPLACED_SCHEMA), visible or not, except those of the write."""
    files, _ = list_files(storage)
    others = files.filter(pc.invert(pc.is_in(files["path"], value_set=stats["path"].combine_chunks())))
    groups = others.group_by(["partition", "file_id"], use_threads=False).aggregate([])
    return groups.select(REPLACED_SCHEMA.names).cast(REPLACED_SCHEMA)


def _complete_in_new_layout(config: TableConfig, tx: Transaction, done: Instant, metadata: CommitMetadata) -> Instant:
    """Create the completed instant in the folder of another layout. Return it in that layout."""
    # From an interrupted replacement, or from before an upgrade.
    _delete_instants(tx.storage, config.layout)
    _delete_history(tx.storage, config.layout)
    active = ActiveTimeline.load(tx.storage, config.layout)
    instant = active.create_requested(done.action, done.requested, requested_replace(config.version))
    instant = active.to_inflight(instant)
    completion = None
    if config.layout.version >= 2:
        with TimeGenerator(tx.storage, tx.opts, config.timezone, lock=tx.lock).reserve(locked=True) as reserved:
            completion = reserved.take(done.requested)
    return active.complete(instant, metadata.encode(config.version, Action.REPLACE_COMMIT), completion)


def _delete_old_table(
    storage: Storage, old: Layout, new: Layout, *, published: str, stats: pa.Table, retained: RetainedParts
) -> None:
    for folder in _DESCRIPTIONS:
        storage.delete_tree(folder)
    if retained is RetainedParts.HISTORY:
        # Plans of services that must not be executed any more.
        _delete_instants(storage, old, lambda instant: instant.is_completed)
        return
    if retained is RetainedParts.NOTHING:
        _delete_data(storage, stats)
    own_instant = published if old.folder == new.folder else None
    _delete_instants(storage, old, lambda instant: instant.requested == own_instant)
    _delete_history(storage, old)
    storage.delete_tree(_UPGRADED)
    if old.folder not in (new.folder, META_FOLDER):
        storage.delete_tree(old.folder)
    storage.make_dirs(new.history)


def _delete_history(storage: Storage, layout: Layout) -> None:
    if layout.history not in (META_FOLDER, layout.folder):
        storage.delete_tree(layout.history)
        return
    # Tables of the first releases have their archive among other files.
    paths = storage.list(layout.history)["path"]
    storage.delete_many(paths.filter(pc.match_substring_regex(paths, _HISTORY_FILE)).to_pylist())


def _delete_data(storage: Storage, stats: pa.Table) -> None:
    """Delete every file outside of ``.hoodie``, except those of the write and the metadata of its partitions."""
    folders = pc.unique(stats["partitionPath"].combine_chunks())
    written = stats["path"].combine_chunks()
    top = [name for name in storage.list_dirs() if name != META_FOLDER]
    listings = [storage.list(), *(storage.list(name, recursive=True) for name in top)]
    for listing in listings:
        parents, names = split_paths(listing["path"])
        marks = pc.and_(pc.starts_with(names, PARTITION_METADATA), pc.is_in(parents, value_set=folders))
        keep = pc.or_(marks, pc.is_in(listing["path"].combine_chunks(), value_set=written))
        storage.delete_many(listing["path"].filter(pc.invert(keep)).to_pylist())
    live = {path.split("/")[0] for path in folders.to_pylist()}
    for name in top:
        if name not in live:
            storage.delete_tree(name)


def _delete_instants(storage: Storage, layout: Layout, keep: Callable[[Instant], bool] = lambda _: False) -> None:
    """Delete the instants of a layout, except some. After a crash none of them looks failed."""
    active = ActiveTimeline.load(storage, layout)
    for instant in active.timeline:
        if not keep(instant):
            for state in reversed(active.states(instant)):
                active.delete(state)
