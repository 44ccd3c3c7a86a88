"""Procedure that deletes the markers of a write."""

from __future__ import annotations

from pyspark.sql import SparkSession

from pyhudi.errors import TransactionError
from pyhudi.spark.sql.procedures.arguments import Arguments, Procedure, Rows
from pyhudi.timeline.markers import Markers


def delete_marker(spark: SparkSession, arguments: Arguments) -> Rows:
    """Delete the markers of a write that has completed or was rolled back.

    Raises:
        TransactionError: It is pending, so that its rollback needs them.
    """
    client, requested = arguments.client(spark), str(arguments.text("instant_time"))
    pending = client.active_timeline().timeline.pending().find(requested)
    if pending is not None:
        raise TransactionError(f"{pending} is pending, and its rollback needs its markers: roll it back instead")
    Markers(client.storage, requested).delete()
    return [(True,)]


PROCEDURES: dict[str, Procedure] = {"delete_marker": delete_marker}
