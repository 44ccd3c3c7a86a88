"""Rows on their way to a write handle. Takes the Arrow batches of a task and gives the rows of one file group at a
time, in memory or spilled to disk.
"""
