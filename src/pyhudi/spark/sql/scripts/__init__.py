"""Scripts of Spark 4 (``BEGIN … END``) that use Hudi tables.

Takes the tree of a script (`pyhudi.sql.scripts`) and runs its statements one by one, each as by ``spark.sql``
(`script_execution`), with variables and cursors in scopes (`script_scopes`). Returns the result of the last query.
"""
