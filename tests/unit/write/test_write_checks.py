"""What is said of a write before it begins."""

from __future__ import annotations

import warnings

import pytest

from pyhudi.config import Options
from pyhudi.config.enums import Operation
from pyhudi.errors import ConfigError, PartitionValueWarning, UnsupportedTableError
from pyhudi.table.config.table_config import TableConfig
from pyhudi.write.write_checks import check_writable, warn_of_old_partitions

MOVES = "hoodie.record.index.update.partition.path"


def warned(operation: Operation = Operation.UPSERT, fields: str = "city", **more: str) -> list[str]:
    table = Options.parse(
        {
            "hoodie.table.name": "t",
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.partitionpath.field": fields,
        }
    )
    opts = Options.parse({"hoodie.index.type": "RECORD_INDEX"} | {k.replace("__", "."): v for k, v in more.items()})
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        warn_of_old_partitions(TableConfig.for_new_table(table), operation, opts)
    assert all(w.category is PartitionValueWarning for w in found)
    return [str(w.message) for w in found]


def test_records_that_stay_in_their_old_partition() -> None:
    (message,) = warned()
    assert "its incoming city is ignored" in message
    assert MOVES in message


@pytest.mark.parametrize("said", ["true", "false"])
def test_who_says_what_is_wanted_is_not_warned(said: str) -> None:
    assert warned(hoodie__record__index__update__partition__path=said) == []


def test_where_nothing_can_be_dropped() -> None:
    assert warned(fields="") == []
    assert warned(Operation.INSERT) == []
    assert warned(hoodie__index__type="RECORD_LEVEL_INDEX") == []
    assert warned(hoodie__index__type="GLOBAL_SIMPLE") == []


def check(operation: Operation, *, more_for_table: dict[str, str] | None = None, **more: str) -> None:
    table = {"hoodie.table.name": "t", "hoodie.datasource.write.recordkey.field": "id"}
    config = TableConfig.for_new_table(Options.parse(table | (more_for_table or {})))
    opts = Options.parse({k.replace("__", "."): v for k, v in more.items()})
    check_writable(config, config.merging, operation, opts)


@pytest.mark.parametrize(
    "operation", [Operation.BULK_INSERT, Operation.INSERT_OVERWRITE, Operation.INSERT_OVERWRITE_TABLE]
)
def test_duplicates_that_are_not_looked_for(operation: Operation) -> None:
    with pytest.raises(ConfigError, match=rf"policy=drop: {operation} does not look .*use the operation insert"):
        check(operation, hoodie__datasource__insert__dup__policy="drop")
    with pytest.raises(ConfigError, match="policy=fail"):
        check(operation, hoodie__datasource__insert__dup__policy="fail")
    dropping = "hoodie__datasource__write__insert__drop__duplicates"
    with pytest.raises(ConfigError, match="duplicates=true"):
        check(operation, **{dropping: "true"})
    check(operation, **{dropping: "false"}, hoodie__datasource__insert__dup__policy="none")
    check(operation)
    check(Operation.INSERT, **{dropping: "true"})


def test_inserts_that_need_the_merger_of_the_table() -> None:
    custom = {"hoodie.write.record.merge.mode": "CUSTOM", "hoodie.write.record.merge.strategy.id": "unknown"}
    matching = {"hoodie__merge__allow__duplicate__on__inserts": "false"}
    for operation, more in ((Operation.INSERT, {}), (Operation.BULK_INSERT, {"hoodie__index__type": "BUCKET"})):
        check(operation, more_for_table=custom, **more)
        with pytest.raises(UnsupportedTableError, match="unknown"):
            check(operation, more_for_table=custom, **matching, **more)
    check(Operation.BULK_INSERT, more_for_table=custom, **matching)


PARSER = "hoodie.keygen.datetime.parser.class"
OLD_PARSER = "hoodie.deltastreamer.keygen.datetime.parser.class"
TIMES = {
    "hoodie.datasource.write.partitionpath.field": "day",
    "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.TimestampBasedKeyGenerator",
    "hoodie.keygen.timebased.timestamp.type": "EPOCHMILLISECONDS",
    "hoodie.keygen.timebased.output.dateformat": "yyyy",
}
CUSTOM = TIMES | {
    "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.CustomKeyGenerator",
    "hoodie.datasource.write.partitionpath.field": "day:TIMESTAMP",
}


@pytest.mark.parametrize("table", [TIMES, CUSTOM])
@pytest.mark.parametrize("key", [PARSER, OLD_PARSER])
def test_parsers_of_dates_in_java(table: dict[str, str], key: str) -> None:
    with pytest.raises(UnsupportedTableError, match=rf"{PARSER}=org.example.Mine: .*leave it out.*output.dateformat"):
        check(Operation.UPSERT, more_for_table=table, **{key: "org.example.Mine"})
    config = TableConfig.for_new_table(Options.parse({"hoodie.table.name": "t"} | table))
    stored = TableConfig(config.properties | {key: "org.example.Mine"})
    with pytest.raises(UnsupportedTableError, match="parsers of dates"):
        check_writable(stored, stored.merging, Operation.INSERT, Options.parse({}))
    check(Operation.UPSERT, more_for_table=table, **{key: "org.apache.hudi.keygen.parser.HoodieDateTimeParser"})
    check(Operation.UPSERT, **{key: "org.example.Mine"})  # no dates


def test_tables_whose_writer_passed_the_keys() -> None:
    """Apache Hudi's Java client records no columns of keys; generated keys would duplicate the records."""
    table = {"hoodie.table.name": "t", "hoodie.table.type": "COPY_ON_WRITE", "hoodie.table.version": "9"}
    config = TableConfig(table)
    for operation in (Operation.INSERT, Operation.BULK_INSERT, Operation.UPSERT, Operation.INSERT_OVERWRITE):
        with pytest.raises(UnsupportedTableError, match=r"how keys .* are made.*set hoodie\.table\.recordkey\.fields"):
            check_writable(config, config.merging, operation, Options.parse({}))
    check_writable(config, config.merging, Operation.UPSERT, Options.parse({}), located=True)
    with pytest.raises(UnsupportedTableError, match="new rows cannot be written"):
        check_writable(config, config.merging, Operation.UPSERT, Options.parse({}), located=True, adds_records=True)
    check_writable(config, config.merging, Operation.DELETE_PARTITION, Options.parse({}))
    generated = TableConfig(table | {"hoodie.table.keygenerator.type": "NON_PARTITION"})
    check_writable(generated, generated.merging, Operation.INSERT, Options.parse({}))
