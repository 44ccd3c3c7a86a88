"""Log files of a file slice. Takes the slice's log files and gives the records of their valid blocks, folded into
one version for each key, in memory or spilled to disk.
"""
