"""Options of queries."""

from __future__ import annotations

from pyhudi.config.enums import HollowPolicy, IncrementalFormat, QueryType, ReadMergeType
from pyhudi.config.option import choice, flag, integer, maybe_integer, maybe_text, text

_READ = "hoodie.datasource.read."

QUERY_TYPE = choice(
    "hoodie.datasource.query.type",
    QueryType.SNAPSHOT,
    "What the query returns.",
    synonyms={"realtime": QueryType.SNAPSHOT},  # its name under the older key
)
AS_OF_INSTANT = maybe_text("as.of.instant", "Time travel: the table as it was at this instant, date or date and time.")
BEGIN_INSTANTTIME = maybe_text(
    _READ + "begin.instanttime",
    "Incremental query: changes after this instant; earliest for all.",
    aliases=(_READ + "begin.instant.time",),
)
END_INSTANTTIME = maybe_text(
    _READ + "end.instanttime",
    "Incremental query: changes up to and with this instant; the newest when not given.",
    aliases=(_READ + "end.instant.time",),
)
INCREMENTAL_FORMAT = choice(
    "hoodie.datasource.query.incremental.format",
    IncrementalFormat.LATEST_STATE,
    "What an incremental query returns: the newest state of changed records, or every change.",
)
INCREMENTAL_TABLE_VERSION = maybe_text(
    _READ + "incr.table.version",
    "Table version whose incremental semantics hold: up to 6 by requested time, 8 on by completion.",
)
INCREMENTAL_PATH_GLOB = text(_READ + "incr.path.glob", "", "Incremental query: only files whose path matches.")
INCREMENTAL_FILTERS = maybe_text(
    _READ + "incr.filters", "Incremental query: comma-separated conditions in SQL that its rows meet."
)
INCREMENTAL_FALLBACK_FULL_SCAN = flag(
    _READ + "incr.fallback.fulltablescan.enable",
    True,
    "Whether an incremental query over cleaned files falls back to filtering a snapshot.",
)
INCREMENTAL_SKIP_COMPACT = flag(_READ + "incr.skip_compact", False, "Whether compactions are skipped.")
INCREMENTAL_SKIP_CLUSTER = flag(_READ + "incr.skip_cluster", False, "Whether clusterings are skipped.")
INCREMENTAL_SCHEMA_AT_END = flag(
    _READ + "schema.use.end.instanttime", False, "Whether the schema is that of the last instant read."
)
HOLLOW_COMMIT_POLICY = choice(
    "hoodie.read.timeline.holes.resolution.policy",
    HollowPolicy.FAIL,
    "What a query of a version 6 table does at a pending instant between completed ones.",
    aliases=(_READ + "handle.hollow.commit",),
)
READ_MERGE_TYPE = choice(
    "hoodie.datasource.merge.type",
    ReadMergeType.PAYLOAD_COMBINE,
    "Whether a query of a merge-on-read table merges log records; skip_merge is refused for such a table.",
)
READ_PATHS = maybe_text(_READ + "paths", "Comma-separated paths or globs to read instead of the table's own.")
DATA_SKIPPING_ENABLE = flag("hoodie.enable.data.skipping", True, "Whether files are pruned by statistics.")
FILE_INDEX_ENABLE = flag("hoodie.file.index.enable", True, "Kept for compatibility; there is one way to plan here.")
EXTRACT_PARTITION_VALUES_FROM_PATH = flag(
    _READ + "extract.partition.values.from.path", False, "Whether partition columns come from the path, not the files."
)

# --- merging log files ---------------------------------------------------------------------------------------------

MERGE_USE_RECORD_POSITIONS = flag(
    "hoodie.merge.use.record.positions",
    True,
    "Whether base rows are found by the positions that log blocks give, where all of a slice's blocks have them, "
    "rather than by record key.",
)
MEMORY_MERGE_MAX_SIZE = integer(
    "hoodie.memory.merge.max.size",
    1024 * 1024 * 1024,
    "Bytes of log records that a merge keeps in memory before it puts them on disk; local scans share them among "
    "their threads.",
    least=1,
)
MEMORY_SPILL_PATH = maybe_text(
    "hoodie.memory.spillable.map.path", "Local folder for what does not fit; the system's temporary one when not given."
)

# --- streaming -------------------------------------------------------------------------------------------------------

STREAMING_START_OFFSET = text(
    "hoodie.datasource.streaming.startOffset",
    "earliest",
    "Where a stream begins that has no checkpoint yet: earliest, latest, or after an instant, date or date and time.",
)
STREAMING_MAX_INSTANTS = maybe_integer(
    "pyhudi.streaming.max.instants.per.trigger",
    "How many commits a micro-batch takes at most; all there are when not given.",
    least=1,
)
