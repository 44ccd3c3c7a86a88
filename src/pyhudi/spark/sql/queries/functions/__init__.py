"""Table functions of queries.

Takes the arguments of a call and returns its rows as a DataFrame.
"""
