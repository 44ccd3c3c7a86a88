"""Fixtures: Spark with pyhudi activated, and a database for the tables of a test."""

from __future__ import annotations

import pytest

import pyhudi


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
