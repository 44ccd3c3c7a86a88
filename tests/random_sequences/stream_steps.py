"""A stream that reads the table from its first commit on: after each run it has delivered every record."""

from __future__ import annotations

from pathlib import Path
from random import Random

from pyspark.errors import StreamingQueryException

from tests.random_sequences.life import Life
from tests.random_sequences.steps import step

_SECONDS = 120


@step(1.5)
def read_stream(life: Life, _: Random) -> None:
    """Go on with the stream, or begin another one if a service may have taken what it has not read."""
    try:
        _run(life)
    except StreamingQueryException:
        if not life.cleaned and "hoodie.clean.commits.retained" not in life.kind.more:
            raise
        life.new_stream()
        try:
            _run(life)
        except StreamingQueryException:
            life.new_stream()
            return
    output, tags = Path(life.stream, "out"), set()
    if output.exists():
        tags = {row.tag for row in life.spark.read.schema("tag string").json(str(output)).collect()}
    lost = {stored.row["tag"] for stored in life.model.records.values()} - tags
    assert not lost, f"the stream {life.stream} has not delivered {sorted(lost)}"


def _run(life: Life) -> None:
    Path(life.stream).mkdir(exist_ok=True)
    rows = life.spark.readStream.format("hudi").load(life.path).select("tag")
    writer = rows.writeStream.format("json").option("checkpointLocation", f"{life.stream}/checkpoint")
    query = writer.trigger(availableNow=True).start(f"{life.stream}/out")
    assert query.awaitTermination(_SECONDS)
