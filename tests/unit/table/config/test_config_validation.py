"""Options against a table: the cases and verdicts are the original's, measured on 1.2.0, but for those marked."""

from __future__ import annotations

from typing import Any

import pytest

from pyhudi.config import Options, options
from pyhudi.config.enums import MergeMode, TableType
from pyhudi.errors import InvalidOptionError, OptionWithoutEffectWarning, TableConfigConflictError
from pyhudi.table.config.table_config import TableConfig

W = "hoodie.datasource.write."
COMMIT, EVENT = "COMMIT_TIME_ORDERING", "EVENT_TIME_ORDERING"
KEYGEN = "org.apache.hudi.keygen."
MODEL = "org.apache.hudi.common.model."
DEFAULT = {W + "payload.class": MODEL + "DefaultHoodieRecordPayload"}

KEY = {W + "recordkey.field": "id"}
PART = {W + "partitionpath.field": "part"}
ORDER = {W + "precombine.field": "ts"}
SIMPLE = {**KEY, **PART, **ORDER}
CUSTOM = {
    **KEY,
    **ORDER,
    W + "partitionpath.field": "part:simple,ts:timestamp",
    W + "keygenerator.class": KEYGEN + "CustomKeyGenerator",
}
TIMEBASED = {
    "hoodie.keygen.timebased.timestamp.type": "EPOCHMILLISECONDS",
    "hoodie.keygen.timebased.output.dateformat": "yyyy/MM/dd",
}
TIMESTAMP = {
    **KEY,
    **ORDER,
    **TIMEBASED,
    W + "partitionpath.field": "ts",
    W + "keygenerator.class": KEYGEN + "TimestampBasedKeyGenerator",
}

TABLES: dict[str, dict[str, Any]] = {
    "simple": SIMPLE,
    "unordered": {**KEY, **PART},
    "unpartitioned": {**KEY, **ORDER},
    "generated keys": PART,
    "custom": CUSTOM,
    "custom 6": {**CUSTOM, "hoodie.write.table.version": 6},
    "timestamp": TIMESTAMP,
    "complex": {W + "recordkey.field": "id,id2", W + "partitionpath.field": "part,p2", **ORDER},
    "hive": {**SIMPLE, W + "hive_style_partitioning": True},
    "first value": {**SIMPLE, W + "payload.class": MODEL + "FirstValueAvroPayload"},
    "commit time": {**SIMPLE, "hoodie.write.record.merge.mode": COMMIT},
    "partial": {**SIMPLE, W + "payload.class": MODEL + "PartialUpdateAvroPayload"},
    "marker": {**SIMPLE, "hoodie.payload.delete.field": "op", "hoodie.payload.delete.marker": "D"},
    "merge on read": {**SIMPLE, W + "table.type": "MERGE_ON_READ"},
    "merge on read 6": {**SIMPLE, W + "table.type": "MERGE_ON_READ", "hoodie.write.table.version": 6},
    "simple 6": {**SIMPLE, "hoodie.write.table.version": 6},
    "simple 8": {**SIMPLE, "hoodie.write.table.version": 8},
    "database": {**SIMPLE, "hoodie.database.name": "db1"},
    "slashes": {**SIMPLE, W + "slash.separated.date.partitioning": True},
    "capture": {
        **SIMPLE,
        "hoodie.table.cdc.enabled": True,
        "hoodie.table.cdc.supplemental.logging.mode": "op_key_only",
    },
}

ACCEPTED: list[tuple[str, dict[str, Any]]] = [
    *[(table, {}) for table in TABLES],
    *TABLES.items(),
    ("simple", {"hoodie.table.name": "T"}),
    ("simple", {**KEY, **ORDER}),
    ("simple", {**KEY, **PART}),
    ("simple", {**PART, **ORDER}),
    ("simple", {**SIMPLE, W + "keygenerator.type": "COMPLEX"}),
    ("simple", {**SIMPLE, W + "keygenerator.class": KEYGEN + "SimpleAvroKeyGenerator"}),  # a conflict in the original
    ("simple", {**SIMPLE, W + "recordkey.field": " id "}),  # the same
    ("simple", {**SIMPLE, "hoodie.database.name": "any"}),
    ("simple", {**SIMPLE, "hoodie.table.base.file.format": "ORC"}),
    ("simple", {**SIMPLE, **DEFAULT}),
    ("simple 6", {**SIMPLE, **DEFAULT}),
    ("simple", {**SIMPLE, "hoodie.write.record.merge.mode": EVENT}),
    ("simple", {**SIMPLE, "hoodie.payload.delete.field": "op", "hoodie.payload.delete.marker": "D"}),
    ("simple", {**SIMPLE, "hoodie.write.table.version": 8}),
    ("simple", {**SIMPLE, "hoodie.write.table.version": 6}),
    ("simple 8", {"hoodie.table.version": "8"}),
    ("unordered", SIMPLE),
    ("unpartitioned", {W + "partitionpath.field": ""}),
    ("unpartitioned", {**SIMPLE, W + "keygenerator.class": KEYGEN + "NonpartitionedKeyGenerator"}),
    ("custom", {**CUSTOM, W + "partitionpath.field": "part:SIMPLE,ts:TIMESTAMP"}),
    ("custom", {W + "partitionpath.field": "part,ts"}),  # an error in the original
    ("custom 6", {**CUSTOM, W + "partitionpath.field": "part:timestamp,ts:simple"}),  # version 6 cannot tell
    ("timestamp", {**KEY, **ORDER, W + "partitionpath.field": "ts"}),  # an error in the original
    ("complex", {W + "recordkey.field": "id, id2", W + "partitionpath.field": "part, p2"}),  # the same
    ("hive", SIMPLE),
    ("first value", SIMPLE),
    ("partial", SIMPLE),
    ("merge on read", {W + "table.type": "COPY_ON_WRITE"}),
    ("capture", {"hoodie.table.cdc.supplemental.logging.mode": "OP_KEY_ONLY"}),
]

REFUSED: list[tuple[str, dict[str, Any], str, str]] = [
    ("simple", {"hoodie.table.name": "other"}, "other", "t"),
    ("simple 8", {"hoodie.table.version": "9"}, "9", "8"),
    ("simple", {W + "recordkey.field": "id2"}, "id2", "id"),
    ("simple", {W + "recordkey.field": "id,id2"}, "id,id2", "id"),
    ("simple", {W + "partitionpath.field": "p2"}, "p2", "part"),
    ("simple", {W + "partitionpath.field": ""}, "", "part"),
    ("simple", {W + "partitionpath.field": "part:simple"}, "part:simple", "part"),
    ("simple", {W + "precombine.field": "dt"}, "dt", "ts"),
    ("simple", {"hoodie.table.ordering.fields": "dt"}, "dt", "ts"),
    ("simple", {"hoodie.table.recordkey.fields": "id2"}, "id2", "id"),
    ("simple", {"hoodie.table.partition.fields": "p2"}, "p2", "part"),
    ("simple", {W + "keygenerator.class": KEYGEN + "ComplexKeyGenerator"}, KEYGEN + "ComplexKeyGenerator", "SIMPLE"),
    ("simple", {W + "keygenerator.class": "com.me.Keys"}, "com.me.Keys", "SIMPLE"),
    ("simple", {W + "hive_style_partitioning": "true"}, "true", "false"),
    ("simple", {W + "partitionpath.urlencode": "true"}, "true", "false"),
    ("simple", {W + "drop.partition.columns": "true"}, "true", "false"),
    ("simple", {"hoodie.populate.meta.fields": "false"}, "false", "true"),
    ("simple", {"hoodie.table.timeline.timezone": "UTC"}, "UTC", "LOCAL"),
    ("simple", {"hoodie.table.cdc.enabled": "true"}, "true", "false"),
    ("simple", {"hoodie.partition.metafile.use.base.format": "true"}, "true", "false"),
    ("simple", {W + "table.type": "MERGE_ON_READ"}, "MERGE_ON_READ", "COPY_ON_WRITE"),
    ("simple", {"hoodie.write.record.merge.mode": "commit_time_ordering"}, COMMIT, EVENT),
    ("simple", {"hoodie.record.merge.mode": COMMIT}, COMMIT, EVENT),
    ("simple", {"hoodie.write.record.merge.strategy.id": "abc"}, "abc", "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5"),
    (
        "simple",
        {W + "payload.class": MODEL + "FirstValueAvroPayload"},
        MODEL + "FirstValueAvroPayload",
        f"merge mode {EVENT}",
    ),
    ("hive", {W + "hive_style_partitioning": "false"}, "false", "true"),
    ("generated keys", KEY, "id", "none: keys are generated"),
    ("unpartitioned", PART, "part", "none: the table has no partitions"),  # ignored by the original
    (
        "custom",
        {W + "partitionpath.field": "part:timestamp,ts:simple"},
        "part:timestamp,ts:simple",
        "part:simple,ts:timestamp",
    ),
    ("custom 6", {W + "partitionpath.field": "part:simple"}, "part:simple", "part,ts"),
    ("timestamp", {"hoodie.keygen.timebased.output.dateformat": "yyyy-MM-dd"}, "yyyy-MM-dd", "yyyy/MM/dd"),
    ("timestamp", {"hoodie.keygen.timebased.timestamp.type": "UNIX_TIMESTAMP"}, "UNIX_TIMESTAMP", "EPOCHMILLISECONDS"),
    ("complex", {W + "recordkey.field": "id2,id"}, "id2,id", "id,id2"),
    ("complex", {W + "partitionpath.field": "p2,part"}, "p2,part", "part,p2"),
    ("first value", DEFAULT, DEFAULT[W + "payload.class"], MODEL + "FirstValueAvroPayload"),
    ("commit time", {"hoodie.write.record.merge.mode": EVENT}, EVENT, COMMIT),
    ("marker", {"hoodie.payload.delete.marker": "X"}, "X", "D"),  # ignored by the original
    ("merge on read 6", DEFAULT, DEFAULT[W + "payload.class"], MODEL + "OverwriteWithLatestAvroPayload"),
    ("database", {"hoodie.database.name": "db2"}, "db2", "db1"),
    ("slashes", {W + "slash.separated.date.partitioning": "false"}, "false", "true"),
    ("capture", {"hoodie.table.cdc.supplemental.logging.mode": "DATA_BEFORE"}, "DATA_BEFORE", "OP_KEY_ONLY"),
]


def table(name: str) -> TableConfig:
    return TableConfig.for_new_table(Options.parse({"hoodie.table.name": "t", **TABLES[name]}))


@pytest.mark.parametrize(("name", "given"), ACCEPTED)
def test_accepted(name: str, given: dict[str, Any]) -> None:
    config = table(name)
    filled = config.validate_against(Options.parse(given))
    assert config.validate_against(filled) == filled  # what the table filled in never contradicts it


@pytest.mark.parametrize(
    ("name", "payload", "mode"),
    [
        ("partial", "OverwriteWithLatestAvroPayload", "EVENT_TIME_ORDERING, IGNORE_DEFAULTS"),
        ("simple", "OverwriteWithLatestAvroPayload", "EVENT_TIME_ORDERING"),
        ("simple 8", "PartialUpdateAvroPayload", "EVENT_TIME_ORDERING"),
        ("commit time", "DefaultHoodieRecordPayload", "COMMIT_TIME_ORDERING"),
    ],
)
def test_payload_class_of_another_merge_mode(name: str, payload: str, mode: str) -> None:
    text = rf"payload\.class={MODEL}{payload} has no effect: .* another merge mode \({mode}\)"
    with pytest.warns(OptionWithoutEffectWarning, match=text):
        table(name).validate_against(Options.parse({**SIMPLE, W + "payload.class": MODEL + payload}))


@pytest.mark.parametrize("key", ["hoodie.table.base.file.format", "hoodie.base.file.format"])
@pytest.mark.parametrize(("stored", "other"), [("PARQUET", "ORC"), ("ORC", "PARQUET")])
def test_another_format_of_base_files(key: str, stored: str, other: str) -> None:
    of_table = {"hoodie.table.name": "t", "hoodie.table.base.file.format": stored}
    config = TableConfig.for_new_table(Options.parse(of_table))
    with pytest.warns(OptionWithoutEffectWarning, match=rf"{key}={other} has no effect: table 't' has .* {stored};"):
        filled = config.validate_against(Options.parse({key: other}))
    assert config.validate_against(filled).get_typed(options.BASE_FILE_FORMAT).value == stored


@pytest.mark.parametrize(("name", "given", "value", "stored"), REFUSED)
def test_refused_with_key_values_and_cure(name: str, given: dict[str, Any], value: str, stored: str) -> None:
    with pytest.raises(TableConfigConflictError) as caught:
        table(name).validate_against(Options.parse(given))
    key = next(iter(given))  # the spelling that was used
    assert str(caught.value).startswith(f"option {key}={value!r} contradicts the value {stored!r} of the table; leave")


@pytest.mark.parametrize("name", TABLES)
def test_a_table_made_of_the_filled_options_is_the_same(name: str) -> None:
    config = table(name)
    filled = config.validate_against(Options.parse({}))
    if name == "custom 6":  # version 6 does not store the kinds
        filled = filled.merged({W + "partitionpath.field": CUSTOM[W + "partitionpath.field"]})
    if name in ("first value", "partial"):
        filled = filled.merged({W + "payload.class": config.merging.payload_class or config.merging.legacy_payload})
    different = {"hoodie.table.partition_extractor_class"}
    again = TableConfig.for_new_table(filled)
    assert {k: v for k, v in again.properties.items() if k not in different} == {
        k: v for k, v in config.properties.items() if k not in different
    }


def test_what_is_filled_in() -> None:
    filled = table("merge on read").validate_against(Options.parse({"mine": "kept"}))
    assert filled["mine"] == "kept"
    assert filled.get_typed(options.RECORDKEY_FIELD) == ("id",)
    assert filled.get_typed(options.PARTITIONPATH_FIELD) == ("part",)
    assert filled.get_typed(options.ORDERING_FIELDS) == ("ts",)
    assert filled.get_typed(options.TABLE_TYPE) is TableType.MERGE_ON_READ
    assert filled.get_typed(options.MERGE_MODE) is MergeMode.EVENT_TIME_ORDERING
    assert filled.get_typed(options.KEYGENERATOR_CLASS) == KEYGEN + "SimpleKeyGenerator"
    marker = table("marker").validate_against(Options.parse({}))
    assert marker.get_typed(options.PAYLOAD_DELETE_MARKER) == "D"
    assert table("timestamp").validate_against(Options.parse({}))[options.TIMESTAMP_OUTPUT_FORMAT.key] == "yyyy/MM/dd"
    assert table("simple 6").validate_against(Options.parse({})).get_typed(options.WRITE_TABLE_VERSION) == 6


def test_ordering_columns_of_a_write_to_a_table_without_any() -> None:
    given = Options.parse(ORDER)
    unordered = {"hoodie.table.name": "t", **KEY, **PART}
    table = TableConfig.for_new_table(Options.parse(unordered))
    with pytest.warns(OptionWithoutEffectWarning, match=r"precombine\.field=ts has no effect: .*without ordering"):
        table.validate_against(given)
    assert table.merging_for(None, ("ts",)) == table.merging
    # tables of version 6 leave it to each write
    old = TableConfig.for_new_table(Options.parse({**unordered, "hoodie.write.table.version": 6}))
    ordering = old.validate_against(given).get_typed(options.ORDERING_FIELDS)
    found = old.merging_for(MODEL + "DefaultHoodieRecordPayload", ordering)
    assert (found.mode, found.ordering_fields) == (MergeMode.EVENT_TIME_ORDERING, ("ts",))
    payload = {**ORDER, "hoodie.datasource.write.payload.class": MODEL + "DefaultHoodieRecordPayload"}
    assert old.merging_of_write(Options.parse(payload)) == found
    marked = {**payload, "hoodie.payload.delete.field": "op", "hoodie.payload.delete.marker": "D"}
    assert old.merging_of_write(Options.parse(marked)).deciding_columns["delete marker"] == ("op",)


def test_an_unknown_generator_is_named_as_it_was_written() -> None:
    with pytest.raises(InvalidOptionError, match=r"'NoSuchGen' of option '.*\.keygenerator\.class'"):
        TableConfig.for_new_table(
            Options.parse({"hoodie.table.name": "t", **SIMPLE, W + "keygenerator.class": "NoSuchGen"})
        )
