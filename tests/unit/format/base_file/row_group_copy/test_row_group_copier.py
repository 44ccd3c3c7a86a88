"""Files with the row groups of others: what Arrow reads from them, their page indexes and footers."""

from __future__ import annotations

import io
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from pyhudi.errors import FormatError
from pyhudi.format.base_file.base_file_footer import BloomOptions
from pyhudi.format.base_file.base_file_writer import BaseFileSchema
from pyhudi.format.base_file.parquet import read_footer
from pyhudi.format.base_file.parquet_writer import ParquetFileWriter, ParquetOptions
from pyhudi.format.base_file.row_group_copy.row_group_copier import ReplacedColumns, RowGroupCopier
from pyhudi.format.base_file.thrift_footer.file_metadata import read_file_metadata
from pyhudi.format.base_file.thrift_footer.thrift_compact import read_struct, to_int
from pyhudi.format.bloom_filter import DYNAMIC, SIMPLE, BloomFilter
from pyhudi.format.bloom_filter_union import BloomFilterUnion

KEY, NAME = "_hoodie_record_key", "_hoodie_file_name"
SCHEMA = pa.schema(
    [(KEY, pa.string()), (NAME, pa.string()), ("n", pa.int64()), ("f", pa.float64()), ("l", pa.list_(pa.string()))]
)
ARROW = f"parquet-cpp-arrow version {pa.__version__}".encode()
SMALL = BloomOptions(num_entries=1000, fpp=1e-6, dynamic_max=3000)


def _rows(begin: int, end: int) -> pa.Table:
    numbers = range(begin, end)
    return pa.table(
        {
            KEY: [f"k{n:06}" for n in numbers],
            NAME: ["old"] * len(numbers),
            "n": pa.array([None if n % 7 == 0 else n for n in numbers], pa.int64()),
            "f": pa.array([n / 3 for n in numbers], pa.float64()),
            "l": pa.array([[str(n)] * (n % 3) for n in numbers], pa.list_(pa.string())),
        },
        schema=SCHEMA,
    )


def _file(rows: pa.Table, bloom: BloomOptions | None = SMALL, **options: Any) -> bytes:
    sink = io.BytesIO()
    given = ParquetOptions(**{"page_size": 512, **options})
    with ParquetFileWriter(sink, BaseFileSchema(rows.schema, "{}"), options=given, bloom=bloom) as writer:
        writer.write(rows)
    return sink.getvalue()


def _copied(*files: bytes) -> bytes:
    sink = io.BytesIO()
    copier = RowGroupCopier(sink, {NAME: "new"}, SMALL.dynamic_max)
    for file in files:
        assert copier.add(pa.BufferReader(file)) is None
    found = copier.close()
    assert found.size == len(sink.getvalue())
    return sink.getvalue()


def test_rows_and_footers_of_files_with_several_codecs():
    parts = [_rows(0, 500), _rows(500, 501), _rows(0, 0), _rows(501, 1500)]
    codecs = ["zstd", "snappy", "gzip", "uncompressed"]
    files = [_file(part, codec=codec) for part, codec in zip(parts, codecs, strict=True)]
    data = _copied(*files)
    whole = pa.concat_tables(parts)
    expected = whole.set_column(1, NAME, pa.array(["new"] * whole.num_rows))
    assert pq.read_table(pa.BufferReader(data)).cast(SCHEMA) == expected
    some = pq.read_table(pa.BufferReader(data), filters=(pc.field("n") > 600) & (pc.field("n") < 620))
    assert some["n"].to_pylist() == [n for n in range(601, 620) if n % 7]
    footer = read_footer(pa.BufferReader(data))
    metadata = footer.metadata
    assert (footer.num_rows, metadata.num_row_groups, metadata.num_columns) == (1500, 3, 5)
    assert (footer.min_key, footer.max_key, footer.avro_schema) == ("k000000", "k001499", "{}")
    assert metadata.metadata[b"pyhudi.nan.columns"] == b"[]"
    assert metadata.row_group(2).column(2).compression == "UNCOMPRESSED"
    assert metadata.row_group(2).column(2).statistics.max == 1499
    assert metadata.row_group(2).column(1).statistics.min == "new"
    bloom = footer.bloom_filter()
    assert bloom is not None
    assert pc.all(bloom.might_contain(whole[KEY])).as_py()
    strangers = bloom.might_contain(pa.array([f"x{n}" for n in range(10_000)]))
    assert pc.sum(strangers).as_py() < 5
    # copies of copies
    assert pq.read_table(pa.BufferReader(_copied(data, _file(_rows(1500, 1600))))).num_rows == 1600


def _replaced(file: bytes, new: pa.Table, *, sizes: list[int]) -> bytes | str:
    """Replace columns of a file whose row groups have these numbers of rows; or return why that is not possible."""
    sink = io.BytesIO()
    starts = [sum(sizes[:number]) for number in range(len(sizes))]
    copier = RowGroupCopier(sink, {NAME: "new"}, SMALL.dynamic_max)
    columns = ReplacedColumns(
        pa.py_buffer(_file(new.slice(0, 0), None)),
        lambda number: pa.py_buffer(_file(new.slice(starts[number], sizes[number]), None)),
    )
    reason = copier.add(pa.BufferReader(file), columns)
    if reason is not None:
        assert not sink.getvalue()
        return reason
    copier.close()
    return sink.getvalue()


def test_replaced_columns():
    rows = _rows(0, 1000)
    # three row groups, the first of which has NaN
    with_nan = rows.set_column(3, "f", pa.array([float("nan"), *range(999)], pa.float64()))
    file = _copied(_file(with_nan.slice(0, 400)), _file(with_nan.slice(400, 350)), _file(with_nan.slice(750)))
    assert read_footer(pa.BufferReader(file)).metadata.metadata[b"pyhudi.nan.columns"] == b'["f"]'
    new = pa.table({"f": pa.array([n * 2.5 for n in range(1000)]), "n": pa.array(range(1000, 2000), pa.int64())})
    data = _replaced(file, new, sizes=[400, 350, 250])
    assert isinstance(data, bytes)
    expected = with_nan.set_column(2, "n", new["n"]).set_column(3, "f", new["f"])
    expected = expected.set_column(1, NAME, pa.array(["new"] * 1000))
    assert pq.read_table(pa.BufferReader(data)).cast(SCHEMA) == expected
    some = pq.read_table(pa.BufferReader(data), filters=pc.field("n") == 1777)
    assert some[KEY].to_pylist() == ["k000777"]
    metadata = read_footer(pa.BufferReader(data)).metadata
    assert metadata.metadata[b"pyhudi.nan.columns"] == b"[]"
    groups = [metadata.row_group(number) for number in range(3)]
    assert [(g.column(2).statistics.min, g.column(2).statistics.max) for g in groups] == [
        (1000, 1399),
        (1400, 1749),
        (1750, 1999),
    ]
    nan = pa.table({"f": pa.array([1.0] * 999 + [float("nan")])})
    data = _replaced(file, nan, sizes=[400, 350, 250])
    assert isinstance(data, bytes)
    metadata = read_footer(pa.BufferReader(data)).metadata
    assert metadata.metadata[b"pyhudi.nan.columns"] == b'["f"]'
    assert [metadata.row_group(number).column(3).statistics.has_min_max for number in range(3)] == [True, True, False]


def test_replaced_nested_columns():
    rows = _rows(0, 100)
    new = pa.table({"l": pa.array([["a", None], [], None, ["b"]] * 25, pa.list_(pa.string()))})
    data = _replaced(_file(rows), new, sizes=[100])
    assert isinstance(data, bytes)
    found = pq.read_table(pa.BufferReader(data))
    assert found["l"].to_pylist() == new["l"].to_pylist()
    assert found["n"] == rows["n"]


@pytest.mark.parametrize(
    ("column", "reason"),
    [
        (pa.table({"n": pa.array([1, 2], pa.int32())}), "it stores the column 'n' in another form"),
        (pa.table({"l": pa.array([[1], [2]])}), "it stores the column 'l' in another form"),
        (pa.table([pa.array([1, 2])], schema=pa.schema([pa.field("n", pa.int64(), nullable=False)])), "it stores"),
        (pa.table({"other": [1, 2]}), "it lacks the column 'other'"),
    ],
)
def test_columns_of_another_form_are_not_replaced(column: pa.Table, reason: str):
    assert str(_replaced(_file(_rows(0, 2)), column, sizes=[2])).startswith(reason)


@pytest.mark.parametrize(
    "entry", [("org.apache.spark.legacyDateTime", ""), ("org.apache.spark.version", "2.4.8")], ids=["legacy", "2.4"]
)
def test_old_calendar_and_order(entry: tuple[str, str]):
    sink = io.BytesIO()
    table = pa.table({"d": [1, 2], "e": [1, 2]})
    with pq.ParquetWriter(sink, table.schema, store_schema=False) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata(dict([entry]))
    copier = RowGroupCopier(io.BytesIO(), {}, 1000)
    source = pa.BufferReader(sink.getvalue())
    new = pa.table({"d": [3, 4]})
    columns = ReplacedColumns(pa.py_buffer(_file(new.slice(0, 0), None)), lambda _: pa.py_buffer(_file(new, None)))
    assert copier.check(source, columns) == "its dates are in the Julian calendar"
    assert copier.check(source) is None
    sink, out = io.BytesIO(), io.BytesIO()
    pq.write_table(table, sink, sorting_columns=[pq.SortingColumn(0)], store_schema=False)
    copier = RowGroupCopier(out, {}, 1000)
    assert copier.add(pa.BufferReader(sink.getvalue()), columns) is None
    copier.close()
    assert pq.read_metadata(pa.BufferReader(sink.getvalue())).row_group(0).sorting_columns
    assert not pq.read_metadata(pa.BufferReader(out.getvalue())).row_group(0).sorting_columns
    assert pq.read_table(pa.BufferReader(out.getvalue())).to_pydict() == {"d": [3, 4], "e": [1, 2]}


def test_rows_that_are_missing():
    with pytest.raises(FormatError, match="2 rows cannot replace columns of a row group of 3"):
        _replaced(_file(_rows(0, 3)), pa.table({"n": [1, 2]}), sizes=[2])


def test_indexes_lead_to_pages():
    _check_indexes(_copied(_file(_rows(0, 800)), _file(_rows(800, 1000))))


def _check_indexes(data: bytes) -> None:
    footer = read_file_metadata(pa.BufferReader(data))
    assert footer is not None
    groups = footer[4].data.values
    for number, group in enumerate(groups):
        assert to_int(group[7]) == number
        assert to_int(group[6]) == sum(to_int(chunk[3].data[7]) for chunk in group[1].data.values)
        for chunk in group[1].data.values:
            begin, size = to_int(chunk[4]), to_int(chunk[5])
            rows = []
            for page in read_struct(data[begin : begin + size])[1].data.values:
                header = read_struct(data[to_int(page[1]) :])
                assert to_int(header[1]) == 0  # a data page
                assert 0 <= to_int(page[2]) - to_int(header[3]) < 100  # with its header
                rows.append(to_int(page[3]))
            assert rows[0] == 0
            assert rows == sorted(rows)
            nulls = read_struct(data[to_int(chunk[6]) :])[1].data.values
            assert len(nulls) == len(rows)
    assert len(groups[0][1].data.values) == len(SCHEMA)


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        (_file(_rows(0, 1).drop(["f"])), "its schema differs"),
        (_file(_rows(0, 1).set_column(2, "n", pa.array([1], pa.int32()))), "its schema differs"),
        (_file(_rows(0, 1), None), "only some files have the range of their record keys"),
        (_file(_rows(0, 1).set_column(0, KEY, [["\U0001f600"]])), "its range of record keys may be in another order"),
        (_file(_rows(0, 0), None), "its bloom filter has type None, those of others have DYNAMIC_V0"),
        (_file(_rows(0, 1), BloomOptions(kind=SIMPLE)), "its bloom filter has type SIMPLE"),
        (_file(_rows(0, 1), BloomOptions(num_entries=7)), "its bloom filter has a different size"),
        (_file(_rows(0, 1))[:-4] + b"PARE", "it is encrypted"),
        (
            _file(_rows(0, 1)).replace(ARROW, b"parquet-mr version 1.8.1 (build)"),
            "its statistics are not reliable",
        ),
    ],
)
def test_files_that_are_not_joined(other: bytes, reason: str):
    sink = io.BytesIO()
    copier = RowGroupCopier(sink, {NAME: "new"}, 1000)
    assert copier.add(pa.BufferReader(_file(_rows(1, 3)))) is None
    size = len(sink.getvalue())
    assert str(copier.add(pa.BufferReader(other))).startswith(reason)
    assert len(sink.getvalue()) == size


def test_damage():
    whole = _file(_rows(0, 100))
    for data in (b"", b"PAR1", whole[:-1], whole[:-8] + b"\xff\xff\xff\x7fPAR1", whole[:50] + whole[-30:]):
        with pytest.raises(FormatError, match="cannot read the Parquet file"):
            RowGroupCopier(io.BytesIO(), {NAME: "new"}, 1000).add(pa.BufferReader(data))
    with pytest.raises(FormatError, match="no file"):
        RowGroupCopier(io.BytesIO(), {}, 1000).close()


def _union(max_keys: int, *filters: BloomFilter) -> BloomFilter:
    union = BloomFilterUnion(max_keys)
    assert all(union.add(one) for one in filters)
    found = union.finish()
    assert found is not None
    return BloomFilter.parse(found.serialize(), found.kind)


@pytest.mark.parametrize("kind", [SIMPLE, DYNAMIC])
def test_unions_are_what_is_built_from_all_keys(kind: str):
    keys = pa.array([f"k{n}" for n in range(900)])
    parts = [BloomFilter.build(keys.slice(at, 300), 1000, 1e-6, 3000, kind) for at in (0, 300, 600)]
    assert _union(3000, *parts).serialize() == BloomFilter.build(keys, 1000, 1e-6, 3000, kind).serialize()


@pytest.mark.parametrize(("max_keys", "vectors"), [(1000, 1), (3000, 3), (100_000, 7)])
def test_unions_of_many_keys(max_keys: int, vectors: int):
    keys = pa.array([f"k{n}" for n in range(6500)])
    sizes = [700, 1800, 900, 100, 3000]
    starts = [sum(sizes[:n]) for n in range(len(sizes))]
    parts = [BloomFilter.build(keys.slice(at, n), 1000, 1e-6, 3000) for at, n in zip(starts, sizes, strict=True)]
    found = _union(max_keys, *parts)
    assert len(found.rows) == vectors
    assert pc.all(found.might_contain(keys)).as_py()
    assert not BloomFilterUnion(10).finish()
    other = BloomFilterUnion(10)
    assert other.add(parts[0])
    assert not other.add(BloomFilter.build(keys, 7))


# --- row groups in the next version of a file ------------------------------------------------------------------------


def _next_version(file: bytes, *parts: int | pa.Table, **options: Any) -> bytes:
    """The next version of a file: rows, and row groups of the file by their numbers."""
    source, sink = pa.BufferReader(file), io.BytesIO()
    schema = BaseFileSchema(SCHEMA, "{}", {NAME: "new"})
    given = ParquetOptions(**{"page_size": 512, **options})
    with ParquetFileWriter(sink, schema, options=given, bloom=SMALL, replaced=read_footer(source)) as writer:
        groups = writer.copyable(source)
        assert groups is not None
        for part in parts:
            if isinstance(part, int):
                keys = pq.ParquetFile(source).read_row_group(part, columns=[KEY])[KEY]
                writer.copy_row_group(groups, part, keys.chunks)
            else:
                writer.write(part)
    return sink.getvalue()


def _in_groups(*parts: pa.Table) -> bytes:
    sink = io.BytesIO()
    options = ParquetOptions(page_size=512)
    with ParquetFileWriter(sink, BaseFileSchema(SCHEMA, "{}"), options=options, bloom=SMALL) as writer:
        for part in parts:
            writer.write(part)
            writer.flush()
    return sink.getvalue()


@pytest.mark.parametrize("order", ["copies first", "rows first", "copies only"])
def test_copies_beside_new_rows(order: str):
    file = _in_groups(_rows(0, 400), _rows(400, 700), _rows(700, 1000))
    new = _rows(2000, 2300)
    parts = {"copies first": [0, 2, new], "rows first": [new, 1, _rows(3000, 3001), 2], "copies only": [1, 0]}[order]
    stored = [_rows(0, 400), _rows(400, 700), _rows(700, 1000)]
    data = _next_version(file, *parts, codec="snappy")
    whole = pa.concat_tables([stored[part] if isinstance(part, int) else part for part in parts])
    assert pq.read_table(pa.BufferReader(data)).cast(SCHEMA) == whole.set_column(
        1, NAME, pa.array(["new"] * whole.num_rows)
    )
    footer = read_footer(pa.BufferReader(data))
    assert (footer.num_rows, footer.avro_schema) == (whole.num_rows, "{}")
    assert (footer.min_key, footer.max_key) == (min(whole[KEY].to_pylist()), max(whole[KEY].to_pylist()))
    bloom = footer.bloom_filter()
    assert bloom is not None
    assert pc.all(bloom.might_contain(whole[KEY])).as_py()
    groups = [footer.metadata.row_group(i) for i in range(footer.metadata.num_row_groups)]
    assert [group.column(2).compression for group in groups] == [
        "ZSTD" if isinstance(part, int) else "SNAPPY" for part in parts
    ]
    _check_indexes(data)


def test_nan_of_copies_is_known():
    odd = _rows(0, 3).set_column(3, "f", pa.array([1.0, float("nan"), 2.0]))
    file = _in_groups(odd, _rows(3, 9))
    for parts in ([0, _rows(9, 12)], [1, odd]):
        metadata = read_footer(pa.BufferReader(_next_version(file, *parts))).metadata
        assert metadata.metadata[b"pyhudi.nan.columns"] == b'["f"]'
        statistics = [metadata.row_group(i).column(3).statistics for i in range(2)]
        assert any(one is None or not one.has_min_max for one in statistics)


@pytest.mark.parametrize("odd", [None, "rows", "copy"])
def test_bounds_with_copies(odd: str | None):
    nan = pa.array([1.0, float("nan"), 2.0, 3.0])
    copied = _rows(400, 404).set_column(3, "f", nan) if odd == "copy" else _rows(400, 404)
    rows = _rows(2, 6).set_column(3, "f", nan) if odd == "rows" else _rows(2, 6)
    source, sink = pa.BufferReader(_in_groups(_rows(0, 400), copied)), io.BytesIO()
    bounds = pa.schema([("f", pa.float64()), ("n", pa.int64())])
    with ParquetFileWriter(sink, BaseFileSchema(SCHEMA, constants={NAME: "new"}, bounds=bounds)) as writer:
        groups = writer.copyable(source)
        assert groups is not None
        writer.copy_row_group(groups, 1, [])
        writer.write(rows)
        summary = writer.close()
    assert (summary.num_rows, summary.size) == (8, len(sink.getvalue()))
    assert summary.bounds is not None
    found = summary.bounds[0].as_py()
    assert (found["n"]["min"], found["n"]["max"], found["n"]["values"]) == (2, 403, 8)
    # the minimum of the other values is in no footer
    assert found["f"] is None if odd else (found["f"]["min"], found["f"]["max"]) == (2 / 3, 403 / 3)
