"""Planning of file groups.

Takes counts of new and changed records and the small files of the table, and returns the file groups to write and the
number of rows for each.
"""
