"""Hudi tables in Spark's session catalog (ADR 18).

A table is stored as a view, with its columns, location and properties, and a query that raises an error with
instructions. A session without pyhudi gets this error for any use of the name, and never the rows of all file versions.
Tables that Apache Hudi itself has registered (provider hudi) are found, too.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from pyhudi.config.option_registry import is_known
from pyhudi.errors import QueryError
from pyhudi.spark.column_names import quoted
from pyhudi.spark.expected_errors import expected_errors
from pyhudi.spark.sql.spark_statements import REDACTED, collect_statement
from pyhudi.sql.statements import Name
from pyhudi.sql.table_properties import MARK, table_options

LOCATION, MANAGED = MARK + "location", MARK + "managed"
MANAGED_TYPE, EXTERNAL_TYPE = "MANAGED", "EXTERNAL"
"""Types of tables that Spark shows."""
_ENCODED = MARK + "encoded"
"""All properties as JSON in hexadecimal digits. Spark redacts values that may be secrets or addresses, and values of
such keys (``spark.redaction.regex``, ``spark.sql.redaction.options.regex``): a location that contains "url", for
instance."""
_ENCODED_TEXT = re.compile(rf"\b{re.escape(_ENCODED)}=([0-9a-f]+)\b")
PATH_PROVIDERS = frozenset({"hudi", "org.apache.hudi"})
_DETAILS = "# Detailed Table Information"
SESSION_CATALOG = "spark_catalog"
_VALID_NAME = re.compile(r"[A-Za-z0-9_]+")
_SCHEME = re.compile(r"^[A-Za-z][\w+.-]*:")
_FORGET_AFTER = 60.0
_PATH_ENABLED = "spark.sql.path.enabled"


@dataclass(frozen=True, slots=True)
class CatalogTable:
    """A Hudi table in the catalog.

    Attributes:
        name: Database and table.
        location: Its path.
        properties: The properties that the user has set, as spelled in SQL.
        managed: Its files are deleted when it is dropped.
        foreign: Apache Hudi registered it; pyhudi does not change its entry.
        write_options: Options of one write, which override the properties and the settings of the session.
    """

    name: Name
    location: str
    properties: Mapping[str, str] = field(default_factory=dict)
    managed: bool = False
    foreign: bool = False
    write_options: Mapping[str, str] = field(default_factory=dict)

    @property
    def sql(self) -> str:
        """The name as SQL."""
        return quoted(self.name)

    @property
    def catalog_type(self) -> str:
        """The type that Spark shows: `MANAGED_TYPE` or `EXTERNAL_TYPE`."""
        return MANAGED_TYPE if self.managed else EXTERNAL_TYPE

    @property
    def is_path(self) -> bool:
        """True if the name is hudi.`path`, not a name in the catalog."""
        return self.name[0].lower() in PATH_PROVIDERS and self.location == self.name[1]

    @property
    def options(self) -> dict[str, str]:
        """Options from the table's properties, those of one write over them. Unknown ones, which the statement that set
        them has warned of, are left out."""
        chosen = {**table_options(self.properties), **self.write_options}
        return {key: value for key, value in chosen.items() if is_known(key)}


@dataclass(frozen=True, slots=True)
class CatalogView:
    """A permanent view, with the catalog and database of the unqualified names in its query."""

    query: str
    namespace: Name
    columns: tuple[str, ...]
    query_columns: tuple[str, ...]
    """Columns of the query by name; empty: they are taken by position."""
    created: str
    """The time at which it was created or replaced, as Spark prints it."""


class NonHudiTableCache:
    """Names of tables of other formats, because looking one up costs more than most statements."""

    def __init__(self) -> None:
        self._added_at: WeakKeyDictionary[SparkSession, dict[tuple[str, str], float]] = WeakKeyDictionary()

    def clear(self) -> None:
        self._added_at.clear()

    def has(self, spark: SparkSession, name: str) -> bool:
        added_at = self._added_at.get(spark, {}).get(self._key(spark, name))
        return added_at is not None and time.monotonic() - added_at < _FORGET_AFTER

    def add(self, spark: SparkSession, name: str) -> None:
        self._added_at.setdefault(spark, {})[self._key(spark, name)] = time.monotonic()

    @staticmethod
    def _key(spark: SparkSession, name: str) -> tuple[str, str]:
        return name.lower(), "" if "." in name else str(spark.catalog.currentDatabase())


non_hudi_tables = NonHudiTableCache()


def full_name(spark: SparkSession, name: Name) -> Name:
    """Return database and table.

    Raises:
        QueryError: The name is of another catalog than the session's.
    """
    if len(name) == 3 and name[0].lower() == SESSION_CATALOG:
        name = name[1:]
    if len(name) > 2:
        raise QueryError(f"Hudi tables are kept in the session catalog; {quoted(name)} is in another catalog")
    return name if len(name) == 2 else (str(spark.catalog.currentDatabase()), name[0])


def check_name(name: Name) -> None:
    """Refuse a name that Spark's catalog would refuse after the table has been created.

    Args:
        name: Database and table.

    Raises:
        QueryError: The name has other characters than ASCII letters, digits and underscores.
    """
    if not _VALID_NAME.fullmatch(name[-1]):
        raise QueryError(
            f"{quoted(name[-1:])} is no name of a table in Spark's catalog: use ASCII letters, digits and underscores"
        )


def find(spark: SparkSession, name: Name) -> CatalogTable | CatalogView | None:
    """Return the Hudi table or the view of a name; None for anything else, and for unknown names.

    Raises:
        QueryError: The name has no database, and SET PATH (Spark 4) says that Spark looks for it elsewhere first.
    """
    entry = _entry(spark, name)
    if entry is None or len(name) > 1 or not _has_other_path(spark):
        return entry
    if isinstance(entry, CatalogView):
        return None  # Spark knows which one is meant
    raise QueryError(
        f"with the path of SET PATH {quoted(name)} may be another table than {entry.sql}, which is a Hudi table; write "
        "database.table"
    )


def _has_other_path(spark: SparkSession) -> bool:
    """Return True if Spark looks for names without a database in another one than the current one first."""
    if spark.version.startswith("3.") or str(spark.conf.get(_PATH_ENABLED, "false")).lower() != "true":
        return False
    entries = str(collect_statement(spark, "SELECT current_path()")[0][0]).lower().split(",")
    current = f"{spark.catalog.currentCatalog()}.{spark.catalog.currentDatabase()}".lower()
    first = next((entry for entry in entries if not entry.startswith("system.")), current)
    return first.replace("`", "") != current


def _entry(spark: SparkSession, name: Name) -> CatalogTable | CatalogView | None:
    """Return the Hudi table or the view of a name in the current database."""
    if len(name) == 2 and name[0].lower() in PATH_PROVIDERS and _is_path(spark, name):
        return CatalogTable(name, name[1])
    if len(name) > 3 or (len(name) == 3 and name[0].lower() != SESSION_CATALOG):
        return None
    text = quoted(name)
    if non_hudi_tables.has(spark, text):
        return None
    try:
        with expected_errors():
            properties = dict(collect_statement(spark, f"SHOW TBLPROPERTIES {text}"))
        if LOCATION in properties:
            properties = _decoded_properties(properties)
            declared = {key: value for key, value in properties.items() if not key.startswith(MARK)}
            managed = properties.get(MANAGED) == "true"
            return CatalogTable(full_name(spark, name), properties[LOCATION], declared, managed)
        entry = _described(spark, name, text, properties)
    except AnalysisException:  # there is no such table
        return None
    if entry is None:
        non_hudi_tables.add(spark, text)
    return entry


def _decoded_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """Return properties with the values that Spark redacts."""
    if REDACTED not in properties.values() or _ENCODED not in properties:
        return dict(properties)
    stored = json.loads(bytes.fromhex(properties[_ENCODED]))
    return {key: stored.get(key, value) if value == REDACTED else value for key, value in properties.items()}


def properties_in_details(information: str) -> dict[str, str] | None:
    """Return the properties of a Hudi table, the catalog's own among them, from what SHOW TABLE EXTENDED prints; None
    for anything else."""
    encoded = _ENCODED_TEXT.search(information)
    return None if encoded is None else dict(json.loads(bytes.fromhex(encoded[1])))


def encoded_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the property from which those values are read that Spark redacts."""
    return {_ENCODED: json.dumps(dict(properties)).encode().hex()}


def _described(
    spark: SparkSession, name: Name, text: str, properties: Mapping[str, str]
) -> CatalogTable | CatalogView | None:
    rows = collect_statement(spark, f"DESCRIBE TABLE EXTENDED {text}")
    heads = [row[0] for row in rows]
    if _DETAILS not in heads:
        return None
    at = heads.index(_DETAILS)
    details = {row[0]: row[1] for row in rows[at + 1 :]}
    if (details.get("Provider") or "").lower() in PATH_PROVIDERS:
        managed = details.get("Type") == MANAGED_TYPE
        return CatalogTable(full_name(spark, name), details["Location"], properties, managed, foreign=True)
    if details.get("Type") != "VIEW" or "View Text" not in details:
        return None
    columns = []
    for head in heads[:at]:
        if not head or head.startswith("#"):
            break
        columns.append(head)
    namespace = _name_parts(details.get("View Catalog and Namespace") or "")
    names = _listed_names(details.get("View Query Output Columns") or "")
    by_name = len(names) == len(columns) == len({name.lower() for name in names})
    created = details.get("Created Time") or ""
    return CatalogView(details["View Text"], namespace, tuple(columns), names if by_name else (), created)


def _name_parts(text: str) -> Name:
    """Parse a name of parts in backquotes, or without."""
    pairs = re.findall(r"`((?:[^`]|``)*)`|([^`.]+)", text)
    return tuple(quoted_part.replace("``", "`") or plain for quoted_part, plain in pairs)


def _listed_names(text: str) -> tuple[str, ...]:
    """Parse a list of names as Spark prints it; Spark 4 quotes them."""
    inner = text.removeprefix("[").removesuffix("]")
    if "`" not in inner:
        return tuple(inner.split(", "))
    pairs = re.findall(r"`((?:[^`]|``)*)`|([^`, ][^,]*)", inner)
    return tuple(quoted_name.replace("``", "`") or plain for quoted_name, plain in pairs)


def _is_path(spark: SparkSession, name: Name) -> bool:
    """Return True if the name is hudi.`path`, not a table of a database with that name."""
    return "/" in name[1] or not spark.catalog.databaseExists(quoted([name[0]]))


def find_table(spark: SparkSession, name: Name) -> CatalogTable | None:
    """Return the Hudi table of a name; None for anything else."""
    entry = find(spark, name)
    return entry if isinstance(entry, CatalogTable) else None


def default_location(spark: SparkSession, name: Name) -> str:
    """Return the location of a managed table."""
    return f"{_database_location(spark, name)}/{name[1].lower()}"


def qualified_location(spark: SparkSession, name: Name, location: str) -> str:
    """Return the location of a table, a relative path as one in the folder of its database, as Spark does.

    Raises:
        QueryError: The location is empty.
    """
    if not location.strip():
        raise QueryError(f"the location of the table {quoted(name)} is empty; leave out LOCATION, or give a path")
    if location.startswith("/") or _SCHEME.match(location):
        return location
    return f"{_database_location(spark, name)}/{location}"


def _database_location(spark: SparkSession, name: Name) -> str:
    return str(spark.catalog.getDatabase(quoted([name[0]])).locationUri).rstrip("/")
