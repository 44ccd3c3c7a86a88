"""Write handles: one for each way to write a file group. Takes rows of a file group and gives a base file or log
file with its marker and write status.
"""
