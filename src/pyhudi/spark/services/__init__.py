"""Table services on Spark. Takes a plan of a table service and returns its write stats, one Spark task for each file
slice."""
