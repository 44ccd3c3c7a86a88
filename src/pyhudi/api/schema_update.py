"""Changes of a table's columns, collected and applied in one commit, as returned by `HudiTable.alter_schema`."""

from __future__ import annotations

from functools import partial
from types import TracebackType
from typing import Self

import pyarrow as pa

from pyhudi.config import Options
from pyhudi.errors import ConfigError
from pyhudi.schema.evolution import schema_changes
from pyhudi.schema.evolution.internal_schema import InternalSchema
from pyhudi.schema.evolution.type_arguments import as_table_type
from pyhudi.services.alter_schema import SchemaUpdateResult, alter_schema, current_schema
from pyhudi.table.meta_client import TableMetaClient


class SchemaUpdate:
    """Changes of a table's columns, in call order; `commit` applies all of them or none.

    Columns inside others have dotted paths: ``address.city`` for a field of a struct, ``items.element.price`` and
    ``prices.value.amount`` inside arrays and maps. Types are those of pyarrow or ``pyspark.sql.types``, or a text such
    as ``bigint`` or ``decimal(10, 2)``. In a ``with`` block, the changes are committed at its end unless an error is
    raised in it::

        with table.alter_schema() as columns:
            columns.rename_column("qty", "quantity")
            columns.add_column("address.zip", "string", after="city")
    """

    def __init__(self, path: str, options: Options) -> None:
        """Initialize; called by `HudiTable.alter_schema`."""
        self._path = path
        self._options = options
        self._changes: list[partial[InternalSchema]] = []

    def add_column(
        self,
        path: str,
        data_type: object,
        comment: str | None = None,
        *,
        first: bool = False,
        after: str | None = None,
        before: str | None = None,
    ) -> Self:
        """Add a nullable column, or a field to a struct.

        Args:
            path: Name of the column; dotted for a field.
            data_type: Its type.
            comment: Its comment.
            first: Put it before all others. Without ``first``, ``after`` and ``before`` it becomes the last one.
            after: Put it after this column, named by the last part of its path.
            before: Put it before this column.
        """
        table_type = as_table_type(data_type)
        position = _position(after, before, first=first)
        change = partial(schema_changes.add_column, path=path, data_type=table_type, doc=comment, position=position)
        return self._then(change)

    def drop_column(self, path: str) -> Self:
        """Drop a column or a field; a later column of the same name is another one."""
        return self._then(partial(schema_changes.drop_column, path=path))

    def rename_column(self, path: str, name: str) -> Self:
        """Rename a column or a field.

        Args:
            path: Its current path.
            name: Its new name, only the last part of the path.
        """
        return self._then(partial(schema_changes.rename_column, path=path, name=name))

    def change_type(self, path: str, data_type: object) -> Self:
        """Change a column or a field to a wider type: int to long, double, string or decimal, long to string or
        decimal, float to double or string, double, date and decimal to string, a decimal to one with more digits."""
        table_type = as_table_type(data_type)
        return self._then(partial(schema_changes.change_type, path=path, data_type=table_type))

    def move_column(
        self, path: str, *, first: bool = False, after: str | None = None, before: str | None = None
    ) -> Self:
        """Move a column or a field to another position. Arguments as of `add_column`."""
        position = _position(after, before, first=first)
        if position == schema_changes.LAST:
            raise ConfigError(f"move_column({path!r}) requires a position: first=True, after='…' or before='…'")
        return self._then(partial(schema_changes.move_column, path=path, position=position))

    def set_comment(self, path: str, comment: str | None) -> Self:
        """Set the comment of a column or a field; None removes it."""
        return self._then(partial(schema_changes.set_comment, path=path, text=comment))

    def make_nullable(self, path: str) -> Self:
        """Make a column or a field nullable."""
        return self._then(partial(schema_changes.make_nullable, path=path))

    def commit(self) -> SchemaUpdateResult:
        """Apply the changes in one commit.

        Returns:
            The instant of the commit; None if the table already has these columns.

        Raises:
            SchemaMismatchError: A change is not possible: the column does not exist, the new name is in use, values
                would be lost, or it is a column of the record key, the partitions or the ordering.
            UnsupportedTableError: The table has no columns yet, or an index on the column.
            TransactionError: A clustering is pending.
            ConflictError: Conflicts with other writers, repeatedly.
        """
        return alter_schema(TableMetaClient.open(self._path, self._options), self._options, self._apply)

    def preview(self) -> pa.Schema:
        """Return the columns after the changes, including meta columns. Raises the errors of `commit` about changes."""
        return self._apply(current_schema(TableMetaClient.open(self._path, self._options))).to_arrow()

    def __repr__(self) -> str:
        changes = ", ".join(f"{change.func.__name__}({change.keywords['path']!r})" for change in self._changes)
        return f"SchemaUpdate({self._path!r}: {changes or 'no changes'}; not committed)"

    def _then(self, change: partial[InternalSchema]) -> Self:
        self._changes.append(change)
        return self

    def _apply(self, schema: InternalSchema) -> InternalSchema:
        for change in self._changes:
            schema = change(schema)
        return schema

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.commit()


def _position(after: str | None, before: str | None, *, first: bool) -> schema_changes.ColumnPosition:
    if first + (after is not None) + (before is not None) > 1:
        raise ConfigError("a column has one position: pass only one of first=True, after='…' and before='…'")
    return schema_changes.ColumnPosition(first, after, before)
