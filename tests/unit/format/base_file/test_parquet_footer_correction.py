"""Footers of files with NaN and -0.0: nothing is in them that readers would leave rows out by."""

import contextlib
import math
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyhudi.errors import FormatError
from pyhudi.format.base_file.base_file_writer import BaseFileSchema
from pyhudi.format.base_file.parquet_writer import ParquetFileWriter
from pyhudi.format.base_file.thrift_footer.thrift_compact import (
    Struct,
    ThriftList,
    ThriftMap,
    ThriftType,
    Value,
    read_struct,
    write_struct,
)

NAN = float("nan")


def _written(path: Path, table: pa.Table, sink: Any = None) -> pq.ParquetFile:
    with ParquetFileWriter(sink or path, BaseFileSchema(table.schema)) as writer:
        for batch in table.to_batches(max_chunksize=2):
            writer.write(batch)
            writer.flush()
        summary = writer.close()
    assert summary.size == path.stat().st_size
    return pq.ParquetFile(path)


@pytest.mark.parametrize("opened", [False, True], ids=["path", "open file"])
def test_columns_with_nan_have_no_bounds(tmp_path: Path, opened: bool) -> None:
    inner = pa.array([{"x": 1.0}, {"x": NAN}, {"x": 3.0}, None])
    table = pa.table({"a": [1.0, 2.0, NAN, None], "b": [1.0, 2.0, 3.0, 4.0], "c": [7, 8, 9, None], "s": inner})
    path = tmp_path / "f.parquet"
    if opened:
        with path.open("wb") as sink:
            file = _written(path, table, _Flushed(sink))
    else:
        file = _written(path, table)
    assert file.metadata.num_row_groups == 2
    for group in map(file.metadata.row_group, range(2)):
        chunks = {chunk.path_in_schema: chunk for chunk in map(group.column, range(4))}
        for name, chunk in chunks.items():
            known = name in ("b", "c")
            assert chunk.statistics.has_min_max == known, name
            assert chunk.has_column_index == known, name
            assert chunk.has_offset_index, name
            assert chunk.statistics.has_null_count, name
    again = file.read()
    assert math.isnan(again["a"][2].as_py())
    assert again["b"].equals(table["b"])
    assert again["c"].equals(table["c"])
    # other readers of Arrow leave nothing out either
    assert pq.read_table(path, filters=[("c", ">", 8)])["c"].to_pylist() == [9]


class _Flushed:
    """A file of which every byte is there at once."""

    def __init__(self, file: Any) -> None:
        self._file = file

    def write(self, data: bytes) -> None:
        self._file.write(data)
        self._file.flush()

    def tell(self) -> int:
        return int(self._file.tell())

    def flush(self) -> None:
        self._file.flush()


def test_without_nan_the_bounds_are_there(tmp_path: Path) -> None:
    file = _written(tmp_path / "f.parquet", pa.table({"a": [1.0, 2.0]}))
    chunk = file.metadata.row_group(0).column(0)
    assert (chunk.statistics.min, chunk.statistics.max, chunk.has_column_index) == (1.0, 2.0, True)


def test_columns_with_negative_zeros_do_not_say_that_all_pages_have_dictionaries(tmp_path: Path) -> None:
    inner = pa.array([{"x": -0.0}, {"x": 1.0}, None, {"x": -0.0}], pa.struct([("x", pa.float32())]))
    table = pa.table({"a": [1.0, 1.0, -0.0, -0.0], "b": [0.0, 1.0, 0.0, 1.0], "c": [-0.0, NAN, -0.0, NAN], "s": inner})
    file = _written(tmp_path / "f.parquet", table)
    assert repr(file.read().to_pydict()) == repr(table.to_pydict())
    data = (tmp_path / "f.parquet").read_bytes()
    footer = read_struct(data[-8 - int.from_bytes(data[-8:-4], "little") : -8])
    for number, group in enumerate(footer[4].data.values):
        described = {b".".join(c[3].data[3].data.values).decode(): c[3].data for c in group[1].data.values}
        assert [name for name, chunk in described.items() if 13 in chunk] == ["b"]
        chunks = [file.metadata.row_group(number).column(i) for i in range(4)]
        assert [chunk.statistics.has_min_max for chunk in chunks] == [True, True, False, True]
        # by this name of the encoding parquet-java would know it all the same
        assert all("PLAIN_DICTIONARY" not in chunk.encodings for chunk in chunks)


# --- the protocol ----------------------------------------------------------------------------------------------------

_NUMBERS = st.integers(0, 2**64 - 1)
_PLAIN = {
    ThriftType.BYTE: st.integers(0, 255),
    ThriftType.I16: _NUMBERS,
    ThriftType.I32: _NUMBERS,
    ThriftType.I64: _NUMBERS,
    ThriftType.DOUBLE: st.binary(min_size=8, max_size=8),
    ThriftType.BINARY: st.binary(max_size=300),
}


def _items(kind: ThriftType, values: st.SearchStrategy[Any]) -> st.SearchStrategy[Value]:
    return st.builds(
        Value,
        st.sampled_from([ThriftType.LIST, ThriftType.SET]),
        st.builds(ThriftList, st.just(kind), st.lists(values)),
    )


def _values(structs: st.SearchStrategy[Struct]) -> st.SearchStrategy[Value]:
    plain = [st.builds(Value, st.just(kind), data) for kind, data in _PLAIN.items()]
    lists = [_items(kind, data) for kind, data in _PLAIN.items()]
    flags = st.builds(Value, st.sampled_from([ThriftType.TRUE, ThriftType.FALSE]), st.none())
    entries = st.lists(st.tuples(_PLAIN[ThriftType.BINARY], structs))
    maps = entries.map(
        lambda e: Value(ThriftType.MAP, ThriftMap(ThriftType.BINARY << 4 | ThriftType.STRUCT if e else 0, e))
    )
    return st.one_of(
        *plain,
        *lists,
        flags,
        maps,
        _items(ThriftType.STRUCT, structs),
        st.builds(Value, st.just(ThriftType.STRUCT), structs),
    )


_STRUCTS = st.recursive(
    st.just({}),
    lambda inner: st.dictionaries(st.integers(-(2**15), 2**15 - 1), _values(inner), max_size=4),
    max_leaves=6,
)


@given(_STRUCTS)
def test_structs_come_back(fields: Struct) -> None:
    data = write_struct(fields)
    assert read_struct(data) == fields
    assert write_struct(read_struct(data)) == data


@given(st.binary(max_size=40))
def test_other_bytes_are_told(data: bytes) -> None:
    with contextlib.suppress(FormatError):
        read_struct(data)


def test_footers_come_out_as_they_went_in(tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    _written(path, pa.table({"a": [1.0, 2.0], "t": ["x", None], "m": [{"k": [1, 2]}, None]}))
    data = path.read_bytes()
    footer = data[-8 - int.from_bytes(data[-8:-4], "little") : -8]
    assert write_struct(read_struct(footer)) == footer
