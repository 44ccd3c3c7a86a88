"""Fixtures: Spark with pyhudi activated, and a database for the tables of a test."""

from __future__ import annotations

import pytest

import pyhudi
from pyhudi.spark.write import write_execution


@pytest.fixture(scope="module", autouse=True)
def active(spark):
    pyhudi.activate(spark)
    yield
    pyhudi.deactivate()


@pytest.fixture
def database(spark):
    spark.sql("CREATE DATABASE IF NOT EXISTS shop")
    spark.sql("USE shop")
    yield "shop"
    for table in spark.catalog.listTables():
        if table.isTemporary:
            spark.catalog.dropTempView(table.name)
    spark.sql("USE default")
    spark.sql("DROP DATABASE shop CASCADE")


@pytest.fixture
def meanwhile(spark, monkeypatch):
    """Statements of another writer, one of which is run before each commit of a write, the last one first."""
    commit, others = write_execution.commit_write, []

    def commit_after_another(*args, **kwargs):
        if others:
            spark.sql(others.pop())
        return commit(*args, **kwargs)

    monkeypatch.setattr(write_execution, "commit_write", commit_after_another)
    return others
