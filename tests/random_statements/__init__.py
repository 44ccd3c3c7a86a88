"""Random SQL statements on tables of pyhudi and of Apache Iceberg, which must have the same rows after each of them."""
