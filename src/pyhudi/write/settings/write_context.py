"""Context of write tasks: created once by the driver, sent to every task, immutable."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pyarrow as pa

from pyhudi.config.enums import FileFormat, InvalidText
from pyhudi.format.base_file.base_file_footer import BloomOptions
from pyhudi.format.base_file.orc import STRIPE_SIZE
from pyhudi.format.base_file.parquet import ParquetOptions
from pyhudi.format.file_names import instant_of, write_token
from pyhudi.merge.modes.merge_rules import MergeRules
from pyhudi.schema.column_names import FileNames
from pyhudi.schema.meta_columns import add_meta_columns
from pyhudi.storage import Storage
from pyhudi.table.schema_history import ColumnNamesByInstant
from pyhudi.write.rows.keyed_rows import KeyedWrite
from pyhudi.write.settings.change_log_settings import ChangeLogSettings
from pyhudi.write.settings.log_settings import LogSettings


@dataclass(frozen=True, slots=True)
class WriteContext:
    """Context of one write for its tasks.

    ``schema`` has the table's own columns as stored in files from this write on (without partition columns if the table
    omits them); ``avro_schema`` is the footer text for a file of `file_schema`. ``rules`` determine how incoming rows
    merge with those of base files. ``hard_deletes``: deletes win regardless of ordering values (deletes by key).
    ``bloom`` is ``None`` if files have no filter. ``attempt`` distinguishes attempts at one instant, because a plan may
    be executed several times. ``logs`` is None unless updates and deletes are written to log files (merge-on-read
    tables). ``changes``: settings of change logs (None: changes are not logged). ``keyed``: rows have no positions in
    base files and are matched by key (None: with positions). ``partition_metadata_format`` is ``None`` for the usual
    text form. ``buffer_size`` limits the memory of a task for all its open files. Sizes are in bytes. ``indexed`` are
    the columns (dotted names are leaves) whose minimum and maximum in each file are stored in the metadata table; None:
    none. ``new_apart``: new records in a rewritten base file get separate row groups, so that they can be read alone.
    ``invalid_text``: treatment of text that is not valid UTF-8 in rewritten base files. ``names_at`` returns, for an
    instant, the names in its files of columns that were renamed since (None: the table has no schema history).
    ``unassigned`` are columns that updates leave as they are, and of which incoming rows that have a position have no
    values. ``updates_columns``: all incoming rows are such updates; there are no deletes and no new records.
    """

    storage: Storage
    instant: str
    schema: pa.Schema
    avro_schema: str | None = None
    rules: MergeRules = field(default_factory=MergeRules)
    hard_deletes: bool = False
    populate_meta_fields: bool = True
    extension: str = "parquet"
    parquet: ParquetOptions = field(default_factory=ParquetOptions)
    orc_codec: str = "zlib"
    orc_stripe_size: int = STRIPE_SIZE
    bloom: BloomOptions | None = field(default_factory=BloomOptions)
    max_file_size: int = 120 * 1024 * 1024
    buffer_size: int = 256 * 1024 * 1024
    partition_metadata_format: FileFormat | None = None
    logs: LogSettings | None = None
    changes: ChangeLogSettings | None = None
    keyed: KeyedWrite | None = None
    indexed: pa.Schema | None = None
    attempt: str = ""
    new_apart: bool = False
    invalid_text: InvalidText = InvalidText.FAIL
    names_at: ColumnNamesByInstant | None = None
    unassigned: frozenset[str] = frozenset()
    updates_columns: bool = False

    def file_names(self, path: str) -> FileNames:
        """Return the names of columns in a base file that differ from the table's."""
        return {} if self.names_at is None else self.names_at(instant_of(path))

    @property
    def file_schema(self) -> pa.Schema:
        """Columns of a base file, meta columns first."""
        return add_meta_columns(self.schema)

    def with_log_slices(self, slices: pa.Table) -> WriteContext:
        """Return the context for a write whose log files belong to these slices (LOG_SLICES_SCHEMA)."""
        return self if self.logs is None else replace(self, logs=replace(self.logs, slices=slices))


@dataclass(frozen=True, slots=True)
class TaskId:
    """The Spark task attempt that writes."""

    partition: int
    stage: int
    attempt: int

    @property
    def token(self) -> str:
        """Write token in the names of this attempt's files."""
        return write_token(self.partition, self.stage, self.attempt)
