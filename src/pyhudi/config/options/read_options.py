"""Options of queries."""

from __future__ import annotations

from pyhudi.config.enums import HollowPolicy, IncrementalFormat, QueryType, ReadMergeType
from pyhudi.config.option import choice, flag, integer, optional_integer, optional_text, text

_READ = "hoodie.datasource.read."

QUERY_TYPE = choice(
    "hoodie.datasource.query.type",
    QueryType.SNAPSHOT,
    "Query type.",
    synonyms={"realtime": QueryType.SNAPSHOT},  # Value of the older key.
)
AS_OF_INSTANT = optional_text("as.of.instant", "Time travel: instant, date, or date and time of the snapshot to read.")
BEGIN_INSTANTTIME = optional_text(
    _READ + "begin.instanttime",
    "Incremental query: return changes after this instant; earliest for all.",
    aliases=(_READ + "begin.instant.time",),
)
END_INSTANTTIME = optional_text(
    _READ + "end.instanttime",
    "Incremental query: return changes up to and including this instant. Default: the latest.",
    aliases=(_READ + "end.instant.time",),
)
INCREMENTAL_FORMAT = choice(
    "hoodie.datasource.query.incremental.format",
    IncrementalFormat.LATEST_STATE,
    "Incremental query: return the latest state of changed records, or every change.",
)
INCREMENTAL_TABLE_VERSION = optional_text(
    _READ + "incr.table.version",
    "Table version whose incremental semantics apply: up to 6 by requested time, from 8 on by completion time.",
)
INCREMENTAL_PATH_GLOB = text(
    _READ + "incr.path.glob", "", "Incremental query: glob for the paths of the files to read."
)
INCREMENTAL_FILTERS = optional_text(
    _READ + "incr.filters", "Incremental query: comma-separated SQL conditions that returned rows satisfy."
)
INCREMENTAL_FALLBACK_FULL_SCAN = flag(
    _READ + "incr.fallback.fulltablescan.enable",
    True,
    "If true, an incremental query over cleaned files filters a snapshot instead, with a warning: rows that were "
    "overwritten later are missing.",
)
INCREMENTAL_SCHEMA_AT_END = flag(
    _READ + "schema.use.end.instanttime",
    False,
    "If true, an incremental query uses the schema of the last instant that it reads.",
)
HOLLOW_COMMIT_POLICY = choice(
    "hoodie.read.timeline.holes.resolution.policy",
    HollowPolicy.FAIL,
    "Behaviour of a query of a version 6 table if an instant between completed ones is pending.",
    aliases=(_READ + "handle.hollow.commit",),
    refused=(HollowPolicy.USE_TRANSITION_TIME,),
)
READ_MERGE_TYPE = choice(
    "hoodie.datasource.merge.type",
    ReadMergeType.PAYLOAD_COMBINE,
    "Treatment of log records in a merge-on-read table: merge them or not. skip_merge is refused for such a table.",
)
READ_PATHS = optional_text(_READ + "paths", "Comma-separated paths or globs to read instead of the files of the table.")
DATA_SKIPPING_ENABLE = flag("hoodie.enable.data.skipping", True, "If true, files are pruned by statistics.")
EXTRACT_PARTITION_VALUES_FROM_PATH = flag(
    _READ + "extract.partition.values.from.path",
    False,
    "If true, values of partition columns are taken from the path, not from the files.",
)

# --- merging log files ---------------------------------------------------------------------------------------------

MERGE_USE_RECORD_POSITIONS = flag(
    "hoodie.merge.use.record.positions",
    True,
    "If true, base rows are found by the record positions in log blocks, provided that all blocks of the slice "
    "have them, rather than by record key.",
)
MEMORY_MERGE_MAX_SIZE = integer(
    "hoodie.memory.merge.max.size",
    1024 * 1024 * 1024,
    "Memory in bytes for the log records of a merge before they are spilled to disk. Threads of a local scan share it.",
    minimum=1,
)
MEMORY_SPILL_PATH = optional_text(
    "hoodie.memory.spillable.map.path",
    "Local folder for spilled records. Default: the temporary directory of the system.",
)

# --- streaming -------------------------------------------------------------------------------------------------------

STREAMING_START_OFFSET = text(
    "hoodie.datasource.streaming.startOffset",
    "earliest",
    "Start of a stream without a checkpoint: earliest, latest, or after an instant, date, or date and time.",
)
STREAMING_MAX_INSTANTS = optional_integer(
    "pyhudi.streaming.max.instants.per.trigger",
    "Maximum number of commits per micro-batch. Default: all available ones.",
    minimum=1,
)
