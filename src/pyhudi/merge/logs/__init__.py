"""Log files of a file slice.

Takes the log files of a slice and returns the records of their valid blocks, folded into one version per key, in memory
or spilled to disk.
"""
