"""Values that define the contents of files."""

from __future__ import annotations

from enum import StrEnum


class ParquetCodec(StrEnum):
    """Compression of parquet pages."""

    ZSTD = "zstd"
    SNAPPY = "snappy"
    GZIP = "gzip"
    LZ4 = "lz4"
    LZ4_RAW = "lz4_raw"
    BROTLI = "brotli"
    UNCOMPRESSED = "uncompressed"


class OrcCodec(StrEnum):
    """Compression of ORC stripes."""

    ZLIB = "ZLIB"
    ZSTD = "ZSTD"
    SNAPPY = "SNAPPY"
    LZ4 = "LZ4"
    NONE = "NONE"


class LogBlockFormat(StrEnum):
    """Encoding of the records of a log block."""

    AVRO = "avro"
    PARQUET = "parquet"
    HFILE = "hfile"


class BloomType(StrEnum):
    """Type of the bloom filter in base files."""

    SIMPLE = "SIMPLE"
    DYNAMIC_V0 = "DYNAMIC_V0"


class OutputTimestampType(StrEnum):
    """Physical type of timestamps in parquet (``hoodie.parquet.outputtimestamptype``)."""

    TIMESTAMP_MICROS = "TIMESTAMP_MICROS"
    TIMESTAMP_MILLIS = "TIMESTAMP_MILLIS"
    INT96 = "INT96"
