"""The data source that Spark 4 discovers by the name of its package."""
