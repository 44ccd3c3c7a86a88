"""Bytes of blobs outside of tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyhudi
from pyhudi.errors import NotFoundError, QueryError
from pyhudi.read.functions import blob_ranges
from pyhudi.read.functions.blob_ranges import BlobRanges
from pyhudi.schema.logical_types.blobs import BLOB, BLOB_STRUCT
from pyhudi.storage.local_storage import LocalStorage

DATA = bytes(range(256)) * 4
Range = tuple[str | None, str | None, int | None, int | None]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "a").write_bytes(DATA)
    (tmp_path / "b").write_bytes(b"hello world")
    (tmp_path / "empty").touch()
    return tmp_path


def pieces(rows: list[Range], **options: str) -> list[pa.Array]:
    kinds, paths, offsets, lengths = (list(column) for column in zip(*rows, strict=True))
    texts, numbers = (
        (pa.array(one, pa.string()) for one in (kinds, paths)),
        (pa.array(one, pa.int64()) for one in (offsets, lengths)),
    )
    return list(BlobRanges(options).pieces(*texts, *numbers))


def read(rows: list[Range], **options: str) -> list[bytes | None]:
    found = pieces(rows, **options)
    for piece in found:
        piece.validate(full=True)
    return [value for piece in found for value in piece.to_pylist()]


def out(path: Path | str | None, offset: int | None = None, length: int | None = None) -> Range:
    return "OUT_OF_LINE", None if path is None else str(path), offset, length


def test_values_come_in_the_order_of_rows(folder: Path) -> None:
    a, b = folder / "a", f"file://{folder}/b"
    rows = [
        ("INLINE", None, None, None),
        out(a, 10, 4),
        out(b),
        (None, None, None, None),
        out(a, 12, 4),
        out(a, 10, 4),
        out(a, 500, 0),
        out(b, 6, 5),
        out(folder / "empty"),
        ("INLINE", str(a), 0, 1),
    ]
    expected = [None, DATA[10:14], b"hello world", None, DATA[12:16], DATA[10:14], b"", b"world", b"", None]
    for gap in ("0", "1000"):
        assert read(rows, **{"hoodie.blob.batching.max.gap.bytes": gap}) == expected
    assert read(rows[:1]) == [None]


def test_neighbours_are_read_together(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    requests: list[tuple[int, int]] = []
    own = LocalStorage.read_range

    def counted(self: LocalStorage, path: str, offset: int, length: int) -> bytes:
        requests.append((offset, length))
        return own(self, path, offset, length)

    monkeypatch.setattr(LocalStorage, "read_range", counted)
    rows = [out(folder / "a", at, 10) for at in (200, 0, 10, 25, 10, 500, 30)]
    values = read(rows, **{"hoodie.blob.batching.max.gap.bytes": "5"})
    assert values == [DATA[at : at + 10] for at in (200, 0, 10, 25, 10, 500, 30)]
    assert sorted(requests) == [(0, 35), (30, 10), (200, 10), (500, 10)]


def test_gaps_are_limited(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blob_ranges, "_MAX_AT_ONCE", 100)
    rows = [out(folder / "a", at, 10) for at in (0, 30, 200)]
    values = read(rows, **{"hoodie.blob.batching.max.gap.bytes": str(1 << 33)})
    assert values == [DATA[at : at + 10] for at in (0, 30, 200)]


def test_pieces_are_limited(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blob_ranges, "_PIECE", 100)
    rows = [out(folder / "a", at, 30) for at in range(0, 300, 30)] + [out(folder / "a"), out(folder / "b"), (None,) * 4]
    found = pieces(rows)
    assert [len(piece) for piece in found] == [4, 3, 3, 1, 2]
    values = [value for piece in found for value in piece.to_pylist()]
    assert values == [DATA[at : at + 30] for at in range(0, 300, 30)] + [DATA, b"hello world", None]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (("X", "f", 0, 1), "the storage type 'X'; there are INLINE and OUT_OF_LINE"),
        (out(None, 0, 1), r"has no reference\.external_path"),
        (out("", 0, 1), r"has no reference\.external_path"),
        (out("name", 0, 1), "write an absolute path or a URI"),
        (out("/f", 1), "one of reference.offset and reference.length"),
        (out("/f", None, 1), "one of reference.offset and reference.length"),
        (out("/f", -1, 1), "the offset -1"),
        (out("/f", 1, -1), "the length -1"),
        (out("/f", 0, 1 << 31), "the length 2147483648"),
    ],
)
def test_references_that_are_not_valid(row: Range, message: str) -> None:
    with pytest.raises(QueryError, match=message):
        read([out(None) if row[0] is None else row])


def test_files_that_are_too_short_or_missing(folder: Path) -> None:
    with pytest.raises(QueryError, match=r"a blob ends at byte 1030 of '.*/a', which has 1024 or fewer"):
        read([out(folder / "a", 1020, 10)])
    for row in (out(folder / "none"), out(folder / "none", 0, 1)):
        with pytest.raises(NotFoundError, match=r"there is no file '.*/none', which a blob refers to"):
            read([row])


@pytest.mark.parametrize("kind", [BLOB, BLOB_STRUCT])
def test_arrow_data(folder: Path, kind: pa.DataType) -> None:
    there: dict[str, Any] = {"external_path": str(folder / "b"), "offset": None, "length": None, "managed": False}
    values = [{"type": "INLINE", "data": b"1"}, None, {"type": "OUT_OF_LINE", "reference": there}, {"type": "INLINE"}]
    column = pa.chunked_array([pa.array(values, kind), pa.array(values[:2], kind)])
    assert pyhudi.read_blobs(column).to_pylist() == [b"1", None, b"hello world", None, b"1", None]
    assert pyhudi.read_blobs(column.chunk(0).slice(2)).to_pylist() == [b"hello world", None]
    with pytest.raises(QueryError, match="requires values of the type BLOB, STRUCT<type: STRING"):
        pyhudi.read_blobs(pa.array([b"1"]))
