"""Services of a table, as users call them. Takes the table's path and Apache Hudi's options, chooses Spark or threads,
and hands over to `pyhudi.services`; gives plans and results."""

from __future__ import annotations

from pyhudi.table_services.table_services import TableServices

__all__ = ["TableServices"]
