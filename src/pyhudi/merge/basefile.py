"""Base files of any format as batches of the table's columns, in the order of their rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias

import pyarrow as pa

from pyhudi.errors import FormatError
from pyhudi.format import orc, parquet
from pyhudi.schema.evolution import conform
from pyhudi.storage import Storage

FileNames: TypeAlias = Mapping[str, str | None]
"""Column of the table → its name in a file, or None where the file has a column of that name that is another one."""


def read_base(
    storage: Storage, path: str, schema: pa.Schema, names: FileNames, batch_rows: int
) -> Iterator[pa.RecordBatch]:
    """The rows of a base file with exactly the columns of ``schema``; those that the file lacks are null.

    Raises:
        NotFoundError: the file is gone.
        FormatError: it is damaged; names it.
    """
    inside = file_columns(schema, names)
    with storage.open_input(path) as source:
        try:
            if path.endswith(".orc"):
                batches = orc.read_batches(source, list(inside))
            else:
                file = parquet.open_file(source, pre_buffer=True)
                batches = parquet.read_batches(file, list(inside), batch_size=batch_rows)
            for batch in batches:
                yield conform(renamed(batch, inside), schema)
        except FormatError as e:
            raise FormatError(f"{storage.uri(path)}: {e}") from e


def file_columns(schema: pa.Schema, names: FileNames) -> dict[str, str]:
    """Names in a file → columns of the schema, for those that a file with such names can have."""
    return {there: name for name in schema.names if (there := names.get(name, name)) is not None}


def renamed(batch: pa.RecordBatch, inside: Mapping[str, str]) -> pa.RecordBatch:
    """The batch with the table's names for its columns."""
    names = [inside[name] for name in batch.schema.names]
    return batch if names == batch.schema.names else batch.rename_columns(names)
