"""Base files in Parquet of which only the rows that satisfy a condition are read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from pyhudi.config.enums import InvalidText
from pyhudi.errors import FormatError
from pyhudi.format.base_file import base_file_footer
from pyhudi.format.base_file.parquet import INT96_UNIT, as_read, footer_of, has_int96, schema_as_read
from pyhudi.format.base_file.parquet_page_selection import select_pages
from pyhudi.format.utf8_validation import has_text, valid_text

_NUMBER = "_pyhudi_row_number"
_FEW_ROWS = 64
"""Rows up to which pages are picked that have them."""


class FilteredFile:
    """A base file from which Arrow reads the rows that satisfy a condition, pruning row groups by their statistics.

    Attributes:
        schema: Columns as returned by `batches`.
        comparable: Columns supported in conditions.
        has_int96: The file has 96-bit timestamps.
    """

    def __init__(self, source: Any, invalid_text: InvalidText = InvalidText.FAIL) -> None:
        """Open it: a random-access file."""
        self._form = ds.ParquetFileFormat(pre_buffer=True, coerce_int96_timestamp_unit=INT96_UNIT)
        self._fragment = self._form.make_fragment(source)
        self._source = source
        stored = self._fragment.physical_schema
        self._invalid_text = invalid_text
        self.schema = schema_as_read(stored, self._fragment.metadata)
        self.has_int96 = has_int96(self._fragment.metadata)
        replaces = invalid_text is InvalidText.REPLACE
        self.comparable = frozenset(
            field.name
            for field in self.schema
            if stored.field(field.name).type == field.type and not (replaces and has_text(field.type))
        )

    def may_have(self, keys: pa.StringArray) -> bool:
        """Return False if the footer excludes all of these keys, by its range of record keys or its bloom filter."""
        footer = footer_of(self._fragment.metadata, self.schema)
        bounds = base_file_footer.in_one_order(pa.array([footer.min_key, footer.max_key], pa.string()))
        above, below = pc.greater_equal(keys, bounds[0]), pc.less_equal(keys, bounds[1])
        keys = keys.filter(pc.and_(pc.fill_null(above, True), pc.fill_null(below, True)))
        bloom = footer.bloom_filter() if len(keys) else None
        return len(keys) > 0 and (bloom is None or bool(pc.any(bloom.might_contain(keys)).as_py()))

    def batches(
        self,
        columns: Sequence[str],
        condition: pc.Expression | None,
        batch_size: int,
        tested: Sequence[str] = (),
    ) -> Iterator[pa.RecordBatch]:
        """The rows that meet a condition on `comparable` columns. With the columns that are ``tested`` for that, they
        are looked for first: of row groups without such rows nothing else is read, and if there are few of them, of
        the others the pages that have them.

        Raises:
            FormatError: Text is not valid UTF-8. Errors of Arrow for corrupt data are passed on.
        """
        fragment = self._fragment
        if condition is not None and tested:
            numbers = [group.id for group in fragment.subset(condition).row_groups]
            matching = [(n, rows) for n in numbers if len(rows := self._matching_rows(n, condition, tested))]
            pages = self._pages(matching)
            if pages is None:
                fragment = fragment.subset(row_group_ids=[n for n, _ in matching])
            else:
                fragment = self._form.make_fragment(pa.BufferReader(pages))
        stored = fragment.to_batches(columns=list(columns), filter=condition, batch_size=batch_size)
        return valid_text((as_read(batch, self.schema) for batch in stored), self._invalid_text)

    def _matching_rows(self, group: int, condition: pc.Expression, tested: Sequence[str]) -> npt.NDArray[np.int64]:
        """The numbers of the rows of a row group that meet a condition."""
        rows = self._fragment.subset(row_group_ids=[group]).to_table(columns=list(tested))
        numbers = pa.array(np.arange(rows.num_rows))
        row_numbers: npt.NDArray[np.int64] = rows.append_column(_NUMBER, numbers).filter(condition)[_NUMBER].to_numpy()
        return row_numbers

    def _pages(self, selected: Sequence[tuple[int, npt.NDArray[np.int64]]]) -> pa.Buffer | None:
        """A file of the pages that have some rows, if these are few."""
        if not selected or sum(len(rows) for _, rows in selected) > _FEW_ROWS:
            return None
        try:
            return select_pages(self._source, selected)
        except FormatError:  # reported by the reader of the whole file
            return None
