"""Temporary file of Arrow batches on local disk, for rows that do not fit in memory."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa


class SpillFile:
    """Batches of one schema, appended first and then read by index. `close` deletes the file.

    Memory: one batch while appending; batches that are read are memory-mapped.

    Args:
        folder: Folder of the file, created if needed; None for the temporary directory of the system.
    """

    def __init__(self, folder: str | None = None) -> None:
        if folder is not None:
            Path(folder).mkdir(parents=True, exist_ok=True)
        self._folder = tempfile.TemporaryDirectory(prefix="pyhudi-spill-", dir=folder)
        self._path = f"{self._folder.name}/rows.arrow"
        self._writer: Any = None
        self._source: Any = None
        self._reader: Any = None
        self.num_batches = 0

    def append(self, batch: pa.RecordBatch) -> None:
        if self._writer is None:
            self._writer = pa.ipc.new_file(self._path, batch.schema)
        self._writer.write_batch(batch)
        self.num_batches += 1

    def finish(self) -> None:
        """End appending. Batches can be read only afterwards."""
        if self._writer is None:
            return
        self._writer.close()
        self._source = pa.memory_map(self._path)
        self._reader = pa.ipc.open_file(self._source)

    def batch(self, number: int) -> pa.RecordBatch:
        """Return the batch that was appended as number ``number``, from 0."""
        return self._reader.get_batch(number)

    def close(self) -> None:
        """Delete the file. Batches that were read must no longer be referenced."""
        self._reader = None
        if self._source is not None:
            self._source.close()
        elif self._writer is not None:
            self._writer.close()
        self._source = self._writer = None
        self._folder.cleanup()
