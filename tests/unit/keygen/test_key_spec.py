"""Key descriptions out of table configs, and names of generators."""

from __future__ import annotations

from functools import partial

import pytest

from pyhudi.config.enums import TimestampType
from pyhudi.errors import ConfigError, InvalidOptionError, UnsupportedTableError
from pyhudi.keygen.key_spec import KeySpec
from pyhudi.keygen.timestamp_settings import java_zone
from pyhudi.table.config.key_generator_type import (
    KeyGenType,
    PartitionField,
    PartitionKind,
    class_name,
    infer_keygen,
    parse_keygen,
    parse_partition_fields,
)
from tests.keys import FakeConfig

TIMES = {
    "hoodie.keygen.timebased.timestamp.type": "EPOCHMILLISECONDS",
    "hoodie.keygen.timebased.output.dateformat": "yyyy/MM/dd",
}


Config = partial(FakeConfig, partition="p")


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("SIMPLE", KeyGenType.SIMPLE),
        ("complex_avro", KeyGenType.COMPLEX),
        ("org.apache.hudi.keygen.SimpleKeyGenerator", KeyGenType.SIMPLE),
        ("org.apache.hudi.keygen.ComplexAvroKeyGenerator", KeyGenType.COMPLEX),
        ("org.apache.hudi.keygen.TimestampBasedAvroKeyGenerator", KeyGenType.TIMESTAMP),
        ("org.apache.hudi.keygen.NonpartitionedKeyGenerator", KeyGenType.NON_PARTITION),
        ("org.apache.hudi.metadata.HoodieTableMetadataKeyGenerator", KeyGenType.HOODIE_TABLE_METADATA),
        ("com.example.MyKeys", KeyGenType.USER_PROVIDED),
    ],
)
def test_names_of_generators(text: str, kind: KeyGenType) -> None:
    assert parse_keygen(text) is kind


def test_unknown_generator() -> None:
    with pytest.raises(InvalidOptionError, match="bogus"):
        parse_keygen("bogus")
    with pytest.raises(ConfigError):
        class_name(KeyGenType.USER_PROVIDED)


# as Apache Hudi 1.2.0 inferred them
@pytest.mark.parametrize(
    ("keys", "partition", "kind"),
    [
        ("id", "b", "SIMPLE"),
        ("id,b", "c", "COMPLEX"),
        ("id", "b,c", "COMPLEX"),
        ("id", " b , c ", "COMPLEX"),
        ("id", "", "NON_PARTITION"),
        ("id,b", "", "NON_PARTITION"),
        ("id", "b:simple", "CUSTOM"),
        ("", "b", "SIMPLE"),
        ("", "b,c", "COMPLEX"),
        ("", "b:simple", "CUSTOM"),
        ("", "", "NON_PARTITION"),
    ],
)
def test_inference(keys: str, partition: str, kind: str) -> None:
    assert infer_keygen(tuple(filter(None, keys.split(","))), partition) == kind


@pytest.mark.parametrize(
    ("keygen", "keys", "version", "options", "named"),
    [
        ("SIMPLE", ("id",), 9, {}, False),
        ("NON_PARTITION", ("id", "b"), 9, {}, True),
        ("GLOBAL_DELETE", ("id",), 9, {}, True),
        ("COMPLEX", ("id",), 9, {}, True),
        ("COMPLEX", ("id",), 9, {"hoodie.write.complex.keygen.new.encoding": "true"}, True),
        ("COMPLEX", ("id",), 8, {}, False),
        ("COMPLEX", ("id",), 8, {"hoodie.write.complex.keygen.new.encoding": "false"}, True),
        ("COMPLEX", ("id",), 6, {"hoodie.write.complex.keygen.new.encoding": "true"}, False),
        ("COMPLEX", ("id", "b"), 6, {}, True),
    ],
)
def test_named_parts(keygen: str, keys: tuple[str, ...], version: int, options: dict[str, str], named: bool) -> None:
    spec = KeySpec.from_config(Config(KeyGenType(keygen), keys, version=version), options)
    assert spec.named_parts is named


def test_encoding_of_the_keys_that_are_there() -> None:
    spec = KeySpec.from_config(Config(KeyGenType.COMPLEX, version=8))
    assert spec.matching("id:7", "7").named_parts
    assert not spec.matching("7", "7").named_parts
    assert not spec.matching("id:7", "id:7").named_parts, "a value may begin with the name of its field"
    assert spec.may_name_parts(["id:7", "id:8"])
    assert not spec.may_name_parts(["7", "id:7"])


def test_timestamp_parameters_come_from_options_or_the_table() -> None:
    stored = KeySpec.from_config(Config(KeyGenType.TIMESTAMP, properties=TIMES)).timestamp
    given = KeySpec.from_config(Config(KeyGenType.CUSTOM, partition="p:timestamp"), TIMES).timestamp
    old = {key.replace("hoodie.", "hoodie.deltastreamer."): value for key, value in TIMES.items()}
    spelled = KeySpec.from_config(Config(KeyGenType.TIMESTAMP), old).timestamp
    assert stored == given == spelled
    assert stored is not None
    assert (stored.type, stored.unit_ms, stored.output_zone) == (TimestampType.EPOCHMILLISECONDS, 1, None)


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"hoodie.keygen.timebased.timestamp.type": ""}, r"requires hoodie\.keygen\.timebased\.timestamp\.type"),
        ({"hoodie.keygen.timebased.timestamp.type": "X"}, r"'X' of option .*allowed: UNIX_TIMESTAMP"),
        ({"hoodie.keygen.timebased.output.dateformat": ""}, r"output\.dateformat"),
        ({"hoodie.keygen.timebased.timestamp.type": "DATE_STRING"}, r"input\.dateformat"),
        ({"hoodie.keygen.timebased.output.dateformat": "yyyy/QQ"}, "unknown letter 'Q'"),
        ({"hoodie.keygen.timebased.output.dateformat": "yyyy 'x"}, "unclosed quote"),
        (
            {
                "hoodie.keygen.timebased.timestamp.type": "SCALAR",
                "hoodie.keygen.timebased.timestamp.scalar.time.unit": "WEEKS",
            },
            "WEEKS",
        ),
    ],
)
def test_bad_timestamp_parameters(changes: dict[str, str], match: str) -> None:
    with pytest.raises(ConfigError, match=match):
        KeySpec.from_config(Config(KeyGenType.TIMESTAMP, properties={**TIMES, **changes}))


def test_configs_without_keys_that_can_be_made_here() -> None:
    properties = {"hoodie.table.keygenerator.class": "com.example.K"}
    with pytest.raises(UnsupportedTableError, match=r"com\.example\.K"):
        KeySpec.from_config(Config(KeyGenType.USER_PROVIDED, properties=properties))
    with pytest.raises(ConfigError, match="one record key field, but there are 2: id, b"):
        KeySpec.from_config(Config(KeyGenType.SIMPLE, ("id", "b")))
    with pytest.raises(ConfigError, match="exactly one partition field, but there are 0"):
        KeySpec.from_config(Config(KeyGenType.SIMPLE, partition=""))


def test_partition_fields() -> None:
    assert parse_partition_fields("a:SIMPLE, b:timestamp") == (
        PartitionField("a"),
        PartitionField("b", PartitionKind.TIMESTAMP),
    )
    with pytest.raises(InvalidOptionError, match="field:simple or field:timestamp"):
        parse_partition_fields("a:odd")


@pytest.mark.parametrize(
    ("text", "zone"),
    [
        *[("GMT+8:00", "+08:00"), ("GMT-0530", "-05:30"), ("GMT+9", "+09:00"), ("GMT+800", "+08:00")],
        *[("UTC", "UTC"), (" Asia/Tokyo ", "Asia/Tokyo"), ("Etc/GMT-8", "Etc/GMT-8"), ("EST", "America/New_York")],
        *[(unknown, "UTC") for unknown in ("+3", "+08:00", "UTC+8", "UT-3", "GMT+25", "GMT+8:5", "GMT+08:60")],
    ],
)
def test_zones(text: str, zone: str) -> None:
    assert java_zone(text) == zone


@pytest.mark.parametrize(("stored", "given", "expected"), [(True, {}, True), (False, {}, False), (False, "true", True)])
def test_slash_dates_by_the_table_or_the_option(stored: bool, given: object, expected: bool) -> None:
    options = {"hoodie.datasource.write.slash.separated.date.partitioning": str(given)} if given else {}
    spec = KeySpec.from_config(Config(KeyGenType.SIMPLE, slash_dates=stored), options)
    assert spec.slash_dates is expected
