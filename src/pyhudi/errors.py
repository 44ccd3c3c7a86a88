"""Every error that pyhudi raises on purpose.

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
    ├── TimelineError
    │   ├── CorruptInstantError           a timeline file cannot be parsed
    │   └── InstantNotFoundError
    ├── FormatError                       bytes of a data, log or index file are not what the format says
    ├── StorageError
    │   ├── NotFoundError (FileNotFoundError)
    │   ├── AlreadyExistsError (FileExistsError)
    │   └── PreconditionFailedError       a conditional put lost the race
    ├── TransactionError
    │   ├── LockError                     a lock could not be taken in time
    │   └── ConflictError                 another writer committed an overlapping change
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
    """One option has a value that is not allowed."""

    def __init__(self, key: str, value: object, allowed: str) -> None:
        super().__init__(f"option {key!r} has the value {value!r}; allowed: {allowed}")
        self.key = key
        self.value = value
        self.allowed = allowed

    def __reduce__(self) -> tuple[type[InvalidOptionError], tuple[str, object, str]]:
        return (type(self), (self.key, self.value, self.allowed))


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn of something at the line outside of this package by which it came to that: nobody can change another
    one."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == __package__:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


class UnknownOptionWarning(UserWarning):
    """A ``hoodie.*`` or ``pyhudi.*`` key that no release knows was ignored."""


class OptionWithoutEffectWarning(UserWarning):
    """An option of Apache Hudi asks for something that is not done here; the data are right without it."""


class TableError(HudiError):
    """Something about the table itself."""


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


class MetadataTableWarning(UserWarning):
    """A metadata table is not used, so that queries are planned more slowly."""


class UnsupportedTableError(TableError):
    """The table has a version or uses a feature that this release cannot serve."""


class SchemaError(HudiError, ValueError):
    """Something about columns and types."""


class SchemaMismatchError(SchemaError):
    """Incoming columns cannot become the table's columns."""


class RecordKeyError(HudiError, ValueError):
    """Record keys are null, empty or missing."""


class MergerError(HudiError):
    """A merger that the user registered failed, or returned what it must not."""


class QueryError(HudiError, ValueError):
    """A query that cannot be answered."""


class TimelineError(HudiError):
    """Something about the timeline."""


class CorruptInstantError(TimelineError):
    """A timeline file cannot be parsed."""


class InstantNotFoundError(TimelineError):
    """The timeline has no such instant."""


class FormatError(HudiError, ValueError):
    """Bytes of a data, log or index file are not what the format says."""


class StorageError(HudiError, OSError):
    """A storage operation failed."""


class NotFoundError(StorageError, FileNotFoundError):
    """The file or object does not exist."""


class AlreadyExistsError(StorageError, FileExistsError):
    """Create-if-absent found the file or object present."""


class PreconditionFailedError(StorageError):
    """A conditional put found another version than expected."""


class TransactionError(HudiError):
    """A commit could not be made."""


class LockError(TransactionError):
    """A lock could not be taken in time."""


class ConflictError(TransactionError):
    """Another writer committed an overlapping change."""


class BusyError(TransactionError):
    """Another process is carrying out the plan."""


class SetupError(HudiError, RuntimeError):
    """Java, PySpark or an optional package is missing."""
