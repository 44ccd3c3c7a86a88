"""Writer of the log files of one task: records and deletes of one file slice, block by block.

A file is opened for its first block and no other writer appends to it. When it exceeds its size limit, the next one
(with a higher log version) is opened. Rows are buffered until they fill a block.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from typing import BinaryIO, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pyhudi.errors import FormatError
from pyhudi.format.log.block_framing import Buffer, Frame, frame, rollback_frame
from pyhudi.format.log.buffered_rows import BufferedRows
from pyhudi.format.log.encoding.data_block_encoder import avro_content, encode_avro, hfile_content, parquet_content
from pyhudi.format.log.encoding.delete_block_encoder import delete_content
from pyhudi.format.log.log_block import BlockType, Header
from pyhudi.format.log.log_options import DATA_FORMATS, LogBlockHeader, LogFile, LogOptions, LogSlice
from pyhudi.format.log.record_positions import encode_positions

OpenFile = Callable[[str], AbstractContextManager[BinaryIO]]
"""Opens a new file by name. The file exists after the context has ended without an error."""

_SLICE_BYTES = 16 * 1024 * 1024
"""Arrow bytes of the rows that are encoded at once."""


class LogWriter:
    """Writes records, deletes and commands to the log files of one file slice.

    Use as a context manager: after an error the open file is left unfinished. In every file records precede deletes, as
    in Apache Hudi.

    Args:
        open_file: Opens a new file in the slice's folder.
        where: Names of the files.
        header: Instant, schema and kind of the blocks.
        options: Sizes and formats.
        constants: Columns with the same value in every record, missing in the rows: name → text or None for null.
    """

    def __init__(
        self,
        open_file: OpenFile,
        where: LogSlice,
        header: LogBlockHeader,
        *,
        options: LogOptions | None = None,
        constants: Mapping[str, str | None] | None = None,
    ) -> None:
        self._header = header
        self._options = options or LogOptions()
        self._kind = BlockType.CDC_DATA if where.is_cdc else DATA_FORMATS[self._options.data_format.lower()]
        # An HFile has its own order.
        self._base_instant = None if self._kind is BlockType.HFILE_DATA else header.base_instant
        self._constants = dict(constants or {})
        self._headers = {Header.INSTANT_TIME: header.instant, Header.SCHEMA: header.schema.avro}
        if header.is_partial:
            self._headers[Header.IS_PARTIAL] = "true"
        self._compacted: dict[Header, str] = {}
        if header.compacted_times:
            self._compacted[Header.COMPACTED_BLOCK_TIMES] = ",".join(header.compacted_times)
            self._headers |= self._compacted
        self._records = BufferedRows()
        self._deletes = BufferedRows()
        self._output = _Output(open_file, where, self._options.max_file_size)
        self._ratio = 1.0

    @property
    def estimated_size(self) -> int:
        """Approximate total size in bytes of all files if they were closed now."""
        waiting = self._records.nbytes + self._deletes.nbytes
        return self._output.total_size + int(waiting * self._ratio)

    def write(self, rows: pa.RecordBatch | pa.Table, positions: pa.Array | None = None) -> None:
        """Write records.

        ``positions`` are their rows in the base file, null for new records. A block whose records all have different
        positions is ordered by them and stores them.

        Raises:
            FormatError: The rows do not have the columns of the schema.
        """
        self._records.add(rows, positions if self._base_instant is not None else None)
        # Rows are buffered uncompressed, also if the block compresses them, as in a Parquet file.
        if self._records.nbytes * max(1.0, self._ratio) >= self._options.max_block_size:
            self._flush_records()

    def delete(self, deletes: pa.RecordBatch | pa.Table, positions: pa.Array | None = None) -> None:
        """Write deletes, in the form of `pyhudi.format.log.decode_deletes`, and their ``positions`` as in `write`."""
        self._deletes.add(deletes, positions if self._base_instant is not None else None)
        if self._deletes.nbytes >= self._options.max_block_size:
            self.flush()

    def roll_back(self, target: str) -> None:
        """Write the command that rolls back what an instant wrote to the slice."""
        self.flush()
        self._output.write(rollback_frame(self._header.instant, target))

    def write_empty_block(self) -> None:
        """Write a data block without records, for a file that denotes that there are none."""
        self._output.write(frame(self._kind, self._headers, avro_content([])))

    def flush(self) -> None:
        """Write buffered rows."""
        self._flush_records()
        if self._deletes.num_rows:
            table, positions = self._deletes.take()
            content = delete_content(table, self._header.schema.ordering, self._header.schema.table_version)
            headers = {
                Header.INSTANT_TIME: self._header.instant,
                Header.SCHEMA: self._header.schema.avro,
            } | self._compacted
            block = frame(BlockType.DELETE, headers | self._positions(positions), content)
            self._output.write(block, deletes=table.num_rows)

    def close(self) -> list[LogFile]:
        """Write buffered rows. Return the files in order, none if nothing was written."""
        self.flush()
        return self._output.close()

    def abort(self) -> None:
        """Discard buffered rows and leave the open file unfinished; files finished before remain."""
        self._output.abort()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        if kind is not None:
            self.abort()
        else:
            self.close()

    def _flush_records(self) -> None:
        if not self._records.num_rows:
            return
        waiting = self._records.nbytes
        table, positions = self._records.take()
        written = 0
        start = 0
        for count, content in self._contents(table):
            part = None if positions is None else positions[start : start + count]
            block = frame(self._kind, self._headers | self._positions(part), content)
            self._output.write(block, records=count)
            written += block.size
            start += count
        self._ratio = written / max(1, waiting)

    def _contents(self, table: pa.Table) -> Iterator[tuple[int, Sequence[Buffer]]]:
        """Yield block contents with their numbers of rows."""
        limit = self._options.max_block_size
        if self._kind in (BlockType.PARQUET_DATA, BlockType.HFILE_DATA):
            step = max(1, int(table.num_rows * limit / max(1, table.nbytes)))
            for start in range(0, table.num_rows, step):
                part = table.slice(start, step)
                yield part.num_rows, self._file_content(part)
            return
        parts: list[tuple[int, memoryview]] = []
        for part in encode_avro(table, self._header.schema.avro, self._constants, slice_bytes=min(limit, _SLICE_BYTES)):
            if parts and sum(len(data) for _, data in parts) + len(part[1]) > limit:
                yield sum(rows for rows, _ in parts), avro_content(parts)
                parts = []
            parts.append(part)
        yield sum(rows for rows, _ in parts), avro_content(parts)

    def _file_content(self, rows: pa.Table) -> Sequence[Buffer]:
        """Return the content of a block that is itself a file."""
        if self._kind is BlockType.HFILE_DATA:
            return hfile_content(rows, self._header.schema.avro, self._constants)
        return parquet_content(rows, self._header.schema.avro, self._options.parquet, self._constants)

    def _positions(self, positions: npt.NDArray[np.int64] | None) -> dict[Header, str]:
        if positions is None or self._base_instant is None:
            return {}
        return {
            Header.RECORD_POSITIONS: encode_positions(positions),
            Header.BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS: self._base_instant,
        }


class _Output:
    """The consecutive output files."""

    def __init__(self, open_file: OpenFile, where: LogSlice, max_size: int) -> None:
        self._open_file = open_file
        self._where = where
        self._max_size = max_size
        self._context = ExitStack()
        self._sink: BinaryIO | None = None
        self._size = self._num_records = self._num_deletes = 0
        self._files: list[LogFile] = []

    @property
    def total_size(self) -> int:
        """Bytes in all files so far."""
        return self._size + sum(file.size for file in self._files)

    def write(self, block: Frame, *, records: int = 0, deletes: int = 0) -> None:
        """Write a block to the open file. A file that exceeds its size limit is finished."""
        if self._sink is None:
            self._sink = self._context.enter_context(self._open_file(self._where.name))
        for part in block.parts:
            self._sink.write(part)
        self._size += block.size
        self._num_records += records
        self._num_deletes += deletes
        if self._size > self._max_size:
            self._finish()

    def close(self) -> list[LogFile]:
        """Finish the open file."""
        if self._sink is not None:
            self._finish()
        return self._files

    def abort(self) -> None:
        """Leave the open file unfinished."""
        if self._sink is not None:
            self._sink = None
            reason = FormatError("the log file was abandoned")
            self._context.__exit__(FormatError, reason, None)

    def _finish(self) -> None:
        self._sink = None
        self._context.close()
        where = self._where
        self._files.append(LogFile(where.name, where.version, self._size, self._num_records, self._num_deletes))
        self._size = self._num_records = self._num_deletes = 0
        self._where = where.next()
