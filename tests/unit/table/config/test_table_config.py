from __future__ import annotations

import json
import pickle
import zipfile

import pytest

from pyhudi.config import Options
from pyhudi.config.enums import CdcMode, FileFormat, MergeMode, PartialUpdateMode, TableType, TimelineTimezone
from pyhudi.errors import CorruptTableError, UnsupportedTableError
from pyhudi.table.config.key_generator_type import KeyGenType, PartitionField, PartitionKind
from pyhudi.table.config.merge_settings import DELETE_FIELD, DELETE_MARKER, UNAVAILABLE_VALUE
from pyhudi.table.config.payload_classes import DEFAULT_PAYLOAD, OVERWRITE_PAYLOAD
from pyhudi.table.config.properties_text import is_intact, parse_properties
from pyhudi.table.config.table_config import TableConfig
from tests.golden.expected import NAMES, TABLES

COMMIT, EVENT, CUSTOM = MergeMode.COMMIT_TIME_ORDERING, MergeMode.EVENT_TIME_ORDERING, MergeMode.CUSTOM
MODEL = "org.apache.hudi.common.model."


def golden(name: str) -> dict[str, TableConfig]:
    """The configs in a golden table: of the table (``""``) and of its metadata table."""
    found = {}
    with zipfile.ZipFile(TABLES / f"{name}.zip") as archive:
        for entry in archive.namelist():
            if entry.endswith("/hoodie.properties"):
                inner = entry.partition("/")[2].removesuffix(".hoodie/hoodie.properties").removesuffix("/")
                properties = parse_properties(archive.read(entry))
                assert is_intact(properties)
                found[inner] = TableConfig(properties)
    return found


def config(version: int = 9, **properties: str) -> TableConfig:
    keys = {f"hoodie.{key.replace('__', '.')}": value for key, value in properties.items()}
    layout = "2" if version >= 8 else "1"
    return TableConfig(
        {
            "hoodie.table.name": "t",
            "hoodie.table.version": str(version),
            "hoodie.timeline.layout.version": layout,
            **keys,
        }
    )


MIXED = "v9_mor_mixed_formats"
WRITABLE = [name for name in NAMES if not name.startswith("v5_") and name != MIXED]
JAVA = "v9_mor_java_client"
_TABLE_NAMES = {"v6_mor_partial_payload": "t", JAVA: "jt"}
"""Names of tables that are not those of their folders."""


class TestGoldenTables:
    @pytest.mark.parametrize("name", [name for name in NAMES if name.startswith("v5_")])
    def test_version_5_is_read_and_not_written(self, name: str) -> None:
        for found in golden(name).values():
            found.check_readable()
            with pytest.raises(UnsupportedTableError, match="upgrade the table first"):
                found.check_writable()

    @pytest.mark.parametrize("name", WRITABLE)
    def test_all_are_served(self, name: str) -> None:
        for inner, found in golden(name).items():
            found.check_readable()
            found.check_writable()
            assert found.is_metadata_table == (inner == ".hoodie/metadata")
            assert found.name.startswith(_TABLE_NAMES.get(name, name))
            assert found.version == int(name.split("_")[2 if "_to_" in name else 0].removeprefix("v"))
            assert found.base_file_format is (FileFormat.HFILE if found.is_metadata_table else FileFormat.PARQUET)
            merge_on_read = found.is_metadata_table or "_mor_" in name
            assert found.table_type is (TableType.MERGE_ON_READ if merge_on_read else TableType.COPY_ON_WRITE)

    def test_timestamp_keygen(self) -> None:
        found = golden("v9_cow_ts_keygen")[""]
        assert found.keygen is KeyGenType.TIMESTAMP
        assert found.partition_fields == (PartitionField("created", PartitionKind.TIMESTAMP),)
        assert found.hive_style

    def test_complex_keys(self) -> None:
        found = golden("v9_cow_complex_keys")[""]
        assert found.record_keys == ("a", "b")
        assert found.partition_fields == (PartitionField("p1"), PartitionField("p2"))
        assert found.url_encode
        assert found.metadata_partitions == ("files",)
        assert found.metadata_partitions_inflight == ()

    def test_partial_updates(self) -> None:
        found = golden("v9_mor_ignore_defaults")[""]
        assert found.merge_mode is COMMIT
        assert found.merging.partial_update_mode is PartialUpdateMode.IGNORE_DEFAULTS
        assert found.merging.legacy_payload == MODEL + "OverwriteNonDefaultsWithLatestAvroPayload"

    def test_custom_deletes(self) -> None:
        found = golden("v9_mor_cluster_restore")[""]
        assert dict(found.merging.properties) == {DELETE_FIELD: "op", DELETE_MARKER: "DEL"}

    def test_upgraded(self) -> None:
        found = golden("v6_to_v9_cow")[""]
        assert (found.version, found.properties["hoodie.table.initial.version"]) == (9, "6")
        assert found.layout.history == ".hoodie/timeline/history"
        assert found.merge_mode is EVENT

    def test_sql_tables_leave_keys_out(self) -> None:
        found = golden("v9_mor_partial_merge")[""]
        assert found.populate_meta_fields
        assert found.timezone is TimelineTimezone.LOCAL
        assert found.base_file_format is FileFormat.PARQUET
        assert not found.cdc_enabled
        assert found.database == "default"
        assert found.create_schema is not None
        assert found.create_schema.startswith('{"type":"record"')
        assert found.partition_fields == ()

    def test_virtual_keys(self) -> None:
        assert not golden("v9_cow_virtual_keys")[""].populate_meta_fields

    def test_change_data_capture(self) -> None:
        found = golden("v8_cow_cdc")[""]
        assert found.cdc_enabled
        assert found.cdc_mode is CdcMode.DATA_BEFORE_AFTER

    # the same options again: what each golden table was made with
    @pytest.mark.parametrize(
        "name", [n for n in WRITABLE if "partial_merge" not in n and n not in ("v8_cow_alter", "v6_to_v9_cow", JAVA)]
    )  # without those made by SQL or the Java client, or upgraded
    def test_a_new_table_of_the_same_options_has_the_same_properties(self, name: str) -> None:
        found = golden(name)[""]
        expected = {k: v for k, v in found.properties.items() if not k.startswith("hoodie.table.metadata.partitions")}
        expected.pop("hoodie.table.index.defs.path", None)
        if name == "v8_mor_by_12":  # 1.2.0 writes keys of version 9 into version 8 tables, which 1.0 does not know
            assert expected.pop("hoodie.table.format") == "native"
            del expected["hoodie.table.partition_extractor_class"]
            expected["hoodie.table.precombine.field"] = expected.pop("hoodie.table.ordering.fields")
        write = "hoodie.datasource.write."
        given: dict[str, object] = {
            "hoodie.table.name": found.name,
            "hoodie.write.table.version": found.version,
            write + "table.type": str(found.table_type),
            write + "recordkey.field": ",".join(found.record_keys),
            write + "partitionpath.field": found.partition_spec,
            write + "hive_style_partitioning": found.hive_style,
            write + "partitionpath.urlencode": found.url_encode,
            "hoodie.populate.meta.fields": found.populate_meta_fields,
            "hoodie.table.cdc.enabled": found.cdc_enabled,
        }
        if found.ordering_fields:
            given[write + "precombine.field"] = ",".join(found.ordering_fields)
        if found.merging.partial_update_mode:
            given[write + "payload.class"] = found.merging.payload_class or found.merging.legacy_payload
        if found.keygen is KeyGenType.TIMESTAMP:
            given[write + "keygenerator.class"] = "org.apache.hudi.keygen.TimestampBasedKeyGenerator"
            given |= {k: v for k, v in expected.items() if k.startswith("hoodie.keygen.timebased.")}
        given |= found.merging.properties
        assert dict(TableConfig.for_new_table(Options.parse(given)).properties) == expected


class TestMerging:
    def test_version_6_merges_by_commit_time_and_dedupes_by_ordering(self) -> None:
        merging = config(6, table__precombine__field="ts").merging
        assert (merging.mode, merging.dedupe_mode) == (COMMIT, EVENT)
        assert merging.ordering_fields == ("ts",)
        assert config(6).merging.dedupe_mode is COMMIT

    def test_version_6_copy_on_write_takes_the_payload_of_the_write(self) -> None:
        table = config(6, table__precombine__field="ts")
        assert table.merging_for(DEFAULT_PAYLOAD).mode is EVENT
        assert table.merging_for(DEFAULT_PAYLOAD).dedupe_mode is EVENT
        stored = config(6, compaction__payload__class=DEFAULT_PAYLOAD)
        assert stored.merging_for(OVERWRITE_PAYLOAD).mode is EVENT

    @pytest.mark.parametrize("version", [6, 8])
    def test_known_payloads_are_translated(self, version: int) -> None:
        extra = {"record__merge__mode": "CUSTOM"} if version == 8 else {}
        merging = config(
            version, compaction__payload__class=MODEL + "debezium.PostgresDebeziumAvroPayload", **extra
        ).merging
        assert merging.mode is EVENT
        assert merging.partial_update_mode is PartialUpdateMode.FILL_UNAVAILABLE
        assert merging.ordering_fields == ("_event_lsn",)
        assert merging.properties == {
            DELETE_FIELD: "_change_operation_type",
            DELETE_MARKER: "d",
            UNAVAILABLE_VALUE: "__debezium_unavailable_value",
        }
        assert merging.payload_class is None

    def test_unknown_payloads_are_custom(self) -> None:
        table = config(
            9,
            record__merge__mode="CUSTOM",
            record__merge__strategy__id="00000000-0000-0000-0000-000000000000",
            compaction__payload__class="com.me.Payload",
        )
        assert table.merge_mode is CUSTOM
        assert table.merging.payload_class == "com.me.Payload"
        assert config(6, compaction__payload__class="com.me.Payload").merge_mode is CUSTOM

    def test_mergers_by_id(self) -> None:
        table = config(9, record__merge__mode="CUSTOM", record__merge__strategy__id="1897ef5f")
        assert (table.merge_mode, table.merging.strategy_id, table.merging.payload_class) == (CUSTOM, "1897ef5f", None)

    @pytest.mark.parametrize(
        ("properties", "mode"),
        [
            ({}, COMMIT),
            ({"table__ordering__fields": "a"}, EVENT),
            (
                {"record__merge__strategy__id": "ce9acb64-bde0-424c-9b91-f6ebba25356d", "table__ordering__fields": "a"},
                COMMIT,
            ),
            ({"compaction__payload__class": DEFAULT_PAYLOAD}, EVENT),
            ({"record__merge__mode": "commit_time_ordering", "table__ordering__fields": "a"}, COMMIT),
        ],
    )
    def test_a_missing_mode_is_inferred(self, properties: dict[str, str], mode: MergeMode) -> None:
        assert config(9, **properties).merge_mode is mode

    @pytest.mark.parametrize("kind", list(TableType))
    @pytest.mark.parametrize("mode", list(MergeMode))
    @pytest.mark.parametrize("partial", [None, *PartialUpdateMode])
    def test_values_of_merged_rows(self, kind: TableType, mode: MergeMode, partial: PartialUpdateMode | None) -> None:
        properties = {"table__type": str(kind), "record__merge__mode": str(mode)}
        if mode is CUSTOM:
            properties["record__merge__strategy__id"] = "1897ef5f"
        if partial is not None:
            properties["table__partial__update__mode"] = str(partial)
        table = config(9, **properties)
        assert table.merging.computes_values == (mode is CUSTOM)
        assert table.merging.combines_versions == (mode is CUSTOM or partial is not None)
        assert table.has_stored_values_only == (mode is not CUSTOM or kind is TableType.COPY_ON_WRITE)


class TestKeys:
    def test_the_class_of_version_6(self) -> None:
        table = config(6, table__keygenerator__class="org.apache.hudi.keygen.ComplexAvroKeyGenerator")
        assert table.keygen is KeyGenType.COMPLEX

    def test_none_named(self) -> None:
        assert config(table__recordkey__fields="a").keygen is KeyGenType.NON_PARTITION
        assert config(table__recordkey__fields="a", table__partition__fields="p").keygen is KeyGenType.SIMPLE
        assert config(table__recordkey__fields="a,b", table__partition__fields="p").keygen is KeyGenType.COMPLEX

    def test_custom_kinds(self) -> None:
        table = config(table__keygenerator__type="CUSTOM", table__partition__fields="a:SIMPLE, b:timestamp")
        assert table.partition_fields == (PartitionField("a"), PartitionField("b", PartitionKind.TIMESTAMP))


class TestRefusals:
    @pytest.mark.parametrize(
        ("version", "cure"),
        [(10, "newer release"), (7, "interrupted"), (4, "upgrade it with Apache Hudi"), (0, "upgrade")],
    )
    def test_versions(self, version: int, cure: str) -> None:
        with pytest.raises(UnsupportedTableError, match=rf"'t' has version {version}.*5, 6, 8, 9.*{cure}"):
            config(version).check_readable()

    def test_version_5_is_read_only(self) -> None:
        config(5).check_readable()
        with pytest.raises(UnsupportedTableError, match=r"version 5.*upgrade the table first"):
            config(5).check_writable()

    def test_keys_of_java_classes_may_change_columns(self) -> None:
        keys = {"table__recordkey__fields": "id"}
        table = config(table__keygenerator__type="USER_PROVIDED", table__keygenerator__class="com.me.Keys", **keys)
        table.check_readable()
        table.check_writable()  # writes, but not services, require a registered generator
        assert (table.record_keys, table.columns_of_key) == (("id",), ())
        assert config(**keys).columns_of_key == ("id",)

    def test_columns_whose_types_would_be_lost_are_read_only(self) -> None:
        vector = {"type": "fixed", "name": "vector_float_3", "size": 12, "logicalType": "vector", "dimension": 3}
        items = {"type": "array", "items": ["null", vector]}
        inside = {"type": "record", "name": "r", "fields": [{"name": "v", "type": ["null", vector]}]}
        for kind in (items, ["null", inside]):
            schema = {"type": "record", "name": "t", "fields": [{"name": "v", "type": kind}]}
            table = config(table__create__schema=json.dumps(schema))
            table.check_readable()
            with pytest.raises(UnsupportedTableError, match=r"the types vector .*write the table with Apache Hudi"):
                table.check_writable()
        for fields in ([], [{"name": "v", "type": vector}, {"name": "w", "type": ["null", vector]}]):
            schema = {"type": "record", "name": "t", "fields": fields}
            config(table__create__schema=json.dumps(schema)).check_writable()

    def test_a_create_schema_that_is_not_json_is_named(self) -> None:
        match = r"hoodie.table.create.schema='\{\\\\', which is not JSON .*overwrite_properties"
        with pytest.raises(CorruptTableError, match=match):
            config(table__create__schema="{\\").check_writable()

    @pytest.mark.parametrize(
        ("properties", "match"),
        [
            ({"table__format": "iceberg"}, "'iceberg'"),
            ({"table__base__file__format": "LANCE"}, "format LANCE"),
            ({"table__base__file__format": "HFILE"}, "format HFILE"),
            ({"table__type": "APPEND_ONLY"}, r"hoodie\.table\.type=APPEND_ONLY.*COPY_ON_WRITE"),
            ({"table__timeline__timezone": "MARS"}, "MARS"),
        ],
    )
    def test_features(self, properties: dict[str, str], match: str) -> None:
        with pytest.raises(UnsupportedTableError, match=match):
            config(**properties).check_readable()

    def test_tables_with_several_base_file_formats_are_only_read(self) -> None:
        mixed = golden(MIXED)[""]
        mixed.check_readable()
        with pytest.raises(UnsupportedTableError, match=r"mix base file formats.*write the table with Apache Hudi"):
            mixed.check_writable()

    @pytest.mark.parametrize("mode", ["record__merge__mode", "table__partial__update__mode"])
    def test_unknown_ways_of_merging(self, mode: str) -> None:
        with pytest.raises(UnsupportedTableError, match=f"hoodie.{mode.replace('__', '.')}=TELEPATHY"):
            config(**{mode: "TELEPATHY"}).check_readable()

    def test_nonsense(self) -> None:
        with pytest.raises(CorruptTableError, match=r"hoodie\.table\.version='nine'"):
            TableConfig({"hoodie.table.name": "t", "hoodie.table.version": "nine"}).check_readable()
        with pytest.raises(CorruptTableError, match=r"version 9 has hoodie\.timeline\.layout\.version=1"):
            TableConfig(
                {"hoodie.table.name": "t", "hoodie.table.version": "9", "hoodie.timeline.layout.version": "1"}
            ).check_readable()
        with pytest.raises(UnsupportedTableError, match=r"hoodie\.table\.keygenerator\.type=MAGIC"):
            config(table__keygenerator__type="MAGIC").check_readable()
        with pytest.raises(UnsupportedTableError, match=r"hoodie\.table\.partition\.fields=a:magic"):
            config(table__partition__fields="a:magic").check_readable()


def test_configs_pickle_and_compare() -> None:
    table = golden("v9_cow_types")[""]
    assert table.name == "v9_cow_types"
    again = pickle.loads(pickle.dumps(table))
    assert again == table
    assert hash(again) == hash(table)
    assert repr(table) == "TableConfig('v9_cow_types', version 9, COPY_ON_WRITE)"
