"""Analysis of conditions in SQL: which restrict one table, compare it with another, or equate the keys of a MERGE.

Takes parsed expressions of sqlglot and returns predicates and names of columns.
"""
