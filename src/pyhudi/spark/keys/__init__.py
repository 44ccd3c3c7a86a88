"""Record keys and partition paths as Spark column expressions. Takes a DataFrame and a key specification and returns
the DataFrame with keys and partition paths, one row for each key."""
