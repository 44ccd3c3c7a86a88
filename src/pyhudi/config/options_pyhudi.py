"""Options of our own (``pyhudi.*``), which Apache Hudi has not. Those of the storage are ``pyhudi.storage.*``."""

from __future__ import annotations

from pyhudi.config.option import maybe_integer

PARQUET_CODEC_LEVEL = maybe_integer(
    "pyhudi.parquet.compression.level", "Level of the parquet codec; the codec's own when not given.", least=-100
)
