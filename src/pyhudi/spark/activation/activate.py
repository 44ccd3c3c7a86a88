"""Activation of pyhudi in Spark: ``spark.read.format("hudi")`` and ``df.write.format("hudi")`` are handled by pyhudi.

The methods of PySpark's public reader and writer classes, classic and Connect, that name a format, collect options,
load and save are wrapped. Other formats pass through unchanged. Options are recorded in addition to Spark's own,
because Spark offers no way to read them back.
"""

from __future__ import annotations

from typing import overload

from pyspark.sql import SparkSession

from pyhudi.spark.activation.method_wrapping import ORIGINALS, classes, wrap_creator
from pyhudi.spark.activation.wrapped_methods import BY_FORMAT, BY_NAME, WITHOUT_PARSER
from pyhudi.spark.hudi_jar_configs import remove_unloadable_hudi_configs
from pyhudi.spark.session import check_session, check_workers
from pyhudi.sql.sql_parser import has_sql_parser

_MAKERS = (
    ("pyspark.sql.session", "SparkSession", "readStream"),
    ("pyspark.sql.connect.session", "SparkSession", "readStream"),
    ("pyspark.sql.dataframe", "DataFrame", "writeStream"),
    ("pyspark.sql.classic.dataframe", "DataFrame", "writeStream"),
    ("pyspark.sql.connect.dataframe", "DataFrame", "writeStream"),
    ("pyspark.sql.session", "SparkSession", "read"),
    ("pyspark.sql.connect.session", "SparkSession", "read"),
    ("pyspark.sql.dataframe", "DataFrame", "write"),
    ("pyspark.sql.classic.dataframe", "DataFrame", "write"),
    ("pyspark.sql.connect.dataframe", "DataFrame", "write"),
)


@overload
def activate(spark: SparkSession) -> SparkSession: ...


@overload
def activate(spark: None = None) -> None: ...


def activate(spark: SparkSession | None = None) -> SparkSession | None:
    """Let pyhudi handle ``format("hudi")`` (also ``org.apache.hudi``) in all sessions of this process.

    If sqlglot is installed (``pyhudi[sql]``), pyhudi also handles SQL on Hudi tables and references to them by name.

    Does nothing if pyhudi is already active. :func:`deactivate` reverts it.

    Args:
        spark: Session that is checked: that its Python workers can import pyhudi, and that settings for Apache Hudi's
            jar are not in its way; None to skip the checks.

    Returns:
        ``spark``.

    Raises:
        SetupError: ``spark`` is not a session, its workers run a Python that cannot import pyhudi, or a setting names a
            class of Apache Hudi's jar without which ``spark`` cannot run jobs.
    """
    if spark is not None:
        check_session(spark)
        check_workers(spark)
        remove_unloadable_hudi_configs(spark)
    for module, name, attribute in _MAKERS:
        for cls in classes(((module, name),)):
            wrap_creator(cls, attribute)
    by_name = BY_NAME if has_sql_parser() else WITHOUT_PARSER
    for methods in (*BY_FORMAT, *by_name):
        methods.wrap()
    return spark


def deactivate() -> None:
    """Revert :func:`activate`."""
    for (cls, name), original in ORIGINALS.items():
        setattr(cls, name, original)
    ORIGINALS.clear()
