"""Rules that select between versions of a record, as plain values that are sent to tasks.

`MergeRules` define this for the built-in merge modes: selection by ordering value or by order of writing, and the
columns of the winning version that are taken from the other one. For the mode CUSTOM a registered `RecordMerger` is
used.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.config import options
from pyhudi.config.enums import MergeMode, PartialUpdateMode
from pyhudi.merge.mergers.merger_registry import registered
from pyhudi.merge.mergers.record_merger import RecordMerger
from pyhudi.merge.ordering_values import Index, Mask, as_mask, check_orderable, field_of, padded
from pyhudi.schema.converters.arrow_avro import default_value
from pyhudi.schema.meta_columns import is_meta_column
from pyhudi.schema.name_resolution import field_type
from pyhudi.table.config.merge_settings import UNAVAILABLE_VALUE, MergeSettings


@dataclass(frozen=True, slots=True)
class MergeRules:
    """Rules for merging versions of a record.

    ``ordering_fields`` determine the winner, with ties won by the newer version; empty: the newer version wins.
    ``partial`` determines the columns of the winner that are taken from the other version. ``deletes_win``: deletes are
    treated as if they had no ordering value. ``replaces_deletes``: of two versions the newer one is the result if the
    one with the greater ordering value is a delete; other deletes give their columns. So `PartialUpdateAvroPayload`
    merges rows of a batch below version 9. ``compares_sequences``: ordering values are dotted numbers, which are
    compared number by number. ``merger``: custom merger that replaces these rules (mode CUSTOM); it receives the
    ordering fields.
    """

    ordering_fields: tuple[str, ...] = ()
    partial: PartialUpdateMode | None = None
    unavailable: str = options.PAYLOAD_UNAVAILABLE_VALUE.default
    deletes_win: bool = False
    replaces_deletes: bool = False
    merger: RecordMerger | None = None
    compares_sequences: bool = False

    @classmethod
    def for_table(cls, settings: MergeSettings) -> MergeRules:
        """Return the rules between versions from different writes.

        Raises:
            UnsupportedTableError: The mode is CUSTOM and its merger is not registered.
        """
        return cls._from_mode(settings, settings.mode, settings.partial_update_mode, deletes_win=settings.deletes_win)

    @classmethod
    def for_batch(cls, settings: MergeSettings) -> MergeRules:
        """Return the rules between rows of one key within a batch that is written.

        Raises:
            UnsupportedTableError: As `for_table`.
        """
        partial = settings.dedupe_partial_mode
        # Of the payload classes with such deletes only the one that fills columns applies this within a batch, too.
        deletes_win = settings.deletes_win and partial is not None
        rules = cls._from_mode(settings, settings.dedupe_mode, partial, deletes_win=deletes_win)
        if deletes_win and rules.ordering_fields:
            return replace(rules, deletes_win=False, replaces_deletes=True)
        return rules

    @classmethod
    def _from_mode(
        cls, settings: MergeSettings, mode: MergeMode, partial: PartialUpdateMode | None, *, deletes_win: bool
    ) -> MergeRules:
        if mode is MergeMode.CUSTOM:
            return cls(settings.ordering_fields, merger=registered(settings))
        return cls(
            ordering_fields=settings.ordering_fields if mode is MergeMode.EVENT_TIME_ORDERING else (),
            partial=partial,
            unavailable=settings.properties.get(UNAVAILABLE_VALUE, options.PAYLOAD_UNAVAILABLE_VALUE.default),
            deletes_win=deletes_win,
            compares_sequences=settings.compares_sequences,
        )

    def newest_columns(self, schema: pa.Schema) -> tuple[str, ...]:
        """Return the columns that a merged row takes from the newest version also if an older one wins: the meta
        columns, where `PartialUpdateAvroPayload` merges versions of different writes below version 9."""
        if self.partial is not PartialUpdateMode.IGNORE_DEFAULTS or not self.deletes_win:
            return ()
        return tuple(name for name in schema.names if is_meta_column(name))

    @property
    def combines_versions(self) -> bool:
        """True if a merged row may combine values of several versions, or computes values from them."""
        return self.merger is not None or self.partial is not None

    def present(self, schema: pa.Schema) -> MergeRules:
        """Return the rules for rows of such a schema: without ordering fields if the rows have none of them.

        Like Apache Hudi, treats a missing ordering column as null in every row, so that the newer row wins.

        Raises:
            UnsupportedTableError: An ordering field has a type without an order.
        """
        kinds = [(name, field_type(schema, name)) for name in self.ordering_fields]
        fields = tuple(name for name, kind in kinds if kind is not None)
        for name, kind in kinds:
            if kind is not None:
                check_orderable(kind, name)
        if fields == self.ordering_fields:
            return self
        return replace(self, ordering_fields=fields)

    def comparable(self, ordering: Iterable[pa.Array]) -> tuple[pa.Array, ...]:
        """Return ordering columns, of the same types, in the form in which their values are compared."""
        if not self.compares_sequences:
            return tuple(ordering)
        return tuple(padded(column) if pa.types.is_string(column.type) else column for column in ordering)

    def stored(self, rows: pa.RecordBatch, which: Index) -> tuple[pa.Array, ...]:
        """Return the ordering values of some rows of a base file, in that form."""
        picked = pa.array(which)
        return self.comparable(field_of(rows, name).take(picked) for name in self.ordering_fields)

    def given(self, column: pa.Array, field: pa.Field) -> Mask | None:
        """Return a mask of the column's values that are not placeholders for "unchanged"; None: all."""
        if self.partial is PartialUpdateMode.IGNORE_DEFAULTS:
            default = default_value(field)
            if default is None:
                return as_mask(pc.is_valid(column)) if column.null_count else None
            return ~as_mask(pc.equal(column, default))
        if self.partial is PartialUpdateMode.FILL_UNAVAILABLE and (
            pa.types.is_string(field.type) or pa.types.is_binary(field.type)
        ):
            marker = pa.scalar(self.unavailable).cast(field.type)
            return ~as_mask(pc.equal(column, marker))
        return None
