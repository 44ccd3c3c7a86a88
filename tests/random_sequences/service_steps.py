"""Steps of table services, most of which change no row."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from pyhudi.errors import ConfigError, InstantNotFoundError, TransactionError, UnsupportedTableError
from tests.random_sequences.life import Life
from tests.random_sequences.steps import merge_on_read, step
from tests.random_sequences.table_kinds import COMMIT_TIME, EVENT_TIME, SIMPLE_BUCKETS, TableKind

LOG_COMPACTION = {"hoodie.log.compaction.blocks.threshold": "2"}
SECONDARY, EXPRESSION = "by_name", "lower_name"
CLEANING = {"hoodie.clean.commits.retained": "1"}
ARCHIVAL = {**CLEANING, "hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3"}


def can_cluster(kind: TableKind) -> bool:
    """Whether a table's file groups may be put together."""
    return kind.index != SIMPLE_BUCKETS


@step(2, merge_on_read)
def compact(life: Life, _: Random) -> None:
    """Compact, after what is pending."""
    life.table.services.compact()
    life.forget_deletes()


@step(1, merge_on_read)
def schedule_compaction(life: Life, _: Random) -> None:
    """Plan a compaction, for a later step."""
    life.table.services.schedule_compaction()


@step(1, merge_on_read)
def log_compact(life: Life, _: Random) -> None:
    """Merge log files."""
    life.table.services.log_compact(LOG_COMPACTION)


@step(2, can_cluster)
def cluster(life: Life, rng: Random) -> None:
    """Cluster, sorted or not."""
    life.table.services.cluster(draw_clustering(rng))


def draw_clustering(rng: Random) -> dict[str, str]:
    """Draw options of a clustering."""
    found = {"hoodie.clustering.plan.strategy.single.group.clustering.enabled": "true"}
    if rng.random() < 0.5:
        found["hoodie.clustering.plan.strategy.sort.columns"] = rng.choice(("num", "seq,num", "tag"))
    return found


@step(1)
def clean(life: Life, _: Random) -> None:
    """Delete old files."""
    life.table.services.clean(CLEANING)
    life.cleaned = True


@step(1)
def archive(life: Life, _: Random) -> None:
    """Archive old instants."""
    life.table.services.clean(CLEANING)
    life.cleaned = True
    life.table.services.archive(ARCHIVAL)


@step(1)
def save(life: Life, _: Random) -> None:
    """Make a savepoint of the last commit, in the place of an earlier one."""
    if not life.model.history:
        return
    forget_savepoint(life)
    if life.savepoint is None:
        instant = life.model.history[-1].instant
        if life.table.services.savepoint(instant).instants:
            life.savepoint = instant


def forget_savepoint(life: Life) -> None:
    """Delete the savepoint, unless files that its write replaced need it."""
    if life.savepoint is not None:
        try:
            life.table.services.delete_savepoint(life.savepoint)
        except TransactionError:
            return
        life.savepoint = None


@step(1.5)
def restore(life: Life, rng: Random) -> None:
    """Go back to the savepoint, or to a recent commit."""
    target = restore_target(life, rng)
    if target is not None and can_restore(life, target):
        life.table.services.restore(target)
        restored(life, target)


def can_restore(life: Life, instant: str) -> bool:
    """Whether what a restore to a commit needs is still there, as it is of a savepoint."""
    try:
        life.table.services.restore(instant, dry_run=True)
    except (TransactionError, InstantNotFoundError):
        if instant == life.savepoint:
            raise
        return False
    return True


def restore_target(life: Life, rng: Random) -> str | None:
    """Draw the instant of a commit to go back to."""
    if life.savepoint is not None:
        return life.savepoint
    alone = [commit.instant for commit in life.model.history[-4:] if commit.is_alone]
    return rng.choice(alone) if alone else None


def restored(life: Life, instant: str) -> None:
    """Take back in the model what a restore has taken back."""
    instants = [commit.instant for commit in life.model.history]
    life.model.go_back_to(instants.index(instant))


@step(1)
def roll_back(life: Life, _: Random) -> None:
    """Roll back the last write, be it of rows or of a service."""
    if len(life.model.history) < 2:
        return
    try:
        undone = life.table.services.rollback().instants
    except (TransactionError, InstantNotFoundError):
        return
    if life.model.history[-1].instant in undone:
        life.model.go_back_to(len(life.model.history) - 2)
    else:
        life.finish_plans()  # that of a service remains, and writes to its file groups would be refused


@step(0.7)
def change_version(life: Life, rng: Random) -> None:
    """Upgrade or downgrade."""
    life.finish_plans()
    forget_savepoint(life)
    if life.savepoint is not None:
        return
    to = rng.choice([version for version in (6, 8, 9) if version != life.model.version])
    try:
        if to > life.model.version:
            life.table.services.upgrade(to)
        else:
            life.table.services.downgrade(to, lossy=True)
    except UnsupportedTableError:
        return
    version_changed(life, to)


def version_changed(life: Life, to: int) -> None:
    """Note the version; older snapshots may be gone, and times of commits are others. A merge-on-read table of version
    6 that merged by commit merges by event time from now on (`docs/versions.md`)."""
    if life.model.version == 6 and life.kind.merge_on_read and life.kind.merging == COMMIT_TIME:
        life.kind = life.model.kind = replace(life.kind, merging=EVENT_TIME)
    if (
        life.kind.index == "RECORD_LEVEL_INDEX" and to < 9
    ):  # a partitioned record index is not there before, nor its option
        life.kind = life.model.kind = replace(life.kind, index="SIMPLE")
    life.model.version = to
    life.new_stream()
    life.model.forget_history()
    life.forget_deletes()


@step(1.5, lambda kind: kind.metadata)
def build_index(life: Life, rng: Random) -> None:
    """Build an index of the metadata table, at once or by a plan."""
    name, columns, more = rng.choice(
        (
            ("column_stats", "", {}),
            ("bloom_filters", "", {}),
            ("record_index", "", {}),
            (SECONDARY, "name", {}),
            (EXPRESSION, "name", {"using": "column_stats", "index_options": {"expr": "lower"}}),
        )
    )
    services = life.table.services
    try:
        if rng.random() < 0.5:
            services.build_index(name, columns or (), if_not_exists=True, spark=life.spark, **more)
        else:
            services.schedule_index(name, columns or (), if_not_exists=True, **more)
            services.run_index(spark=life.spark)
    except (ConfigError, UnsupportedTableError):
        return


@step(0.5, lambda kind: kind.metadata)
def drop_index(life: Life, rng: Random) -> None:
    """Drop an index, if it is there."""
    name = rng.choice(("column_stats", "bloom_filters", SECONDARY, EXPRESSION))
    try:
        life.table.services.drop_index(name, if_exists=True)
    except ConfigError:
        return
