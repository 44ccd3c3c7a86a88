"""Column types of Apache Hudi 1.2 that Arrow, Avro and Parquet do not have: VECTOR, BLOB and VARIANT.

Each module defines one type: its Arrow type, its forms in Avro, Parquet and Spark, and the metadata that marks fields
of Spark schemas. The functions convert types and fields; those of `vectors` convert values, too.
"""
