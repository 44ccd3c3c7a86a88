"""Base files in Parquet, written as streams of Arrow batches.

Files have the physical types of Apache Hudi: decimals and vectors as fixed-length bytes, timestamps as INT64, never
INT96, lists and maps in the standard three-level form. The Arrow schema is not stored: readers derive it from the
Parquet types, as for files of other writers.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pyhudi.errors import ConfigError
from pyhudi.format.base_file import base_file_footer, base_file_writer
from pyhudi.format.base_file.base_file_footer import NAN_KEY, BloomOptions, Footer
from pyhudi.format.base_file.base_file_writer import BaseFileSchema
from pyhudi.format.base_file.column_bounds import NanDetector, parquet_bounds, struct_of
from pyhudi.format.base_file.parquet_footer_correction import TailBuffer, corrected_tail
from pyhudi.format.base_file.row_group_copy.copied_row_groups import CopiedRowGroups, with_row_groups
from pyhudi.format.base_file.thrift_footer.thrift_compact import Struct
from pyhudi.schema.logical_types.blobs import TYPE, is_blob
from pyhudi.schema.logical_types.vectors import FOOTER_KEY, is_vector, stored_type, vector_columns_text
from pyhudi.schema.meta_fields import COMMIT_SEQNO, COMMIT_TIME, FILE_NAME, OPERATION, PARTITION_PATH, RECORD_KEY

CODECS: Mapping[str, str] = {
    "uncompressed": "none",
    "snappy": "snappy",
    "gzip": "gzip",
    "zstd": "zstd",
    "lz4_raw": "lz4",  # what pyarrow calls lz4 is Parquet's LZ4_RAW
    "brotli": "brotli",
}
"""pyarrow's names of the values of `hoodie.parquet.compression.codec`."""

REPEATING = frozenset((COMMIT_TIME, PARTITION_PATH, FILE_NAME, OPERATION))
"""Meta columns with few distinct values, kept as Arrow dictionaries to store each text once."""
UNIQUE = frozenset((COMMIT_SEQNO, RECORD_KEY))
"""Meta columns with unique values, for which dictionary encoding would only be tried and abandoned."""

_DICTIONARY_TYPE = pa.dictionary(pa.int32(), pa.string())
_SAMPLE_ROWS = 8_192
_DISTINCT_LIMIT = 0.95
"""Share of distinct values in a sample from which on columns are not dictionary-encoded: that of a column with 80,000
equally likely values, whose dictionary would become too large."""


@dataclass(frozen=True, slots=True)
class ParquetOptions:
    """Settings of Parquet files.

    ``block_size`` limits the Arrow bytes of a row group (`hoodie.parquet.block.size`) and thus the memory of a writer.
    ``page_size`` is in encoded bytes. ``level`` None: the default of the codec.
    """

    codec: str = "zstd"
    level: int | None = None
    block_size: int = 120 * 1024 * 1024
    page_size: int = 1024 * 1024
    dictionary: bool = True

    def __post_init__(self) -> None:
        if self.codec.lower() not in CODECS:
            raise ConfigError(f"Parquet codec {self.codec!r} is not supported; available: {', '.join(CODECS)}")
        if self.block_size < 1 or self.page_size < 1:
            raise ConfigError(f"Parquet block size {self.block_size} and page size {self.page_size} must be positive")


def _buffered_schema(schema: BaseFileSchema) -> pa.Schema:
    """Return the Arrow schema in which batches are buffered: repeating meta columns and dictionary columns as
    dictionaries, vectors as their bytes."""
    names = REPEATING.union(schema.dictionary_columns)

    def buffered(field: pa.Field) -> pa.Field:
        if field.name in names:
            return field.with_type(_DICTIONARY_TYPE)
        return field.with_type(stored_type(field.type)) if is_vector(field.type) else field

    return pa.schema([buffered(field) for field in schema.columns.remove_metadata()])


class ParquetFileWriter(base_file_writer.BaseFileWriter):
    """Writes batches to one Parquet file; see `BaseFileWriter`.

    Args:
        sink: A path, or an open binary file (which stays open).
        schema: Columns of the file, as plain types. The summary has the requested bounds as far as the footer has them.
        options: Settings of the format.
        bloom: Settings of the bloom filter of the record keys; None omits filter and key range.
        replaced: Footer of the file that is rewritten, see `BaseFileWriter`.
    """

    def __init__(
        self,
        sink: Any,
        schema: BaseFileSchema,
        *,
        options: ParquetOptions | None = None,
        bloom: BloomOptions | None = None,
        replaced: Footer | None = None,
    ) -> None:
        self._options = options or ParquetOptions()
        self._whole = schema
        buffered = replace(schema, columns=_buffered_schema(schema))
        super().__init__(sink, buffered, block_size=self._options.block_size, bloom=bloom, replaced=replaced)
        self._avro_schema = schema.avro
        self._vectors = vector_columns_text(schema.columns)
        self._enums = frozenset(leaf for field in schema.columns for leaf in _enum_leaves(field.name, field.type))
        self._writer: pq.ParquetWriter | None = None
        self._to_file = TailBuffer(self._output)
        self._stream = pa.PythonFile(self._to_file, mode="w")  # Arrow counts the bytes that are written to it.
        self._footers: list[Any] = []
        self._own_groups = 0
        self._copied: list[tuple[int, Struct]] = []

    def copyable(self, source: Any) -> CopiedRowGroups | None:
        """Return the row groups of the file that is rewritten (random access); None if they cannot be copied to this
        one.

        Raises:
            FormatError: The file is corrupt.
        """
        empty = pa.BufferOutputStream()
        ParquetFileWriter(empty, replace(self._whole, bounds=None), options=self._options).close()
        constants = {name: value[0].as_py() for name, value in self._constants.items()}
        new = {name: text for name, text in constants.items() if text is not None and name != PARTITION_PATH}
        copied = CopiedRowGroups.open(source, new, empty.getvalue())
        nan_is_known = copied is not None and (copied.nan_columns is not None or not self._recorder.columns)
        return copied if nan_is_known else None

    def copy_row_group(self, groups: CopiedRowGroups, number: int, keys: Iterable[pa.Array]) -> None:
        """Write a row group of the file that is rewritten as it is, after the rows so far.

        Args:
            groups: The row groups (`copyable`).
            number: Its number.
            keys: The record keys of its rows.
        """
        self.flush()
        self._open_writer(copied=groups)
        if self._keys is not None:
            for some in keys:
                self._keys.add(some, old=True)
        begin = self._stream.tell()
        self._copied.append((self._own_groups, groups.copy(number, self._stream, begin)))
        self._copied_bytes += self._stream.tell() - begin
        self._recorder.nan_columns |= groups.nan_columns or frozenset()
        self._num_rows += groups.num_rows(number)

    def _write_block(self, table: pa.Table, arrow_bytes: int) -> None:
        groups = max(1, arrow_bytes // self._options.block_size)
        size = -(-table.num_rows // groups)
        self._open_writer(table).write_table(table, row_group_size=size)
        self._own_groups += -(-table.num_rows // size)

    def _finish(self, entries: dict[str, str]) -> None:
        writer = self._open_writer()
        if self._avro_schema is not None:
            entries |= {base_file_footer.AVRO_SCHEMA_KEY: self._avro_schema, base_file_footer.WRITER_MODEL_KEY: "avro"}
        if self._vectors is not None:
            entries |= {FOOTER_KEY: self._vectors}
        if self._recorder.columns:
            entries |= {NAN_KEY: json.dumps(sorted(self._recorder.nan_columns))}
        if entries:
            writer.add_key_value_metadata(entries)
        if not (self._recorder.nan_columns or self._recorder.zeros or self._enums or self._copied):
            writer.close()
            return
        self._to_file.keep_back()
        writer.close()
        watch, end = self._recorder, self._to_file.end
        tail = corrected_tail(end, watch.nan_columns, watch.zeros, self._enums, self._complete)
        self._output.write(tail)
        if self._copied:
            self._footers[:] = [pq.read_metadata(pa.BufferReader(tail))]

    def _complete(self, footer: Struct) -> Struct:
        return with_row_groups(footer, self._copied) if self._copied else footer

    def _discard(self) -> None:
        if self._writer is not None:
            self._writer.is_open = False  # Otherwise it would write a footer when it is garbage-collected.

    def _new_recorder(self, columns: pa.Schema | None) -> NanDetector:  # noqa: ARG002 - who asks later may ask for others
        self._recorder: NanDetector = NanDetector(self._schema)
        return self._recorder

    def _column_bounds(self, columns: pa.Schema) -> pa.StructArray:
        """Return the bounds of the columns. With copies, those of columns with NaN are unknown, because the footer does
        not have the minimum and maximum of their other values either."""
        nan = self._recorder.nan_columns
        if not self._copied:
            return parquet_bounds(self._footers[0], columns, nan)
        bounded = pa.schema([field for field in columns if field.name not in nan])
        bounds, unknown = parquet_bounds(self._footers[0], bounded), struct_of(columns, {})
        at = [bounded.get_field_index(name) for name in columns.names]
        children = [unknown.field(i) if place < 0 else bounds.field(place) for i, place in enumerate(at)]
        return pa.StructArray.from_arrays(children, fields=list(unknown.type)) if children else unknown

    def _open_writer(self, sample: pa.Table | None = None, copied: CopiedRowGroups | None = None) -> pq.ParquetWriter:
        """Open the file. Its first rows, or row groups that are copied to it, determine the columns with dictionary
        encoding."""
        if self._writer is None:
            options = self._options
            names = _dictionary_columns(self._schema, sample) if copied is None else copied.dictionary_columns()
            self._writer = pq.ParquetWriter(
                self._stream,
                self._schema,
                compression=CODECS[options.codec.lower()],
                compression_level=options.level,
                data_page_size=options.page_size,
                use_dictionary=names if options.dictionary else False,
                store_schema=False,
                store_decimal_as_integer=False,
                use_compliant_nested_type=True,
                write_page_index=True,
                data_page_version="1.0",
                metadata_collector=self._footers,
            )
        return self._writer


def _dictionary_columns(schema: pa.Schema, sample: pa.Table | None) -> list[str]:
    """Return the columns for which dictionary encoding is worthwhile: those whose first rows repeat their values."""
    chosen: list[str] = []
    for field in schema:
        if field.name in UNIQUE or pa.types.is_boolean(field.type):
            continue
        if sample is not None and not pa.types.is_nested(field.type) and not pa.types.is_dictionary(field.type):
            head = sample.column(field.name).slice(0, _SAMPLE_ROWS)
            if pc.count_distinct(head, mode="only_valid").as_py() > _DISTINCT_LIMIT * max(1, len(head)):
                continue
        chosen += _leaves(field.name, field.type)
    return chosen


def _leaves(path: str, data_type: pa.DataType) -> Iterator[str]:
    """Yield the Parquet paths of the leaf columns, as pyarrow requires for nested columns."""
    if pa.types.is_struct(data_type):
        for child in data_type:
            yield from _leaves(f"{path}.{child.name}", child.type)
    elif pa.types.is_map(data_type):
        yield from _leaves(f"{path}.key_value.key", data_type.key_type)
        yield from _leaves(f"{path}.key_value.value", data_type.item_type)
    elif pa.types.is_list(data_type) or pa.types.is_large_list(data_type) or pa.types.is_fixed_size_list(data_type):
        yield from _leaves(f"{path}.list.element", data_type.value_type)
    elif not pa.types.is_boolean(data_type):
        yield path


def _enum_leaves(path: str, data_type: pa.DataType) -> Iterator[str]:
    """Yield the Parquet paths of the storage types of blobs."""
    if is_blob(data_type):
        yield f"{path}.{TYPE}"
    elif pa.types.is_struct(data_type):
        for child in data_type:
            yield from _enum_leaves(f"{path}.{child.name}", child.type)
    elif pa.types.is_map(data_type):
        yield from _enum_leaves(f"{path}.key_value.value", data_type.item_type)
    elif pa.types.is_list(data_type):
        yield from _enum_leaves(f"{path}.list.element", data_type.value_type)
