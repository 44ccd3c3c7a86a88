"""Options of the operation ``bootstrap``, which creates a table on top of existing files."""

from __future__ import annotations

from pyhudi.config.enums import BootstrapMode
from pyhudi.config.option import choice, flag, integer, optional_text, text

_BOOTSTRAP = "hoodie.bootstrap."

BOOTSTRAP_BASE_PATH = optional_text(
    _BOOTSTRAP + "base.path", "Root folder of the files on which the operation `bootstrap` creates a table."
)
BOOTSTRAP_MODE_SELECTOR = text(
    _BOOTSTRAP + "mode.selector",
    "org.apache.hudi.client.bootstrap.selector.MetadataOnlyBootstrapModeSelector",
    "Selector of the bootstrap mode of each partition, by Apache Hudi's class name, with or without package: "
    "`MetadataOnlyBootstrapModeSelector`, `FullRecordBootstrapModeSelector`, `BootstrapRegexModeSelector`.",
)
BOOTSTRAP_MODE_REGEX = text(
    _BOOTSTRAP + "mode.selector.regex",
    ".*",
    "Regular expression for partition paths of the source. With `BootstrapRegexModeSelector`, partitions that "
    "match have the mode of `hoodie.bootstrap.mode.selector.regex.mode`, and others have the other mode.",
)
BOOTSTRAP_REGEX_MODE = choice(
    _BOOTSTRAP + "mode.selector.regex.mode",
    BootstrapMode.METADATA_ONLY,
    "Mode of the partitions that match `hoodie.bootstrap.mode.selector.regex`.",
)
BOOTSTRAP_TRANSLATOR = text(
    _BOOTSTRAP + "partitionpath.translator.class",
    "org.apache.hudi.client.bootstrap.translator.IdentityBootstrapPartitionPathTranslator",
    "Translation of the source's partition paths to those of the table, by Apache Hudi's class name, with or "
    "without package: `IdentityBootstrapPartitionPathTranslator`, `DecodedBootstrapPartitionPathTranslator` "
    "(decodes percent-encoding such as `%20`).",
)
BOOTSTRAP_INPUT_PROVIDER = text(
    _BOOTSTRAP + "full.input.provider",
    "org.apache.hudi.bootstrap.SparkParquetBootstrapDataProvider",
    "Reader of the source files of full-record bootstraps: Spark's reader for the base file format of the table, "
    "which Apache Hudi calls `SparkParquetBootstrapDataProvider` or `SparkOrcBootstrapDataProvider`.",
)
BOOTSTRAP_CHECK_TIMES = flag(
    "pyhudi.bootstrap.check.modification.times",
    True,
    "Property of a bootstrapped table: if true, source files whose modification time differs from the bootstrap "
    "index are refused. Set it to false if the files were restored with new times.",
)
BOOTSTRAP_PARALLELISM = integer(
    _BOOTSTRAP + "parallelism", 1500, "Maximum number of Spark tasks of a metadata-only bootstrap.", minimum=1
)
BOOTSTRAP_INDEX_ENABLE = flag(
    _BOOTSTRAP + "index.enable", True, "If true, a bootstrap writes its index, which metadata-only bootstraps require."
)
