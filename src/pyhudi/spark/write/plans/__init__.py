"""Plans of writes. Takes a write job and the table as it was at one moment and gives a `WritePlan`: which rows go to
which file groups, and the Spark stages that write them.
"""
