"""Statements as frozen dataclasses of their clauses.

The parsers return them, and `pyhudi.spark.sql` executes them. Names of tables are tuples of parts; SQL texts are as
written.
"""

from __future__ import annotations

from typing import TypeAlias

from pyhudi.sql.scripts.script_nodes import Script
from pyhudi.sql.statements.ddl_statements import (
    INDEX_STATEMENTS,
    AddColumn,
    AddColumns,
    AlterColumns,
    ChangeColumn,
    ColumnChange,
    CreateFunction,
    CreateIndex,
    CreateTable,
    DropColumn,
    DropIndex,
    DropPartitions,
    DropTable,
    RefreshIndex,
    RenameColumn,
    RenameTable,
    RepairPartitions,
    SetProperties,
    Truncate,
)
from pyhudi.sql.statements.dml_statements import (
    Change,
    ClauseKind,
    Delete,
    ExplainChange,
    Insert,
    Merge,
    MergeClause,
    MultiInsert,
    Update,
)
from pyhudi.sql.statements.query_statements import (
    Call,
    Describe,
    ExecuteImmediate,
    SelectStatement,
    Show,
    ShowTableExtended,
    ShowViews,
)
from pyhudi.sql.statements.statement_types import Name, PartitionSpec
from pyhudi.sql.statements.unsupported_statements import (
    UnsupportedAlter,
    UnsupportedStatement,
)
from pyhudi.sql.statements.view_statements import (
    CacheTable,
    ChangeView,
    ClearCache,
    CreateView,
    RefreshTable,
    UncacheTable,
)

__all__ = [
    "INDEX_STATEMENTS",
    "AddColumn",
    "AddColumns",
    "AlterColumns",
    "CacheTable",
    "Call",
    "Change",
    "ChangeColumn",
    "ChangeView",
    "ClauseKind",
    "ClearCache",
    "ColumnChange",
    "CreateFunction",
    "CreateIndex",
    "CreateTable",
    "CreateView",
    "Delete",
    "Describe",
    "DropColumn",
    "DropIndex",
    "DropPartitions",
    "DropTable",
    "ExecuteImmediate",
    "ExplainChange",
    "Insert",
    "Merge",
    "MergeClause",
    "MultiInsert",
    "Name",
    "PartitionSpec",
    "RefreshIndex",
    "RefreshTable",
    "RenameColumn",
    "RenameTable",
    "RepairPartitions",
    "SelectStatement",
    "SetProperties",
    "Show",
    "ShowTableExtended",
    "ShowViews",
    "Statement",
    "Truncate",
    "UncacheTable",
    "UnsupportedAlter",
    "UnsupportedStatement",
    "Update",
]

Statement: TypeAlias = (
    CreateTable
    | CreateView
    | CreateFunction
    | ChangeView
    | SelectStatement
    | Script
    | ExecuteImmediate
    | CacheTable
    | UncacheTable
    | ClearCache
    | RepairPartitions
    | UnsupportedStatement
    | ExplainChange
    | Insert
    | MultiInsert
    | Update
    | Delete
    | Merge
    | SetProperties
    | RenameTable
    | AddColumns
    | AlterColumns
    | DropPartitions
    | UnsupportedAlter
    | Truncate
    | DropTable
    | Show
    | ShowViews
    | ShowTableExtended
    | Describe
    | CreateIndex
    | DropIndex
    | RefreshIndex
    | RefreshTable
    | Call
)
"""Every statement that `pyhudi.sql.parsers` return."""
