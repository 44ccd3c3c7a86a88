"""Operations on Arrow data, independent of tables.

Takes arrays, masks and tables, and returns arrays and masks, the runs of rows of each group in sorted rows, or tables
as bytes.
"""
