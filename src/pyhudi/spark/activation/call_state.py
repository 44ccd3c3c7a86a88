"""Settings recorded on a reader or writer of PySpark, because Spark offers no way to read them back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyhudi.config.option_registry import declared

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
    """Record options as Spark stores them: the case of keys does not count, and one that is None is not recorded."""
    kept = call_state(target).options
    for key, value in options.items():
        if value is not None:
            for other in [known for known in kept if known.lower() == key.lower()]:
                del kept[other]
            kept["path" if key.lower() == "path" else declared(key)] = option_text(value)


def option_text(value: Any) -> str:
    """Return the value of an option as the text that Spark's readers and writers pass on."""
    return str(value).lower() if isinstance(value, bool) else str(value)
