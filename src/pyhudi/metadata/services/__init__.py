"""Table services of the metadata table itself. Takes its timeline and file slices and gives compactions, cleans and
archived instants.
"""
