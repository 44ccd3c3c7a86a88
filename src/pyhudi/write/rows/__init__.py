"""Input rows of write handles.

Takes the Arrow batches of a task and returns the rows of one file group at a time, in memory or spilled to disk.
"""
