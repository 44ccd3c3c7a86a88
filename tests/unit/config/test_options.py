from __future__ import annotations

import pickle
import re
import warnings
from pathlib import Path
from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyhudi.api.hudi_table import HudiTable
from pyhudi.config import OPTIONS, Options, options
from pyhudi.config.enums import IndexType, MergeMode, Operation, SortMode, TableType
from pyhudi.config.option import NAMED
from pyhudi.config.option_registry import ALIASES, canonical, is_known, spellings, suggest
from pyhudi.errors import ConfigError, InvalidOptionError, UnknownOptionWarning
from tests.golden.expected import unpack


@pytest.fixture(autouse=True)
def _no_warnings() -> object:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


class TestValues:
    def test_defaults_hold_when_nothing_is_given(self) -> None:
        opts = Options.parse({})
        assert opts.get_typed(options.OPERATION) is Operation.UPSERT
        assert opts.get_typed(options.TABLE_TYPE) is TableType.COPY_ON_WRITE
        assert opts.get_typed(options.WRITE_TABLE_VERSION) == 9
        assert opts.get_typed(options.RECORDKEY_FIELD) == ()
        assert opts.get_typed(options.MERGE_MODE) is None
        assert not opts.is_set(options.OPERATION)
        assert len(opts) == 0

    def test_python_values_become_text(self) -> None:
        opts = Options.parse(
            {
                "hoodie.clean.automatic": False,
                "hoodie.parquet.max.file.size": 1024,
                "hoodie.index.bloom.fpp": 0.5,
                "hoodie.datasource.write.recordkey.field": ["a", "b"],
                "hoodie.database.name": None,
            }
        )
        assert dict(opts) == {
            "hoodie.clean.automatic": "false",
            "hoodie.parquet.max.file.size": "1024",
            "hoodie.index.bloom.fpp": "0.5",
            "hoodie.datasource.write.recordkey.field": "a,b",
        }
        assert opts.get_typed(options.AUTO_CLEAN) is False
        assert opts.get_typed(options.BLOOM_FPP) == 0.5
        assert opts.get_typed(options.RECORDKEY_FIELD) == ("a", "b")

    def test_lists_of_columns_lose_their_blanks(self) -> None:
        opts = Options.parse({"hoodie.datasource.write.recordkey.field": " a , b,"})
        assert opts.get_typed(options.RECORDKEY_FIELD) == ("a", "b")
        assert opts.text(options.RECORDKEY_FIELD) == " a , b,"

    @pytest.mark.parametrize(
        ("key", "value", "meant"),
        [
            ("hoodie.datasource.write.operation", "Bulk_Insert", Operation.BULK_INSERT),
            ("hoodie.bulkinsert.sort.mode", "global_sort", SortMode.GLOBAL_SORT),
            ("hoodie.write.record.merge.mode", "commit_time_ordering", MergeMode.COMMIT_TIME_ORDERING),
            ("hoodie.index.type", "GLOBAL_BLOOM", IndexType.GLOBAL_BLOOM),
            ("hoodie.clean.automatic", "TRUE", True),
        ],
    )
    def test_case_as_the_original_takes_it(self, key: str, value: str, meant: object) -> None:
        assert Options.parse({key: value}).get_typed(NAMED[key]) == meant

    @pytest.mark.parametrize(
        ("key", "value", "allowed"),
        [
            ("hoodie.datasource.write.operation", "upsrt", "upsert, insert"),
            ("hoodie.index.type", "simple", "in exactly this case"),
            ("hoodie.datasource.write.table.type", "merge_on_read", "MERGE_ON_READ"),
            ("hoodie.table.timeline.timezone", "utc", "LOCAL, UTC"),
            ("hoodie.clean.failed.writes.policy", "lazy", "EAGER"),
            ("hoodie.write.table.version", "7", "6, 8, 9"),
            ("hoodie.write.table.version", "NINE", "6, 8, 9"),
            ("hoodie.clean.automatic", "yes", "true, false"),
            ("hoodie.clean.automatic", " true", "true, false"),
            ("hoodie.parquet.max.file.size", "1e6", "an integer of at least 1"),
            ("hoodie.parquet.max.file.size", " 10", "an integer of at least 1"),
            ("hoodie.parquet.max.file.size", "1_000", "an integer of at least 1"),
            ("hoodie.parquet.max.file.size", "0", "an integer of at least 1"),
            ("hoodie.write.empty.clean.interval.hours", "0", "-1, or an integer from 1 to"),
            ("hoodie.write.empty.clean.interval.hours", "-5", "-1, or an integer from 1 to"),
            ("hoodie.clean.hours.retained", "99999999", "an integer from 0 to 8760000"),
            ("hoodie.client.heartbeat.interval_in_ms", "999", "an integer of at least 1000"),
            ("hoodie.write.lock.zookeeper.port", "65536", "an integer from 1 to 65535"),
            ("hoodie.write.lock.storage.validity.timeout.secs", "9", "an integer of at least 10"),
            ("hoodie.index.bloom.fpp", "nan", "a number from 0 to 1"),
            ("hoodie.index.bloom.fpp", "2", "a number from 0 to 1"),
            ("hoodie.index.bloom.fpp", "", "a number from 0 to 1"),
        ],
    )
    def test_a_bad_value_names_key_value_and_what_is_allowed(self, key: str, value: str, allowed: str) -> None:
        with pytest.raises(InvalidOptionError) as caught:
            Options.parse({key: value})
        assert (caught.value.key, caught.value.value) == (key, value)
        assert allowed in caught.value.allowed
        assert key in str(caught.value)
        assert repr(value) in str(caught.value)
        assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)

    def test_a_bad_value_names_the_spelling_that_was_used(self) -> None:
        with pytest.raises(InvalidOptionError, match=r"hoodie\.cleaner\.policy'"):
            Options.parse({"hoodie.cleaner.policy": "SOME"})

    def test_keys_must_be_text(self) -> None:
        with pytest.raises(ConfigError, match="got 7"):
            Options.parse({7: "x"})  # type: ignore[dict-item]


class TestAliases:
    @pytest.mark.parametrize(
        ("alias", "key"),
        [
            ("hoodie.table.precombine.field", "hoodie.datasource.write.precombine.field"),
            ("hoodie.table.ordering.fields", "hoodie.datasource.write.precombine.field"),
            ("hoodie.table.recordkey.fields", "hoodie.datasource.write.recordkey.field"),
            ("hoodie.cleaner.commits.retained", "hoodie.clean.commits.retained"),
            ("hoodie.datasource.write.storage.type", "hoodie.datasource.write.table.type"),
            ("hoodie.deltastreamer.keygen.timebased.timezone", "hoodie.keygen.timebased.timezone"),
            ("hoodie.streamer.keygen.timebased.timezone", "hoodie.keygen.timebased.timezone"),
            ("hoodie.metadata.record.index.enable", "hoodie.metadata.global.record.level.index.enable"),
            ("hoodie.compaction.record.merger.strategy", "hoodie.write.record.merge.strategy.id"),
            ("hoodie.datasource.view.type", "hoodie.datasource.query.type"),
            ("hoodie.compaction.payload.class", "hoodie.datasource.write.payload.class"),
        ],
    )
    def test_older_spellings_mean_the_option(self, alias: str, key: str) -> None:
        value = {"hoodie.datasource.view.type": "snapshot", "hoodie.datasource.write.storage.type": "MERGE_ON_READ"}
        text = value.get(alias, "true" if alias.endswith("enable") else "7")
        opts = Options.parse({alias: text})
        assert dict(opts) == {key: text}
        assert opts[alias] == opts[key] == text
        assert alias in opts

    def test_the_canonical_key_wins_then_the_newer_alias(self) -> None:
        both = {
            "hoodie.table.precombine.field": "old",
            "hoodie.table.ordering.fields": "newer",
            "hoodie.datasource.write.precombine.field": "canonical",
        }
        assert Options.parse(both).get_typed(options.ORDERING_FIELDS) == ("canonical",)
        assert Options.parse(dict(reversed(both.items()))).get_typed(options.ORDERING_FIELDS) == ("canonical",)
        del both["hoodie.datasource.write.precombine.field"]
        assert Options.parse(both).get_typed(options.ORDERING_FIELDS) == ("newer",)
        assert Options.parse(dict(reversed(both.items()))).get_typed(options.ORDERING_FIELDS) == ("newer",)

    def test_aliases_lead_to_keys_in_one_step_and_never_to_aliases(self) -> None:
        for alias, key in ALIASES.items():
            assert key not in ALIASES
            assert canonical(alias) == key
            assert alias in spellings(key)
            assert key in NAMED or key in OPTIONS
            assert alias not in NAMED


class TestCase:
    """Spark's readers and writers ignore the case of keys, and so does Apache Hudi behind them."""

    def test_the_case_of_a_key_does_not_count(self) -> None:
        parsed = Options.parse({"HOODIE.datasource.write.partitionPath.field": "city", "hoodie.Table.Name": "t"})
        assert dict(parsed) == {"hoodie.datasource.write.partitionpath.field": "city", "hoodie.table.name": "t"}
        assert parsed["Hoodie.Table.Name"] == "t"
        assert "Hoodie.Table.Name" in parsed

    def test_the_last_case_wins_and_the_canonical_key_over_aliases(self) -> None:
        assert Options.parse({"hoodie.table.name": "a", "Hoodie.Table.Name": "b"})["hoodie.table.name"] == "b"
        ordering = {"hoodie.table.Ordering.fields": "a", "hoodie.datasource.write.PRECOMBINE.field": "b"}
        assert Options.parse(ordering) == Options.parse({key.lower(): value for key, value in ordering.items()})

    def test_errors_name_the_key_as_it_was_given(self) -> None:
        with pytest.raises(InvalidOptionError, match=re.escape("'Hoodie.Index.Type'")):
            Options.parse({"Hoodie.Index.Type": "none such"})

    def test_keys_of_others_keep_their_case(self) -> None:
        assert dict(Options.parse({"fs.s3a.Access": "x"})) == {"fs.s3a.Access": "x"}


class TestUnknownKeys:
    @pytest.mark.parametrize(
        ("key", "meant"),
        [
            ("hoodie.datasource.write.recordkey.fields", "hoodie.datasource.write.recordkey.field"),
            ("hoodie.datasource.write.opertion", "hoodie.datasource.write.operation"),
            ("hoodie.clean.automatc", "hoodie.clean.automatic"),
            ("hoodie.upsert.parallelism", "hoodie.upsert.shuffle.parallelism"),
            ("Hoodie.Index.Tpye", "hoodie.index.type"),
            ("hoodie.datasource.write.base.file.format", "hoodie.base.file.format"),
            ("pyhudi.parquet.compresion.level", "pyhudi.parquet.compression.level"),
            ("hoodie.metrics.onn", "hoodie.metrics.on"),
            ("hoodie.write.commit.callback.http.ur", "hoodie.write.commit.callback.http.url"),
            ("hoodie.write.commit.callback.kafka.topik", "hoodie.write.commit.callback.kafka.topic"),
            (
                "hoodie.streamer.keygen.timebased.output.dateformt",
                "hoodie.streamer.keygen.timebased.output.dateformat",
            ),
        ],
    )
    def test_did_you_mean(self, key: str, meant: str) -> None:
        assert suggest(key) == meant
        with pytest.warns(UnknownOptionWarning, match=f"{key}.*did you mean '{meant}'"):
            Options.parse({key: "x"})

    def test_the_line_of_the_user_is_named(self, tmp_path: Path) -> None:
        table = HudiTable.for_path(str(unpack("v9_mor_compaction_lsm", tmp_path).path))
        with pytest.warns(UnknownOptionWarning) as seen:
            table.services.compact({"hoodie.compact.inlin": "true"}, dry_run=True)
        assert [one.filename for one in seen] == [__file__]

    def test_nothing_is_near(self) -> None:
        with pytest.warns(UnknownOptionWarning, match="'hoodie.zzz' has no effect$"):
            Options.parse({"hoodie.zzz": "x"})

    @pytest.mark.parametrize(
        "key",
        [
            "path",
            "_my_commit_note",
            "fs.s3a.access.key",
            "pyhudi.storage.endpoint_url",
            "hoodie.streamer.source.dfs.root",
            "hoodie.record.merge.property.mine",
            "hoodie.datasource.meta.sync.glue.database_name",
            "hoodie.write.commit.callback.pulsar.operation-timeout",
        ],
    )
    def test_what_is_not_ours_passes_silently(self, key: str) -> None:
        assert Options.parse({key: "x"})[key] == "x"

    def test_every_key_of_every_release_is_known(self) -> None:
        assert len(OPTIONS) > 700
        assert all(is_known(key) for key in OPTIONS)


class TestOptionsObject:
    def test_it_pickles_compares_and_hides_values(self) -> None:
        opts = Options.parse({"hoodie.table.precombine.field": "ts", "fs.s3a.secret.key": "hush"})
        again = pickle.loads(pickle.dumps(opts))
        assert again == opts
        assert hash(again) == hash(opts)
        assert again.spelling(options.ORDERING_FIELDS) == "hoodie.table.precombine.field"
        assert "hush" not in repr(opts)
        assert opts != Options.parse({})
        assert opts != {"a": "b"}
        assert pickle.loads(pickle.dumps(options.OPERATION)) is options.OPERATION

    def test_parse_of_options_is_itself(self) -> None:
        opts = Options.parse({"a": "b"})
        assert Options.parse(opts) is opts

    def test_merged_makes_another_one(self) -> None:
        opts = Options.parse({"hoodie.table.name": "a", "x": "1"})
        more = opts.merged({"hoodie.datasource.write.table.name": "b"})
        assert more.get_typed(options.TABLE_NAME) == "b"
        assert opts.get_typed(options.TABLE_NAME) == "a"
        assert more["x"] == "1"

    def test_with_prefix(self) -> None:
        opts = Options.parse({"_a": "1", "_b": "2", "c": "3"})
        assert opts.with_prefix("_") == {"_a": "1", "_b": "2"}

    @given(
        st.dictionaries(
            st.text(min_size=1).filter(lambda key: "hoodie." not in key and "pyhudi." not in key), st.text()
        )
    )
    def test_foreign_keys_come_back_as_given(self, raw: dict[str, str]) -> None:
        raw.pop("as.of.instant", None)
        assert dict(Options.parse(raw)) == raw


class TestDeclarations:
    # where we differ from the original's default on purpose, or the original has none and the doc says what holds
    DIFFERENT: ClassVar = {
        "hoodie.parquet.compression.codec": ("gzip", "zstd"),
    }

    def test_defaults_are_the_original_ones(self) -> None:
        def as_text(value: object) -> str:
            if isinstance(value, bool):
                return str(value).lower()
            return ",".join(value) if isinstance(value, tuple) else str(value)

        wrong = {}
        for key, option in NAMED.items():
            fact = OPTIONS.get(key)
            if fact is None or option.default is None or fact.spark_default is None:
                continue
            ours, theirs = as_text(option.default), fact.spark_default
            if option.type == "number":
                ours, theirs = str(float(ours)), str(float(theirs))
            if ours.lower() != theirs.lower() and self.DIFFERENT.get(key) != (theirs, ours):
                wrong[key] = (theirs, ours)
        assert wrong == {}

    def test_named_hoodie_keys_are_known_to_some_release(self) -> None:
        # of the modules hudi-aws and hudi-utilities, which the releases' bundles lack
        elsewhere = (
            "hoodie.aws.",
            "hoodie.write.lock.dynamodb.",
            "hoodie.datasource.meta.sync.glue.",
            "hoodie.write.commit.callback.kafka.",
        )
        undeclared = {
            key for key in NAMED if key.startswith("hoodie.") and key not in OPTIONS and not key.startswith(elsewhere)
        }
        assert undeclared == {
            "hoodie.payload.delete.field",
            "hoodie.payload.delete.marker",
            "hoodie.write.partial.update.unavailable.value",
        }

    def test_defaults_are_allowed_values(self) -> None:
        for option in NAMED.values():
            if option.default not in (None, ()):
                text = str(option.default).lower() if isinstance(option.default, bool) else str(option.default)
                assert option.parse(text) == option.default
