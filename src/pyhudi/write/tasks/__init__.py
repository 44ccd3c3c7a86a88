"""Entry points of write tasks, one per kind of write.

Takes the rows or files of one task and the `WriteContext`, and passes them to the handles of their file groups. Yields
one write status per written file.
"""
