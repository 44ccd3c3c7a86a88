"""Options of Apache Hudi that are accepted and validated, but have no effect in pyhudi."""

from __future__ import annotations

from pyhudi.config.enums import MarkerType, TimeGeneratorType
from pyhudi.config.option import choice, flag, integer, optional_choice, optional_text

INCREMENTAL_SKIP_COMPACT = flag(
    "hoodie.datasource.read.incr.skip_compact",
    False,
    "No effect: compactions keep the commit times of rows, and incremental queries use these.",
)
INCREMENTAL_SKIP_CLUSTER = flag(
    "hoodie.datasource.read.incr.skip_cluster",
    False,
    "No effect: clusterings keep the commit times of rows, and incremental queries use these.",
)
FILE_INDEX_ENABLE = flag("hoodie.file.index.enable", True, "No effect: queries have one way to plan.")
TIME_GENERATOR_TYPE = choice(
    "hoodie.time.generator.type",
    TimeGeneratorType.WAIT_TO_ADJUST_SKEW,
    "No effect: instant times are issued under the lock of the table.",
)
LOCK_NUM_RETRIES = integer(
    "hoodie.write.lock.num_retries", 15, "No effect: `hoodie.write.lock.wait_time_ms` limits an attempt."
)
LOCK_RETRY_MAX_WAIT_MS = integer(
    "hoodie.write.lock.max_wait_time_ms_between_retry", 16_000, "No effect: waits between retries do not grow."
)
ROLLBACK_USING_MARKERS = flag(
    "hoodie.rollback.using.markers",
    True,
    "No effect: a rollback takes files from the markers of a failed write, or from the metadata of a commit.",
)
ROLLBACK_PARALLELISM = integer(
    "hoodie.rollback.parallelism", 100, "No effect: the driver deletes the files.", minimum=1
)
MARKERS_TYPE = optional_choice(
    "hoodie.write.markers.type", MarkerType, "No effect: without a timeline server, markers are always DIRECT."
)
MARKERS_DELETE_PARALLELISM = integer(
    "hoodie.markers.delete.parallelism",
    100,
    "No effect: the storage decides how to delete the folder of markers.",
    minimum=1,
)
EMBEDDED_TIMELINE_SERVER = flag("hoodie.embed.timeline.server", True, "No effect: there is no timeline server.")
COMPLEX_KEYGEN_VALIDATION = flag(
    "hoodie.write.complex.keygen.validation.enable",
    True,
    "No effect: complex keys of one field are written in the form that the table has.",
)
PAYLOAD_ORDERING_FIELD = optional_text(
    "hoodie.payload.ordering.field", "No effect: `hoodie.table.ordering.fields` names the ordering columns."
)
ROW_WRITER_ENABLE = flag("hoodie.datasource.write.row.writer.enable", True, "No effect: there is one writer.")
ORC_BLOCK_SIZE = integer(
    "hoodie.orc.block.size",
    120 * 1024 * 1024,
    "No effect: ORC files are not padded to blocks of a file system.",
    minimum=1,
)
SIMPLE_INDEX_PARALLELISM = integer(
    "hoodie.simple.index.parallelism", 0, "No effect: Spark decides the number of tasks of key lookups."
)
GLOBAL_SIMPLE_INDEX_PARALLELISM = integer(
    "hoodie.global.simple.index.parallelism", 0, "No effect: Spark decides the number of tasks of key lookups."
)
AVRO_SCHEMA_VALIDATE = flag(
    "hoodie.avro.schema.validate",
    False,
    "No effect: the schema of the input is always checked against that of the table.",
)
