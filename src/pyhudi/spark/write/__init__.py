"""Writes of DataFrames. Takes a DataFrame, a path and options and creates a commit: plans the file groups, routes rows
to tasks and publishes the files that they wrote."""
