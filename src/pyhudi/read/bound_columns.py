"""Columns of a table as of a query, and the filter of the query bound to them."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from pyhudi.read.filters.row_filter import RowFilter
from pyhudi.read.planning_context import PlanningContext
from pyhudi.read.pruning.pruner_protocol import Predicate, PruningFilter
from pyhudi.read.pruning.statistics.filter_evaluation import StatisticsEvaluator
from pyhudi.read.schema.table_columns import TableSchema, resolve_table_schema
from pyhudi.schema.meta_fields import RECORD_KEY
from pyhudi.table.schema_history import ColumnNamesByInstant, SchemaHistory
from pyhudi.table.table_snapshot import TableSnapshot


@dataclass(frozen=True, slots=True)
class BoundColumns:
    """Columns of a table, and a filter with values of their types.

    Attributes:
        table: The table.
        context: Input of the planning.
        table_schema: Schema of the table; None: it is not known.
        schema: All columns of the query; none without a schema of the table.
        row_filter: The filter; None: all rows match.
        history: Schema history of the table; None: there is none.
    """

    table: TableSnapshot
    context: PlanningContext
    table_schema: TableSchema | None
    schema: pa.Schema
    row_filter: RowFilter | None
    history: SchemaHistory | None

    @classmethod
    def bind(
        cls,
        table: TableSnapshot,
        context: PlanningContext,
        table_schema: TableSchema | None,
        row_filter: RowFilter | None,
    ) -> BoundColumns:
        """Return the columns of a schema, and a filter bound to them."""
        has_history = table_schema is not None and table_schema.has_history
        return cls(
            table,
            context,
            table_schema,
            context.columns(table, table_schema),
            context.bind_filter(row_filter, table, table_schema),
            SchemaHistory.load(table.active) if has_history else None,
        )

    @property
    def pruning_filter(self) -> RowFilter | None:
        """The filter as far as statistics can evaluate it; None: there is none."""
        return None if self.row_filter is None else self.row_filter.for_pruning(self.schema)

    @property
    def key_columns(self) -> frozenset[str]:
        """Columns of the record key that the query has, and on which all versions of a record agree.

        Instants do not belong to them: an option of each write leaves what is below a millisecond out of their texts in
        keys.
        """
        names = (name for name in (*self.table.config.columns_of_key, RECORD_KEY) if name in self.schema.names)
        return frozenset(name for name in names if not _is_instant(self.schema.field(name).type))

    def predicate(self) -> Predicate:
        """Return the predicate of the query, by which indexes prune."""
        path_columns = self.context.path_columns(self.table, self.schema)
        conditions = StatisticsEvaluator(self.table.config, self.schema, path_columns, self._unchanged())
        overridden = self.context.session.overridden_functions
        pruning = PruningFilter.from_filter(self.row_filter, self.schema, overridden)
        return Predicate(self.table, self.context.query, pruning, conditions, self.context.opts)

    def names(self, as_of: str | None) -> ColumnNamesByInstant | None:
        """Return the names of the columns in older files, as of a requested time; None: they are the same."""
        return None if self.history is None else self.history.column_names(self.schema, as_of)

    def _unchanged(self) -> frozenset[str] | None:
        """Return the columns that have their current name in all files; None: all."""
        if self.table_schema is None or not self.table_schema.has_history:
            return None
        return frozenset() if self.history is None else self.history.unchanged()


def _is_instant(data_type: pa.DataType) -> bool:
    return pa.types.is_timestamp(data_type) and data_type.tz is not None


def columns_of_snapshot(table: TableSnapshot, as_of: str | None) -> TableSchema | None:
    """Return the columns at a time; before the first write, when there are no rows, the current ones."""
    table_schema = resolve_table_schema(table, as_of)
    return resolve_table_schema(table) if table_schema is None and as_of is not None else table_schema
