"""Changes of a table's columns by one commit without rows (schema-on-read evolution).

No data files are rewritten: the schema history in ``.hoodie/.schema`` identifies the columns of a file
(`pyhudi.table.schema_history`). Apache Hudi's ``ALTER TABLE`` creates the same commit, with operation ``ALTER_SCHEMA``.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace

from pyhudi.config import Options, options
from pyhudi.config.enums import Operation
from pyhudi.errors import SchemaMismatchError, TransactionError, UnsupportedTableError
from pyhudi.metadata.indexes.expression_index_definition import expression_indexes
from pyhudi.metadata.indexes.secondary_index_definition import secondary_indexes
from pyhudi.schema.converters.arrow_avro import from_avro, to_avro
from pyhudi.schema.evolution.internal_schema import InternalSchema
from pyhudi.schema.meta_columns import add_meta_columns
from pyhudi.table.config.table_config import TableConfig
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.table.schema_history import LATEST_SCHEMA, SchemaHistory
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.commit_metadata import CommitMetadata
from pyhudi.timeline.instant import Action
from pyhudi.timeline.latest_schema import newest_columns
from pyhudi.timeline.operation_types import ALTER_SCHEMA
from pyhudi.transaction.commit_conditions import CommitConditions
from pyhudi.transaction.commit_outcome import Conflicted
from pyhudi.transaction.single_writer_locks import in_process_writer_lock
from pyhudi.transaction.transaction import Transaction
from pyhudi.write.write_operations import action_of

SchemaChange = Callable[[InternalSchema], InternalSchema]
"""A change of columns, such as `pyhudi.schema.evolution.schema_changes.rename_column` with its arguments."""

_ATTEMPTS = 3


@dataclass(frozen=True, slots=True)
class SchemaUpdateResult:
    """Result of a change of columns: instant of its commit, None if nothing changed, and warnings about work after the
    commit."""

    instant: str | None = None
    warnings: tuple[str, ...] = ()


def alter_schema(
    client: TableMetaClient, write_options: Options, change: SchemaChange, *, keep_history: bool = True
) -> SchemaUpdateResult:
    """Change the columns of a table in one commit.

    Args:
        client: The table.
        write_options: Options of the commit: locks, metadata table.
        change: Returns the new columns for the current ones; ``version_id`` is set here.
        keep_history: False: the commit neither begins nor continues a history of schemas, because files of before the
            change are read without one.

    Returns:
        The instant of the commit.

    Raises:
        SchemaMismatchError: The change is not supported, or concerns a column of the record key, the partitions or the
            ordering.
        UnsupportedTableError: The table has no columns yet, cannot be written, or has an index on the column.
        TransactionError: A clustering is pending.
        ConflictError: Conflicts with other writers, repeatedly.
    """
    outcome: Conflicted | None = None
    with in_process_writer_lock(client.storage, write_options):
        for _ in range(_ATTEMPTS):
            client = client.reload()
            opts = client.config.validate_against(write_options)
            client.config.check_readable()
            client.config.check_writable()
            active = client.active_timeline()
            planned_on, before, history = _state(client, active)
            after = change(before)
            if after.fields == before.fields:
                return SchemaUpdateResult()
            _check_kept_columns(client.config, opts, before, after)
            _check_indexes(client, before, after)
            _refuse_pending_clustering(active)
            action = action_of(Operation.UPSERT, client.config.table_type)
            # before the instant, because a type or a name may be invalid
            schema = to_avro(add_meta_columns(after.to_arrow()), client.config.name)
            with Transaction.begin(client, action, ALTER_SCHEMA, opts) as tx:
                tx.to_inflight(CommitMetadata(ALTER_SCHEMA))
                extra, changed_history = {"schema": schema}, None
                if keep_history:
                    version = replace(after, version_id=int(tx.instant))
                    extra[LATEST_SCHEMA], changed_history = version.to_json(), history.with_version(version)
                metadata = CommitMetadata(ALTER_SCHEMA, extra=extra)
                committed = tx.commit(metadata, conditions=CommitConditions(planned_on), schema_history=changed_history)
            if not isinstance(committed, Conflicted):
                return SchemaUpdateResult(committed.instant.requested, committed.warnings)
            outcome = committed
    assert outcome is not None
    raise outcome.error()


def current_schema(client: TableMetaClient) -> InternalSchema:
    """Return the columns of a table with their ids.

    Raises:
        UnsupportedTableError: The table has none yet.
    """
    return _state(client, client.active_timeline())[1]


def _state(client: TableMetaClient, active: ActiveTimeline) -> tuple[str | None, InternalSchema, SchemaHistory]:
    """Return the recorded columns (Avro JSON; None: not recorded), the columns with ids, and their history."""
    latest = newest_columns(active)
    text = client.config.create_schema if latest is None else latest[1].schema_json
    if not text:
        raise UnsupportedTableError(
            f"the table at {client.storage.uri()} has no columns yet, so there is nothing to change; write rows, "
            "or create it with columns"
        )
    kept = None if latest is None else latest[1].extra.get(LATEST_SCHEMA)
    history = SchemaHistory.load(active) if kept else None
    if history is None:
        stored = InternalSchema.from_json(json.loads(kept)) if kept else None
        history = SchemaHistory.from_schema(stored or InternalSchema.from_arrow(add_meta_columns(from_avro(text))))
    return None if latest is None else text, history.as_of(None), history


def _check_kept_columns(config: TableConfig, opts: Options, before: InternalSchema, after: InternalSchema) -> None:
    """Refuse to drop, rename or change columns that are part of keys or partition paths, or by which records merge."""
    for role, names in config.columns_by_role(opts).items():
        for name in names:
            if _differs(name, before, after):
                raise SchemaMismatchError(
                    f"column {name!r} is one of the table's {role} fields, so it cannot be dropped, renamed or "
                    "changed in type (except int to long); write a new table"
                )


def _differs(path: str, before: InternalSchema, after: InternalSchema) -> bool:
    """Return True if the column at a path is missing, or differs in id or type."""
    old, new = before.field_at(path), after.field_at(path)
    if old is None:
        return False
    widened = new is not None and (old.type, new.type) == ("int", "long")
    return new is None or new.id != old.id or not (widened or old.type == new.type)


def _check_indexes(client: TableMetaClient, before: InternalSchema, after: InternalSchema) -> None:
    """Refuse changes of columns that have a secondary or an expression index."""
    storage, config = client.storage, client.config
    named = [(one.partition, one.column) for one in secondary_indexes(storage, config, include_building=True)]
    named += [
        (one.partition, one.expression.column) for one in expression_indexes(storage, config, include_building=True)
    ]
    for partition, column in named:
        if _differs(column, before, after):
            raise UnsupportedTableError(
                f"column {column!r} has the index {partition}, so it cannot be dropped, renamed or changed in "
                "type; drop the index first"
            )


def _refuse_pending_clustering(active: ActiveTimeline) -> None:
    """Refuse changes while a clustering is pending, whose files would have two schemas."""
    pending = [one for one in active.timeline if one.action == Action.CLUSTERING and not one.is_completed]
    if active.layout.version == 1:
        pending += [one for one in active.timeline if one.action == Action.REPLACE_COMMIT and not one.is_completed]
    if pending:
        raise TransactionError(
            f"{pending[0]} is pending, so columns cannot be changed; run it ({options.CLUSTERING_INLINE.key}, "
            f"HudiTable.services.run_clustering) or roll it back (HudiTable.services.rollback"
            f"({pending[0].requested!r}))"
        )
