"""Base files in ORC: our own, and those that Apache Hudi and Spark wrote."""

from __future__ import annotations

import contextlib
import datetime
import io
from pathlib import Path

import pyarrow as pa
import pyarrow.orc as po
import pytest

from pyhudi.errors import FormatError, SchemaMismatchError
from pyhudi.format.base_file import orc
from pyhudi.format.base_file.base_file_footer import BloomOptions
from pyhudi.format.base_file.base_file_writer import BaseFileSchema
from pyhudi.format.base_file.orc_footer import with_user_metadata, writer_timezone
from pyhudi.schema.converters.arrow_avro import from_avro
from pyhudi.schema.evolution.schema_projection import conform

DATA = Path(__file__).parents[1] / "data"
MOMENTS = [datetime.datetime(2024, 1, 2, 3, 4, 5, 678901), None, datetime.datetime(1960, 7, 2, 3, 4, 5, 678901)]
UTC = datetime.UTC

ROWS = pa.table(
    {
        "_hoodie_record_key": ["a", "b", "c"],
        "i": pa.array(MOMENTS, pa.timestamp("us", "UTC")),
        "ms": pa.array([0, 1, None], pa.timestamp("ms", "UTC")),
        "n": pa.array(MOMENTS, pa.timestamp("us")),
        "d": pa.array([datetime.date(2024, 1, 1)] * 3),
        "l": pa.array([[MOMENTS[0]], None, []], pa.list_(pa.timestamp("us", "UTC"))),
        "m": pa.array([[("a", 1)], None, []], pa.map_(pa.string(), pa.int32())),
        "s": pa.array([{"x": 1}, None, {"x": None}], pa.struct([("x", pa.int64())])),
        "dec": pa.array([1, None, 3], pa.int32()).cast(pa.decimal128(20, 2)),
        "f": pa.array(["x", "x", "x"]),
    }
)


def write(codec: str, rows: pa.Table = ROWS) -> bytes:
    sink = io.BytesIO()
    schema = BaseFileSchema(ROWS.schema, "{}", {"f": "x"})
    with orc.OrcFileWriter(sink, schema, codec=codec, bloom=BloomOptions()) as writer:
        writer.write(rows.drop_columns(["f"]))
    return sink.getvalue()


@pytest.mark.parametrize("codec", orc.CODECS)
def test_round_trip(codec: str) -> None:
    data = write(codec)
    footer = orc.read_footer(pa.BufferReader(data))
    assert (footer.num_rows, footer.avro_schema, footer.min_key, footer.max_key) == (3, "{}", "a", "c")
    bloom = footer.bloom_filter()
    assert bloom is not None
    assert bloom.might_contain(pa.array(["a", "c", "zz"])).to_pylist() == [True, True, False]
    read = pa.Table.from_batches(orc.read_batches(data))
    assert read.schema == footer.schema
    again = pa.Table.from_batches([conform(batch, ROWS.schema) for batch in read.to_batches()])
    assert again == ROWS


def test_several_stripes_and_columns(tmp_path: Path) -> None:
    path = tmp_path / "f.orc"
    writer = orc.OrcFileWriter(path, BaseFileSchema(ROWS.schema, constants={"f": "x"}))
    for _ in range(3):
        writer.write(ROWS)
        writer.flush()
    summary = writer.close()
    assert (summary.num_rows, summary.size, summary.min_key) == (9, path.stat().st_size, None)
    read = pa.Table.from_batches(orc.read_batches(path, ["d", "nothing", "_hoodie_record_key"]))
    assert read.column_names == ["d", "_hoodie_record_key"]
    assert read["_hoodie_record_key"].to_pylist() == ["a", "b", "c"] * 3
    with path.open("rb") as file:
        assert sum(batch.num_rows for batch in orc.read_batches(file)) == 9
    counted = list(orc.read_batches(path, []))
    assert sum(batch.num_rows for batch in counted) == 9
    assert not any(batch.num_columns for batch in counted)


def test_empty_file() -> None:
    data = write("zstd", ROWS.slice(0, 0))
    footer = orc.read_footer(pa.BufferReader(data))
    assert (footer.num_rows, footer.min_key) == (0, None)
    assert footer.schema.names == ROWS.schema.names
    assert list(orc.read_batches(data)) == []


def test_error_leaves_the_file_unfinished(tmp_path: Path) -> None:
    def fail() -> None:
        with orc.OrcFileWriter(tmp_path / "f.orc", BaseFileSchema(ROWS.schema)) as writer:
            writer.write(ROWS)
            raise RuntimeError("no more")

    with pytest.raises(RuntimeError):
        fail()
    with pytest.raises(FormatError):
        orc.read_footer(tmp_path / "f.orc")


@pytest.mark.parametrize("release", ["0.15.0", "1.0.2", "1.2.0"])
def test_files_of_apache_hudi(release: str) -> None:
    path = DATA / f"apache-hudi-{release}.orc"
    footer = orc.read_footer(path)
    assert footer.avro_schema is not None
    schema = from_avro(footer.avro_schema)
    batches = [conform(batch, schema) for batch in orc.read_batches(path)]
    read = pa.Table.from_batches(batches, schema)
    assert read["_hoodie_record_key"].to_pylist() == ["0", "1", "2", "3", "4"] == read["id"].to_pylist()
    assert (footer.min_key, footer.max_key, footer.num_rows) == ("0", "4", 5)
    bloom = footer.bloom_filter()
    assert bloom is not None
    assert bloom.might_contain(read["_hoodie_record_key"]).true_count == 5
    # the original loses the milliseconds of timestamps in ORC; the rest is what was written
    assert read["t"][0].as_py().replace(microsecond=0) == datetime.datetime(2024, 1, 2, 3, 4, 5, tzinfo=UTC)
    assert read["l"].to_pylist()[3] == ["a", "b3"]
    assert read["m"].to_pylist()[3] == [("k", 3)]
    assert read["s"].to_pylist()[3] == {"x": 3, "y": {"z": "t", "w": [1.5, 2.5]}}
    assert [str(d) for d in read["d"].to_pylist()] == ["0.00", "1.25", "2.50", "3.75", "5.00"]


def test_times_are_read_in_the_zone_of_their_writer() -> None:
    path = DATA / "spark-new-york.orc"
    assert writer_timezone(pa.OSFile(str(path))) == "America/New_York"
    (batch,) = orc.read_batches(path)
    assert batch.column("i").to_pylist() == [datetime.datetime(2024, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)]


def test_broken_files_are_refused() -> None:
    data = write("zlib")
    for broken in (b"", b"ORC", data[:-1], data[:100], data[:-1] + b"\xff"):
        with pytest.raises(FormatError):
            list(orc.read_batches(broken))


def test_broken_ends_name_no_zone() -> None:
    for codec in ("uncompressed", "zlib", "snappy", "zstd"):
        data = write(codec)
        assert writer_timezone(pa.BufferReader(data)) == "GMT"
        for cut in range(1, 60):
            with contextlib.suppress(FormatError):
                assert writer_timezone(pa.BufferReader(data[-60 : len(data) - cut])) is None
    with pytest.raises(FormatError, match="no postscript"):
        with_user_metadata(b"", {})


INSTANT = pa.timestamp("us", "UTC")
FAR = pa.array([1, -62_135_596_800_000_000], INSTANT)
"""The second one is of the first year."""


@pytest.mark.parametrize(
    "column",
    [
        FAR,
        pa.array([None, 253_402_214_400_000_000], INSTANT),
        pa.StructArray.from_arrays([FAR], ["x"]),
        pa.ListArray.from_arrays([0, 0, 2], FAR),
        pa.MapArray.from_arrays([0, 1, 2], ["a", "b"], pa.StructArray.from_arrays([FAR], ["x"])),
    ],
    ids=lambda column: str(column.type),
)
def test_times_that_could_not_be_read_back_are_refused(tmp_path: Path, column: pa.Array) -> None:
    """Arrow reads times of ORC files as nanoseconds."""
    schema = pa.schema([("t", column.type)])
    rows = pa.record_batch([column], schema)
    refused = pytest.raises(SchemaMismatchError, match="column 't' has a time before")
    with refused, orc.OrcFileWriter(tmp_path / "f.orc", BaseFileSchema(schema)) as writer:
        writer.write(rows)
    with pytest.raises(FormatError):
        orc.read_footer(tmp_path / "f.orc")


def test_times_of_others_that_cannot_be_read_are_named() -> None:
    sink = pa.BufferOutputStream()
    with po.ORCWriter(sink) as writer:
        writer.write(pa.table({"n": [1, 2], "t": FAR.cast(pa.timestamp("us"))}))
    (batch,) = orc.read_batches(sink.getvalue(), ["n"])
    assert batch["n"].to_pylist() == [1, 2]
    with pytest.raises(FormatError, match=r"columns n, t has a time before 1677.*copy the table"):
        next(orc.read_batches(sink.getvalue()))
