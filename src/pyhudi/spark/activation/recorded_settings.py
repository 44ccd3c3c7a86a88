"""Settings recorded on a reader or writer of PySpark, because Spark offers no way to read them back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyhudi.config import options
from pyhudi.config.case_insensitive_options import with_options
from pyhudi.config.layout_methods import layout_method_error

PARTITIONPATH_FIELD = options.PARTITIONPATH_FIELD.key
FORMATS = frozenset({"hudi", "org.apache.hudi", "pyhudi"})
_ATTRIBUTE = "_pyhudi_settings"


class RecordedSettings:
    """Settings of one reader or writer so far."""

    def __init__(self, creator: Any = None) -> None:
        self.creator = creator
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
        self.layout: str | None = None
        """The last method that determines how Spark's own tables are laid out, which has no meaning for Hudi's."""

    def is_hudi(self, format: str | None) -> bool | None:
        """Return True if the format is Hudi's; None if none is given.

        Args:
            format: Format that the call names; None: the one that was set before.
        """
        name = format if format is not None else self.format
        return None if name is None else name.lower() in FORMATS

    def add_options(self, options: Mapping[str, Any]) -> None:
        """Add options as Spark stores them (`pyhudi.config.case_insensitive_options.with_options`)."""
        self.options = with_options(self.options, options)

    def refuse_layout(self) -> None:
        """Refuse a writer of a Hudi table with the layout options of Spark's own tables.

        Raises:
            ConfigError: The message has the options to use.
        """
        if self.layout is not None:
            raise layout_method_error(self.layout)


def record_creator(target: Any, creator: Any) -> None:
    """Record the session or DataFrame that created a reader or writer."""
    target.__dict__[_ATTRIBUTE] = RecordedSettings(creator)


def recorded_settings(target: Any) -> RecordedSettings:
    """Return the settings of a reader or writer so far."""
    settings = target.__dict__.get(_ATTRIBUTE)
    if settings is None:
        settings = RecordedSettings()
        target.__dict__[_ATTRIBUTE] = settings
    return settings  # type: ignore[no-any-return]


def partition_columns(partition_by: Any) -> tuple[str, ...] | None:
    """Return the argument ``partitionBy``, one name or several, as names; None if it is None."""
    if partition_by is None:
        return None
    return (partition_by,) if isinstance(partition_by, str) else tuple(partition_by)
