"""File slices on disk: a base file written by pyarrow and log files written by pyhudi, without a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.orc as po
import pyarrow.parquet as pq

from pyhudi.format.log import LogBlockHeader, LogOptions, LogSchema, LogSlice, LogWriter
from pyhudi.merge.file_group_reader import open_slice, read_slice, stores_positions
from pyhudi.merge.file_slice import FileSlice, SliceContext
from pyhudi.merge.log_changed_rows import (
    BASE_POSITION,
    NO_BASE_ROW,
    changed_rows,
    replaced_positions,
    write_changed_rows,
)
from pyhudi.schema.converters.arrow_avro import to_avro
from pyhudi.schema.meta_columns import add_meta_columns
from pyhudi.schema.meta_fields import COMMIT_TIME, FILE_NAME, META_COLUMNS, OPERATION, PARTITION_PATH, RECORD_KEY
from pyhudi.schema.name_resolution import field_type
from pyhudi.storage import open_storage

SCHEMA = pa.schema([("id", pa.string()), ("o", pa.int64()), ("a", pa.string()), ("b", pa.int64())])
FILE_ID = "6c5c2c3a-0000-4000-8000-000000000001-0"
Row = Mapping[str, Any]


def at(n: int) -> str:
    """Return the n-th instant."""
    return f"202601010000{n:05d}"


@dataclass
class Slice:
    """A file slice in ``folder``; rows have ``id`` and any of the schema's columns.

    ``base`` and ``log`` write files; ``read`` gives the merged rows.
    """

    folder: Path
    schema: pa.Schema = SCHEMA
    version: int = 9
    ordering: tuple[str, ...] = ("o",)
    extension: str = "parquet"
    data_format: str = "avro"
    base_instant: str = at(0)
    base_path: str | None = None
    log_paths: list[str] = field(default_factory=list)
    positions: dict[str, int] = field(default_factory=dict)
    base_ids: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.storage = open_storage(str(self.folder))

    @property
    def whole_schema(self) -> pa.Schema:
        """Return the schema with meta columns."""
        return add_meta_columns(self.schema)

    def base(self, n: int, rows: Sequence[Row]) -> None:
        """Start a new slice with a base file of that instant; rows may have a different commit time."""
        self.base_instant, self.log_paths = at(n), []
        self.base_path = f"{FILE_ID}_0-0-0_{at(n)}.{self.extension}"
        table = self._table(rows, n, self.whole_schema)
        write = po.write_table if self.extension == "orc" else pq.write_table
        write(table, str(self.folder / self.base_path))
        self.positions = {str(row["id"]): i for i, row in enumerate(rows)}
        self.base_ids = [row["id"] for row in rows]

    def log(
        self,
        n: int,
        rows: Sequence[Row] = (),
        deletes: Sequence[tuple[str, Any]] = (),
        *,
        columns: Sequence[str] | None = None,
        with_positions: bool = False,
        roll_back: int | None = None,
        compacted: Sequence[int] = (),
        schema: pa.Schema | None = None,
    ) -> None:
        """Write a log file of that instant: records, then deletes (key, ordering value or None).

        ``columns``: a block of partial updates that has only these; ``schema``: the table's columns at that time.
        """
        own = schema or self.schema
        chosen = own if columns is None else pa.schema([own.field(c) for c in columns])
        written = add_meta_columns(chosen, with_operation=OPERATION in own.names)
        fields = pa.schema([pa.field(name, field_type(self.schema, name)) for name in self.ordering])
        where = LogSlice(FILE_ID, self.base_instant if self.version < 8 else at(n), f"0-{n}-0", len(self.log_paths) + 1)
        header = LogBlockHeader(
            at(n),
            LogSchema(to_avro(written, "t"), fields, self.version),
            base_instant=self.base_instant if with_positions else None,
            is_partial=columns is not None,
            compacted_times=[at(i) for i in compacted],
        )
        writer = LogWriter(self.storage.open_output, where, header, options=LogOptions(data_format=self.data_format))
        with writer:
            if rows:
                places = pa.array([self.positions.get(str(row["id"])) for row in rows], pa.int64())
                writer.write(self._table(rows, n, written), places if with_positions else None)
            if deletes:
                keys = [key for key, _ in deletes]
                columns_ = {RECORD_KEY: keys, PARTITION_PATH: [""] * len(keys)}
                table = pa.table(columns_ | {name: [value for _, value in deletes] for name in self.ordering[:1]})
                places = pa.array([self.positions.get(key) for key in keys], pa.int64())
                kinds = [pa.string(), pa.string(), *(f.type for f in fields)]
                typed = pa.table([c.cast(k) for c, k in zip(table.columns, kinds, strict=True)], table.column_names)
                writer.delete(typed, places if with_positions else None)
            if roll_back is not None:
                writer.roll_back(at(roll_back))
            self.log_paths += [file.name for file in writer.close()]

    def read(self, context: SliceContext | None = None, **changes: Any) -> list[dict[str, Any]]:
        """Return the merged rows."""
        return [row for batch in self.batches(context, **changes) for row in batch.to_pylist()]

    def batches(self, context: SliceContext | None = None, **changes: Any) -> list[pa.RecordBatch]:
        """Yield the merged rows in batches."""
        return list(read_slice(self._changed(context, changes), self.slice))

    def _changed(self, context: SliceContext | None, changes: dict[str, Any]) -> SliceContext:
        """Return a context with changes of its fields, or of those of its selection."""
        context = context or SliceContext(self.storage, self.whole_schema, tuple(self.schema.names))
        chosen = {name: changes.pop(name) for name in ("base_rows", "key_rows") if name in changes}
        return replace(context, selection=replace(context.selection, **chosen), **changes)

    def overlaid(self, context: SliceContext | None = None, **changes: Any) -> list[dict[str, Any]]:
        """Return the same rows in two parts: those kept from the base file, and those from the logs."""
        context = self._changed(context, changes)
        rows: list[dict[str, Any]] = []
        hidden = replaced_positions(context, self.slice).tolist()
        assert hidden == sorted(set(hidden))
        if self.base_path is not None:
            base = list(read_slice(self._changed(context, {"key_rows": None}), replace(self.slice, log_paths=())))
            rows = [row for batch in base for row in batch.to_pylist()]
        kept = [row for i, row in enumerate(rows) if i not in set(hidden)]
        changed = [row for batch in changed_rows(context, self.slice) for row in batch.to_pylist()]
        at_once: list[pa.RecordBatch] = []
        assert sorted(write_changed_rows(context, self.slice, at_once.append).tolist()) == hidden
        together = [row for batch in at_once for row in batch.drop_columns([BASE_POSITION]).to_pylist()]
        assert context.key_rows is not None or sorted(together, key=str) == sorted(changed, key=str)
        if "id" in context.columns:
            positioned = list(changed_rows(context, self.slice, with_positions=True))
            with open_slice(context, self.slice) as opened:
                stored = stores_positions(self.slice, opened.blocks)
            self._check_positions(at_once)
            self._check_positions(positioned, known=stored)
            left = [row for batch in positioned for row in batch.drop_columns([BASE_POSITION]).to_pylist()]
            assert sorted(left, key=str) == sorted(changed, key=str)
        return kept + changed

    def _check_positions(self, batches: Sequence[pa.RecordBatch], *, known: bool = True) -> None:
        """Check that merged rows have the positions of their base rows, or none if positions are not known."""
        for row in (row for batch in batches for row in batch.to_pylist()):
            if row[BASE_POSITION] == NO_BASE_ROW:
                assert not known or row["id"] not in self.base_ids
            else:
                assert known
                assert self.base_ids[row[BASE_POSITION]] == row["id"]

    @property
    def slice(self) -> FileSlice:
        return FileSlice("", FILE_ID, self.base_instant, self.base_path, tuple(self.log_paths))

    def _table(self, rows: Sequence[Row], n: int, schema: pa.Schema) -> pa.Table:
        meta = dict.fromkeys(META_COLUMNS, "")
        filled = [
            {**meta, COMMIT_TIME: at(row.get("_n", n)), RECORD_KEY: str(row["id"]), FILE_NAME: FILE_ID, **row}
            for row in rows
        ]
        return pa.Table.from_pylist([{k: v for k, v in row.items() if k in schema.names} for row in filled], schema)
