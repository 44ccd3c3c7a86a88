"""Arrow tables as bytes (IPC streams), for values that have no corresponding Spark type and for closures of tasks."""

from __future__ import annotations

import pyarrow as pa


def table_to_bytes(table: pa.Table, compression: str | None = None) -> bytes:
    """Serialize a table.

    Args:
        table: The table.
        compression: Codec of the buffers, ``zstd`` or ``lz4``; None for no compression.
    """
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


def table_from_bytes(data: bytes) -> pa.Table:
    """Return the table that `table_to_bytes` serialized."""
    with pa.ipc.open_stream(data) as reader:
        return reader.read_all()
