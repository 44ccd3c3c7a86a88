"""Tasks of Spark. Takes Arrow tables and functions and gives DataFrames whose tasks run them; places file groups on
tasks, moves rows to Python workers and caches frames.
"""
