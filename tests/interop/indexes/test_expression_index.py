"""Expression indexes in turns with Apache Hudi: what it builds and keeps leaves out files here, what is built and kept
here does there, and both hold the same."""

from __future__ import annotations

import datetime as dt
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from pyhudi.api.hudi_table import HudiTable
from pyhudi.errors import UnsupportedTableError
from pyhudi.metadata.indexes.index_definitions import DEFAULT_PATH
from pyhudi.metadata.reader.metadata_table import MetadataTable
from pyhudi.spark.write.dataframe_writer import write
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.table.table_snapshot import TableSnapshot
from tests.cases import every, seldom
from tests.interop.harness.alternating_writes import OPTIONS, SIMPLE, VERSIONS
from tests.interop.harness.oracle import Oracle, OracleError
from tests.interop.harness.scenarios import NO_COLUMN_STATISTICS

SETTINGS = {
    **OPTIONS,
    **SIMPLE,
    "hoodie.metadata.enable": "true",
    # without it, 1.2.0 fails where partitions have statistics
    "hoodie.embed.timeline.server": "true",
    "hoodie.compact.inline": "false",
    **NO_COLUMN_STATISTICS,
}
SKIPPING = {"hoodie.metadata.enable": "true", "hoodie.enable.data.skipping": "true"}
_LOCK = "org.apache.hudi.client.transaction.lock.InProcessLockProvider"
STATS, BLOOM = "column_stats", "bloom_filters"

Index = tuple[str, str, str, str, dict[str, str]]
"""Name, what it holds, column, function, and further options."""
ALL: list[Index] = [
    ("i01", STATS, "t", "year", {}),
    ("i02", STATS, "d", "month", {}),
    ("i03", STATS, "t", "day", {}),
    ("i04", STATS, "t", "hour", {}),
    ("i05", STATS, "t", "date_format", {"format": "yyyy-MM-dd"}),
    ("i06", STATS, "sec", "from_unixtime", {"format": "yyyy-MM-dd"}),
    ("i07", STATS, "sec", "from_unixtime", {}),
    ("i08", STATS, "time", "unix_timestamp", {}),
    ("i09", STATS, "time", "to_date", {"format": "yyyy-MM-dd HH:mm:ss"}),
    ("i10", STATS, "time", "to_timestamp", {}),
    ("i11", STATS, "d", "date_add", {"days": "3"}),
    ("i12", STATS, "d", "date_sub", {"days": "3"}),
    ("i13", STATS, "name", "lower", {}),
    ("i14", STATS, "name", "upper", {}),
    ("i15", STATS, "name", "trim", {}),
    ("i16", STATS, "name", "ltrim", {"trimString": "N"}),
    ("i17", STATS, "name", "rtrim", {"trimString": "0"}),
    ("i18", STATS, "name", "length", {}),
    ("i19", STATS, "time", "substring", {"pos": "6", "len": "2"}),
    ("i20", STATS, "time", "regexp_replace", {"pattern": "-", "replacement": "/"}),
    ("i21", STATS, "time", "regexp_extract", {"pattern": "([0-9]+)-", "idx": "1"}),
    ("i22", BLOOM, "time", "identity", {}),
    ("i23", BLOOM, "time", "substring", {"pos": "1", "len": "7"}),
]
BY_TEXT = [ALL[5], ALL[12], ALL[10]]
"""1.0.2 fails to read by whole numbers made of a column of another type, and by two indexes of one column."""
FEW_OF_VERSION_9 = [ALL[0], *BY_TEXT, ALL[9]]
FEW = {"1.0.2": BY_TEXT, "1.1.1": FEW_OF_VERSION_9, "1.2.0": FEW_OF_VERSION_9}


def rows(ids: Iterable[int], ts: int, year: int) -> pa.Table:
    days = [dt.datetime(year + i // 6, 1 + i % 12, 3 + ts, 4, 5, 6, 789000, tzinfo=dt.UTC) for i in ids]
    columns = {
        "id": pa.array([f"k{i:03d}" for i in ids]),
        "part": pa.array([f"p{i % 2}" for i in ids]),
        "ts": pa.array([ts] * len(days), pa.int64()),
        "sec": pa.array([None if day.month == 5 else int(day.timestamp()) for day in days], pa.int64()),
        "t": pa.array(days, pa.timestamp("us", "UTC")),
        "d": pa.array([day.date() for day in days], pa.date32()),
        "name": pa.array([None if i % 4 == 3 else f"Name{ts}{i % 3}" for i in ids]),
        "time": pa.array([f"{day:%Y-%m-%d %H:%M:%S}" for day in days]),
    }
    return pa.table(columns)


FILTERS = [
    "year(t) = {year}",
    "year(t) < {year}",
    "from_unixtime(sec, 'yyyy-MM-dd') >= '{year}-07-01'",
    "lower(name) = 'name11'",
    "lower(name) like 'name2%'",
    "date_add(d, 3) < date '{year}-03-01'",
    "date_add(d, 3) < date '1999-03-01'",
]


class Both:
    """A table that both sides write, and what it must hold."""

    def __init__(self, path: Path, oracle: Oracle, spark: SparkSession, options: dict[str, str]) -> None:
        self.path, self.oracle, self.spark, self.options = path, oracle, spark, options
        self.model: dict[str, dict[str, Any]] = {}

    def write(self, side: str, found: pa.Table, operation: str = "upsert") -> None:
        options = {**self.options, "hoodie.datasource.write.operation": operation}
        if side == "theirs":
            self.oracle.write(self.path, found, options)
        else:
            options["hoodie.write.table.version"] = str(VERSIONS[self.oracle.release])
            kinds = "id string, part string, ts long, sec long, t timestamp, d date, name string, time string"
            values = [tuple(row.values()) for row in found.to_pylist()]
            write(self.spark.createDataFrame(values, kinds), str(self.path), options)
        for row in found.to_pylist():
            if operation == "delete":
                self.model.pop(row["id"], None)
            else:
                self.model[row["id"]] = row

    def build(self, side: str, indexes: list[Index]) -> None:
        if side == "theirs":
            self.oracle.sql(
                "DROP TABLE IF EXISTS indexed",
                f"CREATE TABLE indexed USING hudi LOCATION '{self.path}'",
                f"SET hoodie.write.lock.provider={_LOCK}",
                "SET hoodie.metadata.enable=true",
            )
            for name, kind, column, function, more in indexes:
                options = "".join(f", {option}='{value}'" for option, value in more.items())
                self.oracle.sql(
                    f"CREATE INDEX {name} ON indexed USING {kind}({column}) OPTIONS(expr='{function}'{options})"
                )
            self.oracle.sql("DROP TABLE IF EXISTS indexed", "RESET hoodie.write.lock.provider")
            return
        services = HudiTable.for_path(str(self.path)).services
        for name, kind, column, function, more in indexes:
            services.build_index(name, column, using=kind, index_options={"expr": function, **more}, spark=self.spark)

    def entries(self) -> dict[str, dict[str, Any]]:
        """What the indexes hold, by their names."""
        client = TableMetaClient.open(str(self.path))
        table = MetadataTable.open(TableSnapshot.load(client))
        names = [name for name in table.partitions if name.startswith("expr_index_")]
        found = {name: {row.pop("key"): row for row in table.scan(name).to_pylist()} for name in names}
        for row in (row for entries in found.values() for row in entries.values()):
            # bloom filters have the instant at which they were built
            (row["BloomFilterMetadata"] or {}).pop("timestamp", None)
        return found

    def check(self, year: int, turn: int | None = None) -> dict[str, int]:
        """Both sides find the rows of the model; returns how many slices are read here, by filter. ``turn``: every
        third filter is enough, from this one on."""
        table = HudiTable.for_path(str(self.path))
        read = {}
        filters = FILTERS if self.oracle.release != "1.0.2" else FILTERS[2:]
        for text in filters if turn is None else every(3, filters[turn:] + filters[:turn]):
            where = text.format(year=year)
            expected = sorted(key for key, row in self.model.items() if meets(row, text, year))
            scan = table.scan(filter=where, columns=["id"])
            assert sorted(row.id for row in scan.to_spark(self.spark).collect()) == expected, where
            theirs = self.oracle.read(self.path, SKIPPING, where=where)
            assert sorted(theirs["id"].to_pylist()) == expected, where
            read[where] = scan.plan().tasks.num_rows
            assert "expr_index_" in str(scan.plan().skipped), where
        return read


def meets(row: dict[str, Any], text: str, year: int) -> bool:
    name = row["name"]
    return {
        FILTERS[0]: row["t"].year == year,
        FILTERS[1]: row["t"].year < year,
        FILTERS[2]: row["sec"] is not None and row["t"] >= dt.datetime(year, 7, 1, tzinfo=dt.UTC),
        FILTERS[3]: name is not None and name.lower() == "name11",
        FILTERS[4]: name is not None and name.lower().startswith("name2"),
        FILTERS[5]: row["d"] + dt.timedelta(3) < dt.date(year, 3, 1),
        FILTERS[6]: False,
    }[text]


@pytest.mark.parametrize(
    ("oracle", "indexes"), [seldom(("1.0.2", BY_TEXT)), seldom(("1.2.0", ALL))], indirect=["oracle"]
)
def test_both_build_the_same(oracle: Oracle, indexes: list[Index], spark: SparkSession, tmp_path: Path) -> None:
    theirs = Both(tmp_path / "theirs", oracle, spark, SETTINGS)
    theirs.write("theirs", rows(range(16), 1, 2019))
    theirs.write("theirs", rows(range(2, 6), 2, 2021))
    ours = Both(tmp_path / "ours", oracle, spark, SETTINGS)
    shutil.copytree(theirs.path, ours.path)
    theirs.build("theirs", indexes)
    ours.build("ours", indexes)
    assert (ours.path / DEFAULT_PATH).read_bytes() == (theirs.path / DEFAULT_PATH).read_bytes()
    mine, other = ours.entries(), theirs.entries()
    assert sorted(mine) == sorted(other)
    for name in mine:
        assert mine[name] == other[name], name


def assert_within(exact: dict[str, Any], kept: dict[str, Any]) -> None:
    """What is kept of a partition tells of all that is there."""
    for end, beyond in (("minValue", "__le__"), ("maxValue", "__ge__")):
        (there,), (known,) = (_values(one[end]) for one in (exact, kept))
        assert getattr(known, beyond)(there), (end, kept, exact)
    assert (kept["nullCount"] > 0) >= (exact["nullCount"] > 0)


def _values(wrapped: dict[str, Any]) -> list[Any]:
    """The one value in a wrapper of statistics."""
    return [member["value"] for member in wrapped.values() if member is not None]


CASES = [
    seldom(("1.0.2", "COPY_ON_WRITE", "theirs")),
    seldom(("1.0.2", "COPY_ON_WRITE", "ours")),
    seldom(("1.1.1", "MERGE_ON_READ", "theirs")),
    seldom(("1.2.0", "COPY_ON_WRITE", "ours")),
    seldom(("1.2.0", "COPY_ON_WRITE", "theirs")),
    ("1.2.0", "MERGE_ON_READ", "ours"),
    seldom(("1.2.0", "MERGE_ON_READ", "theirs")),
]


@pytest.mark.parametrize(("oracle", "table_type", "builder"), CASES, indirect=["oracle"])
def test_in_turns(oracle: Oracle, table_type: str, builder: str, spark: SparkSession, tmp_path: Path) -> None:
    indexes = FEW[oracle.release]
    other = {"ours": "theirs", "theirs": "ours"}[builder]
    both = Both(tmp_path / builder, oracle, spark, {**SETTINGS, "hoodie.datasource.write.table.type": table_type})
    both.write(builder, rows(range(16), 1, 2019))
    both.build(builder, indexes)
    both.check(2020, 0)
    both.write(other, rows(range(4, 20), 2, 2021))
    both.check(2022, 1)
    both.write(builder, rows(range(2, 6), 3, 2025))
    both.write(other, rows(range(3, 8, 2), 4, 2025), "delete")
    both.check(2025, 2)
    if table_type == "MERGE_ON_READ":
        assert HudiTable.for_path(str(both.path)).services.compact(spark=spark).num_files
    both.write(other, rows(range(30, 34), 5, 2028), "insert")
    read = both.check(2028)
    assert not min(read.values()), "nothing was left out"
    in_use = {f"expr_index_{name}" for name, *_ in indexes}
    assert in_use <= set(oracle.metadata_partitions(both.path))
    anew = Both(tmp_path / f"{builder}-anew", oracle, spark, both.options)
    shutil.copytree(both.path, anew.path)
    some = list(every(3, indexes))
    for name, *_ in some:
        HudiTable.for_path(str(anew.path)).services.drop_index(name)
    anew.build("ours", some)
    for name, entries in anew.entries().items():
        kept = both.entries()[name]
        for key, entry in entries.items():
            if entry["type"] == 3:
                assert kept[key] == entry, name
            elif entry["ColumnStatsMetadata"] is not None:
                assert_within(entry["ColumnStatsMetadata"], kept[key]["ColumnStatsMetadata"])


@pytest.mark.slow
@pytest.mark.parametrize("oracle", ["1.2.0"], indirect=True)
def test_bloom_filters_on_merge_on_read_tables(oracle: Oracle, spark: SparkSession, tmp_path: Path) -> None:
    """Apache Hudi builds them, and no log file can be written by it from then on. So they are refused here; where they
    are, what logs hold is found all the same."""
    both = Both(tmp_path / "t", oracle, spark, {**SETTINGS, "hoodie.datasource.write.table.type": "MERGE_ON_READ"})
    both.write("theirs", rows(range(8), 1, 2019))
    with pytest.raises(UnsupportedTableError, match="cannot write to merge-on-read tables"):
        both.build("ours", ALL[-1:])
    both.build("theirs", ALL[-1:])
    with pytest.raises(OracleError, match="for MetaIndexBloomFilter"):
        both.write("theirs", rows(range(2), 2, 2021))
    both.write("ours", rows(range(2), 3, 2022))
    assert "expr_index_i23" in HudiTable.for_path(str(both.path)).config.metadata_partitions
    for month in ("2019-03", "2022-01", "2021-01"):
        wanted = sorted(key for key, row in both.model.items() if row["time"].startswith(month))
        scan = HudiTable.for_path(str(both.path)).scan(filter=f"substring(time, 1, 7) = '{month}'", columns=["id"])
        assert sorted(row.id for row in scan.to_spark(spark).collect()) == wanted, month
        assert "expr_index_i23" in str(scan.plan().skipped)


@pytest.mark.slow
@pytest.mark.parametrize("oracle", ["1.2.0"], indirect=True)
def test_files_without_values(oracle: Oracle, spark: SparkSession, tmp_path: Path) -> None:
    """Apache Hudi merges the statistics of the files of a partition, of which some have nulls alone."""
    both = Both(tmp_path / "t", oracle, spark, {**SETTINGS, "hoodie.parquet.small.file.limit": "0"})

    def nameless(ids: Iterable[int], ts: int) -> pa.Table:
        found = rows(ids, ts, 2019)
        return found.set_column(found.column_names.index("name"), "name", pa.nulls(found.num_rows, pa.string()))

    both.write("ours", rows(range(8), 1, 2019), "insert")
    both.write("ours", nameless(range(20, 28), 1), "insert")
    both.build("ours", [ALL[12]])
    both.write("theirs", rows(range(2), 2, 2019))
    both.write("ours", nameless(range(20, 24), 3))
    both.write("theirs", rows(range(20, 22), 4, 2019))
    where = "lower(name) = 'name42'"
    expected = sorted(key for key, row in both.model.items() if row["name"] == "Name42")
    assert expected
    scan = HudiTable.for_path(str(both.path)).scan(where, ["id"])
    assert sorted(row.id for row in scan.to_spark(spark).collect()) == expected
    assert sorted(oracle.read(both.path, SKIPPING, where=where)["id"].to_pylist()) == expected
