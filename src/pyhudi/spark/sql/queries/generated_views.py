"""Global temporary views that take the place of Hudi tables in queries.

Each session, point of time travel and argument of a table function has views of its own, of which Spark keeps the plans
with all names of files. A query makes its views before Spark analyses it, which copies their plans, and never looks at
them again. So those that no query has used for an hour are dropped.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from itertools import islice
from threading import Lock

from pyspark.sql import DataFrame, SparkSession

from pyhudi.spark.execution.temporary_views import with_separate_plan
from pyhudi.spark.session_settings import is_connect
from pyhudi.spark.sql.queries.view_registry import views_of_temporary_views

_UNUSED_SECONDS = 3600.0
_MOST_AT_ONCE = 8
"""Views that one query drops, so that it does not wait for many."""
_used: OrderedDict[str, float] = OrderedDict()
"""Times at which queries have made the views last, the oldest first."""
_guard = Lock()


def show_rows(rows: DataFrame, view: str) -> DataFrame:
    """Create or replace a view for a query that is analysed next, and drop views that no query has used for an hour.

    The view has a plan of its own: when it is replaced or dropped, Spark releases rows that are cached by its plan,
    also those of a DataFrame that a user has loaded and cached.

    Args:
        rows: The rows.
        view: Name of the view, without a database.

    Returns:
        The rows.
    """
    _drop_unused(rows.sparkSession, view)
    with_separate_plan(rows).createOrReplaceGlobalTempView(view)
    return rows


def _drop_unused(spark: SparkSession, view: str) -> None:
    """Record that a query uses a view, and drop views that none has used for long, except those that temporary views
    refer to.

    Does nothing in Spark Connect, where Spark looks at the views of a query again whenever its rows are fetched.
    """
    if is_connect(spark):
        return
    with _guard:  # also while views are dropped, so that no other query makes one of them at the same time
        now = time.monotonic()
        _used[view] = now
        _used.move_to_end(view)
        unused = [name for name in islice(_used, _MOST_AT_ONCE) if now - _used[name] > _UNUSED_SECONDS]
        needed = views_of_temporary_views() if unused else frozenset()
        for name in unused:
            del _used[name]
            if name in needed:
                _used[name] = now
            else:
                spark.catalog.dropGlobalTempView(name)
