"""Databases, tables and partitions of a Hive metastore, read and changed by requests of a client."""

from __future__ import annotations

import copy
import itertools
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar

from pyhudi.catalog_sync.catalogs.catalog_entries import (
    EXTERNAL_TABLE,
    CatalogColumn,
    CatalogEntry,
    CatalogPartition,
    StorageFormat,
)
from pyhudi.errors import AlreadyInCatalogError, NotInCatalogError
from pyhudi.hive_metastore.metastore_client import MetastoreClient, UnknownMethodError, current_user
from pyhudi.hive_metastore.partition_names import partition_name

if TYPE_CHECKING:
    from pymetastore.hive_metastore.ThriftHiveMetastore import Client
    from pymetastore.hive_metastore.ttypes import FieldSchema, Partition, SerDeInfo, StorageDescriptor, Table

T = TypeVar("T")


class HiveMetastoreCatalog:
    """Entries of a metastore.

    Args:
        client: Its client.
        batch: Maximum number of partitions in a request.
    """

    def __init__(self, client: MetastoreClient, batch: int) -> None:
        self._client, self._batch = client, batch

    def __str__(self) -> str:
        return str(self._client)

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def location(self, uri: str) -> str:
        """Return the location of an entry for the URI of a folder: the same."""
        return uri

    # --- databases and tables --------------------------------------------------------------------------------------

    def has_database(self, name: str) -> bool:
        """Return True if a database exists."""
        try:
            self._client.send(lambda client: client.get_database(name))
        except NotInCatalogError:
            return False
        return True

    def create_database(self, name: str, description: str) -> None:
        """Create a database, unless another process has just created it."""
        from pymetastore.hive_metastore.ttypes import Database

        database = Database(name=name, description=description, parameters={})
        try:
            self._client.send(lambda client: client.create_database(database))
        except AlreadyInCatalogError:
            return

    def table(self, database: str, name: str) -> CatalogEntry | None:
        """Return a table; None if there is none."""
        found = self._find(database, name)
        return None if found is None else _table(found)

    def create_table(self, table: CatalogEntry) -> None:
        """Create a table.

        Raises:
            AlreadyInCatalogError: There is one of the name.
        """
        from pymetastore.hive_metastore import ttypes

        created = ttypes.Table(
            dbName=table.database,
            tableName=table.name,
            owner=current_user(),
            createTime=int(time.time()),
            lastAccessTime=0,
            retention=0,
            sd=_descriptor(table),
            partitionKeys=_fields(table.partition_columns),
            parameters=dict(table.properties),
            tableType=table.type,
        )
        self._client.send(lambda client: client.create_table(created))

    def alter_table(self, table: CatalogEntry, *, cascade: bool = False) -> None:
        """Change columns, location, format and properties of a table to those of ``table``, and nothing else of it.

        Args:
            table: The table with its new content.
            cascade: Change the columns of existing partitions, too.

        Raises:
            NotInCatalogError: There is no such table.
        """
        from pymetastore.hive_metastore.ttypes import EnvironmentContext

        stored = self._find(table.database, table.name)
        if stored is None:
            raise NotInCatalogError(f"{self} has no table {table.full_name} any more; sync again")
        changed = copy.deepcopy(stored)
        changed.sd.cols, changed.sd.location = _fields(table.columns), table.location
        _set_format(changed.sd, table)
        changed.parameters = dict(table.properties)
        context = EnvironmentContext(properties={"CASCADE": "true"} if cascade else {})
        self._client.send(
            lambda client: client.alter_table_with_environment_context(table.database, table.name, changed, context)
        )

    def drop_table(self, database: str, name: str) -> None:
        """Drop the entry of a table. Files stay."""
        self._client.send(lambda client: client.drop_table(database, name, False))

    def _find(self, database: str, name: str) -> Table | None:
        """Return a table as the metastore sends it."""
        try:
            return self._client.send(lambda client: _get_table(client, database, name))
        except UnknownMethodError:  # the request is new in Hive 2.3, and the older one is gone in Hive 4.1
            pass
        except NotInCatalogError:
            return None
        try:
            return self._client.send(lambda client: client.get_table(database, name))
        except NotInCatalogError:
            return None

    # --- partitions ------------------------------------------------------------------------------------------------

    def partitions(self, table: CatalogEntry) -> Iterator[CatalogPartition]:
        """Return all partitions of a table."""
        names = self._client.send(lambda client: client.get_partition_names(table.database, table.name, -1))
        return map(_partition, self._named(table, names))

    def partitions_of(self, table: CatalogEntry, values: Iterable[Sequence[str]]) -> Iterator[CatalogPartition]:
        """Return those of some partitions that exist, by their values."""
        return map(_partition, self._named(table, self._names(table, values)))

    def add_partitions(self, table: CatalogEntry, partitions: Iterable[CatalogPartition]) -> None:
        """Add partitions with the columns and the format of their table. Those that exist are left as they are."""
        from pymetastore.hive_metastore import ttypes

        stored = self._find(table.database, table.name)
        assert stored is not None
        for some in _batches(partitions, self._batch):
            request = ttypes.AddPartitionsRequest(
                dbName=table.database,
                tblName=table.name,
                parts=[_new_partition(stored, one) for one in some],
                ifNotExists=True,
                needResult=False,
            )
            self._client.send(lambda client, request=request: client.add_partitions_req(request))  # type: ignore[misc]

    def move_partitions(self, table: CatalogEntry, partitions: Iterable[CatalogPartition]) -> None:
        """Change partitions to the locations, and to the format and columns of their table."""
        stored = self._find(table.database, table.name)
        assert stored is not None
        wanted = {one.values: one for one in partitions}
        for some in _batches(self._named(table, self._names(table, wanted)), self._batch):
            for partition in some:
                location = wanted[tuple(partition.values)].location
                partition.sd = _partition_descriptor(stored.sd, location)
            self._client.send(
                lambda client, some=some: client.alter_partitions(table.database, table.name, some)  # type: ignore[misc]
            )

    def touch_partitions(self, table: CatalogEntry, values: Iterable[Sequence[str]]) -> None:
        """Record in partitions that they were changed now (their property ``transient_lastDdlTime``)."""
        now = str(int(time.time()))
        for some in _batches(self._named(table, self._names(table, values)), self._batch):
            for partition in some:
                partition.parameters = {**(partition.parameters or {}), "transient_lastDdlTime": now}
            self._client.send(
                lambda client, some=some: client.alter_partitions(table.database, table.name, some)  # type: ignore[misc]
            )

    def drop_partitions(self, table: CatalogEntry, values: Iterable[Sequence[str]]) -> None:
        """Drop the entries of partitions, those that exist. Files stay."""
        for one in values:
            try:
                self._client.send(
                    lambda client, one=one: client.drop_partition(  # type: ignore[misc]
                        table.database, table.name, list(one), False
                    )
                )
            except NotInCatalogError:
                continue

    def _names(self, table: CatalogEntry, values: Iterable[Sequence[str]]) -> Iterator[str]:
        columns = [column.name for column in table.partition_columns]
        return (partition_name(columns, one) for one in values)

    def _named(self, table: CatalogEntry, names: Iterable[str]) -> Iterator[Partition]:
        for some in _batches(names, self._batch):
            yield from self._client.send(
                lambda client, some=some: client.get_partitions_by_names(  # type: ignore[misc]
                    table.database, table.name, some
                )
            )


def _get_table(client: Client, database: str, name: str) -> Table:
    from pymetastore.hive_metastore.ttypes import ClientCapabilities, GetTableRequest

    request = GetTableRequest(dbName=database, tblName=name, capabilities=ClientCapabilities(values=[]))
    return client.get_table_req(request).table


def _table(stored: Table) -> CatalogEntry:
    sd = stored.sd
    serde: SerDeInfo | None = sd.serdeInfo
    return CatalogEntry(
        stored.dbName,
        stored.tableName,
        _columns(sd.cols),
        _columns(stored.partitionKeys),
        sd.location or "",
        StorageFormat(sd.inputFormat or "", sd.outputFormat or "", (serde and serde.serializationLib) or ""),
        dict((serde and serde.parameters) or {}),
        dict(stored.parameters or {}),
        stored.tableType or EXTERNAL_TABLE,
    )


def _columns(fields: Sequence[FieldSchema] | None) -> tuple[CatalogColumn, ...]:
    return tuple(CatalogColumn(field.name, field.type, field.comment or "") for field in fields or ())


def _fields(columns: Iterable[CatalogColumn]) -> list[FieldSchema]:
    from pymetastore.hive_metastore.ttypes import FieldSchema

    return [FieldSchema(name=column.name, type=column.type, comment=column.comment) for column in columns]


def _descriptor(table: CatalogEntry) -> StorageDescriptor:
    from pymetastore.hive_metastore.ttypes import StorageDescriptor

    made = StorageDescriptor(
        cols=_fields(table.columns),
        location=table.location,
        compressed=False,
        numBuckets=0,
        bucketCols=[],
        sortCols=[],
        parameters={},
    )
    _set_format(made, table)
    return made


def _set_format(sd: StorageDescriptor, table: CatalogEntry) -> None:
    from pymetastore.hive_metastore.ttypes import SerDeInfo

    sd.inputFormat, sd.outputFormat = table.format.input, table.format.output
    sd.serdeInfo = sd.serdeInfo or SerDeInfo()
    sd.serdeInfo.serializationLib = table.format.serde
    sd.serdeInfo.parameters = dict(table.serde_properties)


def _new_partition(stored: Table, partition: CatalogPartition) -> Partition:
    from pymetastore.hive_metastore import ttypes

    return ttypes.Partition(
        values=list(partition.values),
        dbName=stored.dbName,
        tableName=stored.tableName,
        createTime=0,
        lastAccessTime=0,
        sd=_partition_descriptor(stored.sd, partition.location),
        parameters={},
    )


def _partition_descriptor(of_table: StorageDescriptor, location: str) -> StorageDescriptor:
    sd = copy.copy(of_table)
    sd.location = location
    return sd


def _partition(stored: Partition) -> CatalogPartition:
    return CatalogPartition(tuple(stored.values), stored.sd.location or "")


def _batches(items: Iterable[T], size: int) -> Iterator[list[T]]:
    iterator = iter(items)
    while some := list(itertools.islice(iterator, size)):
        yield some
