"""Writes of DataFrames. Takes a DataFrame, a path and options and gives a commit: plans the file groups, routes rows
to tasks and publishes what they wrote.
"""
