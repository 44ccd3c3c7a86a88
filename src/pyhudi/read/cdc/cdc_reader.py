"""Reader of the tasks of a change data query: operation, commit, and the record before and after as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.arrow.arrays import contiguous
from pyhudi.config.enums import CdcMode
from pyhudi.errors import NotFoundError, QueryError
from pyhudi.format.log import DATA_BLOCKS, BlockType, LogBlock, decode_deletes, decode_records
from pyhudi.format.log.cdc_schema import DELETE, INSERT, UPDATE
from pyhudi.merge.file_group_reader import read_slice
from pyhudi.merge.file_slice import FileSlice
from pyhudi.merge.logs.log_file_pool import LogFiles
from pyhudi.merge.logs.valid_log_blocks import BlockView, InstantsCompletedBy
from pyhudi.read.cdc.cdc_context import CdcContext
from pyhudi.read.cdc.cdc_inference import CdcInferenceCase
from pyhudi.read.cdc.cdc_plan import CHANGES_SCHEMA
from pyhudi.read.cdc.json_text import json_objects
from pyhudi.schema.evolution.schema_projection import conform, file_columns, with_table_names
from pyhudi.schema.meta_fields import COMMIT_TIME, RECORD_KEY

Task = Mapping[str, Any]
"""A row of the tasks of a plan."""
_Side = Literal["before", "after"]


def _position(names: Sequence[str], name: str) -> int:
    return names.index(name) if name in names else len(names)


_IMAGES = pa.schema([("key", pa.string()), ("image", pa.string())])


@dataclass(frozen=True, slots=True)
class CdcReader:
    """Reads the changes of a file group in a commit. Can be pickled, so that it can be sent to executors.

    If the CDC log or a single data file suffices, rows are read batch by batch. If changes are identified by key,
    the images of the records of one log block (of one commit's log files) are in memory at a time.
    """

    context: CdcContext

    def read(self, task: Task) -> Iterator[pa.RecordBatch]:
        """Yield the changes (CHANGES_SCHEMA) of one task.

        Raises:
            QueryError: A file no longer exists.
            FormatError: A file is corrupt.
        """
        try:
            yield from self._read(task)
        except NotFoundError as error:
            raise QueryError(
                f"a file of the commit {task['instant']} no longer exists: a cleaner has removed it since the "
                "query was planned. Plan the query again, or retain more versions (hoodie.clean.commits.retained)"
            ) from error

    def _read(self, task: Task) -> Iterator[pa.RecordBatch]:
        instant, case = task["instant"], CdcInferenceCase(task["case"])
        if case in (CdcInferenceCase.BASE_FILE_INSERT, CdcInferenceCase.INSERTED_ROWS):
            written_by = instant if case is CdcInferenceCase.INSERTED_ROWS else None
            inserted = self._slice(task, "after", written_by=written_by)
            yield from (_rows(INSERT, instant, None, image) for _, image in inserted)
        elif case in (CdcInferenceCase.BASE_FILE_DELETE, CdcInferenceCase.REPLACE_COMMIT):
            yield from (_rows(DELETE, instant, image, None) for _, image in self._slice(task, "before"))
        elif case is CdcInferenceCase.AS_IS:
            with LogFiles(self.context.read_context.storage) as logs:
                for block in logs.blocks(task["paths"]):
                    yield from self._logged(task, block)
        else:
            yield from self._compared(task, self._changed_keys(task))

    def _logged(self, task: Task, block: LogBlock) -> Iterator[pa.RecordBatch]:
        """Return the changes in a block of a CDC log."""
        changes = decode_records(block).combine_chunks()
        if not changes.num_rows:
            return
        if self.context.mode is CdcMode.DATA_BEFORE_AFTER:
            before, after = (self._stored_images(changes[name], task) for name in ("before", "after"))
            yield _rows(contiguous(changes["op"]), task["instant"], before, after)
            return
        keys = contiguous(changes["record_key"])
        after = self._images(task, "after", keys)
        if self.context.mode is CdcMode.DATA_BEFORE:
            before = self._stored_images(changes["before"], task)
        else:
            before = self._images(task, "before", keys)
        yield _rows(contiguous(changes["op"]), task["instant"], before, after)

    def _stored_images(self, images: pa.ChunkedArray, task: Task) -> pa.Array:
        """Return images of a CDC log as JSON; with the columns of the query, if some have other names there."""
        stored = self._with_path_values(contiguous(images), task["partition"])
        names = self.context.read_context.stored.names(task["instant"])
        if not names:
            return json_objects(stored)
        inside = file_columns(self.context.read_context.schema, names)
        batch = pa.RecordBatch.from_struct_array(stored)
        batch = batch.select([name for name in batch.schema.names if name in inside])
        schema = pa.schema([self.context.read_context.schema.field(name) for name in self.context.images])
        batch = conform(with_table_names(batch, inside, names), schema)
        return json_objects(pa.StructArray.from_arrays(batch.columns, fields=list(schema), mask=stored.is_null()))

    def _with_path_values(self, stored: pa.StructArray, partition: str) -> pa.StructArray:
        """Add the columns that are not in files, with the values of the partition's path."""
        values, schema = self.context.values.get(partition, {}), self.context.read_context.schema
        inside = [field.name for field in stored.type]
        absent = [schema.field(name) for name in self.context.images if name in values and name not in inside]
        if not absent:
            return stored
        fields = [*stored.type, *absent]
        constants = (pa.scalar(values[field.name], field.type) for field in absent)
        columns = [*stored.flatten(), *(pa.repeat(value, len(stored)) for value in constants)]
        at = sorted(range(len(fields)), key=lambda n: _position(self.context.images, fields[n].name))
        return pa.StructArray.from_arrays(
            [columns[n] for n in at], fields=[fields[n] for n in at], mask=stored.is_null()
        )

    def _changed_keys(self, task: Task) -> pa.Array:
        """Return the keys of all records and deletes that a commit has appended to log files."""
        keys_of_blocks: list[pa.ChunkedArray] = []
        with LogFiles(self.context.read_context.storage) as logs:
            for block in logs.blocks(task["paths"]):
                if block.instant != task["instant"]:
                    continue
                if block.type is BlockType.DELETE:
                    keys_of_blocks.append(decode_deletes(block, pa.schema([]))[RECORD_KEY])
                elif block.type in DATA_BLOCKS:
                    keys_of_blocks.append(decode_records(block, columns=[RECORD_KEY])[RECORD_KEY])
        chunks = [chunk.cast(pa.string()) for keys in keys_of_blocks for chunk in keys.chunks]
        return pc.unique(pa.chunked_array(chunks, pa.string()))

    def _compared(self, task: Task, keys: pa.Array) -> Iterator[pa.RecordBatch]:
        """Return the changes of records that may have changed: their images before and after, if these differ."""
        before = self._images(task, "before", keys)
        after = self._images(task, "after", keys)
        had, has = pc.is_valid(before), pc.is_valid(after)
        op = pc.case_when(
            pc.make_struct(pc.and_(had, has), had, has), pa.scalar(UPDATE), pa.scalar(DELETE), pa.scalar(INSERT)
        )
        same = pc.fill_null(pc.equal(before, after), False)
        changed = pc.and_(pc.is_valid(op), pc.invert(same))
        yield _rows(op.filter(changed), task["instant"], before.filter(changed), after.filter(changed))

    def _images(self, task: Task, side: _Side, keys: pa.Array) -> pa.Array:
        """Return the images of the records with these keys before or after the commit; null if there are none."""
        parts = [
            pa.RecordBatch.from_arrays([key, image], schema=_IMAGES) for key, image in self._slice(task, side, keys)
        ]
        images = pa.Table.from_batches(parts, _IMAGES).combine_chunks()
        at = pc.index_in(keys, value_set=contiguous(images["key"]))
        return contiguous(images["image"]).take(at)

    def _slice(
        self, task: Task, side: _Side, keys: pa.Array | None = None, *, written_by: str | None = None
    ) -> Iterator[tuple[pa.Array, pa.Array]]:
        """Yield keys and images of the records of the slice before or after the commit, or of those with these keys, or
        that a commit has written."""
        file_slice = task[side]
        if file_slice is None:
            return
        columns = self._columns if written_by is None else (*self._columns, COMMIT_TIME)
        context = replace(self.context.read_context, columns=columns, view=self._view(task, side))
        where = FileSlice.from_row(file_slice, self.context.values.get(file_slice["partition"], {}))
        for batch in read_slice(context, where):
            if keys is not None:
                batch = batch.filter(pc.is_in(batch.column(RECORD_KEY), value_set=keys))
            if written_by is not None:
                batch = batch.filter(pc.equal(batch.column(COMMIT_TIME), written_by))
            if batch.num_rows:
                image = batch.select([name for name in self.context.images if name in batch.schema.names])
                key = (
                    batch.column(RECORD_KEY) if RECORD_KEY in batch.schema.names else pa.nulls(len(batch), pa.string())
                )
                yield key.cast(pa.string()), json_objects(image.to_struct_array())

    def _view(self, task: Task, side: _Side) -> BlockView:
        """Return the log blocks that are valid before or after the commit, where the files do not determine this."""
        view, instant = self.context.read_context.view, task["instant"]
        if not self.context.by_completion:
            return replace(view, latest=task["earlier"] if side == "before" else instant)
        if self.context.completions is None:
            return view
        time = task["earlier"] if side == "before" else self.context.completions.get(instant, instant)
        return replace(view, committed=InstantsCompletedBy(time, self.context.completions))

    @property
    def _columns(self) -> tuple[str, ...]:
        keyed = (RECORD_KEY,) if RECORD_KEY in self.context.read_context.schema.names else ()
        return (*keyed, *self.context.images)


def _rows(op: pa.Array | str, instant: str, before: pa.Array | None, after: pa.Array | None) -> pa.RecordBatch:
    image = before if before is not None else after
    assert image is not None
    count = len(image)
    columns = [
        pa.repeat(op, count) if isinstance(op, str) else op,
        pa.repeat(instant, count),
        pa.nulls(count, pa.string()) if before is None else before,
        pa.nulls(count, pa.string()) if after is None else after,
    ]
    return pa.RecordBatch.from_arrays([column.cast(pa.string()) for column in columns], schema=CHANGES_SCHEMA)
