"""Row filters. Takes filter tuples, an Arrow expression or SQL text, and gives terms, an Arrow expression and the
predicate that pruning may use.
"""
