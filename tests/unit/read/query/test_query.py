"""Queries from options and from arguments."""

from __future__ import annotations

import re
import warnings
from datetime import date

import pytest

from pyhudi.config import Options
from pyhudi.config.enums import HollowPolicy, QueryType
from pyhudi.errors import ConfigError, EmptyRangeWarning, InvalidOptionError, QueryError
from pyhudi.read.query.query import IncrementalSettings, InstantRange, Query
from pyhudi.table.config.table_config import TableConfig

TYPE = "hoodie.datasource.query.type"
BEGIN = "hoodie.datasource.read.begin.instanttime"
END = "hoodie.datasource.read.end.instanttime"
READ = "hoodie.datasource.read."


def config(version: int = 9, table_type: str = "COPY_ON_WRITE") -> TableConfig:
    return TableConfig(
        {
            "hoodie.table.name": "t",
            "hoodie.table.version": str(version),
            "hoodie.table.type": table_type,
            "hoodie.table.timeline.timezone": "UTC",
        }
    )


def query(version: int = 9, table_type: str = "COPY_ON_WRITE", **options: str) -> Query:
    spelled = {{"type": TYPE, "begin": BEGIN, "end": END}.get(k, k): v for k, v in options.items()}
    return Query.from_options(Options.parse(spelled), config(version, table_type))


def test_a_snapshot_is_the_default():
    assert query() == query(version=6) == Query()


def test_time_travel_and_read_optimized():
    assert query(**{"as.of.instant": "2026-11-21"}).as_of == "20261121000000000"
    found = query(type="read_optimized", **{"as.of.instant": "20261121000000000"})
    assert (found.type, found.as_of) == (QueryType.READ_OPTIMIZED, "20261121000000000")


def test_the_old_name_of_the_query_type():
    found = query(**{"hoodie.datasource.view.type": "incremental", "begin": "000"})
    assert found.is_incremental
    assert query(**{"hoodie.datasource.view.type": "realtime"}).type is QueryType.SNAPSHOT
    assert query(**{"hoodie.datasource.view.type": "read_optimized"}).type is QueryType.READ_OPTIMIZED


def test_values_in_any_case():
    assert query(type="Snapshot").type is QueryType.SNAPSHOT
    latest = {"hoodie.datasource.query.incremental.format": "LATEST_STATE"}
    assert query(type="INCREMENTAL", begin="000", **latest).is_incremental
    with pytest.raises(QueryError, match="skip_merge"):
        query(table_type="MERGE_ON_READ", **{"hoodie.datasource.merge.type": "SKIP_MERGE"})


@pytest.mark.parametrize(("version", "by_completion"), [(6, False), (8, True), (9, True)])
def test_ranges_count_completion_times_from_version_8_on(version, by_completion):
    found = query(version, type="incremental", begin="earliest", end="2026-11-21 10:00:00.000")
    assert found.instants == InstantRange(None, "20261121100000000", by_completion=by_completion)


def test_the_range_is_open_at_its_start_and_closed_at_its_end():
    found = query(type="incremental", begin="20261121100000000", end="20261121110000000")
    inside = [t for t in ("20261121100000000", "20261121100000001", "20261121110000000") if found.instants.includes(t)]
    assert inside == ["20261121100000001", "20261121110000000"]


def test_a_range_that_ends_before_it_begins():
    with pytest.warns(EmptyRangeWarning, match="begins after 2024-02-01 and ends at 2024-01-01, which is earlier"):
        found = Query.from_arguments(config(9), begin="2024-02-01", end="2024-01-01")
    assert not found.instants.includes("20240115000000000")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for begin in ("2024-01-01", "2023-12-31", "earliest"):
            Query.from_arguments(config(9), begin=begin, end="2024-01-01")


def test_the_version_whose_rules_hold_can_be_given():
    assert not query(type="incremental", begin="0", **{READ + "incr.table.version": "6"}).instants.by_completion
    with pytest.raises(ConfigError, match="stores no completion times"):
        query(6, type="incremental", begin="0", **{READ + "incr.table.version": "8"})
    with pytest.raises(InvalidOptionError, match=r"7.*6, 8, 9"):
        query(type="incremental", begin="0", **{READ + "incr.table.version": "7"})


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"type": "bogus"}, InvalidOptionError, "bogus.*snapshot"),
        ({"type": "incremental"}, QueryError, re.escape(BEGIN)),
        ({"type": "incremental", "end": "20261121000000000"}, QueryError, re.escape(BEGIN)),
        ({"type": "incremental", "begin": "soon"}, InvalidOptionError, "soon"),
        ({"as.of.instant": "soon"}, InvalidOptionError, "soon.*as.of.instant"),
        ({READ + "paths": "/a,/b"}, QueryError, "base path"),
        (
            {
                "type": "incremental",
                "begin": "0",
                "hoodie.read.timeline.holes.resolution.policy": "USE_TRANSITION_TIME",
            },
            InvalidOptionError,
            "'USE_TRANSITION_TIME' of .*FAIL, BLOCK",
        ),
    ],
)
def test_what_is_refused(options, error, message):
    with pytest.raises(error, match=message):
        query(**options)


def test_skip_merge_is_refused_where_it_would_matter():
    assert query(**{"hoodie.datasource.merge.type": "skip_merge"}).type is QueryType.SNAPSHOT
    for kind in QueryType:
        options = {"hoodie.datasource.query.type": kind, "hoodie.datasource.read.begin.instanttime": "000"}
        with pytest.raises(QueryError, match=r"skip_merge.*several versions.*read_optimized"):
            query(table_type="MERGE_ON_READ", **{"hoodie.datasource.merge.type": "Skip_Merge", **options})
    merged = query(table_type="MERGE_ON_READ", **{"hoodie.datasource.merge.type": "payload_combine"})
    assert merged.type is QueryType.SNAPSHOT


def test_an_incremental_query_takes_its_other_options():
    found = query(
        type="incremental",
        begin="0",
        **{
            READ + "incr.path.glob": "/a/*",
            READ + "incr.filters": "v > 3, id = 'x'",
            READ + "incr.fallback.fulltablescan.enable": "false",
            READ + "schema.use.end.instanttime": "true",
        },
    )
    assert found.incremental == IncrementalSettings(
        fallback=False, schema_as_of_end=True, path_glob="/a/*", sql_filters=("v > 3", "id = 'x'")
    )


def test_queries_by_argument():
    assert Query.from_arguments(config(), as_of=date(2026, 11, 21)).as_of == "20261121000000000"
    assert Query.from_arguments(config(), begin="earliest").is_incremental
    given = {
        "hoodie.datasource.read.incr.fallback.fulltablescan.enable": "false",
        "hoodie.read.timeline.holes.resolution.policy": "BLOCK",
    }
    query = Query.from_arguments(config(), begin="earliest", opts=Options.parse(given))
    assert query.incremental == IncrementalSettings(fallback=False, hollow_policy=HollowPolicy.BLOCK)
    assert Query.from_arguments(config(), read_optimized=True).type is QueryType.READ_OPTIMIZED


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"end": "2026-11-21"}, "requires begin"),
        ({"begin": "earliest", "as_of": "2026-11-21"}, "does not support as_of"),
        ({"begin": "earliest", "read_optimized": True}, "does not support read_optimized"),
    ],
)
def test_arguments_that_contradict_each_other(arguments, message):
    with pytest.raises(QueryError, match=message):
        Query.from_arguments(config(), **arguments)
