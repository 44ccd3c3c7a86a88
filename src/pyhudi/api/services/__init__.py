"""Public services of a table.

Takes the path of a table and Apache Hudi's options, selects Spark or threads, and calls `pyhudi.services`; returns
plans and results.
"""

from __future__ import annotations

from pyhudi.api.services.table_services import TableServices

__all__ = ["TableServices"]
