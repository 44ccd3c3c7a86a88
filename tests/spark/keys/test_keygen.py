"""Keys and partition paths against texts that Apache Hudi 0.15.0, 1.0.2 and 1.2.0 wrote for the same values."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

from pyhudi.errors import ConfigError, RecordKeyError, SchemaMismatchError
from pyhudi.keygen.key_spec import KeySpec
from pyhudi.spark.keys.key_errors import check_keys, key_errors
from pyhudi.spark.keys.key_generator import jvm_zone, partition_path, record_key, with_keys
from pyhudi.spark.keys.time_zones import check_time_zones
from pyhudi.spark.spark_errors import task_errors
from pyhudi.spark.write.dataframe_writer import write
from pyhudi.table.config.key_generator_type import KeyGenType
from tests.cases import seldom
from tests.keys import FakeConfig

UTC = dt.UTC
FLOATS = [1.0, 1e10, 1.5e-5, 0.1, float("nan"), float("inf"), -0.0, 1e7, 9999999.0, 0.001, 0.0009]
FLOAT_TEXTS = ["1.0", "1.0E10", "1.5E-5", "0.1", "NaN", "Infinity", "-0.0", "1.0E7", "9999999.0", "0.001", "9.0E-4"]
STAMPS = [
    dt.datetime(2024, 1, 2, 3, 4, 5, 678901),
    dt.datetime(1969, 12, 31, 23, 59, 59, 998500),
    dt.datetime(1970, 1, 1),
    dt.datetime(1950, 1, 1, 1, 2, 3, 120000),
]
MICROS = ["1704164645678901", "-1500", "0", "-631148276880000"]

VALUES: dict[str, tuple[T.DataType, list[Any], list[str]]] = {
    "tiny": (T.ByteType(), [-128, 0, 127], ["-128", "0", "127"]),
    "small": (T.ShortType(), [-5, 7], ["-5", "7"]),
    "whole": (T.IntegerType(), [-(2**31), 0], ["-2147483648", "0"]),
    "big": (T.LongType(), [-(2**63), 2**63 - 1], ["-9223372036854775808", "9223372036854775807"]),
    "single": (T.FloatType(), [*FLOATS, 3.4028234663852886e38], [*FLOAT_TEXTS, "3.4028235E38"]),
    "double": (T.DoubleType(), [*FLOATS, 5e-324, 2e23], [*FLOAT_TEXTS, "4.9E-324", None]),
    "money": (
        T.DecimalType(10, 2),
        [Decimal("1.50"), Decimal("0"), Decimal("-12345678.90"), Decimal("100")],
        ["1.50", "0.00", "-12345678.90", "100.00"],
    ),
    "exact": (
        T.DecimalType(38, 18),
        [Decimal(v) for v in ("1.5", "0", "1E-18", "-0.0000123", "12345678901234567890.5", "-0.00000012")],
        ["1.500000000000000000", "0E-18", "1E-18", "-0.000012300000000000", "12345678901234567890.500000000000000000",
         "-1.20000000000E-7"],
    ),
    "fine": (T.DecimalType(10, 7), [Decimal(v) for v in ("0", "1E-7", "0.0000015", "1.5")],
             ["0E-7", "1E-7", "0.0000015", "1.5000000"]),
    "text": (T.StringType(), ["a", " ", "é☃", "a:b,c", 'q"%/w', "__null__"],
             ["a", " ", "é☃", "a:b,c", 'q"%/w', "__null__"]),
    "flag": (T.BooleanType(), [True, False], ["true", "false"]),
    "day": (T.DateType(), [dt.date(1, 1, 1), dt.date(1969, 12, 31), dt.date(9999, 12, 31)],
            ["0001-01-01", "1969-12-31", "9999-12-31"]),
    "stamp": (T.TimestampType(), [s.replace(tzinfo=UTC) for s in STAMPS], MICROS),
    "local": (T.TimestampNTZType(), STAMPS, MICROS),
    "bytes": (T.BinaryType(), [bytearray(b"\x00\xffabc"), bytearray("é".encode())], ["00ff616263", "c3a9"]),
}  # fmt: skip


@pytest.fixture(scope="module")
def values(spark: SparkSession) -> DataFrame:
    longest = max(len(found) for _, found, _ in VALUES.values())
    fields = [T.StructField("id", T.IntegerType())] + [T.StructField(n, kind) for n, (kind, _, _) in VALUES.items()]
    fields.append(T.StructField("deep", T.StructType([T.StructField("er", T.StringType())])))
    rows = [
        (i, *(found[i] if i < len(found) else None for _, found, _ in VALUES.values()), (f"d{i}",))
        for i in range(longest)
    ]
    return spark.createDataFrame(rows, T.StructType(fields)).persist()


def spec(kind: str, **config: Any) -> KeySpec:
    return KeySpec.from_config(FakeConfig(KeyGenType(kind), **config), config.get("properties", {}))


def collect(df: DataFrame, columns: Sequence[Any]) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in df.orderBy("id").select(*columns).collect()]


@pytest.mark.parametrize("ansi", [False, True])
def test_texts_of_values(spark: SparkSession, values: DataFrame, ansi: bool) -> None:
    before = spark.conf.get("spark.sql.ansi.enabled")
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.ansi.enabled", str(ansi).lower())
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        keyed = [
            record_key(values.schema, spec("COMPLEX", record_keys=("id", name), partition="id")).alias(name)
            for name in VALUES
        ]
        paths = [
            partition_path(values.schema, spec("SIMPLE", partition=name, url_encode=True)).alias(f"p_{name}")
            for name in VALUES
        ]
        found = collect(values, [*keyed, *paths])
    finally:
        spark.conf.set("spark.sql.ansi.enabled", before)
        spark.conf.set("spark.sql.session.timeZone", zone)
    for column, (name, (_, _, texts)) in enumerate(VALUES.items()):
        for row, text in enumerate([*texts, *["__null__"] * (len(found) - len(texts))]):
            if text is None:
                continue  # differs between Java versions
            assert found[row][column] == f"id:{row},{name}:{text}"
            path = found[row][column + len(VALUES)]
            if row >= len(texts):
                assert path == "__HIVE_DEFAULT_PARTITION__"
            elif name != "text":
                assert path == text


def test_url_encoding(spark: SparkSession) -> None:
    texts = ["q/w:e=r é+%", "".join(map(chr, range(1, 0x80))), "", None, "plain"]
    df = spark.createDataFrame(list(enumerate(texts)), "id int, c string")
    encoded = partition_path(df.schema, spec("SIMPLE", partition="c", url_encode=True, hive_style=True))
    found = [row[0] for row in collect(df, [encoded])]
    special = "".join(map(chr, range(1, 0x20))) + "\x7f\"#%'*/:=?[\\]^{"
    expected = "".join(f"%{ord(c):02X}" if c in special else c for c in map(chr, range(1, 0x80)))
    assert found == [
        "c=q%2Fw%3Ae%3Dr é+%25",
        f"c={expected}",
        "c=__HIVE_DEFAULT_PARTITION__",
        "c=__HIVE_DEFAULT_PARTITION__",
        "c=plain",
    ]


def test_generators(spark: SparkSession) -> None:
    rows = [(1, "a", 1700000000123, dt.date(2024, 1, 2)), (2, None, None, None), (3, "", 0, dt.date(2023, 1, 1))]
    df = spark.createDataFrame(rows, "id int, b string, c long, d date")
    times = {
        "hoodie.keygen.timebased.timestamp.type": "EPOCHMILLISECONDS",
        "hoodie.keygen.timebased.output.dateformat": "yyyy/MM/dd",
        "hoodie.keygen.timebased.timezone": "UTC",
    }
    default = "__HIVE_DEFAULT_PARTITION__"
    cases: list[tuple[KeySpec, list[str], list[str]]] = [
        (spec("SIMPLE", partition="d"), ["1", "2", "3"], ["2024-01-02", default, "2023-01-01"]),
        (spec("SIMPLE", partition="d", slash_dates=True), ["1", "2", "3"], ["2024/01/02", default, "2023/01/01"]),
        (spec("SIMPLE", partition="d", slash_dates=True, hive_style=True), ["1", "2", "3"],
         ["d=2024/01/02", f"d={default}", "d=2023/01/01"]),
        (spec("COMPLEX", partition="b,d", slash_dates=True), ["id:1", "id:2", "id:3"],
         ["a/2024-01-02", f"{default}/{default}", f"{default}/2023-01-01"]),
        (spec("COMPLEX", partition="b,d", hive_style=True), ["id:1", "id:2", "id:3"],
         ["b=a/d=2024-01-02", f"b={default}/d={default}", f"b={default}/d=2023-01-01"]),
        (spec("COMPLEX", partition=""), ["id:1", "id:2", "id:3"], ["", "", ""]),
        (spec("COMPLEX", partition="", version=8), ["1", "2", "3"], ["", "", ""]),
        (spec("NON_PARTITION", partition="b", record_keys=("id", "b")),
         ["id:1,b:a", "id:2,b:__null__", "id:3,b:__empty__"], ["", "", ""]),
        (spec("GLOBAL_DELETE", partition="b"), ["id:1", "id:2", "id:3"], ["", "", ""]),
        (spec("TIMESTAMP", partition="c", properties=times), ["1", "2", "3"],
         ["2023/11/14", "1970/01/01", "1970/01/01"]),
        (spec("CUSTOM", partition="b:simple,c:timestamp", properties=times, hive_style=True), ["1", "2", "3"],
         ["b=a/c=2023/11/14", f"b={default}/c=1970/01/01", f"b={default}/c=1970/01/01"]),
        (spec("CUSTOM", partition="c:TIMESTAMP,b:simple", properties=times, record_keys=("b", "id")),
         ["b:a,id:1", "b:__null__,id:2", "b:__empty__,id:3"],
         ["2023/11/14/a", f"1970/01/01/{default}", f"1970/01/01/{default}"]),
        (spec("CUSTOM", partition=""), ["1", "2", "3"], ["", "", ""]),
    ]  # fmt: skip
    columns = []
    for made, _, _ in cases:
        columns += [record_key(df.schema, made), partition_path(df.schema, made)]
    found = collect(df, columns)
    for index, (made, keys, paths) in enumerate(cases):
        assert [row[2 * index] for row in found] == keys, made
        assert [row[2 * index + 1] for row in found] == paths, made


def test_nested_fields_and_dotted_names(spark: SparkSession) -> None:
    df = spark.createDataFrame([(1, ("p", 7), 5)], "id int, c struct<x:string,y:int>, `e.f` int")
    made = spec("COMPLEX", record_keys=("c.x", "c.y", "e.f"), partition="c.x", hive_style=True)
    assert collect(df, [record_key(df.schema, made), partition_path(df.schema, made)]) == [
        ("c.x:p,c.y:7,e.f:5", "c.x=p")
    ]


def test_consistent_timestamps_in_the_zone_of_the_jvm(values: DataFrame) -> None:
    properties = {"hoodie.datasource.write.keygenerator.consistent.logical.timestamp.enabled": "true"}
    made = spec("COMPLEX", record_keys=("id", "stamp", "local"), properties=properties)
    utc, tokyo = record_key(values.schema, made, "UTC"), record_key(values.schema, made, "Asia/Tokyo")
    found = collect(values, [utc, tokyo])
    assert [row[0] for row in found[:4]] == [
        f"id:0,stamp:2024-01-02 03:04:05.678,local:{MICROS[0]}",
        f"id:1,stamp:1969-12-31 23:59:59.999,local:{MICROS[1]}",
        f"id:2,stamp:1970-01-01 00:00:00.0,local:{MICROS[2]}",
        f"id:3,stamp:1950-01-01 01:02:03.12,local:{MICROS[3]}",
    ]
    assert [row[1].split(",")[1] for row in found[:2]] == [
        "stamp:2024-01-02 12:04:05.678",
        "stamp:1970-01-01 08:59:59.999",
    ]


def test_timestamps_of_sql_statements_in_partition_paths(values: DataFrame) -> None:
    fields = {"partition": "stamp,local", "hive_style": True}
    made = replace(spec("COMPLEX", **fields), sql_timestamps=True)
    utc, tokyo = (partition_path(values.schema, made, zone) for zone in ("UTC", "Asia/Tokyo"))
    found = collect(values, [utc, tokyo])
    assert [row[0] for row in found[:4]] == [
        f"stamp=2024-01-02 03%3A04%3A05/local={MICROS[0]}",
        f"stamp=1969-12-31 23%3A59%3A59/local={MICROS[1]}",
        f"stamp=1970-01-01 00%3A00%3A00/local={MICROS[2]}",
        f"stamp=1950-01-01 01%3A02%3A03/local={MICROS[3]}",
    ]
    assert found[0][1].startswith("stamp=2024-01-02 12%3A04%3A05/")
    assert collect(values, [partition_path(values.schema, spec("COMPLEX", **fields))])[0][0].startswith("stamp=17041")


OUT = "yyyy-MM-dd'T'HH.mm.ss.SSS"
LIST = "yyyy-MM-dd'T'HH:mm:ssZ,yyyy-MM-dd'T'HH:mm:ss.SSSZ,yyyy-MM-dd HH:mm:ss"
MIXED_TEXTS = [
    "2024-01-02T03:04:05Z",
    "2024-01-02 03:04:05",
    "2024-01-02T03:04:05.123Z",
    "2024-01-02T03:04:05+0200",
    "2024-01-02T03:04:05-05:00",
]
# a plan takes seconds for each format with a conversion between zones
SHORT_LIST = "yyyy-MM-dd'T'HH:mm:ssZ,yyyy-MM-dd HH:mm:ss"
SHORT_TEXTS = [text for text in MIXED_TEXTS if "." not in text]
Case = tuple[str, T.DataType, list[Any], dict[str, str], list[str]]
NUMBERS: list[Case] = [
    ("unix", T.LongType(), [1700000000, 0, -1, None], {"timestamp.type": "UNIX_TIMESTAMP"},
     ["2023-11-14T22.13.20.000", "1970-01-01T00.00.00.000", "1969-12-31T23.59.59.000", "1970-01-01T00.00.01.000"]),
    ("unix_double", T.DoubleType(), [1700000000.5, -1.5, None], {"timestamp.type": "UNIX_TIMESTAMP"},
     ["2023-11-14T22.13.20.000", "1969-12-31T23.59.59.000", "1970-01-01T00.00.01.000"]),
    ("unix_decimal", T.DecimalType(20, 3), [Decimal("1700000000.999"), Decimal("-1.5")],
     {"timestamp.type": "UNIX_TIMESTAMP"},
     ["2023-11-14T22.13.20.000", "1969-12-31T23.59.59.000"]),
    ("unix_date", T.DateType(), [dt.date(2024, 1, 2), dt.date(1969, 12, 31)], {"timestamp.type": "UNIX_TIMESTAMP"},
     ["1970-01-01T05.28.44.000", "1969-12-31T23.59.59.000"]),
    ("millis", T.LongType(), [1700000000123, 0, -1, None], {"timestamp.type": "EPOCHMILLISECONDS"},
     ["2023-11-14T22.13.20.123", "1970-01-01T00.00.00.000", "1969-12-31T23.59.59.999", "1970-01-01T00.00.00.001"]),
    ("millis_east", T.LongType(), [1700000000123, -1], {"timestamp.type": "EPOCHMILLISECONDS", "timezone": "GMT+8:00"},
     ["2023-11-15T06.13.20.123", "1970-01-01T07.59.59.999"]),
    ("millis_new_york", T.LongType(), [1700000000123, 0, -1],
     {"timestamp.type": "EPOCHMILLISECONDS", "timezone": "America/New_York"},
     ["2023-11-14T17.13.20.123", "1969-12-31T19.00.00.000", "1969-12-31T18.59.59.999"]),
    ("micros", T.LongType(), [1700000000123456, 0, -1, None], {"timestamp.type": "EPOCHMICROSECONDS"},
     ["2023-11-14T22.13.20.123", "1970-01-01T00.00.00.000", "1970-01-01T00.00.00.000", "1970-01-01T00.00.00.000"]),
    ("micros_stamp", T.TimestampType(), [s.replace(tzinfo=UTC) for s in STAMPS],
     {"timestamp.type": "EPOCHMICROSECONDS"},
     ["2024-01-02T03.04.05.678", "1969-12-31T23.59.59.999", "1970-01-01T00.00.00.000", "1950-01-01T01.02.03.120"]),
    ("unix_consistent", T.TimestampType(), [STAMPS[0].replace(tzinfo=UTC), None],
     {"timestamp.type": "UNIX_TIMESTAMP", "consistent": "true"},
     ["2024-01-02T03.04.05.678", "1970-01-01T00.00.01.000"]),
    ("days", T.IntegerType(), [19000, -1, None], {"timestamp.type": "SCALAR", "timestamp.scalar.time.unit": "DAYS"},
     ["2022-01-08T00.00.00.000", "1969-12-31T00.00.00.000", "1970-01-02T00.00.00.000"]),
    ("scalar", T.LongType(), [19000, 1], {"timestamp.type": "SCALAR"},
     ["1970-01-01T05.16.40.000", "1970-01-01T00.00.01.000"]),
    ("nanos", T.LongType(), [1700000000123456789],
     {"timestamp.type": "SCALAR", "timestamp.scalar.time.unit": "nanoseconds"},
     ["2023-11-14T22.13.20.123"]),
]  # fmt: skip
TEXTS: list[Case] = [
    ("text", T.StringType(), ["2024-01-02 03:04:05", "1969-12-31 23:59:59", None],
     {"timestamp.type": "DATE_STRING", "input.dateformat": "yyyy-MM-dd HH:mm:ss"},
     ["2024-01-02T03.04.05.000", "1969-12-31T23.59.59.000", "1970-01-01T00.00.00.000"]),
    ("text_tokyo", T.StringType(), ["2024-01-02 03:04:05", None],
     {"timestamp.type": "DATE_STRING", "input.dateformat": "yyyy-MM-dd HH:mm:ss", "timezone": "Asia/Tokyo"},
     ["2024-01-02T03.04.05.000", "1970-01-01T09.00.00.000"]),
    ("half_days", T.StringType(), ["2020-01-06 12:12:12", "2020-01-06 01:02:03"],
     {"timestamp.type": "DATE_STRING", "input.dateformat": "yyyy-MM-dd hh:mm:ss"},
     ["2020-01-06T00.12.12.000", "2020-01-06T01.02.03.000"]),
    ("mixed", T.StringType(), MIXED_TEXTS, {"timestamp.type": "MIXED", "input.dateformat": LIST},
     ["2024-01-02T03.04.05.000", "2024-01-02T03.04.05.000", "2024-01-02T03.04.05.123", "2024-01-02T03.04.05.000",
      "2024-01-02T03.04.05.000"]),
    ("mixed_in", T.StringType(), SHORT_TEXTS,
     {"timestamp.type": "DATE_STRING", "input.dateformat": SHORT_LIST, "input.timezone": "Asia/Tokyo",
      "output.timezone": "UTC"},
     ["2024-01-02T03.04.05.000", "2024-01-01T18.04.05.000", "2024-01-02T01.04.05.000", "2024-01-02T08.04.05.000"]),
    ("mixed_new_york", T.StringType(), SHORT_TEXTS,
     {"timestamp.type": "MIXED", "input.dateformat": SHORT_LIST, "timezone": "America/New_York"},
     ["2024-01-01T22.04.05.000", "2024-01-02T03.04.05.000", "2024-01-01T20.04.05.000", "2024-01-02T03.04.05.000"]),
    ("delimited", T.StringType(), ["20240102", "2024/02/03"],
     {"timestamp.type": "MIXED", "input.dateformat": "yyyyMMdd; yyyy/MM/dd",
      "input.dateformat.list.delimiter.regex": ";"},
     ["2024-01-02T00.00.00.000", "2024-02-03T00.00.00.000"]),
    ("months", T.StringType(), ["Tue 2 Jan 2024", "Sat 7 December 2024"],
     {"timestamp.type": "DATE_STRING", "input.dateformat": "EEE d MMM yyyy"},
     ["2024-01-02T00.00.00.000", "2024-12-07T00.00.00.000"]),
    ("no_year", T.StringType(), ["29/02 03:04"], {"timestamp.type": "DATE_STRING", "input.dateformat": "dd/MM HH:mm"},
     ["2000-02-29T03.04.00.000"]),
    ("no_date", T.StringType(), ["03:04"], {"timestamp.type": "DATE_STRING", "input.dateformat": "HH:mm"},
     ["1970-01-01T03.04.00.000"]),
    ("summer", T.LongType(), [1719792000000], {"timestamp.type": "EPOCHMILLISECONDS", "timezone": "EST"},
     ["2024-06-30T20.00.00.000"]),
]  # fmt: skip
PATTERNS = {
    "EEE MMM d yy": ["Tue Nov 14 23", "Wed Dec 31 69"],
    "EEEE MMMM dd yyyy": ["Tuesday November 14 2023", "Wednesday December 31 1969"],
    "DDD D w x e": ["318 318 46 2023 2", "365 365 1 1970 3"],
    "hh a K k": ["05 PM 5 17", "07 PM 7 19"],
    "y Y yyyyy M H m s": ["2023 2023 02023 11 17 13 20", "1969 1969 01969 12 19 0 0"],
    "S SS SSSSSS": ["1 12 123000", "0 00 000000"],
    "''yy 'o''clock' ''": ["'23 o'clock '", "'69 o'clock '"],
    "G C": ["AD 20", "AD 19"],
    "y/Z ZZ ZZZ": ["2023/-0500 -05:00 America/New_York", "1969/-0500 -05:00 America/New_York"],
}


@pytest.mark.parametrize("zone", [seldom("UTC"), "America/New_York"])
def test_timestamp_generator(spark: SparkSession, zone: str) -> None:
    cases = NUMBERS + TEXTS
    longest = max(len(case[2]) for case in cases)
    fields = [T.StructField(name, kind) for name, kind, *_ in cases]
    rows = [(i, *(case[2][i] if i < len(case[2]) else None for case in cases)) for i in range(longest)]
    df = spark.createDataFrame(rows, T.StructType([T.StructField("id", T.IntegerType()), *fields]))
    columns = []
    for name, _, _, options, _ in cases:
        properties = {f"hoodie.keygen.timebased.{k}": v for k, v in options.items() if k != "consistent"}
        properties["hoodie.keygen.timebased.output.dateformat"] = OUT
        consistent = "hoodie.datasource.write.keygenerator.consistent.logical.timestamp.enabled"
        properties[consistent] = options.get("consistent", "false")
        columns.append(partition_path(df.schema, spec("TIMESTAMP", partition=name, properties=properties), "UTC"))
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        found = collect(df, columns)
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)
    for index, (name, _, _, _, paths) in enumerate(cases):
        assert [row[index] for row in found[: len(paths)]] == paths, name


def test_output_patterns(spark: SparkSession) -> None:
    df = spark.createDataFrame([(0, 1700000000123), (1, 0)], "id int, c long")
    made = [
        spec("TIMESTAMP", partition="c", properties={
            "hoodie.keygen.timebased.timestamp.type": "EPOCHMILLISECONDS",
            "hoodie.keygen.timebased.output.dateformat": pattern,
            "hoodie.keygen.timebased.output.timezone": "America/New_York",
        }) for pattern in PATTERNS
    ]  # fmt: skip
    found = collect(df, [partition_path(df.schema, m) for m in made])
    for index, (pattern, texts) in enumerate(PATTERNS.items()):
        assert [row[index] for row in found] == texts, pattern


def test_time_zones_are_those_of_java(spark: SparkSession, tmp_path: Path) -> None:
    def settings(zone: str) -> dict[str, str]:
        return {
            "hoodie.keygen.timebased.timestamp.type": "UNIX_TIMESTAMP",
            "hoodie.keygen.timebased.output.dateformat": "yyyy/MM/dd",
            "hoodie.keygen.timebased.timezone": zone,
        }

    for known in ("Europe/Oslo", "CTT", "Z", "GMT+8", "+08:00"):
        check_time_zones(spark, spec("TIMESTAMP", partition="c", properties=settings(known)))
    options = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "c",
        "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.TimestampBasedKeyGenerator",
    }
    rows = spark.createDataFrame([(0, 1)], "id int, c long")
    for unknown in ("Europe/Nowhere", "utc"):
        with pytest.raises(ConfigError, match=rf"'{unknown}' in hoodie\.keygen\.timebased\.timezone.*write UTC"):
            write(rows, str(tmp_path / "table"), options | settings(unknown))
    assert not (tmp_path / "table").exists()


@pytest.mark.parametrize(
    ("text", "output"), [("nonsense", "yyyy/MM/dd"), ("2024-02-30", "yyyy/MM/dd"), ("2024-02-30", "YYYY")]
)
def test_time_that_cannot_be_read(spark: SparkSession, text: str, output: str) -> None:
    properties = {
        "hoodie.keygen.timebased.timestamp.type": "DATE_STRING",
        "hoodie.keygen.timebased.input.dateformat": "yyyy-MM-dd",
        "hoodie.keygen.timebased.output.dateformat": output,
        "hoodie.keygen.timebased.timezone": "UTC",
    }
    made = spec("TIMESTAMP", partition="c", properties=properties)
    df = spark.createDataFrame([(0, text)], "id int, c string")
    ansi = spark.conf.get("spark.sql.ansi.enabled")
    spark.conf.set("spark.sql.ansi.enabled", "false")  # with it, Spark says that there is no such date
    try:
        with pytest.raises(RecordKeyError, match=rf"'c' has the value '{text}'.*input\.dateformat"), task_errors():
            with_keys(df, made, "1").collect()
    finally:
        spark.conf.set("spark.sql.ansi.enabled", ansi)
    number = spark.createDataFrame([(0, 1)], "id int, c long")
    with pytest.raises(ConfigError, match="requires texts"):
        with_keys(number, made, "1")


def test_microseconds_taken_for_milliseconds(spark: SparkSession) -> None:
    """Apache Hudi makes partitions of the year 55840 of such timestamps."""
    df = spark.range(1).selectExpr("timestamp '2023-11-14 22:13:20' as c")
    form = {"timestamp.type": "EPOCHMILLISECONDS", "output.dateformat": "yyyyMMddHH", "timezone": "Asia/Kolkata"}
    made = spec("TIMESTAMP", partition="c", properties={f"hoodie.keygen.timebased.{k}": v for k, v in form.items()})
    with pytest.raises(RecordKeyError, match=r"out of range.*EPOCHMICROSECONDS"), task_errors():
        collect(df, [partition_path(df.schema, made)])


def test_null_and_empty_keys(spark: SparkSession) -> None:
    df = spark.createDataFrame([(1, "a", None), (2, None, None), (3, "", None)], "id int, b string, n string")
    simple = spec("NON_PARTITION", record_keys=("b",))
    with pytest.raises(RecordKeyError, match="'b' is null or empty in 2 of 3 rows"), key_errors(df, simple):
        with_keys(df, simple, "1").collect()
    with pytest.raises(RecordKeyError, match="'b' is null or empty; nothing was committed"), task_errors():
        with_keys(df, simple, "1").collect()
    both = spec("NON_PARTITION", record_keys=("b", "n"))
    with pytest.raises(RecordKeyError, match="'b', 'n' are all null or empty in 2 of 3 rows"):
        check_keys(df, both)
    check_keys(df, spec("NON_PARTITION", record_keys=("b", "id")))


@pytest.mark.parametrize("value", ["../x", "a/..", ".", "/a", "a/", "a//b", ".hoodie", ".hoodie/x", "10:30"])
def test_partition_paths_that_leave_the_table(spark: SparkSession, value: str) -> None:
    df = spark.createDataFrame([(1, value)], "id int, b string")
    with pytest.raises(RecordKeyError, match="is not a valid folder name"), task_errors():
        with_keys(df, spec("SIMPLE", partition="b"), "1").collect()


def test_object_stores_have_no_folders_with_control_characters(spark: SparkSession) -> None:
    df = spark.createDataFrame([(1, "a\nb")], "id int, b string")
    simple = spec("SIMPLE", partition="b")
    assert with_keys(df, simple, "1").first()["_hoodie_partition_path"] == "a\nb"
    with pytest.raises(RecordKeyError, match=r"is not a valid folder name.*urlencode"), task_errors():
        with_keys(df, replace(simple, control_characters=False), "1").collect()


def test_formats_of_times_with_colons(spark: SparkSession) -> None:
    df = spark.createDataFrame([(1, 0)], "id int, b long")
    below, first = (
        spec("TIMESTAMP", partition="b", properties={
            "hoodie.keygen.timebased.timestamp.type": "EPOCHMILLISECONDS",
            "hoodie.keygen.timebased.output.dateformat": pattern,
        }) for pattern in ("yyyy-MM-dd/HH:mm", "HH:mm")
    )  # fmt: skip
    assert with_keys(df, below, "1").first()["_hoodie_partition_path"] == "1970-01-01/00:00"
    with pytest.raises(RecordKeyError, match="'00:00' is not a valid folder name"), task_errors():
        with_keys(df, first, "1").collect()


@pytest.mark.parametrize("consistent", ["true", "false"])
def test_times_of_partitions_with_colons(spark: SparkSession, consistent: str) -> None:
    """Consistent times have a colon: 1970-01-01 00:00:00.0."""
    df = spark.createDataFrame([(1, dt.datetime(1970, 1, 1, tzinfo=UTC))], "id int, b timestamp")
    option = "hoodie.datasource.write.keygenerator.consistent.logical.timestamp.enabled"
    rows = with_keys(df, spec("SIMPLE", partition="b", properties={option: consistent}), "1")
    if consistent == "false":
        assert rows.first()["_hoodie_partition_path"] == "0"
        return
    with pytest.raises(RecordKeyError, match=r":00\.0' is not a valid folder name"), task_errors():
        rows.collect()


def test_partition_paths_of_dots_are_valid_in_hive_style_only(spark: SparkSession) -> None:
    """Url-encoding leaves dots as they are, and is no cure."""
    df = spark.createDataFrame([(1, "..")], "id int, b string")
    encoded = replace(spec("SIMPLE", partition="b"), url_encode=True)
    with pytest.raises(RecordKeyError, match="use hive-style partition paths"), task_errors():
        with_keys(df, encoded, "1").collect()
    assert with_keys(df, replace(encoded, hive_style=True), "1").first()["_hoodie_partition_path"] == "b=.."


def test_missing_fields_and_strange_types(spark: SparkSession) -> None:
    df = spark.createDataFrame([(1, [1], ("x",))], "Id int, b array<int>, s struct<x:string>")
    with pytest.raises(
        RecordKeyError, match=r"no column 'id' for the record key; the columns are: Id, b, s; did you mean 'Id'"
    ):
        with_keys(df, spec("NON_PARTITION"), "1")
    with pytest.raises(RecordKeyError, match=r"no column 's\.y'"):
        with_keys(df, spec("NON_PARTITION", record_keys=("s.y",)), "1")
    with pytest.raises(SchemaMismatchError, match="no column 'p' for the partition path"):
        with_keys(df, spec("SIMPLE", record_keys=("Id",), partition="p"), "1")
    with pytest.raises(RecordKeyError, match="array<int>"):
        with_keys(df, spec("NON_PARTITION", record_keys=("b",)), "1")


def test_generated_keys_are_unique(spark: SparkSession) -> None:
    df = spark.range(0, 5000, numPartitions=7).withColumn("p", F.col("id") % 3)
    made = with_keys(df, spec("SIMPLE", record_keys=(), partition="p"), "20260101000000000")
    row = made.agg(
        F.countDistinct("_hoodie_record_key").alias("keys"),
        F.min(F.col("_hoodie_record_key").rlike("^20260101000000000_[0-6]_[0-9]+$")).alias("form"),
        F.max("_hoodie_record_key").alias("max"),
    ).first()
    assert row is not None
    assert (row["keys"], row["form"]) == (5000, True)


def test_the_zone_of_the_jvm_is_queried_once(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    zone = jvm_zone(spark)
    assert zone
    monkeypatch.setattr(spark, "range", None)
    assert jvm_zone(spark) == zone
