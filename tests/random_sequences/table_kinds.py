"""Kinds of tables: what the options of all writes to a table have in common, drawn by a random generator."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from tests.interop.harness.scenarios import LAYOUTS, Layout, key_options
from tests.joining_merger import Joining

COMMIT_TIME, EVENT_TIME, PARTIAL, NON_DEFAULTS, CUSTOM = "commit", "event", "partial", "non-defaults", "custom"
PAYLOADS = {
    COMMIT_TIME: "OverwriteWithLatestAvroPayload",
    EVENT_TIME: "DefaultHoodieRecordPayload",
    PARTIAL: "PartialUpdateAvroPayload",
    NON_DEFAULTS: "OverwriteNonDefaultsWithLatestAvroPayload",
}
MODES = {COMMIT_TIME: "COMMIT_TIME_ORDERING", EVENT_TIME: "EVENT_TIME_ORDERING"}
FILLING = (PARTIAL, NON_DEFAULTS)
"""What the winning version has no value for comes from the other one."""

GLOBAL_INDEXES = {
    "GLOBAL_SIMPLE": "hoodie.simple.index.update.partition.path",
    "GLOBAL_BLOOM": "hoodie.bloom.index.update.partition.path",
    "RECORD_INDEX": "hoodie.record.index.update.partition.path",
}
"""Index → the option by which records move to other partitions."""
SIMPLE_BUCKETS, CONSISTENT_BUCKETS = "simple buckets", "consistent buckets"
BUCKETS = (SIMPLE_BUCKETS, CONSISTENT_BUCKETS)

NULL_PATH = "__HIVE_DEFAULT_PARTITION__"
ODD_PLACES = (None, "", "x=1", "2024-01-15", "ü/v", "a b")
_ODD_PATHS = (NULL_PATH, NULL_PATH, "x%3D1", "2024-01-15", "ü%2Fv", "a b")
_ODD_KEYS = ("a:{},b", " {} ", "é中{}", "\U0001f600{}", "k/{}", "__null__{}", "NULL{}", "%4{}", "'\"\\{}", "{}")
PLACES = 6
"""Number of values of the partition columns."""


def odd_key(number: int) -> str:
    """Return a text that is hard to take for a key."""
    return _ODD_KEYS[number % len(_ODD_KEYS)].format(number)


_ODD_LAYOUTS = (
    Layout("odd-keys", key_options("key", "place", encode="true"), lambda i: _ODD_PATHS[i % PLACES], odd_key),
    Layout(
        "odd-keys-two-hive",
        key_options("key,num", "place,sub", encode="true", hive="true"),
        lambda i: f"place={_ODD_PATHS[i % PLACES]}/sub={i % 2}",
        lambda i: f"key:{odd_key(i)},num:{i}",
    ),
)


class JoiningTags(Joining):
    """Joins the tags of all versions."""

    strategy_id = "11111111-0000-0000-0000-00000000000b"
    columns = ("tag",)


@dataclass(frozen=True)
class TableKind:
    """A kind of table. ``moves``: records of a global index follow their partition columns. ``wide``: one column of
    every type. ``flagged``: rows may be marked as deleted. ``more``: further options of all writes."""

    version: int
    merge_on_read: bool
    index: str
    merging: str
    layout: Layout
    moves: bool = False
    wide: bool = False
    flagged: bool = False
    cdc: str = ""
    metadata: bool = True
    small_files: bool = True
    more: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        traits = [
            f"version {self.version}",
            "merge-on-read" if self.merge_on_read else "copy-on-write",
            self.index,
            f"merged by {self.merging}",
            f"layout {self.layout}",
            *(name for name in ("moves", "wide", "flagged", "metadata", "small_files") if getattr(self, name)),
            *([f"cdc {self.cdc}"] if self.cdc else []),
            *(f"{key.removeprefix('hoodie.')}={value}" for key, value in self.more.items()),
        ]
        return ", ".join(traits)

    @property
    def is_global(self) -> bool:
        """Whether a key is one record of the table, not one of each partition."""
        return self.index in GLOBAL_INDEXES or not self.layout.path(0)

    @property
    def has_buckets(self) -> bool:
        """Whether keys say which file group they are in."""
        return self.index in BUCKETS

    @property
    def options(self) -> dict[str, str]:
        """Options of all writes."""
        found = {
            "hoodie.table.name": "random",
            "hoodie.datasource.write.table.type": "MERGE_ON_READ" if self.merge_on_read else "COPY_ON_WRITE",
            "hoodie.write.table.version": str(self.version),
            "hoodie.datasource.write.precombine.field": "seq",
            **self.layout.options,
            **self._merging,
            **self._index,
            "hoodie.metadata.enable": str(self.metadata).lower(),
            "hoodie.time.generator.max_expected_clock_skew_ms": "0",
            "hoodie.index.bloom.num_entries": "100",
            "hoodie.bloom.index.filter.dynamic.max.entries": "1000",
            "pyhudi.storage.fsync": "none",
        }
        if not self.small_files:
            found["hoodie.parquet.small.file.limit"] = "0"
        if self.cdc:
            found |= {"hoodie.table.cdc.enabled": "true", "hoodie.table.cdc.supplemental.logging.mode": self.cdc}
        return found | self.more

    @property
    def _merging(self) -> dict[str, str]:
        if self.merging == CUSTOM:
            return {
                "hoodie.write.record.merge.mode": "CUSTOM",
                "hoodie.write.record.merge.strategy.id": JoiningTags.strategy_id,
            }
        if self.version >= 8 and self.merging in MODES:
            return {"hoodie.write.record.merge.mode": MODES[self.merging]}
        return {"hoodie.datasource.write.payload.class": f"org.apache.hudi.common.model.{PAYLOADS[self.merging]}"}

    @property
    def _index(self) -> dict[str, str]:
        if self.has_buckets:
            engine = "SIMPLE" if self.index == SIMPLE_BUCKETS else "CONSISTENT_HASHING"
            return {
                "hoodie.index.type": "BUCKET",
                "hoodie.index.bucket.engine": engine,
                "hoodie.bucket.index.num.buckets": "3",
            }
        found = {"hoodie.index.type": self.index}
        if self.index in GLOBAL_INDEXES:
            found[GLOBAL_INDEXES[self.index]] = str(self.moves).lower()
        if self.index == "RECORD_INDEX":
            found["hoodie.metadata.global.record.level.index.enable"] = "true"
        if self.index == "RECORD_LEVEL_INDEX":
            found["hoodie.metadata.record.level.index.enable"] = "true"
        return found


def draw_kind(rng: Random) -> TableKind:
    """Draw a kind of table that both engines can have, or pyhudi alone."""
    version = rng.choice((6, 8, 9, 9))
    merge_on_read = rng.random() < 0.6
    layouts = [layout for layout in (*LAYOUTS, *_ODD_LAYOUTS, *_ODD_LAYOUTS) if version in layout.versions]
    index = rng.choice(_indexes(version, merge_on_read))
    merging = rng.choice((COMMIT_TIME, EVENT_TIME, EVENT_TIME, PARTIAL, NON_DEFAULTS, CUSTOM))
    if merging == CUSTOM and version == 6:
        merging = EVENT_TIME
    return TableKind(
        version,
        merge_on_read,
        index,
        merging,
        rng.choice(layouts),
        moves=index in GLOBAL_INDEXES and merging != CUSTOM and rng.random() < 0.5,
        wide=rng.random() < 0.3,
        flagged=merging != CUSTOM and rng.random() < 0.5,
        cdc=rng.choice(("", "", "data_before_after", "data_before", "op_key_only")),
        metadata=index.startswith("RECORD") or rng.random() < 0.8,
        small_files=rng.random() < 0.5,
        more=_more(rng, version, merge_on_read),
    )


def _indexes(version: int, merge_on_read: bool) -> list[str]:
    found = ["SIMPLE", "BLOOM", SIMPLE_BUCKETS, *GLOBAL_INDEXES, "RECORD_INDEX"]
    if version >= 9:
        found += ["RECORD_LEVEL_INDEX"] * 2
    if merge_on_read:
        found += [CONSISTENT_BUCKETS]
    return found


def _more(rng: Random, version: int, merge_on_read: bool) -> dict[str, str]:
    """Draw settings of logs, of the metadata table, and of services after writes."""
    found: dict[str, str] = {}
    if merge_on_read:
        found["hoodie.logfile.data.block.format"] = rng.choice(("avro", "parquet"))
        inline = rng.random() < 0.3
        found["hoodie.compact.inline"] = str(inline).lower()
        if inline:
            found["hoodie.compact.inline.max.delta.commits"] = "2"
        if version >= 8:
            found["hoodie.write.record.positions"] = rng.choice(("true", "false"))
    if rng.random() < 0.3:
        found["hoodie.metadata.index.column.stats.enable"] = "false"
    if rng.random() < 0.3:
        found["hoodie.metadata.index.bloom.filter.enable"] = "true"
    found["hoodie.metadata.compact.max.delta.commits"] = rng.choice(("2", "4", "10"))
    if rng.random() < 0.4:
        found |= {
            "hoodie.clean.commits.retained": "2",
            "hoodie.keep.min.commits": "3",
            "hoodie.keep.max.commits": "4",
        }
    return found
