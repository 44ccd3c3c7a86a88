"""Commands by noun: each calls one method of the public API with the arguments of the command line, and prints the
result."""
