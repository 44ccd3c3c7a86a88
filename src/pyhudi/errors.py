"""Exceptions that pyhudi raises on purpose.

All of them name the offending value and say what to do about it::

    HudiError
    ├── ConfigError (ValueError)          an option or a combination of options is wrong
    │   └── InvalidOptionError            one key has a value that is not allowed
    ├── TableError
    │   ├── NotAHudiTableError            no ``.hoodie/hoodie.properties`` there
    │   ├── TableExistsError              a table is there already
    │   ├── TableConfigConflictError      options contradict what the table says
    │   ├── CorruptTableError             ``hoodie.properties`` or another table file is broken
    │   └── UnsupportedTableError         a table version or feature that this release cannot serve
    ├── SchemaError
    │   └── SchemaMismatchError           incoming columns cannot become the table's columns
    ├── RecordKeyError                    null, empty or missing record keys
    ├── MergerError                       a merger of the user failed, or returned what it must not
    ├── QueryError                        a query that cannot be answered (bad instant, cleaned history)
    ├── CheckpointError                   a stream's checkpoint does not belong to the table, or has fallen behind it
    ├── TimelineError
    │   ├── CorruptInstantError           a timeline file cannot be parsed
    │   └── InstantNotFoundError
    ├── FormatError                       bytes of a data, log or index file are not what the format says
    ├── StorageError
    │   ├── NotFoundError (FileNotFoundError)
    │   ├── AlreadyExistsError (FileExistsError)
    │   ├── PreconditionFailedError       a conditional put lost the race
    │   └── UnansweredError               no answer came, so what was asked may have been done or may yet be
    ├── TransactionError
    │   ├── LockError                     a lock could not be taken in time
    │   ├── ConflictError                 another writer committed an overlapping change
    │   ├── CommitStateUnknownError       whether a commit was published is not known
    │   └── BusyError                     another process is carrying out the plan
    └── SetupError                        Java, PySpark or an optional package is missing
"""

from __future__ import annotations

import sys
import warnings


class HudiError(Exception):
    """Root of all errors that pyhudi raises on purpose."""


class ConfigError(HudiError, ValueError):
    """An option, or a combination of options, is wrong."""


class InvalidOptionError(ConfigError):
    """An option has a value that is not allowed."""

    def __init__(self, key: str, value: object, allowed: str) -> None:
        super().__init__(f"option {key!r} has the value {value!r}; allowed: {allowed}")
        self.key = key
        self.value = value
        self.allowed = allowed

    def __reduce__(self) -> tuple[type[InvalidOptionError], tuple[str, object, str]]:
        return (type(self), (self.key, self.value, self.allowed))


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Issue a warning at the caller's line outside of this package, the only one that the user can change."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == __package__:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


class UnknownOptionWarning(UserWarning):
    """A ``hoodie.*`` or ``pyhudi.*`` key that no release knows was ignored."""


class OptionWithoutEffectWarning(UserWarning):
    """An option of Apache Hudi asks for something that is not done here; the data are right without it."""


class PartitionValueWarning(UserWarning):
    """Values of partition columns are not kept, or mean something else than they look like."""


class TableError(HudiError):
    """Error of the table itself."""


class NotAHudiTableError(TableError):
    """There is no Hudi table at the given location."""


class TableExistsError(TableError):
    """A Hudi table is there already."""


class TableConfigConflictError(TableError, ValueError):
    """Options contradict what ``hoodie.properties`` says."""


class CorruptTableError(TableError):
    """``hoodie.properties`` or another file of the table is broken."""


class MetadataTableError(TableError):
    """The metadata table is missing, broken, behind the table, or another table's; the table itself can be read."""


class MetadataTableAheadError(MetadataTableError):
    """The metadata table has gone past the timeline that it is looked at with; look at both again."""


class MetadataTableWarning(UserWarning):
    """A metadata table is not used, so that queries are planned more slowly."""


class UnsupportedTableError(TableError):
    """The table has a version or uses a feature that this release cannot serve."""


class SchemaError(HudiError, ValueError):
    """Error of columns and types."""


class SchemaMismatchError(SchemaError):
    """Incoming columns cannot become the table's columns."""


class RecordKeyError(HudiError, ValueError):
    """Record keys are null, empty or missing."""


class MergerError(HudiError):
    """A merger that the user registered failed, or returned what it must not."""


class QueryError(HudiError, ValueError):
    """A query that cannot be answered."""


class SqlSyntaxError(QueryError):
    """A statement of SQL that cannot be parsed."""


class AmbiguousMergeError(QueryError):
    """Several source rows of a MERGE match one row of the table."""


class CheckpointError(HudiError, ValueError):
    """A stream's checkpoint does not fit the table that it reads or writes."""


class TimelineError(HudiError):
    """Error of the timeline."""


class CorruptInstantError(TimelineError):
    """A timeline file cannot be parsed."""


class InstantNotFoundError(TimelineError):
    """The timeline has no such instant."""


class FormatError(HudiError, ValueError):
    """Bytes of a data, log or index file are not what the format says."""


class FileSizeError(FormatError):
    """A file would get larger than readers of its format can read."""


class StorageError(HudiError, OSError):
    """A storage operation failed."""


class NotFoundError(StorageError, FileNotFoundError):
    """The file or object does not exist."""


class AlreadyExistsError(StorageError, FileExistsError):
    """Create-if-absent found the file or object present."""


class PreconditionFailedError(StorageError):
    """A conditional put found another version than expected."""


class UnansweredError(StorageError):
    """No answer came (timeout, broken connection): the operation may have been carried out, or may yet be."""


class TransactionError(HudiError):
    """A commit could not be made."""


class LockError(TransactionError):
    """A lock could not be taken in time."""


class ConflictError(TransactionError):
    """Another writer committed an overlapping change."""


class CommitStateUnknownError(TransactionError):
    """Unknown outcome of a commit. Nothing has been rolled back, so the write may yet become visible."""


class BusyError(TransactionError):
    """Another process is carrying out the plan."""


class SetupError(HudiError, RuntimeError):
    """Java, PySpark or an optional package is missing."""
