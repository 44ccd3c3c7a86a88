"""Options of writes that name Java classes."""

import pytest

from pyhudi.config import Options
from pyhudi.errors import ConfigError, InvalidOptionError, OptionWithoutEffectWarning
from pyhudi.timeline.archive.archiver import commits_to_keep
from pyhudi.write.settings.unsupported_options import check_unsupported_options


@pytest.mark.parametrize(
    "key",
    [
        "hoodie.avro.write.support.class",
        "hoodie.parquet.spark.row.write.support.class",
        "hoodie.fileid.prefix.provider.class",
        "hoodie.write.merge.handle.class",
        "hoodie.write.concat.handle.class",
        "hoodie.compact.merge.handle.class",
        "hoodie.record.size.estimator.class",
        "hoodie.storage.layout.partitioner.class",
        "hoodie.storage.class",
        "hoodie.io.factory.class",
        "hoodie.writestatus.class",
        "hoodie.compaction.plan.generator",
        "hoodie.bootstrap.full.input.provider",
        "hoodie.client.init.callback.classes",
    ],
)
def test_java_classes_that_have_no_effect(key, recwarn):
    with pytest.warns(OptionWithoutEffectWarning, match=f"{key}=org.example.Mine has no effect: .*Java class"):
        check_unsupported_options(Options.parse({key: "org.example.Mine"}))
    recwarn.clear()
    if not key.endswith("classes"):
        check_unsupported_options(Options.parse({key: "org.apache.hudi.io.HoodieWriteMergeHandle"}))
    check_unsupported_options(Options.parse({key: " "}))
    assert not recwarn


@pytest.mark.parametrize("which", ["timezone", "input.timezone", "output.timezone"])
def test_offsets_that_java_does_not_know(which: str, recwarn: pytest.WarningsRecorder) -> None:
    key = f"hoodie.keygen.timebased.{which}"
    with pytest.warns(OptionWithoutEffectWarning, match=rf"{key}=\+05:30 has no effect: .*UTC.*GMT\+05:30"):
        check_unsupported_options(Options.parse({key: "+05:30"}))
    recwarn.clear()
    check_unsupported_options(Options.parse({key: "GMT+05:30"}))
    assert not recwarn


@pytest.mark.parametrize(
    ("given", "numbers"),
    [
        ({"hoodie.keep.max.commits": "5", "hoodie.keep.min.commits": "5"}, (5, 5)),
        ({"hoodie.keep.max.commits": "10", "hoodie.archive.automatic": "false"}, (10, 20)),
        ({"hoodie.keep.min.commits": "40"}, (30, 40)),
    ],
)
def test_archival_that_would_start_before_its_end_is_refused(given: dict[str, str], numbers: tuple[int, int]) -> None:
    """As by Apache Hudi 1.2.0, also where archival is off."""
    most, least = numbers
    refusal = rf"^hoodie\.keep\.max\.commits={most} must be greater than hoodie\.keep\.min\.commits={least}; increase"
    with pytest.raises(ConfigError, match=refusal):
        check_unsupported_options(Options.parse(given))


@pytest.mark.parametrize("policy", ["KEEP_LATEST_FILE_VERSIONS", "KEEP_LATEST_BY_HOURS"])
def test_limits_of_archival_are_compared_where_cleaning_retains_commits(policy: str) -> None:
    """As in Apache Hudi 0.15.0 to 1.2.0."""
    given = Options.parse({"hoodie.clean.policy": policy, "hoodie.keep.min.commits": "40"})
    check_unsupported_options(given)
    assert commits_to_keep(given) == (40, 30)


def test_archival_adapts_to_what_the_cleaner_retains() -> None:
    """Accepted, as by Apache Hudi 1.2.0."""
    check_unsupported_options(Options.parse({"hoodie.clean.commits.retained": "25"}))


@pytest.mark.parametrize(
    ("key", "service"),
    [
        ("hoodie.clean.partition.filter.regex", "hoodie.clean.automatic"),
        ("hoodie.clustering.plan.strategy.partition.regex.pattern", "hoodie.clustering.inline"),
        ("hoodie.clustering.plan.strategy.partition.regex.pattern", "hoodie.clustering.schedule.inline"),
        ("hoodie.compaction.partition.path.regex", "hoodie.compact.inline"),
    ],
)
def test_patterns_of_services_are_checked_before_the_write(key: str, service: str) -> None:
    with pytest.raises(InvalidOptionError, match=rf"'san\(' of option '{key}'"):
        check_unsupported_options(Options.parse({key: "san(", service: "true"}))
    check_unsupported_options(Options.parse({key: "san.*", service: "true"}))
    java = {key: r"\p{Alpha}+"}
    check_unsupported_options(Options.parse({**java, service: "false"}))
    check_unsupported_options(Options.parse({**java, service: "true", "hoodie.table.services.enabled": "false"}))


@pytest.mark.parametrize("policy", ["CLEAN", "ROLLBACK_FAILED_WRITES", "CLEANS"])
def test_cleaning_before_a_write_is_left_to_the_caller(policy: str) -> None:
    with pytest.warns(OptionWithoutEffectWarning, match=rf"policy={policy} has no effect: .*services\.clean\(\)"):
        check_unsupported_options(Options.parse({"hoodie.prewrite.cleaner.policy": policy}))


def test_no_cleaning_before_a_write_is_the_default(recwarn: pytest.WarningsRecorder) -> None:
    check_unsupported_options(Options.parse({"hoodie.prewrite.cleaner.policy": "none"}))
    assert not recwarn


def test_mergers_in_java_that_nothing_selects(recwarn: pytest.WarningsRecorder) -> None:
    classes = {"hoodie.write.record.merge.custom.implementation.classes": "com.me.Mine"}
    with pytest.warns(OptionWithoutEffectWarning, match=r"classes=com\.me\.Mine has no effect: .*register_merger"):
        check_unsupported_options(Options.parse(classes))
    recwarn.clear()
    check_unsupported_options(Options.parse({**classes, "hoodie.write.record.merge.mode": "CUSTOM"}))
    check_unsupported_options(Options.parse({**classes, "hoodie.write.record.merge.strategy.id": "a-1"}))
    spark = {"hoodie.datasource.write.record.merger.impls": "org.apache.hudi.DefaultSparkRecordMerger"}
    check_unsupported_options(Options.parse(spark))
    assert not recwarn


def test_reporters_in_files() -> None:
    with pytest.warns(OptionWithoutEffectWarning, match=r"=/etc/more has no effect: .*add_listener"):
        check_unsupported_options(Options.parse({"hoodie.metrics.configs.properties": "/etc/more"}))


def test_table_formats_of_others() -> None:
    with pytest.raises(ConfigError, match=r"hoodie\.table\.format=iceberg: only Apache Hudi's own"):
        check_unsupported_options(Options.parse({"hoodie.table.format": "iceberg"}))
    check_unsupported_options(Options.parse({"hoodie.table.format": "native"}))
