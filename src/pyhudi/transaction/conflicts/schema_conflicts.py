"""Columns of the table after concurrent writes of which one has changed them.

Apache Hudi's rules (`hoodie.write.concurrency.schema.conflict.resolution.enable`): if one of two writes adds columns,
the table keeps them, regardless of the order; if both change the columns differently, they conflict. Readers take the
columns from the write with the latest instant, which may have been committed before another one. So a write that
changes the columns must also be the latest.
"""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from pyhudi.schema.converters.arrow_avro import from_avro
from pyhudi.schema.meta_columns import remove_meta_columns
from pyhudi.timeline.commit_metadata import CommitMetadata
from pyhudi.timeline.instant import Instant
from pyhudi.transaction.commit_outcome import Conflicted


def resolve_schema_conflict(
    metadata: CommitMetadata, requested: str, planned_on: str | None, latest: tuple[Instant, CommitMetadata] | None
) -> CommitMetadata | Conflicted:
    """Return the metadata with the new columns of the table, or the conflict.

    ``planned_on`` are the table's columns with which the write at ``requested`` was planned (Avro JSON; None: there
    were none), ``latest`` is the newest write that has recorded columns, determined under the lock of the table.
    """
    if metadata.schema_json is None or latest is None:
        return metadata
    other, other_metadata = latest
    assert other_metadata.schema_json is not None
    written, current = _columns(metadata.schema_json), _columns(other_metadata.schema_json)
    before = None if planned_on is None else _columns(planned_on)
    if written == current:
        return metadata
    if written == before:
        if current == before:
            return metadata
        if _reads(current, written):
            return replace(metadata, extra={**metadata.extra, "schema": other_metadata.schema_json})
    elif current == before and other.requested < requested:
        return metadata
    what = "changed the columns of the table concurrently"
    if current == before:
        what = "was committed concurrently with a later instant, from which readers take the columns of the table"
    return Conflicted(requested, other, f"{other.action} {other.requested} {what} ({_difference(written, current)})")


def _columns(text: str) -> pa.Schema:
    return remove_meta_columns(from_avro(text))


def _reads(table: pa.Schema, written: pa.Schema) -> bool:
    """Return True if files with the ``written`` columns are valid for the table: their common columns are the same."""
    return all(_is_same_type(table.field(f.name).type, f.type) for f in written if f.name in table.names)


def _is_same_type(table_type: pa.DataType, written: pa.DataType) -> bool:
    if pa.types.is_struct(table_type) and pa.types.is_struct(written):
        have = {written.field(i).name: written.field(i).type for i in range(written.num_fields)}
        fields = [table_type.field(i) for i in range(table_type.num_fields)]
        return all(f.name not in have or _is_same_type(f.type, have[f.name]) for f in fields)
    return bool(table_type == written)


def _difference(written: pa.Schema, current: pa.Schema) -> str:
    """Return a description of the top-level columns that differ."""
    written_types, table_types = ({f.name: f.type for f in schema} for schema in (written, current))
    names = [name for name in {**table_types, **written_types} if written_types.get(name) != table_types.get(name)]
    differences = (
        f"{n}: {table_types.get(n, 'missing')}, in this write {written_types.get(n, 'missing')}" for n in names
    )
    return "; ".join(differences) or "their order"
