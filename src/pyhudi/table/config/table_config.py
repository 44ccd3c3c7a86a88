"""Configuration of a table: its typed properties, loaded, validated and updated."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from types import MappingProxyType

from pyhudi.config import Options
from pyhudi.storage import Storage
from pyhudi.table.config import version_support
from pyhudi.table.config.config_validation import validate_options
from pyhudi.table.config.new_table_properties import new_table_properties
from pyhudi.table.config.properties_file import load_properties, update_properties
from pyhudi.table.config.typed_properties import TableProperties


class TableConfig(TableProperties):
    """Configuration of a table. Immutable; :meth:`updated` writes a change and returns the new configuration."""

    @classmethod
    def load(cls, storage: Storage) -> TableConfig:
        """Load and check the configuration. Raises NotAHudiTableError, CorruptTableError, or UnsupportedTableError for
        a table that this release cannot read."""
        config = cls(MappingProxyType(load_properties(storage)))
        config.check_readable()
        return config

    @classmethod
    def for_new_table(cls, options: Options) -> TableConfig:
        """Return the configuration of a table that is to be created with these options."""
        return cls(MappingProxyType(new_table_properties(options)))

    def updated(
        self,
        storage: Storage,
        *,
        set: Mapping[str, str] | None = None,
        remove: Collection[str] = (),
        change: Callable[[dict[str, str]], None] | None = None,
    ) -> TableConfig:
        """Rewrite the stored properties (their current state, not that of this object) and return the new
        configuration."""
        return TableConfig(MappingProxyType(update_properties(storage, put=set, remove=remove, change=change)))

    def validate_against(self, options: Options) -> Options:
        """Return the options with all values that the table determines. Raises TableConfigConflictError for
        contradictions."""
        return validate_options(self, options)

    def check_readable(self) -> None:
        """Check that this release can read the table.

        Raises:
            UnsupportedTableError: The table has an unsupported version or feature.
            CorruptTableError: A property has a value that no release writes.
        """
        version_support.check_readable(self)

    def check_writable(self) -> None:
        """Check that this release can write the table.

        Raises:
            UnsupportedTableError: The table has an unsupported version or feature.
            CorruptTableError: A property has a value that no release writes.
        """
        version_support.check_version_writable(self)

    def __reduce__(self) -> tuple[Callable[[dict[str, str]], TableConfig], tuple[dict[str, str]]]:
        return (_from_properties, (dict(self.properties),))


def _from_properties(properties: dict[str, str]) -> TableConfig:
    return TableConfig(MappingProxyType(properties))
