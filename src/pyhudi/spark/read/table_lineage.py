"""Lineage of DataFrames: the tables, and the snapshots of them, that the rows of a DataFrame come from.

A loaded DataFrame has a condition that is always true and contains a snapshot id, of its table and snapshot. Spark's
optimizer removes the condition, but it stays in the analyzed plan of every derived DataFrame: below joins, in
subqueries, in temporary views and below cached DataFrames. Rows that were collected or checkpointed in between have no
such plan and are considered rows from elsewhere. Rows that passed through an RDD which reads files are considered rows
of every table.
"""

from __future__ import annotations

import hashlib
import re
from urllib.parse import unquote

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from pyhudi.spark.execution.temporary_views import plan_text
from pyhudi.spark.session_settings import STREAMING_QUERY_ID, is_connect
from pyhudi.storage import Storage, resolved_root
from pyhudi.storage.canonical_uri import canonical_uri
from pyhudi.table.table_snapshot import TableSnapshot

SNAPSHOT_ID_PREFIX = "_pyhudi_read_"
"""Beginning of all snapshot ids."""
_DATA_SOURCE = re.compile(r"RelationV2\[[^\]\n]*\][^\n]*hudi", re.IGNORECASE)
"""A table that Spark reads by `pyspark_hudi`. The plan does not contain its path."""
_RELATION = re.compile(r"(?<!Local)Relation")
_UNKNOWN = frozenset({"unknown"})


def with_snapshot_id(frame: DataFrame, table: TableSnapshot) -> DataFrame:
    """Return a loaded DataFrame with the id of its snapshot, which `snapshot_ids` finds in all derived DataFrames.

    Args:
        frame: The DataFrame.
        table: The snapshot of the table that it reads.
    """
    instants = "\n".join(f"{instant.requested} {instant.action}" for instant in table.active.timeline.completed())
    return frame.where(sf.lit(f"{_id_prefix(table.storage)}{_digest(instants)}").isNotNull())


def snapshot_ids(frame: DataFrame, storage: Storage) -> frozenset[str]:
    """Return the ids of the snapshots of a table that a DataFrame reads. No query is executed.

    Returns:
        A text for each snapshot; empty if the DataFrame does not read the table. If that cannot be found out, it
        counts as a snapshot, always the same.
    """
    try:
        plan = plan_text(frame, "EXTENDED")
        if _DATA_SOURCE.search(plan) or "Truncated plan of" in plan or _reads_files_in_rdd(frame, plan):
            return _UNKNOWN
        ids = frozenset(re.findall(rf"{_id_prefix(storage)}\w+", plan))
        return ids or frozenset({"files"} if _reads_files(frame, storage) else ())
    except PySparkException:
        return _UNKNOWN


def _reads_files(frame: DataFrame, storage: Storage) -> bool:
    """Return True if Spark reads files of the table in a DataFrame."""
    roots = tuple(f"{canonical_uri(root)}/" for root in {storage.root, resolved_root(storage.root)})
    return any(canonical_uri(unquote(file)).startswith(roots) for file in frame.inputFiles())


def _reads_files_in_rdd(frame: DataFrame, plan: str) -> bool:
    """Return True if a DataFrame was created from an RDD that reads files: their table cannot be determined. A
    micro-batch of a stream is such a DataFrame, too, but its rows are the same whenever they are read. If the plan has
    relations as well, the files may be theirs, and the RDD one of local rows."""
    analyzed = plan.partition("== Analyzed Logical Plan ==")[2].partition("== Optimized Logical Plan ==")[0]
    if "LogicalRDD" not in analyzed or _RELATION.search(analyzed) or is_connect(frame):
        return False
    if frame.sparkSession.sparkContext.getLocalProperty(STREAMING_QUERY_ID) is not None:
        return False
    lineage = frame.rdd.toDebugString() or b""
    return b"FileScanRDD" in lineage or b"DataSourceRDD" in lineage


def _id_prefix(storage: Storage) -> str:
    return f"{SNAPSHOT_ID_PREFIX}{_digest(canonical_uri(resolved_root(storage.root)))}_"


def _digest(text: str) -> str:
    return hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()[:16]
