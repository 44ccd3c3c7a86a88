"""Values of a partition from its path, by the names of Apache Hudi's extractor classes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TypeAlias
from urllib.parse import unquote

from pyhudi.config import options
from pyhudi.errors import CatalogError, InvalidOptionError

PartitionExtractor: TypeAlias = Callable[[str], tuple[str, ...]]
"""Returns the values in a path of a partition; raises CatalogError for a path of another form."""


def partition_extractor(named: str | None, fields: int, *, hive_style: bool) -> PartitionExtractor:
    """Return the extractor of a table.

    Args:
        named: Class of Apache Hudi, with or without package; None or empty: that of the form of the paths.
        fields: Number of partition columns.
        hive_style: Folders are named ``column=value``.

    Raises:
        InvalidOptionError: The class is a custom one.
    """
    if fields == 0:
        return _none
    if not named:
        return _multiple if fields > 1 else _hive_style if hive_style else _single
    found = _EXTRACTORS.get(named.rpartition(".")[2])
    if found is None:
        raise InvalidOptionError(options.PARTITION_EXTRACTOR_CLASS.key, named, ", ".join(_EXTRACTORS))
    return found


def decoded(extractor: PartitionExtractor) -> PartitionExtractor:
    """Return the extractor of URL-encoded paths: the values of another one, decoded."""
    return lambda path: tuple(unquote(value) for value in extractor(path))


def _none(_: str) -> tuple[str, ...]:
    return ()


def _single(path: str) -> tuple[str, ...]:
    return (path.replace("/", "-"),)


def _multiple(path: str) -> tuple[str, ...]:
    return tuple(_value(folder, path) for folder in path.split("/")) if path else ()


def _hive_style(path: str) -> tuple[str, ...]:
    name, equal, value = path.partition("=")
    if not equal or "=" in value:
        raise _mismatch(path, f"{name or 'column'}=value")
    return (value,)


def _day(path: str) -> tuple[str, ...]:
    return (_moment(path, 3).strftime("%Y-%m-%d"),)


def _hour(path: str) -> tuple[str, ...]:
    return (_moment(path, 4).strftime("%Y-%m-%d-%H"),)


def _moment(path: str, parts: int) -> datetime:
    form = "/".join(("yyyy", "mm", "dd", "hh")[:parts])
    folders = path.split("/")
    if len(folders) != parts:
        raise _mismatch(path, form)
    try:
        return datetime(*(int(_value(folder, path)) for folder in folders))  # type: ignore[arg-type]
    except ValueError as error:
        raise _mismatch(path, form) from error


def _value(folder: str, path: str) -> str:
    name, equal, value = folder.partition("=")
    if not equal:
        return folder
    if not value or "=" in value:
        raise _mismatch(path, f"{name}=value/…")
    return value


def _mismatch(path: str, form: str) -> CatalogError:
    return CatalogError(
        f"the path of partition {path!r} is not of the form {form}; set {options.PARTITION_EXTRACTOR_CLASS.key} to the "
        "extractor of such paths"
    )


_EXTRACTORS: Mapping[str, PartitionExtractor] = {
    "MultiPartKeysValueExtractor": _multiple,
    "SinglePartPartitionValueExtractor": _single,
    "HiveStylePartitionValueExtractor": _hive_style,
    "SlashEncodedDayPartitionValueExtractor": _day,
    "SlashEncodedHourPartitionValueExtractor": _hour,
    "NonPartitionedExtractor": _none,
}
