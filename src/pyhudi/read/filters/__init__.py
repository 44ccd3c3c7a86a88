"""Row filters.

Takes filter tuples, an Arrow expression or SQL text, and returns terms, an Arrow expression and the predicate for
pruning.
"""
