"""Access to a table: its storage, configuration and timeline."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field

from pyhudi.config import Options
from pyhudi.errors import CorruptTableError, ForeignFilesWarning, TableExistsError, warn
from pyhudi.format.file_names import file_name_of
from pyhudi.storage import Storage, open_storage
from pyhudi.storage.table_paths import META_FOLDER
from pyhudi.table.config.properties_file import PATH, create_properties
from pyhudi.table.config.table_config import TableConfig
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.timeline_layout import LAYOUT_1, LAYOUT_2

_FOLDERS = (".aux/.bootstrap/.partitions", ".aux/.bootstrap/.fileids", ".schema", ".temp")


@dataclass(frozen=True, slots=True)
class TableMetaClient:
    """A table as of the time it was opened. Immutable and picklable; :meth:`reload` reads it again."""

    storage: Storage
    config: TableConfig
    options: Options = field(default_factory=Options.parse)

    @classmethod
    def open(
        cls, location: str | os.PathLike[str] | Storage, options: Mapping[str, object] | None = None
    ) -> TableMetaClient:
        """Open the table at a path, URI or storage.

        Raises NotAHudiTableError, CorruptTableError, UnsupportedTableError.
        """
        parsed = Options.parse(options)
        storage = _storage(location, parsed)
        return cls(storage, TableConfig.load(storage), parsed)

    @classmethod
    def create(
        cls,
        location: str | os.PathLike[str] | Storage,
        config: TableConfig,
        options: Mapping[str, object] | None = None,
    ) -> TableMetaClient:
        """Create an empty table: the folders of Apache Hudi (if the storage has folders), then the properties,
        atomically.

        Of concurrent creators one succeeds; the others get TableExistsError and may open it. A table that has lost its
        properties gets no others here, which would hide its rows (CorruptTableError). A folder that is not empty causes
        a ForeignFilesWarning.
        """
        parsed = Options.parse(options)
        storage = _storage(location, parsed)
        config.check_readable()
        config.check_writable()
        layout = config.layout
        has_instants = _has_instants(storage)  # before PATH is looked for, which another creator makes first
        if storage.exists(PATH):
            raise TableExistsError(f"a Hudi table exists at {storage.root}; open it, or choose another path")
        if has_instants:
            raise CorruptTableError(
                f"cannot create a table at {storage.root}: there is the timeline of a table whose {PATH} was lost; "
                "recreate the file with pyhudi.overwrite_properties, or delete that table first"
            )
        _warn_of_foreign_files(storage)
        for folder in _FOLDERS:
            storage.make_dirs(f"{META_FOLDER}/{folder}")
        storage.make_dirs(layout.folder)
        storage.make_dirs(layout.history)
        create_properties(storage, config.properties)
        return cls(storage, config, parsed)

    def reload(self) -> TableMetaClient:
        """Return the table with its properties read again."""
        return TableMetaClient(self.storage, TableConfig.load(self.storage), self.options)

    def with_config(self, config: TableConfig) -> TableMetaClient:
        """Return the same table with a configuration that was just written."""
        return TableMetaClient(self.storage, config, self.options)

    def active_timeline(self) -> ActiveTimeline:
        """Load the active timeline by one listing."""
        return ActiveTimeline.load(self.storage, self.config.layout)

    def __repr__(self) -> str:
        return f"TableMetaClient({self.storage.root}, {self.config!r})"


def _has_instants(storage: Storage) -> bool:
    """Return True if there are instants in the timeline of any layout."""
    names = [
        (layout, file_name_of(path))
        for layout in (LAYOUT_1, LAYOUT_2)
        for path in storage.list(layout.folder)["path"].to_pylist()
    ]
    return any(layout.parse(name) is not None for layout, name in names)


def _warn_of_foreign_files(storage: Storage) -> None:
    """Warn of visible files and folders where a table is created: their rows do not become rows of the table."""
    entries = [*storage.list_dirs(), *map(file_name_of, storage.list()["path"].to_pylist())]
    visible = sorted(name for name in entries if not name.startswith((".", "_")))
    if visible:
        warn(
            f"the folder {storage.root} of the new table has other files, such as {visible[0]!r}, whose rows are not "
            "in the table, and on which other readers may fail; choose an empty folder, or bootstrap a table over them "
            "(pyhudi.bootstrap_table)",
            ForeignFilesWarning,
        )


def _storage(location: str | os.PathLike[str] | Storage, options: Options) -> Storage:
    if isinstance(location, (str, os.PathLike)):
        return open_storage(os.fspath(location), options)
    return location
