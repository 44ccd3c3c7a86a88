"""Exceptions that pyhudi raises on purpose.

Messages name the offending value and a solution::

    HudiError
    ├── ConfigError (ValueError)          an option or a combination of options is invalid
    │   └── InvalidOptionError            an option has a value that is not allowed
    ├── TableError
    │   ├── NotAHudiTableError            the location has no ``.hoodie/hoodie.properties``
    │   ├── TableExistsError              a table exists at the location
    │   ├── TableConfigConflictError      options contradict the properties of the table
    │   ├── CorruptTableError             ``hoodie.properties`` or another table file is corrupt
    │   └── UnsupportedTableError         the table has an unsupported version or feature
    ├── SchemaError
    │   └── SchemaMismatchError           incoming columns cannot be converted to those of the table
    ├── RecordKeyError                    null, empty or missing record keys
    ├── MergerError                       a custom merger failed or returned an invalid result
    ├── QueryError                        a query cannot be answered (invalid instant, cleaned files)
    ├── CheckpointError                   the checkpoint of a stream does not match the table, or is too old
    ├── TimelineError
    │   ├── CorruptInstantError           a timeline file cannot be parsed
    │   └── InstantNotFoundError          the timeline has no such instant
    ├── FormatError                       a data, log or index file violates its format
    ├── StorageError
    │   ├── NotFoundError (FileNotFoundError)
    │   ├── AlreadyExistsError (FileExistsError)
    │   ├── PreconditionFailedError       a conditional put failed
    │   └── UnansweredError               no response; the request may have taken effect or may still do so
    ├── TransactionError
    │   ├── LockError                     a lock could not be acquired in time
    │   ├── ConflictError                 another writer committed an overlapping change
    │   │   └── NonRetryableConflictError another attempt would have the same conflict
    │   ├── ValidationError               a pre-commit validator refused the write, which was rolled back
    │   ├── CommitStateUnknownError       it is unknown whether a commit was published
    │   └── BusyError                     another process is executing the plan
    ├── CatalogError                      a catalog, such as a Hive metastore, refused a request or does not answer
    │   ├── NotInCatalogError             the catalog has no such database, table, partition or lock
    │   ├── AlreadyInCatalogError         the catalog has such a database, table or partition already
    │   └── RefusedByCatalogError         the catalog does not take what it was sent
    ├── ServiceAfterCommitError           a table service failed after a write that is committed
    └── SetupError                        Java, PySpark or an optional package is missing
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar


class HudiError(Exception):
    """Base class of all errors that pyhudi raises on purpose."""


class ConfigError(HudiError, ValueError):
    """An option, or a combination of options, is invalid."""


class InvalidOptionError(ConfigError):
    """An option has a value that is not allowed."""

    def __init__(self, key: str, value: object, allowed: str) -> None:
        quoted = isinstance(value, str) and len(value) > 1 and value[0] == value[-1] in "'\""
        hint = "; leave the quotes out: in SET they are part of the value" if quoted else ""
        shown = str(value) if isinstance(value, str) else value  # The text of a member of an enumeration
        super().__init__(f"invalid value {shown!r} of option {key!r}; allowed: {allowed}{hint}")
        self.key = key
        self.value = value
        self.allowed = allowed

    def __reduce__(self) -> tuple[type[InvalidOptionError], tuple[str, object, str]]:
        return (type(self), (self.key, self.value, self.allowed))


_issued: ContextVar[set[tuple[str, type[Warning]]] | None] = ContextVar("issued", default=None)


@contextmanager
def each_warning_once() -> Iterator[None]:
    """Issue each warning once in a context, although several steps of a call find the same. Inner contexts belong to
    the outermost one."""
    if _issued.get() is not None:
        yield
        return
    token = _issued.set(set())
    try:
        yield
    finally:
        _issued.reset(token)


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Issue a warning with the line of the caller outside of this package as its location; within
    `each_warning_once`, once."""
    issued = _issued.get()
    if issued is not None:
        if (message, category) in issued:
            return
        issued.add((message, category))
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == __package__:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


class UnknownOptionWarning(UserWarning):
    """An unknown ``hoodie.*`` or ``pyhudi.*`` key is ignored."""


class OptionWithoutEffectWarning(UserWarning):
    """An option of Apache Hudi requests something that pyhudi does not do. Data are correct without it."""


class PartitionValueWarning(UserWarning):
    """Values of partition columns are lost or ambiguous."""


class ForeignFilesWarning(UserWarning):
    """The folder of a new table has files that are not of the table."""


class TableError(HudiError):
    """Error in the table itself."""


class NotAHudiTableError(TableError):
    """The location has no Hudi table."""


class TableExistsError(TableError):
    """A Hudi table exists at the location."""


class TableConfigConflictError(TableError, ValueError):
    """Options contradict ``hoodie.properties``."""


class CorruptTableError(TableError):
    """``hoodie.properties`` or another file of the table is corrupt."""


class MetadataTableError(TableError):
    """The metadata table is missing, corrupt, behind the table, or belongs to another table. The table itself can be
    read."""


class MetadataTableAheadError(MetadataTableError):
    """The metadata table is ahead of the timeline it was read with. Both must be loaded again."""


class EmptyRangeWarning(UserWarning):
    """The range of an incremental query ends before it begins, so the query has no rows."""


class IncompleteRangeWarning(UserWarning):
    """Files of the range of an incremental query were cleaned, so rows that it wrote and that were overwritten later
    are missing."""


class MetadataTableWarning(UserWarning):
    """The metadata table is not used, so planning of queries is slower."""


class UnsupportedTableError(TableError):
    """The table has a version or feature that this release does not support."""


class SchemaError(HudiError, ValueError):
    """Error in columns or types."""


class SchemaMismatchError(SchemaError):
    """Incoming columns cannot be converted to those of the table."""


class RecordKeyError(HudiError, ValueError):
    """Record keys are null, empty or missing."""


class AmbiguousLocationError(HudiError):
    """A key is in several base files of a partition, and log files may delete it in some of them. The write is
    repeated then, and merges the log files to find the location of the key."""


class MergerError(HudiError):
    """A custom merger failed or returned an invalid result."""


class QueryError(HudiError, ValueError):
    """The query cannot be answered."""


class SqlSyntaxError(QueryError):
    """A SQL statement cannot be parsed."""


class AmbiguousMergeError(QueryError):
    """Several source rows of a MERGE match one row of the table."""


class CheckpointError(HudiError, ValueError):
    """The checkpoint of a stream does not match the table that it reads or writes."""


class TimelineError(HudiError):
    """Error in the timeline."""


class CorruptInstantError(TimelineError):
    """A timeline file cannot be parsed."""


class InstantNotFoundError(TimelineError):
    """The timeline has no such instant."""


class FormatError(HudiError, ValueError):
    """A data, log or index file violates its format."""


class FileSizeError(FormatError):
    """A file would exceed the size that readers of its format support."""


class StorageError(HudiError, OSError):
    """A storage operation failed."""


class NotFoundError(StorageError, FileNotFoundError):
    """The file or object does not exist."""


class AlreadyExistsError(StorageError, FileExistsError):
    """Create-if-absent failed because the file or object exists."""


class PreconditionFailedError(StorageError):
    """A conditional put failed because the version differs from the expected one."""


class UnansweredError(StorageError):
    """No response (timeout, broken connection). The operation may have taken effect or may still do so."""


class TransactionError(HudiError):
    """A commit failed."""


class LockError(TransactionError):
    """A lock could not be acquired in time."""


class ConflictError(TransactionError):
    """Another writer committed an overlapping change."""


class NonRetryableConflictError(ConflictError):
    """A conflict that another attempt at the write would have, too, so that the write is not retried."""


class ValidationError(TransactionError):
    """A pre-commit validator refused the write, which was rolled back."""


class CommitStateUnknownError(TransactionError):
    """It is unknown whether the commit succeeded. Nothing was rolled back, so the write may still become visible."""


class BusyError(TransactionError):
    """Another process is executing the plan."""


class CatalogError(HudiError):
    """A catalog, such as a Hive metastore, refused a request or does not answer."""


class NotInCatalogError(CatalogError):
    """A catalog has no such database, table, partition or lock."""


class AlreadyInCatalogError(CatalogError):
    """A catalog has such a database, table or partition already."""


class RefusedByCatalogError(CatalogError):
    """A catalog has answered that it does not take what it was sent."""


class ServiceAfterCommitError(HudiError):
    """A table service failed after a write. The write is committed and must not be repeated; the error of the service
    is the cause."""


class SetupError(HudiError, RuntimeError):
    """Java, PySpark or an optional package is missing."""
