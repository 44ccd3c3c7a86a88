"""Output of commands: rows and facts as a table, as JSON lines or as CSV."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, BinaryIO

import pyarrow as pa
from rich.console import Console

from pyhudi.report.row_formats import write_csv, write_json_lines
from pyhudi.report.row_table import ShownColumn, cell_text, print_facts, print_rows

ROWS_IN_TABLE = 20
"""Number of rows that a table has unless ``--limit`` says otherwise."""
_UNBROKEN = 10_000
"""Characters of a line without a terminal: names are not broken, so that other programs find them."""
_WIDTH = 120
"""The same of what precedes a question, without a terminal."""


class OutputFormat(Enum):
    """Form of the output."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"


@dataclass(frozen=True, slots=True)
class Output:
    """Where and in which form a command prints.

    Attributes:
        form: Form of the output.
        console: Console of tables.
        file: Binary file of JSON and CSV.
    """

    form: OutputFormat
    console: Console
    file: BinaryIO

    @classmethod
    def standard(cls, form: OutputFormat) -> Output:
        """Return the standard output."""
        return cls(form, _console(), sys.stdout.buffer)

    @classmethod
    def for_questions(cls) -> Output:
        """Return the output of what precedes a question: tables on the standard error output."""
        return cls(OutputFormat.TABLE, _console(stderr=True), sys.stderr.buffer)

    def rows(
        self,
        rows: Any,
        columns: Sequence[ShownColumn] | None = None,
        *,
        limit: int | None = 0,
        nothing: str = "no rows",
    ) -> None:
        """Print rows.

        Args:
            rows: An Arrow table, a `pyhudi.read.inspection.result_table.ResultTable`, or a stream of batches; of a
                stream only as much is read as is printed.
            columns: Columns of a table for people; None for all. JSON and CSV have all.
            limit: Maximum number of rows; 0: no maximum; None: 20 in a table.
            nothing: Text if a table has no rows.
        """
        if self.form is OutputFormat.TABLE:
            self._table(rows, columns, ROWS_IN_TABLE if limit is None else limit, nothing)
            return
        batches = _limited(_batches(rows), limit or None)
        if self.form is OutputFormat.JSON:
            write_json_lines(batches, self.file)
        else:
            write_csv(batches, rows.schema, self.file)
        self.file.flush()

    def facts(self, facts: Mapping[str, object], shown: Iterable[tuple[str, str]] | None = None) -> None:
        """Print names and values: as one JSON object, as CSV with the columns name and value, or as lines.

        Args:
            facts: The values.
            shown: Names and texts of the lines, if they are others.
        """
        if self.form is OutputFormat.TABLE:
            lines = [(name.replace("_", " "), cell_text(value)) for name, value in facts.items()]
            print_facts(lines if shown is None else shown, self.console)
        elif self.form is OutputFormat.JSON:
            self.file.write(json.dumps(facts, default=_as_json, ensure_ascii=False).encode() + b"\n")
            self.file.flush()
        else:
            texts = [value if isinstance(value, str) else cell_text(value) for value in facts.values()]
            self.rows(pa.table({"name": list(facts), "value": pa.array(texts, pa.string())}))

    def note(self, text: str) -> None:
        """Print a line below a table; nothing in other forms."""
        if self.form is OutputFormat.TABLE:
            self.console.print(text, style="dim", markup=False)

    def line(self, text: str) -> None:
        """Print a line of a table; nothing in other forms."""
        if self.form is OutputFormat.TABLE:
            self.console.print(text, markup=False, soft_wrap=True)

    def _table(self, rows: Any, columns: Sequence[ShownColumn] | None, limit: int, nothing: str) -> None:
        # one row more tells whether there are more
        batches = list(_limited(_batches(rows), limit + 1 if limit else None))
        table = pa.Table.from_batches(batches, schema=rows.schema)
        total = _number_of_rows(rows)
        if not table.num_rows:
            self.note(f"({nothing})")
            return
        shown = table.slice(0, limit) if limit else table
        print_rows(shown, self.console, columns)
        if shown.num_rows < table.num_rows:
            of = "" if total is None else f" of {total:,}"
            self.note(f"(first {shown.num_rows:,}{of}; --limit 0 prints all)")


def _console(*, stderr: bool = False) -> Console:
    """Return a console as wide as the terminal, or as ``COLUMNS`` says; without either, lines are not broken."""
    width = shutil.get_terminal_size((_WIDTH if stderr else _UNBROKEN, 24)).columns
    return Console(stderr=stderr, highlight=False, width=width)


def _batches(rows: Any) -> Iterator[pa.RecordBatch]:
    """Yield the batches of a table or a stream."""
    if isinstance(rows, pa.RecordBatchReader):
        try:
            yield from rows
        finally:
            rows.close()  # stops the threads that read
    else:
        yield from rows.to_batches()


def _number_of_rows(rows: Any) -> int | None:
    """Return the number of rows; None of a stream."""
    return None if isinstance(rows, pa.RecordBatchReader) else int(rows.num_rows)


def _limited(batches: Iterator[pa.RecordBatch], limit: int | None) -> Iterator[pa.RecordBatch]:
    """Yield the first rows; no further batch is read after them."""
    if limit is None:
        yield from batches
        return
    for batch in batches:
        yield batch.slice(0, limit)
        limit -= min(limit, batch.num_rows)
        if not limit:
            break


def _as_json(value: object) -> object:
    """Return a value that is no JSON as a list or a text."""
    return list(value) if isinstance(value, tuple | set | frozenset) else str(value)


def is_terminal(stream: str) -> bool:
    """Return whether the standard stream ``stdin``, ``stdout`` or ``stderr`` is a terminal."""
    return bool(getattr(sys, stream).isatty())
