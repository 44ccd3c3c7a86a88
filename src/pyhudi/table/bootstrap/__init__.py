"""Tables over the files of another table. Takes the bootstrap index and gives, for a base file that holds nothing but
meta columns, the source file that has the rest.
"""
