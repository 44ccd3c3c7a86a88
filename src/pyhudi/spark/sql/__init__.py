"""SQL on Hudi tables, and tables by name, on a Spark session.

Takes the text of a statement (`command_execution.run_sql`), or a DataFrame method with a table's name
(`tables_by_name`, `writes_by_name`, `dataframe_writer_v2`). `pyhudi.sql` parses the statement, `catalog` finds its
table, and `commands`, `queries` and `procedures` execute it. Returns a DataFrame: the rows of the query, the small
result of a command, or nothing; statements that concern no Hudi table go to Spark unchanged.
"""
