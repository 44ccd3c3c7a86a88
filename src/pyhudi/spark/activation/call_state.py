"""Settings recorded on a reader or writer of PySpark, because Spark offers no way to read them back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyhudi.spark.case_insensitive_options import with_options

PARTITIONPATH_FIELD = "hoodie.datasource.write.partitionpath.field"
FORMATS = frozenset({"hudi", "org.apache.hudi", "pyhudi"})
_STATE = "_pyhudi_state"


class CallState:
    """Settings given to one reader or writer so far."""

    def __init__(self, maker: Any = None) -> None:
        self.maker = maker
        """The session of a reader, the DataFrame of a writer."""
        self.format: str | None = None
        self.options: dict[str, str] = {}
        self.mode: str | None = None
        self.partition_by: list[str] = []
        self.has_schema = False
        self.table: str | None = None
        """The name that ``writeTo`` was given."""
        self.partitioned_by: tuple[Any, ...] = ()
        """The columns of ``partitionedBy`` of ``writeTo``: names and Columns."""
        self.output_mode = "append"


def begin_state(target: Any, maker: Any) -> None:
    """Record the session or DataFrame that created a reader or writer."""
    target.__dict__[_STATE] = CallState(maker)


def call_state(target: Any) -> CallState:
    """Return the settings given to a reader or writer so far."""
    state = target.__dict__.get(_STATE)
    if state is None:
        state = CallState()
        target.__dict__[_STATE] = state
    return state  # type: ignore[no-any-return]


def keep_options(target: Any, options: Mapping[str, Any]) -> None:
    """Record options as Spark stores them (`pyhudi.spark.case_insensitive_options.with_options`)."""
    state = call_state(target)
    state.options = with_options(state.options, options)
