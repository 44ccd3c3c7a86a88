"""Arrow tables as values of a binary column, for results of tasks that have no corresponding Spark type."""

from __future__ import annotations

import pyarrow as pa


def packed(table: pa.Table) -> bytes:
    """Return a table serialised to bytes."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


def unpacked(data: bytes) -> pa.Table:
    """Return the table that `packed` serialised."""
    return pa.ipc.open_stream(data).read_all()
