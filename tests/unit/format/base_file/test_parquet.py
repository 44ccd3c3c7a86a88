"""Base files in Parquet: what is written, and what is read of our own and of the original's files."""

from __future__ import annotations

import datetime
import io
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyhudi.errors import ConfigError, FormatError, RecordKeyError
from pyhudi.format.base_file import parquet
from pyhudi.format.base_file.base_file_footer import BloomOptions, KeyRecorder
from pyhudi.format.base_file.base_file_writer import BaseFileSchema
from pyhudi.format.base_file.parquet_writer import CODECS, ParquetFileWriter, ParquetOptions
from pyhudi.schema.converters.arrow_avro import to_avro
from pyhudi.schema.evolution.schema_projection import conform
from pyhudi.schema.meta_columns import add_meta_columns
from pyhudi.schema.meta_fields import META_COLUMNS, RECORD_KEY
from pyhudi.schema.table_types import as_nullable, to_table_types
from tests.properties import examples
from tests.unit.format import golden

CONSTANTS = {
    "_hoodie_commit_time": "20261121095652741",
    "_hoodie_partition_path": "year=2024",
    "_hoodie_file_name": "x-0_0-0-0_20261121095652741.parquet",
}
SMALL = BloomOptions(num_entries=100)


def rows(n: int = 10, start: int = 0) -> pa.RecordBatch:
    numbers = range(start, start + n)
    moment = datetime.datetime(2024, 1, 2, 3, 4, 5, 678901)
    return pa.RecordBatch.from_pydict(
        {
            "_hoodie_commit_seqno": [f"20261121095652741_0_{i}" for i in numbers],
            "_hoodie_record_key": [f"k{i}" for i in numbers],
            "i": pa.array(numbers, pa.int32()),
            "d": pa.array([Decimal(i) for i in numbers], pa.decimal128(9, 2)),
            "t": pa.array([moment] * n, pa.timestamp("us", "UTC")),
            "n": pa.array([moment] * n, pa.timestamp("us")),
            "l": pa.array([["a", None]] * n, pa.list_(pa.field("element", pa.string()))),
            "m": pa.array([[("a", i)] for i in numbers], pa.map_(pa.string(), pa.int32())),
            "s": pa.array([{"x": i} for i in numbers], pa.struct([("x", pa.int64())])),
        }
    )


OWN = pa.schema([field for field in rows(0).schema if field.name not in META_COLUMNS])
FILE = add_meta_columns(OWN)


def write(*batches: pa.RecordBatch, options: ParquetOptions | None = None, bloom: BloomOptions | None = SMALL) -> bytes:
    sink = io.BytesIO()
    schema = BaseFileSchema(FILE, to_avro(FILE, "t"), CONSTANTS)
    with ParquetFileWriter(sink, schema, options=options, bloom=bloom) as writer:
        for batch in batches:
            writer.write(batch)
    return sink.getvalue()


def test_footer_and_summary() -> None:
    sink = io.BytesIO()
    writer = ParquetFileWriter(sink, BaseFileSchema(FILE, "{}", CONSTANTS), bloom=SMALL)
    writer.write(rows(5, 5))
    writer.write(rows(7))
    summary = writer.close()
    assert not sink.closed
    assert (summary.num_rows, summary.size, summary.min_key, summary.max_key) == (12, len(sink.getvalue()), "k0", "k9")
    footer = parquet.read_footer(pa.BufferReader(sink.getvalue()))
    assert (footer.avro_schema, footer.min_key, footer.max_key) == ("{}", "k0", "k9")
    assert footer.bloom_type == "DYNAMIC_V0"
    entries = footer.metadata.metadata
    assert entries[b"writer.model.name"] == b"avro"
    assert b"ARROW:schema" not in entries
    bloom = footer.bloom_filter()
    assert bloom is not None
    assert bloom.might_contain(pa.array(["k0", "k9", "zz"])).to_pylist() == [True, True, False]


def test_keys_are_ordered_as_java_compares_texts() -> None:
    """By UTF-16 units: characters outside the basic plane come before U+E000."""
    batch = rows(3).set_column(1, RECORD_KEY, pa.array(["ｚ", "😀", "Z"]))
    footer = parquet.read_footer(pa.BufferReader(write(batch)))
    assert (footer.min_key, footer.max_key) == ("Z", "ｚ")


KEYS = st.lists(st.text("aé\ud7ff\ue000\uffee\U00010000\U0010ffff", min_size=1, max_size=3), min_size=1, max_size=5)


@settings(max_examples=examples(100), deadline=None)
@given(st.lists(KEYS, min_size=1, max_size=3))
def test_key_ranges_of_any_texts(batches: list[list[str]]) -> None:
    recorder = KeyRecorder(BloomOptions(num_entries=20, dynamic_max=20))
    for keys in batches:
        recorder.add(pa.array(keys))
    ordered = sorted((key for keys in batches for key in keys), key=lambda key: key.encode("utf-16-be"))
    assert (recorder.min_key, recorder.max_key) == (ordered[0], ordered[-1])


def test_physical_types() -> None:
    schema = pq.ParquetFile(pa.BufferReader(write(rows()))).schema
    columns = {schema.column(i).path: schema.column(i) for i in range(len(schema))}
    assert list(columns)[:5] == list(META_COLUMNS)
    assert columns["d"].physical_type == "FIXED_LEN_BYTE_ARRAY"
    assert columns["d"].length == 4
    assert columns["t"].physical_type == "INT64"
    assert "isAdjustedToUTC=true, timeUnit=microseconds" in str(columns["t"].logical_type)
    assert "isAdjustedToUTC=false, timeUnit=microseconds" in str(columns["n"].logical_type)
    assert {"l.list.element", "m.key_value.key", "m.key_value.value", "s.x"} <= set(columns)


def test_rows_come_back_with_constants() -> None:
    data = write(rows(6), rows(4, 6))
    read = pa.Table.from_batches(parquet.read_batches(pa.BufferReader(data), batch_size=3))
    assert read.column_names == list(FILE.names)
    assert read["_hoodie_file_name"].to_pylist() == [CONSTANTS["_hoodie_file_name"]] * 10
    assert read.select(OWN.names).cast(OWN) == pa.Table.from_batches([rows(10)]).select(OWN.names)


def test_meta_columns_may_vary_and_come_encoded() -> None:
    own = {"_hoodie_commit_time": ["1", "2", "1"], "_hoodie_partition_path": [None, "", "p"]}
    batch = rows(3)
    for name, values in own.items():
        batch = batch.append_column(name, pa.array(values, pa.string()))
    other = batch.set_column(
        batch.num_columns - 2, "_hoodie_commit_time", pa.array(["3", "3", "2"]).dictionary_encode()
    )
    sink = io.BytesIO()
    with ParquetFileWriter(sink, BaseFileSchema(FILE, constants={"_hoodie_file_name": "f"})) as writer:
        writer.write(batch)
        writer.write(other)
    read = pq.read_table(pa.BufferReader(sink.getvalue()))
    assert read["_hoodie_commit_time"].to_pylist() == ["1", "2", "1", "3", "3", "2"]
    assert read["_hoodie_partition_path"].to_pylist() == [None, "", "p"] * 2
    assert read["_hoodie_file_name"].to_pylist() == ["f"] * 6


def test_without_keys() -> None:
    constants = dict.fromkeys(META_COLUMNS)
    sink = io.BytesIO()
    with ParquetFileWriter(sink, BaseFileSchema(FILE, constants=constants)) as writer:
        writer.write(rows(3))
    read = pq.read_table(pa.BufferReader(sink.getvalue()))
    assert [read[name].null_count for name in META_COLUMNS] == [3] * 5
    assert parquet.read_footer(pa.BufferReader(sink.getvalue())).bloom_text is None


def test_empty_file_has_a_filter_and_no_range() -> None:
    footer = parquet.read_footer(pa.BufferReader(write()))
    assert (footer.num_rows, footer.min_key, footer.max_key) == (0, None, None)
    assert footer.bloom_filter() is not None
    assert footer.schema.names == list(FILE.names)


@pytest.mark.parametrize("codec", sorted(set(CODECS) - {"brotli"}))
def test_codecs(codec: str) -> None:
    data = write(rows(), options=ParquetOptions(codec=codec.upper()))
    written = pq.ParquetFile(pa.BufferReader(data)).metadata.row_group(0).column(0).compression
    assert written.lower() == {"lz4_raw": "lz4"}.get(codec, codec)


def test_unknown_codec_names_what_there_is() -> None:
    with pytest.raises(ConfigError, match=r"'lzo'.*zstd"):
        ParquetOptions(codec="lzo")


def test_row_groups_are_bounded_by_bytes() -> None:
    data = write(*[rows(1000, i * 1000) for i in range(20)], options=ParquetOptions(block_size=400_000))
    metadata = pq.ParquetFile(pa.BufferReader(data)).metadata
    sizes = [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]
    assert sum(sizes) == 20_000
    assert 3 < len(sizes) < 12
    one = write(pa.Table.from_batches([rows(20_000)]).to_batches()[0], options=ParquetOptions(block_size=400_000))
    assert pq.ParquetFile(pa.BufferReader(one)).metadata.num_row_groups > 3


def test_size_is_estimated_while_rows_come() -> None:
    sink = io.BytesIO()
    writer = ParquetFileWriter(
        sink, BaseFileSchema(FILE, constants=CONSTANTS), options=ParquetOptions(block_size=300_000)
    )
    seen = []
    for i in range(20):
        writer.write(rows(1000, i * 1000))
        seen.append(writer.estimated_size)
    size = writer.close().size
    assert seen[0] > 0
    assert 0.6 * size < seen[-1] < 1.4 * size


def test_dictionaries_only_where_values_repeat() -> None:
    metadata = pq.ParquetFile(pa.BufferReader(write(rows(5000)))).metadata.row_group(0)
    encodings = {metadata.column(i).path_in_schema: metadata.column(i).encodings for i in range(metadata.num_columns)}
    assert "RLE_DICTIONARY" in encodings["_hoodie_file_name"]
    assert "RLE_DICTIONARY" in encodings["t"]
    assert "RLE_DICTIONARY" in encodings["l.list.element"]
    for unique in ("_hoodie_commit_seqno", "_hoodie_record_key", "i", "d"):
        assert "RLE_DICTIONARY" not in encodings[unique]
    data = write(rows(100), options=ParquetOptions(dictionary=False))
    metadata = pq.ParquetFile(pa.BufferReader(data)).metadata.row_group(0)
    assert all("RLE_DICTIONARY" not in metadata.column(i).encodings for i in range(metadata.num_columns))


def test_bad_rows_are_refused() -> None:
    with pytest.raises(RecordKeyError, match="1 of 3 records have no record key"):
        write(rows(3).set_column(1, RECORD_KEY, pa.array(["a", None, "b"])))
    with pytest.raises(FormatError, match="column 'i' of the base file is missing"):
        write(rows(3).drop_columns(["i"]))
    with pytest.raises(FormatError, match="column 'i' has type int64"):
        write(rows(3).set_column(2, "i", pa.array([1, 2, 3])))


def test_error_leaves_the_file_unfinished(tmp_path: Path) -> None:
    def fail() -> None:
        with ParquetFileWriter(tmp_path / "f.parquet", BaseFileSchema(FILE, constants=CONSTANTS)) as writer:
            writer.write(rows())
            writer.flush()
            raise RuntimeError("no more")

    with pytest.raises(RuntimeError):
        fail()
    with pytest.raises(FormatError):
        parquet.read_footer(tmp_path / "f.parquet")


def test_not_a_parquet_file(tmp_path: Path) -> None:
    whole = write(rows())
    for data in (b"", b"PAR1", b"x" * 100, whole[:-1], whole[:200]):
        with pytest.raises(FormatError, match="not a valid Parquet file"):
            parquet.open_file(pa.BufferReader(data))
    with pytest.raises(FileNotFoundError):
        parquet.open_file(tmp_path / "none.parquet")


@pytest.mark.parametrize("table", golden.names())
def test_golden_files_are_read_and_written_again(table: str) -> None:
    for name, data in golden.base_files(table):
        footer = parquet.read_footer(pa.BufferReader(data))
        schema = as_nullable(to_table_types(footer.schema))
        batches = [conform(batch, schema) for batch in parquet.read_batches(pa.BufferReader(data))]
        table_rows = pa.Table.from_batches(batches, schema)
        found = footer.bloom_filter()
        sink = io.BytesIO()
        bloom = None if found is None else BloomOptions(num_entries=found.entries_per_row)
        with ParquetFileWriter(sink, BaseFileSchema(schema, footer.avro_schema), bloom=bloom) as writer:
            writer.write(table_rows)
        again = parquet.read_footer(pa.BufferReader(sink.getvalue()))
        assert (again.bloom_text, again.avro_schema) == (footer.bloom_text, footer.avro_schema), name
        assert (again.min_key, again.max_key) == (footer.min_key, footer.max_key), name
        assert pq.read_table(pa.BufferReader(sink.getvalue())).cast(schema) == table_rows, name


def test_both_list_forms_of_the_original_are_read() -> None:
    forms = set()
    for _, data in golden.base_files("v9_cow_types"):
        schema = parquet.read_footer(pa.BufferReader(data)).schema
        forms.add(schema.field("arr").type.value_field.name)
        batch = next(iter(parquet.read_batches(pa.BufferReader(data), ["arr", "arrs", "nothing"])))
        assert batch.schema.names == ["arr", "arrs"]
        assert pa.types.is_struct(batch.column("arrs").type.value_type)
    assert forms == {"array", "element"}
