"""Apache Hudi tables in Python on PySpark.

`HudiTable` opens, reads, writes and maintains a table by its path. `activate` makes ``format("hudi")`` of Spark use
this library. Everything that does not require Spark works without PySpark.
"""

from __future__ import annotations

import importlib
import importlib.util
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyhudi.api.blob_reads import read_blobs
    from pyhudi.api.change_scan import ChangeScan
    from pyhudi.api.hudi_table import HudiTable
    from pyhudi.api.scan import Scan
    from pyhudi.api.services.repair_services import overwrite_properties
    from pyhudi.api.table_bootstrap import bootstrap_table
    from pyhudi.keygen.custom_key_generator import KeyGenerator, register_key_generator, unregister_key_generator
    from pyhudi.merge.mergers.merger_registry import register_merger, unregister_merger
    from pyhudi.merge.mergers.record_merger import RecordMerger, Records, choose, newer_by_ordering
    from pyhudi.spark.activation.activate import activate, deactivate
    from pyhudi.spark.read.blob_column import read_blob
    from pyhudi.spark.session import configure_spark

__version__ = "0.1.0.dev0"

__all__ = [
    "ChangeScan",
    "HudiTable",
    "KeyGenerator",
    "RecordMerger",
    "Records",
    "Scan",
    "__version__",
    "activate",
    "bootstrap_table",
    "choose",
    "configure_spark",
    "deactivate",
    "newer_by_ordering",
    "overwrite_properties",
    "read_blob",
    "read_blobs",
    "register_key_generator",
    "register_merger",
    "unregister_key_generator",
    "unregister_merger",
]

# Names are imported on first use: Spark's Python workers import few modules, and reading works without PySpark.
_MODULES = {
    "ChangeScan": "pyhudi.api.change_scan",
    "HudiTable": "pyhudi.api.hudi_table",
    "KeyGenerator": "pyhudi.keygen.custom_key_generator",
    "RecordMerger": "pyhudi.merge.mergers.record_merger",
    "Records": "pyhudi.merge.mergers.record_merger",
    "Scan": "pyhudi.api.scan",
    "activate": "pyhudi.spark.activation.activate",
    "bootstrap_table": "pyhudi.api.table_bootstrap",
    "choose": "pyhudi.merge.mergers.record_merger",
    "configure_spark": "pyhudi.spark.session",
    "deactivate": "pyhudi.spark.activation.activate",
    "newer_by_ordering": "pyhudi.merge.mergers.record_merger",
    "overwrite_properties": "pyhudi.api.services.repair_services",
    "read_blob": "pyhudi.spark.read.blob_column",
    "read_blobs": "pyhudi.api.blob_reads",
    "register_key_generator": "pyhudi.keygen.custom_key_generator",
    "register_merger": "pyhudi.merge.mergers.merger_registry",
    "unregister_key_generator": "pyhudi.keygen.custom_key_generator",
    "unregister_merger": "pyhudi.merge.mergers.merger_registry",
}
_SPARK = "pyhudi.spark."
_SUBMODULES = ("errors", "metrics", "report")
"""Those of the public API; `import pyhudi` is enough for them, too."""


def __dir__() -> list[str]:
    # without PySpark, help(pyhudi) and others that look at all names would fail at those that need it
    without_spark = importlib.util.find_spec("pyspark") is None
    return sorted(name for name in __all__ if not (without_spark and _MODULES.get(name, "").startswith(_SPARK)))


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return importlib.import_module(f"pyhudi.{name}")
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        value = getattr(importlib.import_module(_MODULES[name]), name)
    except ModuleNotFoundError as e:
        if e.name is None or not e.name.startswith("pyspark"):
            raise
        from pyhudi.errors import SetupError

        raise SetupError(f"pyhudi.{name} requires PySpark, which is not installed: pip install 'pyhudi[spark]'") from e
    globals()[name] = value
    return value
