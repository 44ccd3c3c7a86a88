"""Conversion of schemas between Arrow, Avro and Spark, without Spark.

Takes an Arrow schema, and returns the JSON of the Avro record that Apache Hudi would write, the JSON of Spark's
StructType, or the Arrow types that Spark takes from Python. Both kinds of JSON are read back, too.
"""
