"""Options of the operation ``bootstrap``, which makes a table over files that are there."""

from __future__ import annotations

from pyhudi.config.enums import BootstrapMode
from pyhudi.config.option import choice, flag, integer, maybe_text, text

_BOOTSTRAP = "hoodie.bootstrap."

BOOTSTRAP_BASE_PATH = maybe_text(
    _BOOTSTRAP + "base.path", "Root folder of the files that the operation `bootstrap` makes a table over."
)
BOOTSTRAP_MODE_SELECTOR = text(
    _BOOTSTRAP + "mode.selector",
    "org.apache.hudi.client.bootstrap.selector.MetadataOnlyBootstrapModeSelector",
    "What is made of each partition, by Apache Hudi's class name, with or without package: "
    "`MetadataOnlyBootstrapModeSelector`, `FullRecordBootstrapModeSelector`, `BootstrapRegexModeSelector`.",
)
BOOTSTRAP_MODE_REGEX = text(
    _BOOTSTRAP + "mode.selector.regex",
    ".*",
    "Pattern of the source's partition paths that `BootstrapRegexModeSelector` takes in the mode of "
    "`hoodie.bootstrap.mode.selector.regex.mode`; others are taken in the other mode.",
)
BOOTSTRAP_REGEX_MODE = choice(
    _BOOTSTRAP + "mode.selector.regex.mode",
    BootstrapMode.METADATA_ONLY,
    "Mode of the partitions that match `hoodie.bootstrap.mode.selector.regex`.",
)
BOOTSTRAP_TRANSLATOR = text(
    _BOOTSTRAP + "partitionpath.translator.class",
    "org.apache.hudi.client.bootstrap.translator.IdentityBootstrapPartitionPathTranslator",
    "How partition paths of the source become those of the table, by Apache Hudi's class name, with or without "
    "package: `IdentityBootstrapPartitionPathTranslator`, `DecodedBootstrapPartitionPathTranslator` (`%20` and the "
    "like are decoded).",
)
BOOTSTRAP_INPUT_PROVIDER = text(
    _BOOTSTRAP + "full.input.provider",
    "org.apache.hudi.bootstrap.SparkParquetBootstrapDataProvider",
    "What reads the files of partitions that are bootstrapped whole: Spark's reader of the table's base file format, "
    "which Apache Hudi calls `SparkParquetBootstrapDataProvider` and `SparkOrcBootstrapDataProvider`.",
)
BOOTSTRAP_CHECK_TIMES = flag(
    "pyhudi.bootstrap.check.modification.times",
    True,
    "Property of a bootstrapped table: refuse source files that were changed at another time than the bootstrap index "
    "says. Switch it off for files that were put back as they were, but have new times.",
)
BOOTSTRAP_PARALLELISM = integer(
    _BOOTSTRAP + "parallelism", 1500, "Most tasks of a metadata-only bootstrap on Spark.", least=1
)
BOOTSTRAP_INDEX_ENABLE = flag(
    _BOOTSTRAP + "index.enable", True, "Whether a bootstrap writes its index; a metadata-only bootstrap needs it."
)
