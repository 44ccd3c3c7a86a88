"""Execution of Spark tasks. Takes Arrow tables and functions and returns DataFrames whose tasks run them; assigns file
groups to tasks, transfers rows to Python workers and caches DataFrames."""
