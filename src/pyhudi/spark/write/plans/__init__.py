"""Plans of writes. Takes a write job and the table as of one instant and returns a `WritePlan`: the assignment of rows
to file groups, and the Spark stages that write them."""
