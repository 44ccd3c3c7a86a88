"""Table services on Spark. Takes a plan of a table service and gives its write stats, one Spark task for each file
slice.
"""
