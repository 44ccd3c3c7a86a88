"""Databases, tables and partitions of AWS Glue, as of Apache Hudi's ``AwsGlueCatalogSyncTool``."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from pyhudi.catalog_sync.catalogs.catalog_entries import CatalogEntry, CatalogPartition
from pyhudi.catalog_sync.catalogs.glue_entries import (
    METADATA_LISTING,
    entry_of,
    glue_columns,
    partition_input,
    partition_of,
    s3_uri,
    storage_descriptor,
)
from pyhudi.errors import (
    AlreadyInCatalogError,
    CatalogError,
    ConfigError,
    NotInCatalogError,
    RefusedByCatalogError,
    SetupError,
)

if TYPE_CHECKING:
    from botocore.client import BaseClient

T = TypeVar("T")

_READ, _CHANGE, _DELETE = 1000, 100, 25
"""Numbers of partitions that Glue takes in a request."""
_REFUSED = "InvalidInputException"
"""Code of a response to content that Glue does not take; others are of the service, or of permissions."""
_NAMES = ("DatabaseName", "TableName", "Name")
"""Arguments that Glue stores in lower case."""
_INPUT = ("Name", "Description", "Owner", "Retention", "StorageDescriptor", "PartitionKeys", "TableType", "Parameters")
"""Fields of a table that may be sent back."""


@dataclass(frozen=True, slots=True)
class GlueEndpoint:
    """Address and credentials of Glue.

    Attributes:
        region: Region of AWS; None: that of boto3's configuration.
        url: Address of the service; None: that of the region.
        credentials: Arguments of boto3 that begin with ``aws_``; none: those that boto3 finds.
        catalog_id: Account of the catalog; None: that of the credentials.
    """

    region: str | None
    url: str | None
    credentials: Mapping[str, str] = field(repr=False)
    catalog_id: str | None


class GlueCatalog:
    """Entries of Glue.

    Args:
        endpoint: The service.
        batch: Maximum number of partitions in a request; Glue has lower limits of its own.
        skips_archive: Earlier versions of a table are not kept when it is changed.
        lists_metadata: Queries of Athena list files in the metadata table.

    Raises:
        SetupError: The package boto3 is not installed.
        ConfigError: The region is missing or invalid.
    """

    def __init__(self, endpoint: GlueEndpoint, *, batch: int, skips_archive: bool, lists_metadata: bool) -> None:
        self._endpoint, self._batch = endpoint, batch
        self._skips_archive, self._lists_metadata = skips_archive, lists_metadata
        self._client = _connect(endpoint)
        self._named = {"CatalogId": endpoint.catalog_id} if endpoint.catalog_id else {}

    def __str__(self) -> str:
        return f"AWS Glue in {self._endpoint.region or 'the region of the AWS configuration'}"

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def location(self, uri: str) -> str:
        """Return the location of an entry for the URI of a folder."""
        return s3_uri(uri)

    # --- databases and tables --------------------------------------------------------------------------------------

    def has_database(self, name: str) -> bool:
        """Return True if a database exists."""
        try:
            self._send("get_database", Name=name)
        except NotInCatalogError:
            return False
        return True

    def create_database(self, name: str, description: str) -> None:
        """Create a database, unless another process has just created it."""
        try:
            self._send("create_database", DatabaseInput={"Name": name.lower(), "Description": description})
        except AlreadyInCatalogError:
            return

    def table(self, database: str, name: str) -> CatalogEntry | None:
        """Return a table; None if there is none."""
        try:
            stored = self._send("get_table", DatabaseName=database, Name=name)["Table"]
        except NotInCatalogError:
            return None
        return entry_of(database.lower(), stored)

    def create_table(self, table: CatalogEntry) -> None:
        """Create a table.

        Raises:
            AlreadyInCatalogError: There is one of the name.
        """
        made = {"Name": table.name.lower(), "TableType": table.type, **self._content(table)}
        made["PartitionKeys"] = glue_columns(table.partition_columns)
        self._send("create_table", DatabaseName=table.database, TableInput=made)

    def alter_table(self, table: CatalogEntry, *, cascade: bool = False) -> None:
        """Change columns, location, format and properties of a table to those of ``table``, and nothing else of it.

        Args:
            table: The table with its new content.
            cascade: Change the columns of existing partitions, too.

        Raises:
            NotInCatalogError: There is no such table.
        """
        stored = self._send("get_table", DatabaseName=table.database, Name=table.name)["Table"]
        kept = {key: stored[key] for key in _INPUT if key in stored}
        if cascade:  # first: a sync that fails in between finds the old columns of the table, and continues here
            self.move_partitions(table, self.partitions(table))
        content = self._content(table)
        content["StorageDescriptor"] = {**kept.get("StorageDescriptor", {}), **content["StorageDescriptor"]}
        self._send(
            "update_table",
            DatabaseName=table.database,
            TableInput={**kept, **content},
            SkipArchive=self._skips_archive,
        )

    def drop_table(self, database: str, name: str) -> None:
        """Drop the entry of a table. Files stay."""
        self._send("delete_table", DatabaseName=database, Name=name)

    def _content(self, table: CatalogEntry) -> dict[str, Any]:
        listing = {METADATA_LISTING: str(self._lists_metadata).upper()}
        return {
            "StorageDescriptor": storage_descriptor(table, table.location),
            "Parameters": {**table.properties, **listing},
        }

    # --- partitions ------------------------------------------------------------------------------------------------

    def partitions(self, table: CatalogEntry) -> Iterator[CatalogPartition]:
        """Return all partitions of a table."""
        token: dict[str, str] = {}
        while True:
            page = self._send(
                "get_partitions",
                DatabaseName=table.database,
                TableName=table.name,
                ExcludeColumnSchema=True,
                **token,
            )
            yield from map(partition_of, page["Partitions"])
            if not page.get("NextToken"):
                return
            token = {"NextToken": page["NextToken"]}

    def partitions_of(self, table: CatalogEntry, values: Iterable[Sequence[str]]) -> Iterator[CatalogPartition]:
        """Return those of some partitions that exist, by their values."""
        for some in self._batches(values, _READ):
            wanted = [{"Values": list(one)} for one in some]
            while wanted:
                answer = self._send(
                    "batch_get_partition", DatabaseName=table.database, TableName=table.name, PartitionsToGet=wanted
                )
                yield from map(partition_of, answer["Partitions"])
                rest = list(answer.get("UnprocessedKeys", ()))
                if len(rest) == len(wanted):
                    raise CatalogError(
                        f"{self} does not return {len(rest)} partitions of {table.full_name}; sync again"
                    )
                wanted = rest

    def add_partitions(self, table: CatalogEntry, partitions: Iterable[CatalogPartition]) -> None:
        """Add partitions with the columns and the format of their table. Those that exist are left as they are."""
        for some in self._batches(partitions, _CHANGE):
            answer = self._send(
                "batch_create_partition",
                DatabaseName=table.database,
                TableName=table.name,
                PartitionInputList=[partition_input(table, one) for one in some],
            )
            self._check(answer, "AlreadyExistsException")

    def move_partitions(self, table: CatalogEntry, partitions: Iterable[CatalogPartition]) -> None:
        """Change partitions to the locations, and to the format and columns of their table."""
        for some in self._batches(partitions, _CHANGE):
            entries = [
                {"PartitionValueList": list(one.values), "PartitionInput": partition_input(table, one)} for one in some
            ]
            answer = self._send(
                "batch_update_partition", DatabaseName=table.database, TableName=table.name, Entries=entries
            )
            self._check(answer)

    def touch_partitions(self, table: CatalogEntry, values: Iterable[Sequence[str]]) -> None:
        """Write partitions again as they are."""
        self.move_partitions(table, self.partitions_of(table, values))

    def drop_partitions(self, table: CatalogEntry, values: Iterable[Sequence[str]]) -> None:
        """Drop the entries of partitions, those that exist. Files stay."""
        for some in self._batches(values, _DELETE):
            gone = [{"Values": list(one)} for one in some]
            answer = self._send(
                "batch_delete_partition", DatabaseName=table.database, TableName=table.name, PartitionsToDelete=gone
            )
            self._check(answer, "EntityNotFoundException")

    # --- requests --------------------------------------------------------------------------------------------------

    def _check(self, answer: Mapping[str, Any], harmless: str = "") -> None:
        for error in answer.get("Errors", ()):
            detail = error.get("ErrorDetail", {})
            if detail.get("ErrorCode") != harmless:
                raise CatalogError(f"{self} refused a change of partition {error.get('PartitionValues')}: {detail}")

    def _batches(self, items: Iterable[T], limit: int) -> Iterator[list[T]]:
        iterator = iter(items)
        while some := list(itertools.islice(iterator, min(limit, self._batch))):
            yield some

    def _send(self, request: str, **arguments: Any) -> Mapping[str, Any]:
        from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError, PartialCredentialsError

        call: Callable[..., Mapping[str, Any]] = getattr(self._client, request)
        in_lower_case = {key: arguments[key].lower() for key in _NAMES if key in arguments}
        try:
            return call(**self._named, **arguments | in_lower_case)
        except (NoCredentialsError, PartialCredentialsError) as error:
            raise ConfigError(
                f"no credentials for {self} ({error}); set hoodie.aws.access.key and hoodie.aws.secret.key, or the "
                "environment variables AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or a profile (AWS_PROFILE)"
            ) from error
        except ClientError as error:
            code = str(error.response.get("Error", {}).get("Code", ""))
            if code == "EntityNotFoundException":
                raise NotInCatalogError(f"{self} has no such entry ({error})") from error
            if code == "AlreadyExistsException":
                raise AlreadyInCatalogError(f"{self} has such an entry already ({error})") from error
            refused = RefusedByCatalogError if code == _REFUSED else CatalogError
            raise refused(f"{self} refused the request {request} ({error})") from error
        except BotoCoreError as error:
            raise CatalogError(
                f"{self} does not answer ({error}); check hoodie.aws.glue.region, hoodie.aws.glue.endpoint and the "
                "network"
            ) from error


def _connect(endpoint: GlueEndpoint) -> BaseClient:
    try:
        from boto3.session import Session
        from botocore.exceptions import BotoCoreError
    except ImportError as error:
        raise SetupError("AWS Glue requires the package boto3: pip install 'pyhudi[glue]'") from error
    try:
        return Session().client("glue", region_name=endpoint.region, endpoint_url=endpoint.url, **endpoint.credentials)
    except (BotoCoreError, ValueError) as error:
        raise ConfigError(f"cannot connect to AWS Glue ({error}); set hoodie.aws.glue.region, or AWS_REGION") from error
