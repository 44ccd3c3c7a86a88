"""Write handles, one per way to write a file group.

Takes rows of a file group and creates a base file or log file with its marker and write status.
"""
