"""Versions of records as rows in memory, and folding of several into one per record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import pyarrow as pa

from pyhudi.merge.mergers.merger_invocation import fold_records
from pyhudi.merge.mergers.record_merger import Records
from pyhudi.merge.modes.delete_marker import IS_DELETED
from pyhudi.merge.modes.merge_by_mode import Given, Versions, fold, given_rows
from pyhudi.merge.modes.merge_rules import MergeRules
from pyhudi.merge.ordering_values import Index, Mask, field_of, ranks_of_rows, without_ordering
from pyhudi.schema.evolution.schema_projection import conform
from pyhudi.schema.name_resolution import top_column


@dataclass(frozen=True, slots=True)
class RecordVersions:
    """Versions of records, one per row.

    The columns of a delete are ignored. ``natural``: deletes without an ordering value, a subset of ``is_delete``.
    ``ordering`` has one array per ordering field of the rules, of the types in the table. ``assigned``: for columns
    that a version may omit (which are null then), a mask of the rows that have it.
    """

    rows: pa.RecordBatch
    is_delete: Mask
    natural: Mask
    ordering: tuple[pa.Array, ...]
    assigned: Mapping[str, Mask] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.is_delete)

    @classmethod
    def from_rows(
        cls, rows: pa.RecordBatch, is_delete: Mask, rules: MergeRules, table: pa.Schema, *, hard_deletes: bool = False
    ) -> RecordVersions:
        """Create versions from the rows of a write and their ordering columns.

        ``table`` has the ordering fields with the types of the table; ``hard_deletes``: deletes have no ordering value,
        regardless of their columns (deletes by key).
        """
        ordering = rules.comparable(ordering_of(rows, rules.ordering_fields, table))
        if hard_deletes or rules.deletes_win:
            natural = is_delete
        else:
            natural = is_delete & without_ordering(ordering, len(is_delete)) if ordering else is_delete
        if hard_deletes and ordering and rules.merger is not None and is_delete.any():
            ordering = tuple(_set_null(column, is_delete) for column in ordering)
        return cls(rows, is_delete, natural, ordering)

    def take(self, picks: Index) -> RecordVersions:
        """The versions at these rows."""
        indices = pa.array(picks)
        return RecordVersions(
            self.rows.take(indices),
            self.is_delete[picks],
            self.natural[picks],
            tuple(column.take(indices) for column in self.ordering),
            {name: mask[picks] for name, mask in self.assigned.items()},
        )

    def as_records(self) -> Records:
        """Return the versions in the form that custom mergers receive: all columns may be null, as those of deletes."""
        assigned = {name: pa.array(mask) for name, mask in self.assigned.items()}
        rows = pa.RecordBatch.from_arrays(self.rows.columns, schema=as_nullable_fields(self.rows.schema))
        return Records(rows, pa.array(self.is_delete), self.ordering, assigned)


def ordering_of(rows: pa.RecordBatch, fields: Sequence[str], table: pa.Schema) -> tuple[pa.Array, ...]:
    """Return the ordering columns of rows, with the types in the table."""
    top = {top_column(path, table.names) for path in fields}
    ordering_schema = pa.schema([f for f in table if f.name in top])
    present = rows.select([name for name in rows.schema.names if name in top])
    typed = conform(present, as_nullable_fields(ordering_schema))
    return tuple(field_of(typed, path) for path in fields)


def as_nullable_fields(schema: pa.Schema) -> pa.Schema:
    """Return the schema with every column nullable, because rows of deletes have no values."""
    return pa.schema([f.with_nullable(True) for f in schema])


def fold_record_versions(versions: RecordVersions, record: Index, rules: MergeRules) -> RecordVersions:
    """Fold versions into one per record, in the order of the record numbers ``record`` of the rows (from 0 without
    gaps). Rows are in the order in which they were written."""
    if rules.merger is not None:
        records = fold_records(versions.as_records(), record, rules.merger)
        return versions_of_records(records, rules, versions.rows.schema)
    rows, schema = versions.rows, versions.rows.schema
    folded = fold(
        Versions(
            record,
            versions.is_delete,
            versions.natural,
            partial(ranks_of_rows, versions.ordering) if rules.ordering_fields else None,
            {name: given for i, name in enumerate(schema.names) if (given := _given(versions, rules, schema, i))},
            rules.replaces_deletes,
            rules.newest_columns(schema),
        )
    )
    picked = versions.take(folded.winner)
    if not folded.sources:
        return picked
    columns = [
        rows.column(i).take(pa.array(folded.sources[name])) if name in folded.sources else picked.rows.column(i)
        for i, name in enumerate(schema.names)
    ]
    assigned = {name: mask[folded.sources.get(name, folded.winner)] for name, mask in versions.assigned.items()}
    merged = pa.RecordBatch.from_arrays(columns, schema=schema)
    return RecordVersions(merged, picked.is_delete, picked.natural, picked.ordering, assigned)


def versions_of_records(records: Records, rules: MergeRules, schema: pa.Schema) -> RecordVersions:
    """Convert the result of a custom merger to record versions with the columns of ``schema``."""
    dead: Mask = records.is_delete.to_numpy(zero_copy_only=False)
    natural = dead & without_ordering(records.ordering, len(dead)) if records.ordering else dead
    assigned = {name: mask.to_numpy(zero_copy_only=False) for name, mask in records.assigned.items()}
    rows = pa.RecordBatch.from_arrays(records.rows.columns, schema=schema)
    return RecordVersions(rows, dead, natural, records.ordering if rules.ordering_fields else (), assigned)


def joined(first: RecordVersions, second: RecordVersions) -> RecordVersions:
    """Concatenate the versions of both."""
    names = sorted({*first.assigned, *second.assigned})

    def assigned_mask(part: RecordVersions, name: str) -> Mask:
        mask = part.assigned.get(name)
        return np.ones(len(part), dtype=np.bool_) if mask is None else mask

    return RecordVersions(
        pa.concat_batches([first.rows, second.rows]),
        np.concatenate([first.is_delete, second.is_delete]),
        np.concatenate([first.natural, second.natural]),
        tuple(pa.concat_arrays([a, b]) for a, b in zip(first.ordering, second.ordering, strict=True)),
        {name: np.concatenate([assigned_mask(first, name), assigned_mask(second, name)]) for name in names},
    )


def _given(versions: RecordVersions, rules: MergeRules, schema: pa.Schema, i: int) -> Given | None:
    column, schema_field = versions.rows.column(i), schema.field(i)
    if rules.replaces_deletes and schema_field.name == IS_DELETED:
        return None  # A delete gives its columns to other rows, but does not make deletes of them.

    def by_value(rows: Index) -> Mask | None:
        return rules.given(column.take(pa.array(rows)), schema_field)

    return given_rows(versions.assigned.get(schema_field.name), None if rules.partial is None else by_value)


def _set_null(column: pa.Array, mask: Mask) -> pa.Array:
    """The column with nulls where the mask is set."""
    return column.take(pa.array(np.arange(len(column)), mask=mask))
