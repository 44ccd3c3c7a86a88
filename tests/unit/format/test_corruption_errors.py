"""What decoders raise, told from what a storage raises."""

from __future__ import annotations

import errno
import io
from typing import Any

import pyarrow as pa
import pytest

from pyhudi.errors import FormatError, NotFoundError, StorageError
from pyhudi.format.base_file import orc, parquet
from pyhudi.format.base_file.base_file_writer import BaseFileSchema
from pyhudi.format.base_file.parquet_writer import ParquetFileWriter
from pyhudi.format.corruption_errors import as_corruption


@pytest.mark.parametrize(
    "raised",
    [
        OSError("Couldn't deserialize thrift"),
        pa.ArrowInvalid("no"),
        pa.ArrowNotImplementedError("no"),
        FormatError("no"),
        UnicodeDecodeError("utf-8", b"\xff", 0, 1, "no"),
    ],
    ids=lambda e: type(e).__name__,
)
def test_damage_is_named(raised: Exception) -> None:
    with pytest.raises(FormatError, match=r"^file f: "), as_corruption("file f"):
        raise raised


@pytest.mark.parametrize(
    "raised",
    [
        OSError(errno.EIO, "input/output error"),
        OSError("Arrow error: IOError: Error reading bytes from file. Detail: [errno 5] Input/output error"),
        PermissionError(errno.EACCES, "permission denied"),
        ConnectionResetError("gone"),
        TimeoutError(),
        StorageError("503"),
        NotFoundError("no object"),
        MemoryError(),
        KeyError("a fault of ours"),
    ],
    ids=lambda e: type(e).__name__,
)
def test_other_errors_stay_what_they_are(raised: Exception) -> None:
    with pytest.raises(type(raised)) as found, as_corruption("file f"):
        raise raised
    assert found.value is raised


class Failing(io.BytesIO):
    """A file whose storage fails after some reads."""

    def __init__(self, data: bytes, reads: int) -> None:
        super().__init__(data)
        self.reads = reads

    def read(self, size: int | None = -1, /) -> bytes:
        self.reads -= 1
        if self.reads < 0:
            raise StorageError("503 Slow Down")
        return super().read(size)


@pytest.mark.parametrize("kind", [parquet, orc])
def test_a_failing_storage_is_no_damage(kind: Any) -> None:
    rows = pa.table({"a": list(range(10)), "s": ["x"] * 10})
    sink = io.BytesIO()
    writer = ParquetFileWriter if kind is parquet else orc.OrcFileWriter
    with writer(sink, BaseFileSchema(rows.schema)) as out:
        out.write(rows)
    data = sink.getvalue()
    whole = Failing(data, 40)
    assert sum(batch.num_rows for batch in kind.read_batches(pa.PythonFile(whole, mode="r"))) == 10
    assert 1 < 40 - whole.reads < 40
    for reads in range(40 - whole.reads):
        # ORC's library keeps only the text of the error
        with pytest.raises(StorageError if kind is parquet else OSError, match="503 Slow Down"):
            list(kind.read_batches(pa.PythonFile(Failing(data, reads), mode="r")))
