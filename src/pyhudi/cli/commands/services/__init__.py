"""Commands of table services and of the sync to catalogs. Takes a table and options, and prints plans, asks, and prints
the results."""
