"""A rewritten query: its text, and the views that replace Hudi tables in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyhudi.spark.sql.queries.query_sources import FunctionSource, Source, ViewSource
from pyhudi.sql.statements import Name


@dataclass(frozen=True, slots=True)
class RewrittenQuery:
    """A query that Spark can run.

    Attributes:
        text: The query with the names of views.
        sources: Sources of these views by name; dependencies come first.
        reads_hudi_tables: The query reads Hudi tables or blobs.
        temporary: Sources of the views that the temporary views of the query use.
        views: Names of these temporary views, and unresolved names, which may become views.
        shown: The views that replace references, by number of the reference.
        query: The query with the original names.
    """

    text: str
    sources: Mapping[str, Source]
    reads_hudi_tables: bool
    temporary: Mapping[str, Source]
    views: tuple[Name, ...]
    shown: Mapping[int, str]
    query: str

    @property
    def locations(self) -> frozenset[str]:
        """Locations of the tables that the query reads."""
        locations: set[str] = set()
        for source in (*self.sources.values(), *self.temporary.values()):
            match source:
                case ViewSource(location=location):
                    locations.add(location)
                case FunctionSource(locations=read):
                    locations.update(read)
        return frozenset(locations)
