"""Context of write tasks: created once by the driver, sent to every task, immutable."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pyarrow as pa

from pyhudi.config.enums import FileFormat, InvalidText
from pyhudi.format.base_file.base_file_footer import BloomOptions
from pyhudi.format.base_file.orc import STRIPE_SIZE
from pyhudi.format.base_file.parquet_writer import ParquetOptions
from pyhudi.format.file_names import instant_of, write_token
from pyhudi.merge.modes.merge_rules import MergeRules
from pyhudi.schema.evolution.schema_projection import FileNames
from pyhudi.schema.meta_columns import add_meta_columns
from pyhudi.storage import Storage
from pyhudi.table.schema_history import ColumnNamesByInstant
from pyhudi.write.rows.keyed_rows import KeyedWrite
from pyhudi.write.settings.log_settings import CdcSettings, LogSettings


@dataclass(frozen=True, slots=True)
class BaseFileOptions:
    """Format and sizes of the base files of a write.

    Attributes:
        extension: ``parquet`` or ``orc``.
        parquet: Settings of Parquet files.
        orc_codec: Codec of ORC files.
        orc_stripe_size: Size of ORC stripes in bytes.
        bloom: Settings of the bloom filter in the footer; None: files have no filter.
        max_size: Maximum size of a file in bytes.
        separates_inserts: New records in a rewritten file get separate row groups, so that they can be read alone.
    """

    extension: str = "parquet"
    parquet: ParquetOptions = field(default_factory=ParquetOptions)
    orc_codec: str = "zlib"
    orc_stripe_size: int = STRIPE_SIZE
    bloom: BloomOptions | None = field(default_factory=BloomOptions)
    max_size: int = 120 * 1024 * 1024
    separates_inserts: bool = False


@dataclass(frozen=True, slots=True)
class FileColumns:
    """Columns of the files of a write.

    Attributes:
        schema: The table's own columns as stored in files from this write on, without partition columns if the table
            omits them.
        avro_schema: Footer text for a file of `file_schema`.
        populate_meta_fields: Files hold the five meta columns.
        indexed: Columns (dotted names are leaves) whose minimum and maximum in each file are stored in the metadata
            table; None: none.
        names_at: Returns, for an instant, the names in its files of columns that were renamed since; None: the table
            has no schema history.
    """

    schema: pa.Schema
    avro_schema: str | None = None
    populate_meta_fields: bool = True
    indexed: pa.Schema | None = None
    names_at: ColumnNamesByInstant | None = None

    def file_names(self, path: str) -> FileNames:
        """Return the names of columns in a base file that differ from the table's."""
        return {} if self.names_at is None else self.names_at(instant_of(path))

    @property
    def file_schema(self) -> pa.Schema:
        """Columns of a base file, meta columns first."""
        return add_meta_columns(self.schema)


@dataclass(frozen=True, slots=True)
class RowMerging:
    """Merging of incoming rows with stored records.

    Attributes:
        rules: Merging of incoming rows with those of base files.
        hard_deletes: Deletes win regardless of ordering values (deletes by key).
        keyed: Rows have no positions in base files and are matched by key; None: with positions.
        unassigned: Columns that updates leave as they are, and of which incoming rows that have a position have no
            values.
        updates_columns: All incoming rows are such updates; there are no deletes and no new records.
    """

    rules: MergeRules = field(default_factory=MergeRules)
    hard_deletes: bool = False
    keyed: KeyedWrite | None = None
    unassigned: frozenset[str] = frozenset()
    updates_columns: bool = False


@dataclass(frozen=True, slots=True)
class WriteContext:
    """Context of one write for its tasks.

    Attributes:
        storage: Storage of the table.
        instant: Requested instant of the write.
        columns: Columns of its files.
        merging: Merging of incoming rows with stored records.
        files: Format and sizes of base files.
        partition_metadata_format: Format of partition metadata; None: the usual text form.
        logs: Settings of log files; None unless updates and deletes are written to them (merge-on-read tables).
        cdc: Settings of CDC logs; None: changes are not logged.
        buffer_size: Memory in bytes of a task for all its open files.
        attempt: Text that distinguishes attempts at one instant, because a plan may be executed several times.
        invalid_text: Treatment of text that is not valid UTF-8 in rewritten base files.
    """

    storage: Storage
    instant: str
    columns: FileColumns
    merging: RowMerging = field(default_factory=RowMerging)
    files: BaseFileOptions = field(default_factory=BaseFileOptions)
    partition_metadata_format: FileFormat | None = None
    logs: LogSettings | None = None
    cdc: CdcSettings | None = None
    buffer_size: int = 256 * 1024 * 1024
    attempt: str = ""
    invalid_text: InvalidText = InvalidText.FAIL

    def with_column_names(self, names_at: ColumnNamesByInstant | None) -> WriteContext:
        """Return the context with the names of columns in older files."""
        return replace(self, columns=replace(self.columns, names_at=names_at))

    def with_file_size(self, max_size: int) -> WriteContext:
        """Return the context with another maximum size of base files."""
        return replace(self, files=replace(self.files, max_size=max_size))

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
