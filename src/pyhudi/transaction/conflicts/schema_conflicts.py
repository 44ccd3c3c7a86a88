"""Columns of the table after concurrent writes of which one has changed them.

Apache Hudi's rules (`hoodie.write.concurrency.schema.conflict.resolution.enable`): of two writes one of which adds
columns, the table keeps these, whichever comes first; two that change the columns, each in its own way, are a conflict.
Readers take the columns from the write with the latest instant, though it may have been committed before another one.
So a write that changes the columns must also be the latest.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from pyhudi.schema.arrow_avro import from_avro
from pyhudi.schema.meta_columns import remove_meta_columns
from pyhudi.transaction.commit_outcome import Conflicted

if TYPE_CHECKING:
    from pyhudi.timeline.commit_metadata import CommitMetadata
    from pyhudi.timeline.instant import Instant


def agree_on_columns(
    metadata: CommitMetadata, requested: str, planned_on: str | None, found: tuple[Instant, CommitMetadata] | None
) -> CommitMetadata | Conflicted:
    """The metadata with the columns that the table is to have, or why they cannot be told.

    ``planned_on`` are the table's columns that the write at ``requested`` was planned on (Avro JSON; None: it had
    none), ``found`` is the newest write that has recorded columns by now, under the table's lock.
    """
    if metadata.schema_json is None or found is None:
        return metadata
    other, theirs = found
    assert theirs.schema_json is not None
    mine, now = _columns(metadata.schema_json), _columns(theirs.schema_json)
    before = None if planned_on is None else _columns(planned_on)
    if mine == now:
        return metadata
    if mine == before:
        if now == before:
            return metadata
        if _reads(now, mine):
            return replace(metadata, extra={**metadata.extra, "schema": theirs.schema_json})
    elif now == before and other.requested < requested:
        return metadata
    what = "meanwhile changed the table's columns"
    if now == before:
        what = "was committed meanwhile with a later instant, and readers take the table's columns from it"
    return Conflicted(requested, other, f"{other.action} {other.requested} {what} ({_difference(mine, now)})")


def _columns(text: str) -> pa.Schema:
    return remove_meta_columns(from_avro(text))


def _reads(table: pa.Schema, written: pa.Schema) -> bool:
    """True if files of the ``written`` columns can be said to hold the table's: those that they have are the same."""
    return all(_same(table.field(f.name).type, f.type) for f in written if f.name in table.names)


def _same(wanted: pa.DataType, written: pa.DataType) -> bool:
    if pa.types.is_struct(wanted) and pa.types.is_struct(written):
        have = {written.field(i).name: written.field(i).type for i in range(written.num_fields)}
        fields = [wanted.field(i) for i in range(wanted.num_fields)]
        return all(f.name not in have or _same(f.type, have[f.name]) for f in fields)
    return bool(wanted == written)


def _difference(mine: pa.Schema, now: pa.Schema) -> str:
    """The top-level columns in which they differ, in words."""
    here, there = ({f.name: f.type for f in schema} for schema in (mine, now))
    names = [name for name in {**there, **here} if here.get(name) != there.get(name)]
    said = (f"{n}: {there.get(n, 'not there')}, in this write {here.get(n, 'not there')}" for n in names)
    return "; ".join(said) or "their order"
