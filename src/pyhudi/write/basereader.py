"""Reads base files of either format: their rows in batches of bounded size, in order, and their footers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

from pyhudi.format import orc, parquet
from pyhudi.format.basefile import Footer
from pyhudi.storage import Storage

_BATCH_BYTES = 32 * 1024 * 1024
_MIN_ROWS, _MAX_ROWS = 1024, 131_072


@contextmanager
def open_base(storage: Storage, path: str, schema: pa.Schema) -> Iterator[Iterator[pa.RecordBatch]]:
    """Open a base file and give its batches, with those columns of ``schema`` that it has."""
    with storage.open_input(path) as source:
        if path.endswith(".orc"):
            yield orc.read_batches(source, schema.names)
        else:
            file = parquet.open_file(source, pre_buffer=False)
            size = sum(file.metadata.row_group(i).total_byte_size for i in range(file.metadata.num_row_groups))
            per_row = max(size // max(file.metadata.num_rows, 1), 1)
            rows = min(max(_BATCH_BYTES // per_row, _MIN_ROWS), _MAX_ROWS)
            yield parquet.read_batches(file, schema.names, batch_size=rows)


def read_footer(storage: Storage, path: str) -> Footer:
    """What Hudi keeps in the footer of a base file, and its columns as `open_base` gives them."""
    with storage.open_input(path) as source:
        return orc.read_footer(source) if path.endswith(".orc") else parquet.read_footer(source)
