"""New tables against what Apache Hudi 0.15.0, 1.0.2 and 1.2.0 wrote for the same options (recorded)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pyhudi.config import Options
from pyhudi.config.property_keys import TABLE_CHECKSUM
from pyhudi.errors import ConfigError, InvalidOptionError, UnsupportedTableError
from pyhudi.table.config.properties_text import is_intact
from pyhudi.table.config.table_config import TableConfig
from pyhudi.table.meta_client import TableMetaClient

RECORDED = json.loads((Path(__file__).parent / "data" / "new_tables.json").read_text(encoding="utf-8"))
_USER_CLASS = "user_kg"
"""Case of a key generator whose Java class was not there when Apache Hudi ran."""
CASES = [(release, name) for release, recorded in RECORDED.items() for name in recorded["cases"] if name != _USER_CLASS]

# table property keys given as options are meant by us, where the original ignores them
_MEANT = {"recordkey_table_key", "orc"}
DIFFERENT: dict[str, dict[str, str]] = {
    "0.15.0": {
        **dict.fromkeys(_MEANT, "table keys count as options"),
        "ord_table_key": "table keys count as options",
        "ord_table_pre": "table keys count as options",
        "custom_inferred": "typed partition columns mean the custom generator in every version",
        "key_empty": "an empty list of keys is none",
        "mode_commit": "the payload class of the same meaning is stored, as 1.x does",
        "mode_commit_tk": "the same",
        "mode_lower": "the same",
        "mode_event_noord": "the same",
        "strategy_commit": "the same",
    },
    "1.0.2": {
        **dict.fromkeys(_MEANT, "table keys count as options"),
        "ord_table_key": "table keys count as options",
        "ord_table_pre": "table keys count as options",
        "mode_commit_tk": "table keys count as options",
        "key_empty": "an empty list of keys is none",
        "delmark": "merge properties are stored, as 1.2.0 does in version 8 too",
    },
    "1.2.0": {
        **dict.fromkeys(_MEANT, "table keys count as options"),
        "pl_compaction_key": "table keys count as options",
        "mode_commit_tk": "table keys count as options",
        "key_empty": "an empty list of keys is none",
        "slash": "stored, so that no later writer can forget it",
        "slash_hive": "the same",
    },
}
REFUSED: dict[str, tuple[set[str], type[Exception]]] = {
    "multi_fmt": (set(RECORDED), UnsupportedTableError),
    "utc_lower": (set(RECORDED), InvalidOptionError),
    "type_lower": (set(RECORDED), InvalidOptionError),
    "mode_custom_bare": (set(RECORDED), ConfigError),
    "mode_custom": ({"0.15.0"}, ConfigError),
    "strategy_only": ({"0.15.0"}, ConfigError),
    "pl_default_commit_mode": (set(RECORDED), ConfigError),
    "mergeprop": (set(RECORDED), ConfigError),
    "partialmode": (set(RECORDED), ConfigError),
}
# refused here, made there
MORE_REFUSED = {(name, r) for r in RECORDED for name in ("multi_fmt", "mergeprop", "partialmode")} | {
    (name, "0.15.0") for name in ("mode_custom", "mode_custom_bare", "strategy_only")
}
MORE_REFUSED |= {("pl_default_commit_mode", r) for r in ("0.15.0", "1.2.0")}  # 1.2.0 refuses the next write


def options_of(release: str, name: str) -> Options:
    recorded: dict[str, Any] = RECORDED[release]
    given = recorded["cases"][name]["options"]
    return Options.parse({"hoodie.table.name": "t", "hoodie.write.table.version": recorded["version"], **given})


@pytest.mark.filterwarnings("ignore:hoodie.datasource.write.keygenerator.type")
@pytest.mark.parametrize(("release", "name"), CASES)
def test_same_properties_as_the_original(release: str, name: str) -> None:
    recorded = RECORDED[release]
    case = recorded["cases"][name]
    releases, error = REFUSED.get(name, (set(), Exception))
    if release in releases:
        assert "error" in case or (name, release) in MORE_REFUSED
        with pytest.raises(error):
            TableConfig.for_new_table(options_of(release, name))
        return
    config = TableConfig.for_new_table(options_of(release, name))
    config.check_readable()
    config.check_writable()
    assert is_intact(config.properties)
    assert all(type(value) is str for value in config.properties.values())
    expected = {k: v for k, v in recorded["base"].items() if k not in case.get("unset", ())} | case.get("set", {})
    assert (dict(config.properties) != expected) == (name in DIFFERENT[release])


@pytest.mark.parametrize("release", RECORDED)
def test_classes_of_users_are_stored_by_name(release: str) -> None:
    """As 1.1.1 and 1.2.0 do in versions 8 and 9, and 0.15.0 in version 6. 1.0.2 creates no such tables, but reads and
    writes them (tests/interop/write/test_registered_key_generators.py)."""
    properties = TableConfig.for_new_table(options_of(release, _USER_CLASS)).properties
    assert properties["hoodie.table.keygenerator.class"] == "com.x.Nope"
    kind = None if release == "0.15.0" else "USER_PROVIDED"
    assert properties.get("hoodie.table.keygenerator.type") == kind


@pytest.mark.parametrize("release", RECORDED)
def test_same_folders_as_the_original(release: str, tmp_path: Path) -> None:
    TableMetaClient.create(tmp_path / "t", TableConfig.for_new_table(options_of(release, "key_part_ord")))
    folders = sorted(str(p.relative_to(tmp_path / "t")) for p in (tmp_path / "t").rglob("*") if p.is_dir())
    assert folders == RECORDED[release]["folders"]


def test_a_table_needs_a_name() -> None:
    with pytest.raises(ConfigError, match=r"requires a name: set hoodie\.table\.name"):
        TableConfig.for_new_table(Options.parse({}))


def test_version_9_is_the_default() -> None:
    config = TableConfig.for_new_table(Options.parse({"hoodie.table.name": "t"}))
    assert config.version == int(config.properties["hoodie.table.initial.version"]) == 9
    assert config.layout.folder == ".hoodie/timeline"
    assert config.properties[TABLE_CHECKSUM] == "498511606"


def test_the_option_chooses_the_version_and_the_property_agrees_with_it() -> None:
    given = {"hoodie.table.name": "t", "hoodie.table.version": "8"}
    with pytest.raises(ConfigError, match=r"hoodie\.table\.version=8 .* would be 9: set hoodie\.write\.table\.version"):
        TableConfig.for_new_table(Options.parse(given))
    assert TableConfig.for_new_table(Options.parse({**given, "hoodie.write.table.version": "8"})).version == 8


def test_columns_of_the_custom_generator_are_stored_with_conversions() -> None:
    """Apache Hudi refuses them without, also when it writes to a table that stores them so."""
    given = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.CustomKeyGenerator",
        "hoodie.datasource.write.partitionpath.field": "city, day:SIMPLE",
    }
    stored = TableConfig.for_new_table(Options.parse(given)).properties["hoodie.table.partition.fields"]
    assert stored == "city:simple,day:SIMPLE"


def test_settings_of_the_timestamp_generator_are_stored_under_the_key_that_every_writer_reads() -> None:
    given = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.TimestampBasedKeyGenerator",
        "hoodie.datasource.write.partitionpath.field": "ts",
        "hoodie.streamer.keygen.timebased.timestamp.type": "EPOCHMILLISECONDS",
        "hoodie.streamer.keygen.timebased.output.dateformat": "yyyy-MM-dd hh",
    }
    properties = TableConfig.for_new_table(Options.parse(given)).properties
    assert properties["hoodie.keygen.timebased.timestamp.type"] == "EPOCHMILLISECONDS"
    assert properties["hoodie.keygen.timebased.output.dateformat"] == "yyyy-MM-dd hh"


@pytest.mark.parametrize("chosen", ["HFILE", "LANCE", "hoodie_log"])
def test_base_formats_that_cannot_be_written(chosen: str) -> None:
    with pytest.raises(InvalidOptionError, match="PARQUET, ORC"):
        TableConfig.for_new_table(Options.parse({"hoodie.table.name": "t", "hoodie.table.base.file.format": chosen}))


_BY_EVENT_TIME = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.payload.class": "org.apache.hudi.common.model.DefaultHoodieRecordPayload",
    "hoodie.datasource.write.precombine.field": "ts",
}


def test_mode_and_strategy_must_agree() -> None:
    with pytest.raises(ConfigError, match=r"COMMIT_TIME_ORDERING contradicts .*eeb8d96f.*means EVENT_TIME_ORDERING"):
        TableConfig.for_new_table(
            Options.parse(
                {
                    "hoodie.table.name": "t",
                    "hoodie.write.record.merge.mode": "COMMIT_TIME_ORDERING",
                    "hoodie.write.record.merge.strategy.id": "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5",
                }
            )
        )


@pytest.mark.parametrize("version", ["6", "8", "9"])
@pytest.mark.parametrize(
    "contradicting",
    [
        {"hoodie.record.merge.mode": "COMMIT_TIME_ORDERING"},
        {"hoodie.record.merge.strategy.id": "ce9acb64-bde0-424c-9b91-f6ebba25356d"},
    ],
)
def test_mode_and_payload_class_must_agree(contradicting: dict[str, str], version: str) -> None:
    """1.0.2 refuses it. 1.2.0 makes the table by the payload class and refuses the next write with the options."""
    ((key, value),) = contradicting.items()
    with pytest.raises(ConfigError, match=rf"^{key}={value} contradicts .*DefaultHoodie.*means EVENT_TIME_ORDERING"):
        TableConfig.for_new_table(
            Options.parse({**_BY_EVENT_TIME, "hoodie.write.table.version": version} | contradicting)
        )


def test_the_default_strategy_of_older_releases_contradicts_no_payload_class() -> None:
    """0.15.0 has it with all payload classes, and stores it with them."""
    given = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.payload.class": "org.apache.hudi.common.model.OverwriteWithLatestAvroPayload",
        "hoodie.datasource.write.record.merger.strategy": "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5",
    }
    config = TableConfig.for_new_table(Options.parse({**given, "hoodie.write.table.version": "6"}))
    assert config.merging.mode == "COMMIT_TIME_ORDERING"
    with pytest.raises(ConfigError, match="means COMMIT_TIME_ORDERING"):
        TableConfig.for_new_table(Options.parse({**given, "hoodie.write.table.version": "9"}))


@pytest.mark.parametrize("mode", ["EVENT_TIME_ORDERING", "CUSTOM"])
@pytest.mark.parametrize("version", ["8", "9"])
def test_the_payload_class_decides_with_its_own_mode_and_custom(version: str, mode: str) -> None:
    given = Options.parse({**_BY_EVENT_TIME, "hoodie.write.table.version": version, "hoodie.record.merge.mode": mode})
    config = TableConfig.for_new_table(given)
    assert config.merging.mode == "EVENT_TIME_ORDERING"
    config.validate_against(given)


_PARTIAL = "hoodie.table.partial.update.mode"
_UNAVAILABLE = "hoodie.write.partial.update.unavailable.value"
_PROPERTY = "hoodie.record.merge.property."
_PAYLOAD = "hoodie.datasource.write.payload.class"


@pytest.mark.parametrize(
    ("given", "cure"),
    [
        ({_PARTIAL: "IGNORE_DEFAULTS"}, r"payload\.class to .*PartialUpdateAvroPayload \(EVENT_TIME_ORDERING\)"),
        ({_PARTIAL: "FILL_UNAVAILABLE"}, "PostgresDebeziumAvroPayload"),
        ({_UNAVAILABLE: "?"}, r"PostgresDebeziumAvroPayload, and it is __debezium_unavailable_value"),
        ({_PROPERTY + _UNAVAILABLE: "?"}, "leave it out"),
        ({_PROPERTY + "mine": "x"}, "leave it out"),
        ({_PROPERTY + "hoodie.payload.delete.field": "op"}, r"set hoodie\.payload\.delete\.field"),
    ],
)
def test_merge_properties_that_a_new_table_would_not_have(given: dict[str, str], cure: str) -> None:
    with pytest.raises(ConfigError, match=cure):
        TableConfig.for_new_table(Options.parse({"hoodie.table.name": "t", **given}))


def test_merge_properties_that_a_new_table_has_anyway() -> None:
    payload = "org.apache.hudi.common.model.debezium.PostgresDebeziumAvroPayload"
    given = {"hoodie.table.name": "t", _PAYLOAD: payload}
    properties = TableConfig.for_new_table(Options.parse(given)).properties
    again = {key: value for key, value in properties.items() if key == _PARTIAL or key.startswith(_PROPERTY)}
    assert len(again) == 4
    again[_UNAVAILABLE] = "__debezium_unavailable_value"
    assert TableConfig.for_new_table(Options.parse({**given, **again})).properties == properties


def test_a_key_generator_type_without_effect_is_told() -> None:
    given = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "part",
    }
    with pytest.warns(UserWarning, match=r"type=complex has no effect.*imply SIMPLE; set hoodie"):
        config = TableConfig.for_new_table(
            Options.parse({**given, "hoodie.datasource.write.keygenerator.type": "complex"})
        )
    assert config.keygen == "SIMPLE"
    with pytest.raises(InvalidOptionError, match="MAGIC"):
        TableConfig.for_new_table(Options.parse({**given, "hoodie.datasource.write.keygenerator.type": "MAGIC"}))
