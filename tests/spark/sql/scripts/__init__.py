"""Scripts of Spark 4."""
