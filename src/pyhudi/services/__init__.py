"""Table services: maintenance of a table beside writes. Takes the timeline and file slices and gives plans,
and runs them with a runner that is given: threads of this process or Spark.
"""
