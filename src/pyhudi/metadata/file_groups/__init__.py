"""File groups of the metadata table.

Writes changes of a partition to base and log files and returns their write stats; opens the HFiles of file slices for
readers.
"""
