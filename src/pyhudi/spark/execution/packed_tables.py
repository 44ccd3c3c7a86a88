"""Tables as values of a binary column, for what tasks tell that has no type of Spark's."""

from __future__ import annotations

import pyarrow as pa


def packed(table: pa.Table) -> bytes:
    """A table as bytes."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


def unpacked(data: bytes) -> pa.Table:
    """Return the table that was given to `packed`."""
    return pa.ipc.open_stream(data).read_all()
