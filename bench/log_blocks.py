"""``python -m bench.log_blocks``: lineitem rows per second that one core encodes into log blocks and decodes."""

from __future__ import annotations

import io
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from bench.data import prepare
from pyhudi.format.log import LogBlockHeader, LogOptions, LogSchema, LogSlice, LogWriter, decode_records, scan_blocks
from pyhudi.schema.converters.arrow_avro import to_avro
from pyhudi.schema.meta_columns import add_meta_columns
from pyhudi.schema.meta_fields import META_COLUMNS

ROWS = 300_000
REPEAT = 5
GOALS = {("avro", "encode"): 300_000, ("avro", "decode"): 500_000, ("parquet", "both"): 1_000_000}


def main() -> None:
    """Measure processor time, not the clock; the best of some repetitions."""
    pa.set_cpu_count(1)
    data = prepare(float(os.environ.get("BENCH_SF", "1")))
    source = pq.ParquetFile(next(iter(sorted(data.lineitem.glob("*.parquet")))))
    rows = pa.Table.from_batches([next(source.iter_batches(ROWS))]).combine_chunks()
    instant = "20260101000000000"
    schema = add_meta_columns(rows.schema)
    meta = [pa.repeat(instant, rows.num_rows)] * 2 + [
        rows["l_orderkey"].cast(pa.string()),
        *[pa.repeat("1995", rows.num_rows)] * 2,
    ]
    table = pa.table([*meta, *rows.columns], schema=schema)
    assert schema.names[: len(META_COLUMNS)] == list(META_COLUMNS)
    for data_format in ("avro", "parquet"):
        written: list[bytes] = []

        def encode(data_format: str = data_format, written: list[bytes] = written) -> None:
            sink = io.BytesIO()

            @contextmanager
            def opened(_: str) -> Iterator[BinaryIO]:
                yield sink

            layout = LogSchema(to_avro(schema, "t"), pa.schema([]), 9)
            options = LogOptions(data_format=data_format)
            with LogWriter(
                opened, LogSlice("f", instant, "0-0-0"), LogBlockHeader(instant, layout), options=options
            ) as writer:
                writer.write(table)
                writer.close()
            written[:] = [sink.getvalue()]

        def decode(written: list[bytes] = written) -> None:
            assert sum(decode_records(block).num_rows for block in scan_blocks(written[0])) == table.num_rows

        for what, run in (("encode", encode), ("decode", decode)):
            speed = table.num_rows / _best(run)
            goal = GOALS.get((data_format, what)) or GOALS[data_format, "both"]
            print(
                f"{data_format:8} {what}: {speed:12,.0f} rows/s, goal {goal:,}: {'met' if speed >= goal else 'MISSED'}"
            )


def _best(run: Callable[[], None]) -> float:
    times = []
    for _ in range(REPEAT):
        begin = time.process_time()
        run()
        times.append(time.process_time() - begin)
    return min(times)


if __name__ == "__main__":
    main()
