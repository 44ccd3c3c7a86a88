"""What decoders raise, told from what a storage raises."""

from __future__ import annotations

import errno
import io
from typing import Any

import pyarrow as pa
import pytest

from pyhudi.errors import FormatError, NotFoundError, StorageError
from pyhudi.format import orc, parquet
from pyhudi.format.damage import as_damage, check_text


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
    with pytest.raises(FormatError, match=r"^file f: "), as_damage("file f"):
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
    with pytest.raises(type(raised)) as found, as_damage("file f"):
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
    writer = parquet.BaseFileWriter if kind is parquet else orc.OrcFileWriter
    with writer(sink, rows.schema) as out:
        out.write(rows)
    data = sink.getvalue()
    whole = Failing(data, 40)
    assert sum(batch.num_rows for batch in kind.read_batches(pa.PythonFile(whole, mode="r"))) == 10
    assert 1 < 40 - whole.reads < 40
    for reads in range(40 - whole.reads):
        # ORC's library keeps only the text of the error
        with pytest.raises(StorageError if kind is parquet else OSError, match="503 Slow Down"):
            list(kind.read_batches(pa.PythonFile(Failing(data, reads), mode="r")))


BAD = pa.array([b"abc", None, b"\xff\xfe"]).view(pa.string())


@pytest.mark.parametrize(
    "column",
    [
        BAD,
        BAD.slice(1),
        pa.DictionaryArray.from_arrays(pa.array([0, 2, 0]), BAD),
        pa.StructArray.from_arrays([BAD], ["x"]),
        pa.ListArray.from_arrays(pa.array([0, 3]), BAD),
    ],
    ids=["plain", "slice", "dictionary", "struct", "list"],
)
def test_text_that_is_not_utf8_is_refused(column: pa.Array) -> None:
    with pytest.raises(FormatError, match="column 'c'"):
        check_text(pa.record_batch({"n": pa.nulls(len(column), pa.int64()), "c": column}))


@pytest.mark.parametrize(
    "values", [[], [None], ["a" * 40], ["ü", "x" * 9, None], ["a" * 7 + "ü"], ["\U0001f600"]], ids=repr
)
def test_text_is_taken(values: list[str | None]) -> None:
    column = pa.array(values, pa.string())
    check_text(pa.record_batch({"c": column, "s": pa.StructArray.from_arrays([column], ["x"])}))
    check_text(pa.record_batch({"c": BAD.slice(0, 2)}))  # what lies behind a slice is not its own
