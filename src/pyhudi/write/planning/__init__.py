"""Planning of file groups. Takes counts of new and changed records and the table's small files, and gives the file
groups to write and the rows that each gets.
"""
