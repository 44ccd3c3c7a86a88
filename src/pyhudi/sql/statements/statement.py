"""Union of the statements."""

from __future__ import annotations

from typing import TypeAlias

from pyhudi.sql.scripts.script_nodes import Script
from pyhudi.sql.statements.ddl_statements import (
    AddColumns,
    AlterColumns,
    CreateFunction,
    CreateIndex,
    CreateTable,
    DropIndex,
    DropPartitions,
    DropTable,
    RefreshIndex,
    RenameTable,
    RepairPartitions,
    SetProperties,
    Truncate,
)
from pyhudi.sql.statements.dml_statements import Delete, ExplainChange, Insert, Merge, MultiInsert, Update
from pyhudi.sql.statements.query_statements import (
    Call,
    Describe,
    ExecuteImmediate,
    SelectStatement,
    Show,
    ShowTableExtended,
    ShowViews,
)
from pyhudi.sql.statements.unsupported_statements import UnsupportedAlter, UnsupportedStatement
from pyhudi.sql.statements.view_statements import (
    CacheTable,
    ChangeView,
    ClearCache,
    CreateView,
    RefreshTable,
    UncacheTable,
)

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
