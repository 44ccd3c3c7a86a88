"""The rows of a stream whose vectors are nearest to a query vector."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.read.functions.vector_distance import DISTANCE, Metric, array_distances, vector_field


def nearest_rows(
    rows: pa.RecordBatchReader | Iterable[pa.RecordBatch],
    schema: pa.Schema,
    column: str,
    query: tuple[float, ...],
    *,
    k: int,
    metric: Metric,
) -> pa.Table:
    """Return the ``k`` rows nearest to a query, the nearest first, with their distances in place of the vectors.

    At most ``k`` rows and a batch are in memory. Rows without a vector are skipped.

    Raises:
        QueryError: There is no such column, or a vector has another dimension.
    """
    field = vector_field(schema, column)
    columns = pa.schema([f for f in schema if f.name != field.name])
    numbers = np.array(query)
    best = columns.append(pa.field(DISTANCE, pa.float64())).empty_table()
    for batch in rows:
        distances = array_distances(batch.column(field.name), numbers, metric, field.name)
        more = pa.Table.from_batches([batch.select(columns.names).append_column(DISTANCE, distances)])
        candidates = pa.concat_tables([best, more.filter(pc.is_valid(distances))])
        order = pc.sort_indices(candidates, [(DISTANCE, "ascending")])  # NaN come last
        best = candidates.take(order[:k])
    return best
