"""Detection of options that would change the rows if they were ignored: misspelt ones, and those of other formats.

Other unknown options only raise a warning.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping

from pyhudi.config import Options, options
from pyhudi.config.enums import QueryType
from pyhudi.config.option_registry import canonical, is_declared, is_known, spellings, suggest
from pyhudi.config.sql_property_aliases import SHORT_NAMES, option_of_short_name, suggest_short_name
from pyhudi.errors import ConfigError, OptionWithoutEffectWarning, QueryError, warn

_DECIDING = frozenset(
    option.key
    for option in (
        options.RECORDKEY_FIELD,
        options.PARTITIONPATH_FIELD,
        options.PRECOMBINE_FIELD,
        options.TABLE_NAME,
        options.TABLE_TYPE,
        options.OPERATION,
        options.KEYGENERATOR_TYPE,
        options.KEYGENERATOR_CLASS,
    )
)
"""Options that change the created table or the treatment of its rows if they are ignored."""
_CHOOSING = frozenset(
    option.key
    for option in (
        options.QUERY_TYPE,
        options.AS_OF_INSTANT,
        options.BEGIN_INSTANTTIME,
        options.END_INSTANTTIME,
        options.INCREMENTAL_FORMAT,
    )
)
"""Options of queries that choose the rows."""
SESSION_OVERWRITE_MODE = "spark.sql.sources.partitionOverwriteMode"
"""Setting of Spark, which INSERT OVERWRITE and `insertInto` follow."""
_ALIKE = 0.9
_WORDS = frozenset({"operation"})
"""Last parts of keys that are no options of anything else."""
_TIME_TRAVEL = f"the option of Hudi tables is {options.AS_OF_INSTANT.key!r}, with an instant or a time"
_PARTITIONS = f"to replace the partitions of the rows, append with {options.OPERATION.key}=insert_overwrite"
_INCREMENTAL = (
    f"an incremental query has {options.QUERY_TYPE.key}=incremental and {options.BEGIN_INSTANTTIME.key}, "
    f"change data also {options.INCREMENTAL_FORMAT.key}=cdc, and a stream {options.STREAMING_START_OFFSET.key}"
)
_REFERENCES = f"Hudi tables have no branches and tags: {options.AS_OF_INSTANT.key} is the instant of a commit"
_REPEATED = "a repeated upsert leaves the rows as they are, and the sink of a stream skips batches that it has written"
_OF_OTHER_FORMATS = {
    "versionasof": _TIME_TRAVEL,
    "timestampasof": _TIME_TRAVEL,
    "as-of-timestamp": _TIME_TRAVEL,
    "snapshot-id": _TIME_TRAVEL,
    **dict.fromkeys(("readchangefeed", "readchangedata", "startingversion", "startingtimestamp"), _INCREMENTAL),
    **dict.fromkeys(("endingversion", "endingtimestamp", "start-snapshot-id", "end-snapshot-id"), _INCREMENTAL),
    **dict.fromkeys(("start-timestamp", "end-timestamp", "stream-from-timestamp"), _INCREMENTAL),
    **dict.fromkeys(("branch", "tag"), _REFERENCES),
    "replacewhere": f"use writeTo(table).overwrite(condition) with the name of the table, or {_PARTITIONS}",
    "overwrite-mode": _PARTITIONS,
    **dict.fromkeys(("txnappid", "txnversion"), _REPEATED),
}
"""Options of Delta and Iceberg that decide which rows are read or replaced, in lower case, with what to use instead."""


def refuse_misspelled(user_options: Mapping[str, object]) -> None:
    """Raise an error for unknown keys that resemble an option of `_DECIDING`, for short names of SQL, and as
    `refuse_other_formats`.

    Args:
        user_options: Options as the user passed them.

    Raises:
        ConfigError: There is such a key.
    """
    refuse_other_formats(user_options)
    for key in user_options:
        if not isinstance(key, str) or is_declared(key):
            continue
        option = option_of_short_name(key)
        if option is not None:
            raise ConfigError(
                f"unknown option {key!r}; did you mean {option!r}? {key!r} is a table property of SQL (TBLPROPERTIES), "
                "for tables by name only"
            )
        suggestion = _resembled(key, _DECIDING)
        if suggestion is not None:
            raise ConfigError(
                f"unknown option {key!r}; did you mean {suggestion!r}? If it were ignored, the write would do "
                "something else than intended: correct the key or remove it"
            )


def refuse_misspelled_query(user_options: Mapping[str, object], session: Mapping[str, object] | None = None) -> None:
    """Raise an error for options of a query that would be ignored, so that it would return other rows than intended.

    Args:
        user_options: Options as the user passed them to the query.
        session: Options of the session, which may set the query type.

    Raises:
        ConfigError: A key resembles an option that chooses rows, or is one of another table format.
        QueryError: A range is given, but the query type is not incremental.
    """
    refuse_other_formats(user_options)
    for key in user_options:
        suggestion = None if is_declared(key) else _resembled(key, _CHOOSING)
        if suggestion is not None:
            raise ConfigError(
                f"unknown option {key!r}; did you mean {suggestion!r}? If it were ignored, the query would return "
                "other rows: correct the key or remove it"
            )
    opts = Options.parse(user_options)
    if Options.parse(session or {}).merged(opts).get_typed(options.QUERY_TYPE) is QueryType.INCREMENTAL:
        return
    for option in (options.BEGIN_INSTANTTIME, options.END_INSTANTTIME):
        if opts.is_set(option):
            raise QueryError(
                f"{opts.spelling(option)}={opts.text(option)} is the bound of an incremental query, but "
                f"{options.QUERY_TYPE.key} is not 'incremental': set it, or for the snapshot of an instant use "
                f"{options.AS_OF_INSTANT.key}"
            )


def refuse_dynamic_overwrite(user_options: Mapping[str, object], session_mode: str) -> None:
    """Raise an error for the overwrite mode DYNAMIC in a write by path, which replaces the whole table; warn if it is
    the session's, and the options have partitions.

    Args:
        user_options: Options as the user passed them.
        session_mode: ``spark.sql.sources.partitionOverwriteMode``.

    Raises:
        ConfigError: ``hoodie.datasource.overwrite.mode`` is DYNAMIC, which applies to SQL and to writes by name.
    """
    opts = Options.parse(user_options)
    mode = opts.get_typed(options.OVERWRITE_MODE)
    if mode is not None and mode.upper() == "DYNAMIC":
        raise ConfigError(
            f"{options.OVERWRITE_MODE.key}={mode} applies to INSERT OVERWRITE and to writes by name, and would have no "
            f"effect on a write by path: {_PARTITIONS}"
        )
    if mode is None and session_mode.upper() == "DYNAMIC" and opts.text(options.PARTITIONPATH_FIELD):
        warn(
            f"the save mode overwrite replaces the whole table, whatever {SESSION_OVERWRITE_MODE} is: {_PARTITIONS}",
            OptionWithoutEffectWarning,
        )


def refuse_other_formats(user_options: Mapping[str, object]) -> None:
    """Raise an error for options of Delta and Iceberg that decide which rows are read or replaced.

    Spark passes unknown options on, so that they would be ignored.

    Args:
        user_options: Options as the user passed them.

    Raises:
        ConfigError: There is such an option.
    """
    for key, value in user_options.items():
        cure = _cure(key.lower(), str(value).lower()) if isinstance(key, str) else None
        if cure is not None:
            raise ConfigError(f"{key}={value} is no option of Hudi tables, and would have no effect: {cure}")


def _cure(key: str, value: str) -> str | None:
    """Return what to use instead of an option of another format; None if nothing would be missed."""
    if key == "partitionoverwritemode":
        return _PARTITIONS if value == "dynamic" else None
    return None if value == "false" else _OF_OTHER_FORMATS.get(key)


def _resembled(key: str, deciding_keys: Collection[str]) -> str | None:
    """Return the option in ``deciding_keys`` that an undeclared key resembles more than any other option."""
    suggestion = suggest(key) if not is_known(key) else _resembled_short_name(key, deciding_keys)
    return suggestion if suggestion is not None and canonical(suggestion) in deciding_keys else None


def _resembled_short_name(key: str, deciding_keys: Collection[str]) -> str | None:
    """Return the option in ``deciding_keys`` that a key without Apache Hudi's prefix resembles."""
    short = suggest_short_name(key)
    if short is not None and SHORT_NAMES[short] in deciding_keys:
        return SHORT_NAMES[short]
    deciding_spellings = [spelling for deciding in sorted(deciding_keys) for spelling in spellings(deciding)]
    folded = key.lower()
    tails = [name for name in deciding_spellings if name.endswith(f".{folded}") and ("." in key or folded in _WORDS)]
    tail = min(tails, key=len, default=None)
    close = difflib.get_close_matches(folded, deciding_spellings, n=1, cutoff=_ALIKE)
    return tail or (close[0] if close else None)
