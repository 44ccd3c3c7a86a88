"""Encoding of commit metadata. Takes the fields of a commit and its write stats as an Arrow table, and gives the bytes
of its timeline file, JSON as Jackson prints it or an Avro record; and decodes such bytes."""
