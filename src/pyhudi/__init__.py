"""Apache Hudi tables, written and served by Python on PySpark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyhudi.hudi_table import HudiTable
from pyhudi.merge.merger import RecordMerger, Records, choose, newer_by_ordering
from pyhudi.merge.registry import register_merger, unregister_merger
from pyhudi.scan import Scan

if TYPE_CHECKING:
    from pyhudi.spark.activate import activate, deactivate
    from pyhudi.spark.session import configure_spark

__version__ = "0.1.0.dev0"

__all__ = [
    "HudiTable",
    "RecordMerger",
    "Records",
    "Scan",
    "__version__",
    "activate",
    "choose",
    "configure_spark",
    "deactivate",
    "newer_by_ordering",
    "register_merger",
    "unregister_merger",
]

_SPARK = {
    "activate": "pyhudi.spark.activate",
    "configure_spark": "pyhudi.spark.session",
    "deactivate": "pyhudi.spark.activate",
}


def __getattr__(name: str) -> Any:
    # what needs PySpark is imported when asked for: reading works without it
    if name not in _SPARK:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    from pyhudi.errors import SetupError

    try:
        return getattr(importlib.import_module(_SPARK[name]), name)
    except ModuleNotFoundError as e:
        if e.name is None or not e.name.startswith("pyspark"):
            raise
        raise SetupError(f"pyhudi.{name} needs PySpark, which is not installed: pip install 'pyhudi[spark]'") from e
