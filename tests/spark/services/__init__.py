"""Table services on Spark."""
