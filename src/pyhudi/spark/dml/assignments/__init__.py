"""Assignments of values to columns.

Takes names of columns with values, and the columns of a table; returns expressions of the types in which the table
stores the values, or refuses values of other types.
"""
