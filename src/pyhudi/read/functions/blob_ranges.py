"""Bytes of blobs outside of tables: ranges of files, or whole files.

Rows are read in pieces of limited size, and ranges that lie close together in a file by one request.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import ConfigError, NotFoundError, QueryError
from pyhudi.schema.logical_types.blobs import INLINE, OUT_OF_LINE
from pyhudi.storage import Storage, open_storage

MAX_GAP_KEY = "hoodie.blob.batching.max.gap.bytes"
_MAX_GAP = 4096
"""Bytes between two ranges that are read with them, as in Apache Hudi."""
_PIECE = 64 << 20
"""Bytes of the blobs that are in memory at once; one blob may be larger."""
_MAX_AT_ONCE = 8 * _PIECE
"""Bytes of a piece with the gaps in it; above, gaps are not read."""
_LARGEST = (1 << 31) - 1
"""Bytes of a value in Arrow and Spark."""
_THREADS = 8

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class BlobRanges:
    """Reader of blobs by their references.

    Attributes:
        options: Those of storages, and `MAX_GAP_KEY`.
    """

    options: Mapping[str, str]

    def pieces(
        self, kinds: pa.StringArray, paths: pa.StringArray, offsets: pa.Int64Array, lengths: pa.Int64Array
    ) -> Iterator[pa.BinaryArray]:
        """Read the blobs of rows; yields their bytes in the order of rows, one or more rows at a time.

        Rows of another storage type than `OUT_OF_LINE` are null.

        Args:
            kinds: Storage types; null where there is no blob.
            paths: URIs of the files.
            offsets: First byte of the range; null with its length: the whole file.
            lengths: Number of bytes of the range.

        Raises:
            QueryError: A storage type is unknown, or a reference has no path, or no valid range of its file.
            NotFoundError: There is no such file.
            ConfigError: An option is not valid.
        """
        _check_kinds(kinds)
        is_out_of_line = pc.fill_null(pc.equal(kinds, OUT_OF_LINE), False)
        rows = np.flatnonzero(is_out_of_line.to_numpy(zero_copy_only=False))
        if not len(rows):
            yield pa.nulls(len(kinds), pa.binary())
            return
        names = paths.take(pa.array(rows)).dictionary_encode()
        _check_paths(names)
        with ThreadPoolExecutor(_THREADS) as pool:
            files = _Files(names.dictionary.to_pylist(), self.options, pool)
            numbers = names.indices.to_numpy().astype(np.int64)
            begins, sizes = _ranges(files, numbers, offsets.take(pa.array(rows)), lengths.take(pa.array(rows)))
            gap = self._gap()
            before = np.cumsum(sizes) - sizes
            large = sizes >= _PIECE  # a piece each
            cuts = np.flatnonzero((np.diff(before // _PIECE) != 0) | large[1:] | large[:-1]) + 1
            last = 0
            for some in np.split(np.arange(len(rows)), cuts):
                values = _read(files, numbers[some], begins[some], sizes[some], gap)
                end = len(kinds) if some[-1] == len(rows) - 1 else int(rows[some[-1]]) + 1
                yield _spread(values, rows[some] - last, end - last)
                last = end

    def _gap(self) -> int:
        text = str(self.options.get(MAX_GAP_KEY, _MAX_GAP))
        if not text.isdecimal():
            raise ConfigError(f"{MAX_GAP_KEY}={text} is not a number of bytes")
        return int(text)


def _check_kinds(kinds: pa.StringArray) -> None:
    unknown = pc.drop_null(kinds.filter(pc.invert(pc.is_in(kinds, pa.array([INLINE, OUT_OF_LINE, None], kinds.type)))))
    if len(unknown):
        raise QueryError(f"a blob has the storage type {unknown[0].as_py()!r}; there are {INLINE} and {OUT_OF_LINE}")


def _check_paths(names: pa.DictionaryArray) -> None:
    if names.null_count or pc.any(pc.equal(names.dictionary, "")).as_py():
        raise QueryError(f"a blob of the storage type {OUT_OF_LINE} has no reference.external_path; write its path")


class _Files:
    """Files that blobs are in, by number."""

    def __init__(self, uris: list[str], options: Mapping[str, str], pool: ThreadPoolExecutor) -> None:
        self.uris, self._pool = uris, pool
        self._storages: dict[str, Storage] = {}
        self._places = [self._place(uri, options) for uri in uris]

    def _place(self, uri: str, options: Mapping[str, str]) -> tuple[Storage, str]:
        folder, slash, name = uri.rpartition("/")
        if not slash or not name:
            raise QueryError(f"{uri!r} is not the path of a file with a blob; write an absolute path or a URI")
        if folder not in self._storages:
            self._storages[folder] = open_storage(folder or "/", options)
        return self._storages[folder], name

    def sizes(self, numbers: Ints) -> list[int]:
        """Return the sizes of some of the files."""
        return list(self._pool.map(self._size, numbers.tolist()))

    def _size(self, number: int) -> int:
        storage, name = self._places[number]
        stat = storage.stat(name)
        if stat is None:
            raise NotFoundError(f"there is no file {self.uris[number]!r}, which a blob refers to")
        return stat.size

    def read(self, numbers: Ints, begins: Ints, sizes: Ints) -> list[bytes]:
        """Return the bytes of ranges."""
        return list(self._pool.map(self._range, numbers.tolist(), begins.tolist(), sizes.tolist()))

    def _range(self, number: int, begin: int, size: int) -> bytes:
        storage, name = self._places[number]
        try:
            data = storage.read_range(name, begin, size)
        except NotFoundError as error:
            raise NotFoundError(f"there is no file {self.uris[number]!r}, which a blob refers to") from error
        if len(data) < size:
            raise QueryError(
                f"a blob ends at byte {begin + size} of {self.uris[number]!r}, which has {begin + len(data)} or fewer; "
                "correct its reference, or restore the file"
            )
        return data


def _ranges(files: _Files, numbers: Ints, offsets: pa.Int64Array, lengths: pa.Int64Array) -> tuple[Ints, Ints]:
    """Return begin and size of the range of each blob."""
    whole = offsets.is_null().to_numpy(zero_copy_only=False)
    if (whole != lengths.is_null().to_numpy(zero_copy_only=False)).any():
        raise QueryError(
            "a blob has one of reference.offset and reference.length; write both, or none for a whole file"
        )
    begins, sizes = (pc.fill_null(column, 0).to_numpy().astype(np.int64) for column in (offsets, lengths))
    if whole.any():
        distinct, inverse = np.unique(numbers[whole], return_inverse=True)
        sizes[whole] = np.array(files.sizes(distinct), np.int64)[inverse]
    for what, values, maximum in (("offset", begins, 1 << 62), ("length", sizes, _LARGEST)):
        wrong = np.flatnonzero((values < 0) | (values > maximum))
        if len(wrong):
            at = wrong[0]
            raise QueryError(
                f"a blob in {files.uris[numbers[at]]!r} has the {what} {values[at]}, not one from 0 to {maximum}"
            )
    return begins, sizes


def _read(files: _Files, numbers: Ints, begins: Ints, sizes: Ints, gap: int) -> pa.BinaryArray:
    """Return the bytes of some blobs: equal ranges are read once, and those at most ``gap`` bytes apart together."""
    ranges, inverse = np.unique(np.stack([numbers, begins, sizes]), axis=1, return_inverse=True)
    number, begin, size = ranges  # by file and begin
    end = begin + size
    apart = (np.diff(number) != 0) | (begin[1:] < end[:-1]) | (begin[1:] > end[:-1] + gap)
    first = np.flatnonzero(np.concatenate(([True], apart)))
    last = np.concatenate((first[1:], [len(begin)])) - 1
    spans = end[last] - begin[first]
    if gap and spans.sum() > _MAX_AT_ONCE:
        return _read(files, numbers, begins, sizes, 0)
    data = b"".join(files.read(number[first], begin[first], spans))
    group = np.repeat(np.arange(len(first)), last - first + 1)
    starts = (np.cumsum(spans) - spans)[group] + begin - begin[first][group]
    # every other value is a gap
    bounds = np.stack([starts, starts + size], axis=1).reshape(-1).astype(np.int32)
    values = pa.Array.from_buffers(pa.binary(), len(bounds) - 1, [None, pa.py_buffer(bounds), pa.py_buffer(data)])
    return values.take(pa.array(2 * inverse.reshape(-1)))


def _spread(values: pa.BinaryArray, rows: Ints, count: int) -> pa.BinaryArray:
    """Return the values at these of ``count`` rows, null elsewhere."""
    if len(rows) == count:
        return values
    places = np.full(count, -1, np.int64)
    places[rows] = np.arange(len(rows))
    return values.take(pa.array(places, mask=places < 0))
