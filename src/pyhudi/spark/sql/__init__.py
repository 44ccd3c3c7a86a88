"""SQL on Hudi tables, and tables by name, on a Spark session.

In come the text of a statement (`command_execution.run_sql`), or a DataFrame method with a table's name
(`table_writers`). `pyhudi.sql` parses the statement, `catalog` finds its table, and `ddl`, `dml`, `index_commands`,
`show_commands`, `table_functions` and `procedures` carry it out by the services below. Out goes a DataFrame: the rows
of the query, the small result of a command, or nothing; what concerns no Hudi table goes on to Spark as it is.
"""
