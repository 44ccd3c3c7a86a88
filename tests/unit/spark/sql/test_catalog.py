"""What is kept of Spark's catalog."""

from __future__ import annotations

from typing import cast

from pyspark.sql import SparkSession

from pyhudi.spark.sql.catalog import NonHudiTableCache


class Session:
    """A session of which only the identity matters."""


def test_names_are_forgotten_with_their_session() -> None:
    """A later session may have the address in memory of one that is gone."""
    cache = NonHudiTableCache()
    session = cast(SparkSession, Session())
    cache.add(session, "db.T")
    assert cache.has(session, "db.t")
    del session
    others = [cast(SparkSession, Session()) for _ in range(1000)]
    assert not any(cache.has(other, "db.t") for other in others)
