"""Sessions, `activate`, the data source, Spark Connect, and the programs and statements of the documentation."""
