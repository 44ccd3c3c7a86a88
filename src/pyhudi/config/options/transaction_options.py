"""Options of transactions: instant times, concurrent writers, failed writes and rollback."""

from __future__ import annotations

from pyhudi.config.enums import ConcurrencyMode, FailedWritesPolicy
from pyhudi.config.option import choice, flag, integer, text

TIME_GENERATOR_MAX_CLOCK_SKEW_MS = integer(
    "hoodie.time.generator.max_expected_clock_skew_ms",
    200,
    "Maximum clock skew between writers; after an instant time is issued, the next one waits for this time. Unless it "
    "is set, a single writer whose lock is that of its machine does not wait, as there is one clock.",
)
CONCURRENCY_MODE = choice(
    "hoodie.write.concurrency.mode",
    ConcurrencyMode.SINGLE_WRITER,
    "Number of writers that may write to the table concurrently. Non-blocking writers append log files to the same "
    "file groups of a merge-on-read table with the simple bucket index (from table version 8 on).",
)
CONFLICT_RESOLUTION_STRATEGY = text(
    "hoodie.write.lock.conflict.resolution.strategy",
    "org.apache.hudi.client.transaction.SimpleConcurrentFileWritesConflictResolutionStrategy",
    "Strategy that detects conflicts between commits, by Apache Hudi's class name.",
)
NUM_RETRIES_ON_CONFLICT = integer(
    "hoodie.write.num.retries.on.conflict.failures",
    0,
    "Number of retries of a write after a conflict. A DataFrame read from the table itself is not written again.",
)
HEARTBEAT_INTERVAL_MS = integer(
    "hoodie.client.heartbeat.interval_in_ms", 60_000, "Interval between heartbeats of a writer.", minimum=1000
)
HEARTBEAT_TOLERABLE_MISSES = integer(
    "hoodie.client.heartbeat.tolerable.misses",
    2,
    "Number of missed heartbeats after which a writer is considered failed.",
)
FAILED_WRITES_POLICY = choice(
    "hoodie.clean.failed.writes.policy",
    FailedWritesPolicy.EAGER,
    "Policy for the rollback of failed writes: by the next write, by cleaning, or never.",
    any_case=False,
)
FAIL_ON_DUPLICATE_DATA_FILES = flag(
    "hoodie.fail.job.on.duplicate.data.file.detection",
    False,
    "If true, a file left behind by a retried task fails the write instead of being deleted.",
)

ROLLBACK_BACKUP_ENABLED = flag(
    "hoodie.rollback.instant.backup.enabled",
    False,
    "If true, rollbacks and restores copy the timeline files of the writes that they undo.",
)
ROLLBACK_BACKUP_DIR = text(
    "hoodie.rollback.instant.backup.dir", ".rollback_backup", "Folder of these copies, relative to .hoodie."
)
