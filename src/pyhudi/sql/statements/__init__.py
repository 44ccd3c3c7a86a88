"""Statements as frozen dataclasses of their clauses.

The parsers return them, and `pyhudi.spark.sql` executes them. Names of tables are tuples of parts; SQL texts are as
written.
"""

from __future__ import annotations

from pyhudi.sql.statements.ddl_statements import *  # noqa: F403
from pyhudi.sql.statements.dml_statements import *  # noqa: F403
from pyhudi.sql.statements.query_statements import *  # noqa: F403
from pyhudi.sql.statements.statement import *  # noqa: F403
from pyhudi.sql.statements.statement_types import *  # noqa: F403
from pyhudi.sql.statements.unsupported_statements import *  # noqa: F403
from pyhudi.sql.statements.view_statements import *  # noqa: F403
