"""SQL on Hudi tables: `pyhudi.sql` says what a statement wants, this carries it out on a Spark session."""
