"""Table services: maintenance of a table, concurrent with writes.

Takes the timeline and file slices, creates plans, and executes them with a given runner: threads of this process or
Spark.
"""
