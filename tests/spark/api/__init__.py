"""`HudiTable` on Spark."""
