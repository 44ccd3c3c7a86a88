"""Table services: what is done to a table beside writing to it. Takes the timeline and file slices and gives plans,
and runs them with a runner that is given: threads of this process or Spark.
"""
