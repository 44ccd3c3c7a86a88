"""Source files of a bootstrap, the partitions of their folders, and the mode of each."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.config import Options, options
from pyhudi.config.enums import BootstrapMode
from pyhudi.config.option import Option, compile_regex
from pyhudi.errors import ConfigError, UnsupportedTableError
from pyhudi.format.file_names import file_names_of, file_paths, file_prefix_of
from pyhudi.storage import Storage
from pyhudi.table.bootstrap_index import SOURCE_SCHEMA
from pyhudi.table.config.table_config import TableConfig

LISTED_SCHEMA = pa.schema(
    [
        ("partition", pa.string()),
        ("source_partition", pa.string()),
        ("name", pa.string()),
        ("size", pa.int64()),
        ("mtime_ms", pa.int64()),
    ]
)
"""Columns of `list_source`: partition path in the table and in the source, name, bytes, modification time."""

_HIDDEN = r"(^|/)(\.|_[^/=]*(/|$))"
"""Paths that readers ignore: hidden files, and auxiliary files of writers."""
DECODER = "DecodedBootstrapPartitionPathTranslator"
"""Apache Hudi's translator of URL-encoded names of folders."""


def list_source(storage: Storage, config: TableConfig, opts: Options) -> pa.Table:
    """List the files of a source (LISTED_SCHEMA), sorted by partition and name.

    Raises:
        ConfigError: There are none, or they are in folders of different depth.
    """
    extension = "." + config.base_file_format.value.lower()
    listing = storage.list(recursive=True)
    listing = listing.filter(pc.ends_with(listing["path"], extension))
    listing = listing.filter(pc.invert(pc.match_substring_regex(listing["path"], _HIDDEN)))
    if not listing.num_rows:
        raise ConfigError(f"there is nothing to bootstrap: {storage.uri()} has no files with the extension {extension}")
    paths = listing["path"].combine_chunks()
    folders = pc.replace_substring_regex(paths, "/?[^/]*$", "")
    translated = _translated(folders, partition_path_translator(opts))
    _check_depths(storage, paths, config)
    names = file_names_of(paths)
    columns = [translated, folders, names, listing["size"].combine_chunks(), listing["mtime_ms"].combine_chunks()]
    table = pa.table(columns, schema=LISTED_SCHEMA)
    return table.sort_by([("partition", "ascending"), ("name", "ascending")])


def source_files(table_root: str, source: Storage, listed: pa.Table) -> pa.Table:
    """Return the sources of skeleton files (`SOURCE_SCHEMA`). File ids are derived from the files, so that repeated
    bootstraps create the same ones (in files with other names)."""
    folders, names = listed["source_partition"], listed["name"]
    texts = pc.binary_join_element_wise(table_root, folders, names, "\0")
    columns = [
        listed["partition"],
        pa.array(map(file_prefix_of, texts.to_pylist()), pa.string()),
        folders,
        pc.binary_join_element_wise(source.uri().rstrip("/"), file_paths(folders, names), "/"),
        listed["size"],
        listed["mtime_ms"],
    ]
    return pa.Table.from_arrays(columns, schema=SOURCE_SCHEMA)


def select_mode(listed: pa.Table, opts: Options) -> tuple[pa.Table, pa.Table]:
    """Split the files into those for metadata-only and those for full-record bootstrap.

    Raises:
        InvalidOptionError: The pattern is not a regular expression.
        UnsupportedTableError: The selector is a custom class.
    """
    kind = _supported_class(options.BOOTSTRAP_MODE_SELECTOR, opts, _SELECTORS)
    if kind is not None:
        none = listed.slice(0, 0)
        return (listed, none) if kind is BootstrapMode.METADATA_ONLY else (none, listed)
    pattern = compile_regex(options.BOOTSTRAP_MODE_REGEX, opts.get_typed(options.BOOTSTRAP_MODE_REGEX))
    paths = pc.unique(listed["source_partition"]).to_pylist()
    matching = pa.array([path for path in paths if pattern.fullmatch(path)], pa.string())
    matches = pc.is_in(listed["source_partition"], value_set=matching)
    if opts.get_typed(options.BOOTSTRAP_REGEX_MODE) is BootstrapMode.FULL_RECORD:
        matches = pc.invert(matches)
    return listed.filter(matches), listed.filter(pc.invert(matches))


def partition_path_translator(opts: Options) -> Callable[[str], str] | None:
    """Return the translation of partition paths of the source to those of the table; None: unchanged.

    Raises:
        UnsupportedTableError: The translator is a custom class.
    """
    return _supported_class(options.BOOTSTRAP_TRANSLATOR, opts, _TRANSLATORS)


def check_input_provider(opts: Options) -> None:
    """Refuse custom readers of source files.

    Raises:
        UnsupportedTableError: The reader is a custom class.
    """
    _supported_class(options.BOOTSTRAP_INPUT_PROVIDER, opts, _PROVIDERS)


_SELECTORS: dict[str, BootstrapMode | None] = {
    "MetadataOnlyBootstrapModeSelector": BootstrapMode.METADATA_ONLY,
    "FullRecordBootstrapModeSelector": BootstrapMode.FULL_RECORD,
    "BootstrapRegexModeSelector": None,
}
_TRANSLATORS: dict[str, Callable[[str], str] | None] = {
    "IdentityBootstrapPartitionPathTranslator": None,
    DECODER: unquote,
}
_PROVIDERS: dict[str, None] = {"SparkParquetBootstrapDataProvider": None, "SparkOrcBootstrapDataProvider": None}

T = TypeVar("T")


def _supported_class(option: Option[str], opts: Options, supported: dict[str, T]) -> T:
    class_name = opts.get_typed(option)
    name = class_name.rpartition(".")[2]
    if name not in supported:
        raise UnsupportedTableError(
            f"{option.key}={class_name} is Java code, which pyhudi cannot run; supported: {', '.join(supported)}"
        )
    return supported[name]


def _translated(folders: pa.StringArray, translate: Callable[[str], str] | None) -> pa.StringArray:
    if translate is None:
        return folders
    encoded = folders.dictionary_encode()
    return pa.array([translate(path) for path in encoded.dictionary.to_pylist()], pa.string()).take(encoded.indices)


def _check_depths(storage: Storage, paths: pa.StringArray, config: TableConfig) -> None:
    """Refuse files in folders of different depth, of which Apache Hudi uses the deepest and loses the others."""
    depths = pc.count_substring(paths, "/")
    min_max = pc.min_max(depths)
    if min_max["min"] != min_max["max"]:
        one, other = (paths[pc.index(depths, min_max[which]).as_py()].as_py() for which in ("min", "max"))
        raise ConfigError(
            f"the files below {storage.uri()} are in folders of different depth, which cannot all be partitions "
            f"of {config.name!r}: {one} and {other}"
        )
