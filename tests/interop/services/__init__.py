"""Table services of one side on tables of the other."""
