"""File groups of the metadata table. Takes changes to a partition and gives its base and log files with their write
stats; opens the HFiles of file slices for readers.
"""
