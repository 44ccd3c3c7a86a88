"""Changes of the text of a statement that Spark is to parse, where Spark lacks or misreads what the user wrote.

Takes the text, and what to put in: values of parameters, names, calls of functions, types of columns. Returns the text
with these parts replaced (`pyhudi.sql.text_edits`).
"""
