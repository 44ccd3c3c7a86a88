"""Evolution of schemas: on write, by ALTER TABLE, and in files of older schemas.

Takes the schema of a table and an incoming schema or a change of a column, and returns the next schema, with ids of
columns if the table has them. Rows and files of older schemas are converted, or read by their names of columns.
"""
