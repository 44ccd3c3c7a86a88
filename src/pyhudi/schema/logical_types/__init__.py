"""Column types of Apache Hudi 1.2 that Arrow, Avro and Parquet do not have: VECTOR, BLOB and VARIANT.

Each module defines one type: its Arrow type, its forms in Avro, Parquet and Spark, and the metadata by which Spark's
fields say that they have it. Takes types and fields of any of these, and returns types; `vectors` converts values, too.
"""
