"""Built-in merge modes. Takes versions of records with their ordering values and delete markers, and gives one
version for each record by commit time or event time.
"""
