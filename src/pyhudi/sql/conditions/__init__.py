"""Analysis of conditions in SQL: which restrict one table, compare it with another, or equate the keys of a MERGE.

In come parsed expressions of sqlglot, out go predicates and names of columns.
"""
