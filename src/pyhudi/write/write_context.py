"""Context of write tasks: made once by the driver, sent to every task, never changed."""

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
from pyhudi.write.change_log_settings import ChangeLogSettings
from pyhudi.write.log_settings import LogSettings
from pyhudi.write.rows.keyed_rows import KeyedWrite


@dataclass(frozen=True, slots=True)
class WriteContext:
    """Context of one write for its tasks.

    ``schema`` has the table's own columns as the files hold them from this write on (without partition columns where
    the table keeps those out of its files); ``avro_schema`` is the footer's text for a file of `file_schema`.
    ``rules`` say how incoming rows merge with those of base files. ``hard_deletes`` makes every delete win, whatever
    its ordering value (deletes by key). ``bloom`` is ``None`` where files carry no filter.
    ``attempt`` tells attempts at one instant apart, where a plan may be carried out more than once.
    ``logs`` is None unless updates and deletes go to log files (merge-on-read tables).
    ``changes``: what becomes of changes of base files (None: they are not logged).
    ``keyed``: rows come without their places in base files, which are found by key (None: with them).
    ``partition_metadata_format`` is ``None`` for the usual text form. ``buffer_size`` bounds what a task keeps in
    memory for all its open files. Sizes are bytes.
    ``indexed`` are the columns (dotted names are leaves) whose least and greatest values in each file go into the
    metadata table; None: none.
    ``new_apart``: new records behind those of a base file that is written anew get row groups of their own, so that
    who wants to know them need not read the others.
    ``invalid_text``: what becomes of text that is not UTF-8 in base files that are written anew.
    ``names_at`` gives, for an instant, the names that its files have for columns that were renamed since (None: the
    table keeps no history of its schemas).
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

    def file_names(self, path: str) -> FileNames:
        """Names of columns in a base file, where they are others than the table's."""
        return {} if self.names_at is None else self.names_at(instant_of(path))

    @property
    def file_schema(self) -> pa.Schema:
        """The columns of a base file, meta columns first."""
        return add_meta_columns(self.schema)

    def with_log_slices(self, slices: pa.Table) -> WriteContext:
        """The same for a write whose log files belong to these slices (LOG_SLICES_SCHEMA)."""
        return self if self.logs is None else replace(self, logs=replace(self.logs, slices=slices))


@dataclass(frozen=True, slots=True)
class TaskId:
    """The Spark task attempt that writes."""

    partition: int
    stage: int
    attempt: int

    @property
    def token(self) -> str:
        """The write token in the names of this attempt's files."""
        return write_token(self.partition, self.stage, self.attempt)
