"""Skeleton files: base files of a metadata-only bootstrap, with the meta columns of the rows of a source file.

Rows have the same position in both. The files are read together, each only if one of its columns is requested.
Partition columns that the source omits, because its folders contain them, are taken from the partition path.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from pyhudi.config import Options, options
from pyhudi.config.enums import InvalidText
from pyhudi.errors import CorruptTableError, FormatError, NotFoundError
from pyhudi.format.base_file import orc, parquet
from pyhudi.format.base_file.base_file_footer import Footer
from pyhudi.format.corruption_errors import as_corruption
from pyhudi.format.file_names import parse_names
from pyhudi.keygen.partition_value_extractor import decode_partition_paths, partition_fields
from pyhudi.storage import Storage, open_sibling
from pyhudi.storage.lazy_property import lazy_property
from pyhudi.table.bootstrap_index import BootstrapIndex, SourceFile
from pyhudi.table.config.table_config import TableConfig


class SkeletonFile:
    """An open skeleton file with its source. Created by `open_skeleton`.

    Attributes:
        own: The open skeleton file.
    """

    def __init__(
        self, storage: Storage, path: str, stack: ExitStack, invalid_text: InvalidText, source: SourceFile | None
    ) -> None:
        self._storage, self._path, self._stack, self._invalid_text = storage, path, stack, invalid_text
        self._known = source
        self.own = stack.enter_context(storage.open_input(path))

    @lazy_property
    def footer(self) -> Footer:
        """Footer entries of the skeleton file."""
        return _footer(self._path, self.own)

    @lazy_property
    def source(self) -> SourceFile:
        """Entry of the source in the bootstrap index.

        Raises:
            CorruptTableError: The index lacks it.
        """
        if self._known is not None:
            return self._known
        partition, _, name = self._path.rpartition("/")
        file_id = parse_names(pa.array([name]))["file_id"][0].as_py()
        return BootstrapIndex(self._storage).source_of(partition, file_id)

    @lazy_property
    def source_file(self) -> Any:
        """The open source file.

        Raises:
            CorruptTableError: The file no longer exists, or has changed since the bootstrap.
        """
        source = self.source
        folder, _, name = source.uri.rpartition("/")
        storage = open_sibling(self._storage, folder)
        try:
            file = self._stack.enter_context(storage.open_input(name))
        except NotFoundError as error:
            raise CorruptTableError(f"{self._source_name()} no longer exists; restore it") from error
        size = file.size()
        if source.size is not None and size != source.size:
            raise CorruptTableError(
                f"{self._source_name()} has changed since the bootstrap: its size is {size:,} bytes and was "
                f"{source.size:,}; restore it, or bootstrap a new table"
            )
        self._check_time(storage, name)
        return file

    def _check_time(self, storage: Storage, name: str) -> None:
        """Raise an error if the modification time of the source differs from that in the index, unless the properties
        of the table allow it."""
        stat = storage.stat(name)
        if stat is None or self.source.is_of_time(stat.mtime_ms):
            return
        key = options.BOOTSTRAP_CHECK_TIMES.key
        if not Options.parse(dict(TableConfig.load(self._storage).properties)).get_typed(options.BOOTSTRAP_CHECK_TIMES):
            return
        raise CorruptTableError(
            f"{self._source_name()} has changed since the bootstrap: its modification time is {_utc(stat.mtime_ms)} "
            f"and was {_utc(self.source.mtime_ms or 0)}; restore it with its time, or, if its content is the "
            f"same, set the table property {key}=false"
        )

    @lazy_property
    def source_footer(self) -> Footer:
        """Footer of the source, which has as many rows as the skeleton. Raises the errors of `source_file`."""
        with as_corruption(f"cannot read {self._source_name()}"):
            footer = _footer(self.source.uri, self.source_file)
        if footer.num_rows != self.footer.num_rows:
            raise CorruptTableError(
                f"{self._source_name()} has changed since the bootstrap: it has {footer.num_rows:,} rows and had "
                f"{self.footer.num_rows:,}; restore it, or bootstrap a new table"
            )
        return footer

    @lazy_property
    def schema(self) -> pa.Schema:
        """Columns of the skeleton, then those that only the source has."""
        skeleton = self.footer.schema
        return pa.schema(
            [*skeleton, *(field for field in self.source_footer.schema if field.name not in skeleton.names)]
        )

    def row_bytes(self, names: Sequence[str]) -> float:
        """Return the average uncompressed bytes per row of these columns; 0 if footers do not contain them."""
        skeleton = self.footer
        in_skeleton = bool(skeleton.schema.names) and set(names) <= set(skeleton.schema.names)
        footers = [skeleton] if in_skeleton else [skeleton, self.source_footer]
        return sum(parquet.row_bytes(f.metadata, names) for f in footers if f.metadata is not None)

    def path_values(self, schema: pa.Schema) -> dict[str, Any]:
        """Return the values of those columns of ``schema`` that are in the partition path and in no file."""
        config = TableConfig.load(self._storage)
        missing = [
            f.name for f in partition_fields(config) if f.name in schema.names and f.name not in self.schema.names
        ]
        if not missing:
            return {}
        decoded = decode_partition_paths(config, schema, [self._path.rpartition("/")[0]])
        return {name: decoded[name][0].as_py() for name in missing}

    def batches(self, schema: pa.Schema, batch_rows: int) -> Iterator[pa.RecordBatch]:
        """Yield the rows in order, with the existing columns of ``schema``, in the types of the files.

        Raises:
            CorruptTableError: The source no longer exists or has changed, and columns of it are requested.
            FormatError: A file is corrupt.
        """
        skeleton_columns = [name for name in schema.names if name in self.footer.schema.names]
        rest = pa.schema([field for field in schema if field.name not in skeleton_columns])
        if not rest.names:
            yield from self._read(self._path, self.own, skeleton_columns, batch_rows)
            return
        stored = [name for name in rest.names if name in self.source_footer.schema.names]
        path_values = self.path_values(rest) if len(stored) < len(rest) else {}
        sides = [self._read(self.source.uri, self.source_file, stored, batch_rows)] if stored else []
        if skeleton_columns or not stored:
            sides.append(self._read(self._path, self.own, skeleton_columns, batch_rows))
        for parts in _side_by_side(*sides) if len(sides) > 1 else zip(sides[0], strict=True):
            yield _combine_columns(parts, schema, path_values)

    def _read(self, path: str, file: Any, names: Sequence[str], batch_rows: int) -> Iterator[pa.RecordBatch]:
        if path.endswith(".orc"):
            for batch in orc.read_batches(file, names, invalid_text=self._invalid_text):
                yield from (batch.slice(start, batch_rows) for start in range(0, batch.num_rows, batch_rows))
            return
        yield from parquet.read_batches(file, names, batch_size=batch_rows, invalid_text=self._invalid_text)

    def _source_name(self) -> str:
        return f"{self.source.uri}, the source of the bootstrapped base file {self._path},"


@contextmanager
def open_skeleton(
    storage: Storage, path: str, invalid_text: InvalidText = InvalidText.FAIL, *, source: SourceFile | None = None
) -> Iterator[SkeletonFile]:
    """Open a skeleton file; its source is opened when it is needed.

    ``invalid_text``: treatment of text that is not valid UTF-8. ``source``: the source, if the bootstrap index is not
    written yet.
    """
    with ExitStack() as stack:
        yield SkeletonFile(storage, path, stack, invalid_text, source)


def _utc(millis: int) -> str:
    return f"{datetime.fromtimestamp(millis / 1000, UTC):%Y-%m-%d %H:%M:%S.%f}"[:-3] + " UTC"


def _footer(path: str, file: Any) -> Footer:
    return orc.read_footer(file) if path.endswith(".orc") else parquet.read_footer(file)


def _side_by_side(
    left: Iterator[pa.RecordBatch], right: Iterator[pa.RecordBatch]
) -> Iterator[tuple[pa.RecordBatch, ...]]:
    """Yield batches of both with the same rows."""
    one = other = None
    while True:
        one = one if one is not None and one.num_rows else next(left, None)
        other = other if other is not None and other.num_rows else next(right, None)
        if one is None or other is None:
            if one is not other:
                raise FormatError("the skeleton file and its source have different numbers of rows")
            return
        rows = min(one.num_rows, other.num_rows)
        yield one.slice(0, rows), other.slice(0, rows)
        one, other = one.slice(rows), other.slice(rows)


def _combine_columns(parts: Sequence[pa.RecordBatch], schema: pa.Schema, constants: dict[str, Any]) -> pa.RecordBatch:
    columns = {name: batch.column(name) for batch in parts for name in batch.schema.names}
    rows = parts[0].num_rows
    columns |= {name: pa.repeat(pa.scalar(value, schema.field(name).type), rows) for name, value in constants.items()}
    names = [name for name in schema.names if name in columns]
    return pa.RecordBatch.from_arrays([columns[name] for name in names], names=names)
