"""Tables bootstrapped from existing files.

Takes the bootstrap index and returns, for a skeleton file with only meta columns, the source file with the other
columns.
"""
